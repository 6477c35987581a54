"""Sixteen clients in one process, each with a kept connection: acquire, hold, now and then run something, release.

It prints when which device was held, on the clock that all processes of the machine share, and how long each waited.
"""

import asyncio
import json
import random
import sys
import time
from typing import Any

import httpx
from tests.support.worker_service import verify_package

CLIENTS, HOLD_S, VERIFY_OF, LEASE_OF, GIVE_UP_OF = 16, 0.02, 400, 4, 50


class Crowd:
    """The clients, and what they saw."""

    def __init__(self, url: str, until: float, marker: str, number: int) -> None:
        self._url = url
        self._until = until
        self._dice = random.Random(number)
        self._package = verify_package(f"import time; time.sleep(0.1)  # {marker}")
        self.told: dict[str, Any] = {"spans": [], "waits": [], "refused": 0}

    async def all(self, number: str) -> None:
        """Every client of this process."""
        await asyncio.gather(*(self._one(f"client{number}-{each}") for each in range(CLIENTS)))

    async def _one(self, task: str) -> None:
        async with httpx.AsyncClient(base_url=self._url, timeout=120, trust_env=False) as client:
            while time.time() < self._until:
                if self._dice.randrange(GIVE_UP_OF):
                    await self._turn(client, task)
                else:
                    await self._impatient(task)

    async def _turn(self, client: httpx.AsyncClient, task: str) -> None:
        leased = not self._dice.randrange(LEASE_OF)
        began = time.monotonic()
        path = "/api/v1/leases" if leased else "/api/v1/acquire_device"
        answer = await client.post(path, data={"task_id": task} | ({"ttl_s": "30"} if leased else {}))
        if answer.status_code != 200:
            self.told["refused"] += 1
            return
        begin = time.monotonic()
        body = answer.json()
        self.told["waits"].append(begin - began)
        await asyncio.sleep(HOLD_S)
        if not self._dice.randrange(VERIFY_OF):
            files = {"package": ("package.tar", self._package, "application/x-tar")}
            done = await client.post("/api/v1/verify", data={"task_id": task, "op_name": "relu"}, files=files)
            self.told["refused"] += done.status_code != 200 or not done.json()["success"]
        self.told["spans"].append((begin, time.monotonic(), body["device_id"]))
        if leased:
            await client.post(f"/api/v1/leases/{body['lease_id']}/release", data={"token": str(body["token"])})
        else:
            await client.post("/api/v1/release_device", data={"task_id": task, "device_id": str(body["device_id"])})

    async def _impatient(self, task: str) -> None:
        """Somebody who hangs up while it waits."""
        try:
            async with httpx.AsyncClient(base_url=self._url, timeout=0.05, trust_env=False) as client:
                got = await client.post("/api/v1/acquire_device", data={"task_id": f"{task}-impatient"})
            async with httpx.AsyncClient(base_url=self._url, timeout=60, trust_env=False) as client:
                data = {"task_id": f"{task}-impatient", "device_id": str(got.json()["device_id"])}
                await client.post("/api/v1/release_device", data=data)
        except httpx.TimeoutException:
            return


def main() -> None:
    """Run until the time that is given."""
    url, until, marker, number = sys.argv[1:]
    crowd = Crowd(url, float(until), marker, int(number))
    asyncio.run(crowd.all(number))
    print(json.dumps(crowd.told))


if __name__ == "__main__":
    main()
