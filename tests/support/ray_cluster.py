"""A Ray cluster of this machine: a head, and nodes that say they have NPUs."""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SOC = "ascend910b4"
_DRIVER = """
import asyncio, json, sys
from akf.fabric.ray import RayWorker
from tests.support.worker_service import verify_package

async def main():
    worker = RayWorker("ascend", "%s", sys.argv[1])
    devices = [await worker.acquire_device(f"held-{number}") for number in range(int(sys.argv[2]))]
    running = asyncio.create_task(worker.verify(verify_package(sys.argv[3]), "held-0", "relu", 300))
    print(json.dumps(devices), flush=True)
    await running

asyncio.run(main())
"""


@contextmanager
def cluster(*nodes: dict[str, float], head: dict[str, float] | None = None) -> Iterator[Any]:
    """A cluster with these nodes, each by its resources, for the time of a block."""
    ray, utils = importlib.import_module("ray"), importlib.import_module("ray.cluster_utils")
    with tempfile.TemporaryDirectory(prefix="akf-ray-") as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", state)  # of the nodes, which keep their leases there
        yield from _running(ray, utils, nodes, head)


def _running(ray: Any, utils: Any, nodes: tuple[dict[str, float], ...], head: dict[str, float] | None) -> Iterator[Any]:
    with contextlib.redirect_stderr(io.StringIO()):
        found = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "resources": head or {}})
    try:
        for resources in nodes:
            found.add_node(num_cpus=1, resources=resources)
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


def node_in_use(found: Any) -> Any:
    """The node of which an NPU is held."""
    state = importlib.import_module("ray._private.state")
    ray = importlib.import_module("ray")
    free = state.available_resources_per_node()
    by_id = {node.node_id: node for node in found.worker_nodes}
    for node in ray.nodes():
        name = node["NodeID"]  # one just removed may still be listed, and one just added may have said nothing yet
        known = node["Alive"] and name in by_id and name in free
        if known and node["Resources"].get("NPU") and not free[name].get("NPU"):
            return by_id[name]
    return None


@contextmanager
def driver(address: str, devices: int, script: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds devices and runs a script on the first; it is killed at the end."""
    argv = [sys.executable, "-c", _DRIVER % SOC, address, str(devices), script]
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])}
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert len(json.loads(process.stdout.readline())) == devices
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def marked(nodes: int, npus: float = 1, soc: str = SOC) -> list[dict[str, float]]:
    """Nodes with so many NPUs each."""
    return [{"NPU": npus, f"akf_soc_{soc}": 1} for _ in range(nodes)]
