"""The Worker Service over a pipe: the same answers as over a port, at once and for several at the same time."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.worker_service import WAIT_S, eventually, processes_with, verify_package

from akf.fabric.pipe import PipeTransport


@asynccontextmanager
async def pipe(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    argv = [sys.executable, "-m", "akf", "worker", "--stdio", "--backend", "cpu", "--arch", "x86_64"]
    transport = PipeTransport([*argv, "--folder", str(folder)])
    async with httpx.AsyncClient(transport=transport, base_url="http://board", timeout=WAIT_S) as client:
        yield client


async def verify(client: httpx.AsyncClient, script: str, timeout_s: float = WAIT_S) -> httpx.Response:
    files = {"package": ("package.tar", verify_package(script), "application/x-tar")}
    fields = {"task_id": "t", "op_name": "relu", "timeout": "60"}
    return await client.post("/api/v1/verify", data=fields, files=files, timeout=timeout_s)


def test_a_pipe_answers_as_a_port_does(tmp_path: Path) -> None:
    async def check() -> None:
        async with pipe(tmp_path / "state") as client:
            assert (await client.get("/api/v1/status")).json() == {
                "status": "ready", "backend": "cpu", "arch": "x86_64", "devices": [0],
            }  # fmt: skip
            assert (await client.post("/api/v1/acquire_device", data={"task_id": "t"})).json() == {"device_id": 0}
            waiting = asyncio.create_task(client.post("/api/v1/acquire_device", data={"task_id": "u"}))
            body = (await verify(client, "print('x' * 200_000)\nraise SystemExit(1)")).json()
            assert (body["success"], len(body["log"])) == (False, 200_002)
            assert (await client.get("/api/v1/docs/none?a=1")).status_code == 404
            assert (await client.post("/api/v1/verify", data={"task_id": "t"})).status_code == 422
            async with client.stream("GET", "/api/v1/events", headers={"last-event-id": "1"}) as events:
                lines = events.aiter_lines()
                assert await anext(lines) == ": events"
            with pytest.raises(httpx.ReadTimeout):
                await verify(client, "import time; time.sleep(300) # pipe", 1)
            released = await client.post("/api/v1/release_device", data={"task_id": "t", "device_id": "0"})
            assert released.json() == {"status": "ok"}
            assert (await waiting).json() == {"device_id": 0}

    asyncio.run(check())


@pytest.mark.soak
def test_when_the_other_side_is_gone_everything_ends(tmp_path: Path) -> None:
    async def check() -> None:
        code = "import time; time.sleep(300) # gone"
        script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}])"
        async with pipe(tmp_path / "state") as client:
            going = asyncio.create_task(verify(client, script))
            await asyncio.to_thread(eventually, lambda: bool(processes_with("# gone")), "it runs")
            await client.aclose()
            assert (await going).status_code == 499

    asyncio.run(check())
    eventually(lambda: processes_with("# gone") == [], "nothing survives")
