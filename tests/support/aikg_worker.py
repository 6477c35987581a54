"""A Worker Service as the AIKG wire has it, made from the contract alone, by the standard library.

It has that contract's weaknesses on purpose: no `outcome`, no leases with an end, no cancel, no check of who releases.
Run as a program it prints its address: `python -m tests.support.aikg_worker cpu x86_64 0,1 PORT`.
"""

from __future__ import annotations

import base64
import io
import json
import queue
import subprocess
import sys
import tarfile
import tempfile
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs


class Service(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, backend: str, arch: str, devices: list[int], port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.about = {"status": "ready", "backend": backend, "arch": arch, "devices": devices}
        self.pool: queue.Queue[int] = queue.Queue()
        for device in devices:
            self.pool.put(device)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        known = self.path == "/api/v1/status"
        self._answer(200 if known else 404, self.server.about if known else {"detail": "Not Found"})

    def do_POST(self) -> None:
        fields = self._fields()
        name = self.path.removeprefix("/api/v1/")
        if name == "acquire_device":
            self._answer(200, {"device_id": self.server.pool.get()})
        elif name == "release_device":
            self.server.pool.put(int(fields["device_id"]))
            self._answer(200, {"status": "ok"})
        elif name in {"verify", "generate_reference"}:
            body = _run(fields, f"verify_{fields['op_name']}.py", float(fields.get("timeout", "300")))
            if name == "generate_reference":
                data = body.pop("artifacts").get(f"{fields['op_name']}_reference.pt", "")
                body["reference_data"] = base64.b64encode(data.encode()).decode()
            self._answer(200, body)
        elif name == "profile":
            self._answer(200, _profile(fields))
        else:
            self._answer(404, {"detail": "Not Found"})

    def _fields(self) -> dict[str, Any]:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        kind = self.headers.get("content-type", "")
        if kind.startswith("application/x-www-form-urlencoded"):
            return {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
        message = BytesParser(policy=HTTP).parsebytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + body)
        fields: dict[str, Any] = {}
        for part in message.iter_parts():
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            name = part.get_param("name", header="content-disposition")
            fields[str(name)] = content if part.get_filename() else content.decode()
        return fields

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _run(fields: dict[str, Any], script: str, limit_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as work:
        try:
            with tarfile.open(fileobj=io.BytesIO(fields["package"])) as tar:
                tar.extractall(work, filter="data")
        except tarfile.TarError as error:
            return {"success": False, "log": f"Failed to extract package: {error}", "artifacts": {}}
        if not (Path(work) / script).exists():
            return {"success": False, "log": f"Verification script {script} not found.", "artifacts": {}}
        try:
            done = subprocess.run([sys.executable, script], cwd=work, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return {"success": False, "log": f"Verification timed out after {limit_s:.0f} seconds.", "artifacts": {}}
        found = {path.relative_to(work).as_posix(): path.read_text() for path in Path(work).rglob("*.json")}
        log = f"{done.stdout.decode()}\n{done.stderr.decode()}"
        return {"success": done.returncode == 0, "log": log, "artifacts": found}


def _profile(fields: dict[str, Any]) -> dict[str, Any]:
    times = {}
    for name in ("base", "generation"):
        found = _run(fields, f"profile_{fields['op_name']}_{name}.py", 600)["artifacts"]
        result = json.loads(found.get(f"{name}_profile_result.json", "{}"))
        times[name] = result.get("avg_time_us")
    base, made = times["base"], times["generation"]
    return {"gen_time": made, "base_time": base, "speedup": base / made if base and made else 0.0, "artifacts": {}}


def main() -> None:
    backend, arch, devices, port = sys.argv[1:]
    service = Service(backend, arch, [int(each) for each in devices.split(",")], int(port))
    print(f"http://127.0.0.1:{service.server_address[1]}", flush=True)
    service.serve_forever()


if __name__ == "__main__":
    main()
