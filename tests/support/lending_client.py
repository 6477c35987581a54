"""Sixteen clients in one process, each with a kept connection: acquire, hold, now and then run something, release.

It prints when which device was held, on the clock that all processes of the machine share, and how long each waited.
A connection is a plain socket: on a machine with few processors a client must cost less than what it asks.
"""

import asyncio
import json
import random
import sys
import time
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.support.worker_service import verify_package

CLIENTS, HOLD_S, PATIENCE_S = 16, 0.02, 0.05
VERIFY_OF, LEASE_OF, GIVE_UP_OF = 400, 4, 50
FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"


class Connection:
    """A kept connection to the service."""

    def __init__(self, url: str) -> None:
        self._host, self._port = urlsplit(url).hostname, urlsplit(url).port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, data: dict[str, str] | bytes) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer."""
        body, kind = (data, PARTS) if isinstance(data, bytes) else (urlencode(data).encode(), FORM)
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        got = await reader.readuntil(b"\r\n\r\n")
        size = int(got.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return int(got.split()[1]), json.loads(await reader.readexactly(size))

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()


class Crowd:
    """The clients, and what they saw."""

    def __init__(self, url: str, until: float, marker: str, number: str) -> None:
        self._url = url
        self._until = until
        self._number = number
        self._dice = random.Random(number)
        self._package = verify_package(f"import time; time.sleep(0.1)  # {marker}")
        self.told: dict[str, Any] = {"spans": [], "waits": [], "refused": 0}

    async def all(self) -> None:
        """Every client of this process."""
        await asyncio.gather(*(self._one(f"client{self._number}-{each}") for each in range(CLIENTS)))

    async def _one(self, task: str) -> None:
        connection = Connection(self._url)
        while time.time() < self._until:
            if self._dice.randrange(GIVE_UP_OF):
                await self._turn(connection, task)
            else:
                await self._impatient(f"{task}-impatient")
        connection.close()

    async def _turn(self, connection: Connection, task: str) -> None:
        leased = not self._dice.randrange(LEASE_OF)
        began = time.monotonic()
        wanted = {"task_id": task} | ({"ttl_s": "30"} if leased else {})
        status, body = await connection.post("leases" if leased else "acquire_device", wanted)
        if status != 200:
            self.told["refused"] += 1
            return
        begin = time.monotonic()
        self.told["waits"].append(begin - began)
        await asyncio.sleep(HOLD_S)
        if not self._dice.randrange(VERIFY_OF):
            status, done = await connection.post("verify", self._form(task))
            self.told["refused"] += status != 200 or not done["success"]
        self.told["spans"].append((begin, time.monotonic(), body["device_id"]))
        if leased:
            await connection.post(f"leases/{body['lease_id']}/release", {"token": str(body["token"])})
        else:
            await connection.post("release_device", {"task_id": task, "device_id": str(body["device_id"])})

    def _form(self, task: str) -> bytes:
        part = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n'
        fields = ""
        for name, value in (("task_id", task), ("op_name", "relu")):
            fields += f"{part.format(name, '')}{value}\r\n"
        package = part.format("package", '; filename="package.tar"').encode() + self._package
        return fields.encode() + package + b"\r\n--x--\r\n"

    async def _impatient(self, task: str) -> None:
        """Somebody who hangs up while it waits."""
        connection = Connection(self._url)
        try:
            async with asyncio.timeout(PATIENCE_S):
                _, got = await connection.post("acquire_device", {"task_id": task})
            await connection.post("release_device", {"task_id": task, "device_id": str(got["device_id"])})
        except TimeoutError:
            pass
        finally:
            connection.close()


def main() -> None:
    """Run until the time that is given."""
    url, until, marker, number = sys.argv[1:]
    crowd = Crowd(url, float(until), marker, number)
    asyncio.run(crowd.all())
    print(json.dumps(crowd.told))


if __name__ == "__main__":
    main()
