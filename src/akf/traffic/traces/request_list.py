"""The request list that legs replay: JSON Lines, one canonical object a request.

Invariants:
- A line holds `arrival_ns` (from the first request of the list), `input_tokens`, `output_tokens`, and, where the trace
  has them, `block_ids` and `session`, both numbered in the order of their first appearance; no session is null.
- The same requests give the same bytes: fields in the order of their names, no spaces, LF. Its SHA-256 is the
  Workload's `digest_of_requests`.
- It can be walked many times and is never held whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from akf.traffic.traces.requests import Requests

_LINES = 4096


class RequestList:
    """Numbered requests as bytes."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def __iter__(self) -> Iterator[bytes]:
        total = len(self._requests)
        for start in range(0, total, _LINES):
            lines = [self._line(index) for index in range(start, min(start + _LINES, total))]
            yield "".join(lines).encode("ascii")

    def digest(self) -> str:
        """SHA-256 of the list."""
        sha = hashlib.sha256()
        for part in self:
            sha.update(part)
        return f"sha256:{sha.hexdigest()}"

    def _line(self, index: int) -> str:
        requests = self._requests
        blocks = f'"block_ids":[{",".join(map(str, requests.blocks_of(index)))}],' if requests.ends else ""
        session = ""
        if requests.sessions:
            number = requests.sessions[index]
            session = f',"session":{"null" if number is None else number}'
        return (
            f'{{"arrival_ns":{requests.times[index] - requests.times[0]},{blocks}'
            f'"input_tokens":{requests.inputs[index]},"output_tokens":{requests.outputs[index]}{session}}}\n'
        )
