"""Where a python candidate's tensors live: one small interface over `cpu`, `cuda` and `npu`.

Invariants:
- torch is imported here and in nothing of the parent; a device is a row of a table and the same calls for all.
- What is missing is said in words, beforehand: no torch, no plug-in, no device.
- On the processor the arena itself holds the inputs, and a result's bytes are copied out inside the timed region.
  A device has buffers of its own: inputs are staged before the clock starts, results are fetched after it stopped, and
  before it stops the device has ended all that was launched.

Self-contained: it is sent to the child as text.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional

_LINE_BYTES = 64


class Kind(NamedTuple):
    """What differs between devices: a package beside torch, and whether tensors lie elsewhere than in the arena."""

    plugin: Optional[str]
    copies: bool


KINDS = {"cpu": Kind(None, copies=False), "cuda": Kind(None, copies=True), "npu": Kind("torch_npu", copies=True)}


def prepare(name: str, threads: int) -> dict[str, Any]:
    """Import torch for a device, in the template. Returns versions, or `missing` with what is not there."""
    kind = KINDS[name]
    try:
        import torch  # noqa: PLC0415 - the parent and children of the other ABI never import it
    except ImportError as error:
        return {"missing": f"torch: {error} (python -m pip install torch, into the interpreter that measures)"}
    torch.set_num_threads(threads)
    found = {"torch": torch.__version__, "device": name, "threads": threads}
    if kind.plugin is not None:
        try:
            plugin = __import__(kind.plugin)
        except (ImportError, OSError) as error:
            return {"missing": f"{kind.plugin}: {error}"}
        found[kind.plugin] = str(plugin.__version__)
    missing = _without_device(name) if kind.copies else ""
    return {"missing": missing} if missing else found


def _without_device(name: str) -> str:
    """Ask for the device in a process that is thrown away: a runtime that was started does not survive a fork."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, Device(name).fault().encode()[:500])
        except Exception as error:  # noqa: BLE001 - runtimes raise what they like
            os.write(writer, f"{type(error).__name__}: {error}".encode()[:500])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read().decode("utf-8", "replace")
    os.waitpid(pid, 0)
    return text


class Device:
    """The calls that a worker makes."""

    def __init__(self, name: str) -> None:
        import torch  # noqa: PLC0415 - as above

        self.name = name
        self.copies = KINDS[name].copies
        self._space: Any = getattr(torch, name, None)
        self._empty, self._pointer, self._strided = torch.empty, torch.Tensor.data_ptr, torch.Tensor.as_strided

    def fault(self) -> str:
        """Why the device cannot be used; empty when it can."""
        if not self.copies:
            return ""
        if self._space is None or not self._space.is_available():
            return f"{self.name}: torch finds no such device"
        return ""

    def start(self) -> None:
        """Start the device's runtime, with the threads that it keeps, before any code of a candidate's runs."""
        if self.copies:
            self._empty((1,), device=self.name)
            self.synchronize()

    def like(self, tensor: Any) -> Any:
        """An uninitialised buffer on the device with a tensor's type, shape, strides and place within a line."""
        shape, strides = tuple(tensor.shape), tensor.stride()
        span = 1 + sum((size - 1) * step for size, step in zip(shape, strides) if size)  # noqa: B905 - Python 3.9
        shift = self._pointer(tensor) % _LINE_BYTES // tensor.element_size()
        return self._strided(self._empty(shift + span, dtype=tensor.dtype, device=self.name), shape, strides, shift)

    def on_host(self, tensor: Any) -> Any:
        """An uninitialised buffer on the processor for a tensor's elements, in order."""
        return self._empty(tuple(tensor.shape), dtype=tensor.dtype)

    def synchronize(self) -> None:
        """Wait until all that was launched has ended."""
        if self.copies:
            self._space.synchronize()
