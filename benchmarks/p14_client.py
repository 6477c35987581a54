"""P14: what a client of the Server costs, against how clients of the AIKG services call.

The peers are what clients of the AIKG services do: `requests` without a session, and a question every two seconds. Both
sides talk to the same Server; both must give the same answer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import requests

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import compare, report  # noqa: E402
from tests.support import services  # noqa: E402
from tests.support.services import JOB  # noqa: E402

from akf.client import AKFClient  # noqa: E402 (the checkout comes first)

CALLS = 50
POLL_S = 2.0


NOBODY = "no coder configured"


def same(one: object, other: object) -> None:
    """Both sides give the same answer, or nothing is timed."""
    if one != other:
        raise SystemExit(f"{one} is not {other}")


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        services.server(Path(folder) / "store") as server,
        services.aikg_worker() as worker,
        AKFClient(server.url) as client,
    ):
        client.register_worker(worker.url, "cpu", "x86_64")
        url = f"{server.url}/api/v1/workers/status"
        same(client.get_workers_status(), requests.get(url, timeout=30).json())

        def kept() -> None:
            for _ in range(CALLS):
                client.get_workers_status()

        def anew() -> None:
            for _ in range(CALLS):
                requests.get(url, timeout=30).json()

        report("P14", f"{CALLS} calls: kept connections against requests without a session", "< 1", compare(kept, anew))

        def by_events() -> None:
            job = client.submit_job(**JOB)
            same(client.wait_for_completion(job)["error"], NOBODY)

        def by_polling() -> None:
            job = client.submit_job(**JOB)
            over: dict[str, Any] = {"status": "pending"}
            while over["status"] in {"pending", "running"}:
                over = requests.get(f"{server.url}/api/v1/jobs/{job}/status", timeout=30).json()
                if over["status"] in {"pending", "running"}:
                    time.sleep(POLL_S)
            same(over["error"], NOBODY)

        report("P14", "a job's end: events against a question every 2 s", "< 1", compare(by_events, by_polling, 5))

        begun = time.perf_counter()
        for _ in range(CALLS):
            client.submit_job(**JOB)
        spent = time.perf_counter() - begun
        print(f"    {CALLS / spent:.0f} submissions a second, each on the disk before it is answered")


if __name__ == "__main__":
    main()
