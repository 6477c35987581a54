"""A stand-in for an OpenAI-compatible endpoint on this machine: it plays a conversation and keeps the questions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = str | Callable[[BaseHTTPRequestHandler], None]


class Endpoint:
    """Answers in their order; the last one is given again for ever."""

    def __init__(self, answers: Sequence[Answer], tokens: int = 100) -> None:
        self.answers = list(answers)
        self.tokens = tokens
        self.questions: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.url = ""
        self._lock = threading.Lock()

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        question = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            answer = self.answers[min(len(self.questions), len(self.answers) - 1)]
            self.questions.append(question)
            self.keys.append(handler.headers.get("Authorization"))
        if callable(answer):
            answer(handler)
            return
        message = {"role": "assistant", "content": answer}
        send(handler, {
            "id": "x", "object": "chat.completion", "created": 0, "model": question["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 0, "completion_tokens": self.tokens, "total_tokens": self.tokens},
        })  # fmt: skip


def send(handler: BaseHTTPRequestHandler, value: Any, status: int = 200) -> None:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


@contextmanager
def endpoint(answers: Sequence[Answer], tokens: int = 100) -> Iterator[Endpoint]:
    """The endpoint, for as long as the block."""
    stand_in = Endpoint(answers, tokens)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            stand_in.reply(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
