"""A Server as the AIKG wire has it, made from the contract alone, by the standard library: no events, no lists.

A job runs for as long as its `op_name` says (`sleep_2`), then ends `completed`, or `failed` for the operator `wrong`.
Run as a program it prints its address: `python -m tests.support.aikg_server`.
"""

from __future__ import annotations

import json
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FIELDS = ("job_type", "backend", "arch", "dsl", "framework", "workflow")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    jobs: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - one service a process
    workers: list[dict[str, Any]] = []  # noqa: RUF012

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = self.path.split("/")
        if self.path == "/api/v1/workers/status":
            self._answer(200, [{name: each[name] for name in ("backend", "arch", "tags")} for each in self.workers])
        elif self.path.startswith("/api/v1/jobs/") and parts[-1] == "status":
            job = self.jobs.get(parts[-2])
            self._answer(200, _status(job)) if job else self._answer(404, {"detail": "Job not found"})
        else:
            self._answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or "{}")
        parts = self.path.split("/")
        if self.path == "/api/v1/jobs/submit":
            if "class Model" not in body["task_desc"]:
                self._answer(400, {"detail": "task_desc must define class Model"})
                return
            identity = str(uuid.uuid4())
            seconds = float(body["op_name"].partition("_")[2] or 0)
            self.jobs[identity] = {**body, "until": time.monotonic() + seconds, "cancelled": False}
            self._answer(200, {"job_id": identity})
        elif self.path == "/api/v1/workers/register":
            self.workers.append(body)
            self._answer(200, {"status": "registered"})
        elif parts[-1] == "cancel" and parts[-2] in self.jobs:
            self.jobs[parts[-2]]["cancelled"] = True
            self._answer(200, {"cancelled": True})
        else:
            self._answer(404, {"detail": "Job not found"})

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _status(job: dict[str, Any]) -> dict[str, Any]:
    over = time.monotonic() >= job["until"]
    success = job["op_name"] != "wrong"
    status = "cancelled" if job["cancelled"] else "running" if not over else "completed" if success else "failed"
    result = {"success": success, "code": job.get("init_code")} if status in {"completed", "failed"} else None
    return {
        "status": status, "job_type": job["job_type"], "op_name": job["op_name"], "submit_time": 12.5, "result": result,
        "error": None,
    }  # fmt: skip


def main() -> None:
    service = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{service.server_address[1]}", flush=True)
    service.serve_forever()


if __name__ == "__main__":
    main()
