"""Evolve a Triton kernel for a torch module: a model writes, a worker verifies.

    python examples/run_torch_evolve_triton.py --worker local
    python examples/run_torch_evolve_triton.py --worker remote --worker-url http://127.0.0.1:9001

A model is named by AKF_MODEL and AKF_MODEL_URL. `--worker local` uses device 0 of this machine; `--worker remote` a
Worker Service, by default the one of AKF_WORKER_URL or AIKG_WORKER_URL, and looks for no hardware here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from akf.agents.executors import evolve
from akf.contracts.problems import AkfError
from akf.fabric.manager import get_worker_manager, register_local_worker, register_remote_worker
from akf.server.executors import JobContext

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def get_inputs():
    return [torch.rand(16, 16384)]


def get_init_inputs():
    return []
"""
PATIENCE_S = 60.0


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Register the worker, then run the job."""
    if options.worker == "remote":
        await register_remote_worker(options.backend, options.arch, worker_url=options.worker_url)
    else:
        await register_local_worker([0], options.backend, options.arch)
    request = {
        "op_name": "relu", "task_desc": REFERENCE, "job_type": "evolve", "backend": options.backend,
        "arch": options.arch, "dsl": options.dsl, "framework": "torch", "workflow": "coder_only_workflow",
        "max_rounds": options.rounds, "parallel_num": options.children, "num_islands": 1,
    }  # fmt: skip

    def tell(kind: str, data: dict[str, Any]) -> None:
        print(kind, json.dumps(data)[:300], file=sys.stderr, flush=True)

    job = JobContext("run_torch_evolve_triton", "anonymous", request, get_worker_manager(), tell, PATIENCE_S)
    ended = await evolve(job)
    return {"status": ended.status, "error": ended.error, "result": ended.result}


def main() -> int:
    """Parse, run, print one document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--worker", choices=("local", "remote"), default="local")
    parser.add_argument("--worker-url", default=None)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--arch", default="a100")
    parser.add_argument("--dsl", default="triton_cuda")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--children", type=int, default=2)
    try:
        found = asyncio.run(run(parser.parse_args()))
    except AkfError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(found, indent=2))
    return 0 if found["status"] == "completed" else 10


if __name__ == "__main__":
    sys.exit(main())
