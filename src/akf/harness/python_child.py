"""Runs in the child of the `python` ABI: loads one module and calls its function when told to.

Invariants:
- torch is imported, and all that this module uses of it is held, before the candidate is loaded: a name that the
  candidate rebinds changes nothing here, and rebinding one that evaluators use is said.
- The candidate gets tensors over the arena's inputs, one storage each, and returns its outputs. Their exact type,
  type, shape, strides and addresses are looked at, and their bytes are in the arena, before the launch counts.
- What is refused here helps an honest author; against a hostile one only the parent's own findings count.

Self-contained: it is sent to the child as text.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import io
import json
import os
import struct
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

from . import child, devices
from .swallowed import Watch

_HELD = 256
_RECHECKED_BYTES = 8 << 20
_SETTLE_S = 0.05
_TASK_LINKS = 2
_FUTEX = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine, -1)
_FUTEX_WAITS = (0, 9)
_WATCHED = (
    ("torch", ("allclose", "equal", "isclose", "isfinite", "isnan", "manual_seed", "empty", "sub", "abs", "max")),
    ("torch.testing", ("assert_close",)),
    ("torch.Tensor", ("copy_", "equal", "allclose", "isclose", "cpu", "numpy", "tolist", "item", "clone", "__eq__")),
    ("torch.cuda", ("synchronize", "Event", "Stream")),
    ("time", ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time")),
    ("builtins", ("abs", "all", "any", "bool", "float", "int", "isinstance", "len", "max", "min", "sum", "type")),
    ("sys", ("settrace", "setprofile", "_getframe", "exit")),
    ("os", ("_exit", "write", "read", "fork", "kill")),
    ("struct", ("pack", "unpack")),
    ("json", ("dumps", "loads")),
    ("socket.socket", ("send", "recv")),
    ("gc", ("collect",)),
)


class Refused(Exception):  # noqa: N818 - it names what happened
    """A result that is not what the ABI asks for."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class _Log(io.RawIOBase):
    """The child's output: what does not fit into the log is dropped, not an error of who prints."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd

    def writable(self) -> bool:
        """It is for writing."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def write(self, data: Any) -> int:
        """As much as fits."""
        try:
            os.write(self._fd, data)
        except OSError:
            return len(data)
        return len(data)


def _say(error: BaseException) -> str:
    """What an exception says, without trusting its methods."""
    try:
        text = str(error)[:300]
    except BaseException:  # noqa: BLE001 - code of the candidate
        text = "?"
    return f"{type(error).__name__}: {text}"


def _resolved(name: str) -> Any:
    """A module, or a class in one."""
    if name in sys.modules:
        return sys.modules[name]
    module, _, member = name.rpartition(".")
    return getattr(sys.modules.get(module), member, None)


class Names:
    """What evaluators call by name: the same objects before and after the candidate."""

    def __init__(self) -> None:
        spaces = ((_resolved(name), names) for name, names in _WATCHED)
        self._held = [
            (space, name, getattr(space, name)) for space, names in spaces for name in names if hasattr(space, name)
        ]
        self._codes = [(value, value.__code__) for _, _, value in self._held if hasattr(value, "__code__")]

    def rebound(self) -> str:
        """The first one that is another object now, or has other code; empty if none."""
        for space, name, value in self._held:
            if getattr(space, name, None) is not value:
                return name
        return next((value.__name__ for value, code in self._codes if value.__code__ is not code), "")


class Worker:
    """The state between commands: the module's function, and the tensors of the bound case."""

    def __init__(self, setup: dict[str, Any]) -> None:
        import torch  # noqa: PLC0415 - a copy of the template has it already

        self._base = child.map_arena(setup["arena_fd"], setup["arena_bytes"])
        os.close(setup["arena_fd"])
        self._end = self._base + setup["arena_bytes"]
        self._root: str = setup["tree"]
        self._torch = torch
        self._device = devices.Device(setup["device"])
        self._device.start()
        self._tensor = torch.Tensor
        basic = torch._C.TensorBase  # noqa: SLF001 - below what a candidate may rebind
        self._dtype, self._shape = basic.dtype.__get__, basic.shape.__get__
        self._place, self._grad = basic.device.__get__, basic.requires_grad.__get__
        self._strides, self._pointer, self._copy, self._detach = (
            basic.stride, basic.data_ptr, basic.copy_, basic.detach,
        )  # fmt: skip
        self._plain = basic.is_contiguous
        self._layout, self._strided = basic.layout.__get__, torch.strided
        self._frames, self._clock = sys._current_frames, time.perf_counter_ns  # noqa: SLF001 - the only list of them
        self._fstat = os.fstat
        self._tasks = os.open("/proc/self/task", os.O_RDONLY | os.O_CLOEXEC)
        self._own = frozenset(os.listdir("/proc/self/task"))  # noqa: PTH208 - and the threads of the device's runtime
        self._links = _TASK_LINKS + len(self._own)
        self._no_grad = torch.no_grad
        self._names = Names()
        self._function: Any = None
        self._inputs: list[tuple[Any, ...]] = []
        self._staged: list[tuple[Any, ...]] = []
        self._made: list[tuple[Any, Any]] = []
        self._outputs: list[tuple[Any, ...]] = []
        self._specs: list[tuple[Any, ...]] = []
        self._attributes: dict[str, Any] = {}
        self._keep = 1
        self._held: list[tuple[int, int, Any, int]] = []
        self._recheck = False
        self._at = 0
        for name in ("stdout", "stderr"):
            raw = io.BufferedWriter(_Log(1))
            setattr(sys, name, io.TextIOWrapper(raw, errors="backslashreplace", line_buffering=True))

    def load(self, module: str, function: str) -> dict[str, Any]:
        """Import the candidate's module."""
        sys.argv = [module]
        sys.path.insert(0, self._root)
        path = f"{self._root}/{module}"
        name = module[: -len(".py")].replace("/", ".")
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise Refused("CHILD_LOAD_FAILED", f"{module} is no module")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        try:
            spec.loader.exec_module(loaded)
            self._function = getattr(loaded, function)
        except BaseException as error:  # the candidate's own code, which may raise anything
            raise Refused("CHILD_LOAD_FAILED", _say(error)) from error
        if not callable(self._function):
            raise Refused("CHILD_LOAD_FAILED", f"{function} is not callable")
        self._expect_names()
        gc.freeze()
        return {"function": 0}

    def bind(
        self, count: int, inputs: list[Any], outputs: list[Any], attributes: dict[str, Any], keep: int, recheck: bool
    ) -> dict[str, Any]:
        """Make the tensors of `count` launches, each over its own piece of the arena."""
        self._keep = keep
        self._recheck = recheck
        self._attributes = attributes
        self._inputs = [tuple(self._over(item, slot) for item in inputs) for slot in range(count)]
        self._outputs = [tuple(self._over(item, slot) for item in outputs) for slot in range(count)]
        self._specs = [
            (
                item["name"], getattr(self._torch, item["dtype"]), self._torch.Size(item["shape"]), item["strides"],
                _essential(item["shape"], item["strides"]), item["span"],
            )
            for item in outputs
        ]  # fmt: skip
        self._staged, self._made = [], []
        if self._device.copies:
            self._staged = self._inputs
            self._inputs = [tuple(self._device.like(item) for item in each) for each in self._staged]
        return {}

    def stage(self) -> dict[str, Any]:
        """Bring the inputs to the device; the clock does not run yet."""
        for host, there in zip(self._staged, self._inputs):  # noqa: B905 - no strict= in Python 3.9
            for source, target in zip(host, there):  # noqa: B905 - as above
                self._copy(target, source)
        self._device.synchronize()
        return {}

    def fetch(self) -> dict[str, Any]:
        """Bring the results back, and the inputs as they are now; the clock has stopped, and the device has ended."""
        for target, tensor in self._made:
            self._copy(target, tensor)
        for host, there in zip(self._staged, self._inputs):  # noqa: B905 - as above
            for target, tensor in zip(host, there):  # noqa: B905 - as above
                self._copy(target, tensor)
        self._device.synchronize()
        self._made = []
        return {}

    def _over(self, item: dict[str, Any], slot: int) -> Any:
        """One tensor over the arena, the only one of its storage."""
        address = self._base + item["offset"] + item["stride"] * slot
        memory = (ctypes.c_ubyte * item["span"]).from_address(address)
        flat = self._torch.frombuffer(memory, dtype=getattr(self._torch, item["dtype"]))
        return flat.as_strided(item["shape"], item["strides"])

    def run(self, first: int, count: int) -> bytes:
        """Call for `count` slots; their outputs are in the arena afterwards."""
        start = self._clock()
        with self._no_grad():
            for slot in range(first, first + count):
                self._at = slot
                self._deliver(self._function(*self._inputs[slot], **self._attributes), self._outputs[slot])
        self._device.synchronize()
        if count:
            self._settle()
        return struct.pack("<qqq", count, start, self._clock())

    def traced(self) -> dict[str, Any]:
        """One call that nobody times, watched for exceptions that do not come out."""
        watch = Watch((sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)), self._root)  # noqa: PTH120
        with self._no_grad():
            watch.start()
            try:
                result = self._function(*self._inputs[0], **self._attributes)
            finally:
                watch.stop()
            self._deliver(result, self._outputs[0])
        if watch.tampered:
            raise Refused("EVALUATOR_TAMPERED", "the watch for exceptions was changed during a call")
        self._settle()
        return {"swallowed": watch.found}

    def _deliver(self, result: Any, into: tuple[Any, ...]) -> None:
        """Look at what a call returned, and copy its bytes."""
        if type(result) is self._tensor:
            results: Any = (result,)
        elif isinstance(result, (tuple, list)):
            results = tuple(result)
        else:
            self._refuse_type(result, "the result")
        if len(results) != len(self._specs):
            raise Refused("ARITY_MISMATCH", f"{len(results)} outputs returned, {len(self._specs)} declared")
        self._expect_kept(_RECHECKED_BYTES)
        found: list[tuple[int, int, Any, int]] = []
        for tensor, spec, target in zip(results, self._specs, into):  # noqa: B905 - no strict= in Python 3.9
            if type(tensor) is not self._tensor:
                self._refuse_type(tensor, spec[0])
            found.append(self._looked_at(tensor, spec))
            for start, end, *_ in (*self._held, *found[:-1]):
                if found[-1][0] < end and start < found[-1][1]:
                    raise Refused("OUTPUT_ALIASED", f"{spec[0]} lies in the memory of an earlier result")
            plain = self._detach(tensor) if self._grad(tensor) else tensor
            if self._device.copies:
                self._made.append((target, plain))
            else:
                self._copy(target, plain)
        self._held = [*self._held, *found][-self._keep * len(found) :]

    def kept(self) -> dict[str, Any]:
        """Look at all results that are held: none may have changed since it was given out."""
        self._expect_kept(self._end)
        return {}

    def _expect_kept(self, most: int) -> None:
        """The newest of the earlier results are as they were given out, up to an amount of bytes."""
        for start, end, tensor, before in reversed(self._held if self._recheck else ()):
            most -= end - start
            if most < 0:
                break
            if self._sum(start, end, tensor) != before:
                raise Refused("OUTPUT_ALIASED", "an earlier result was changed after it was given out")

    def _sum(self, start: int, end: int, tensor: Any) -> int:
        """Checksum of a result's elements."""
        if self._device.copies or not self._plain(tensor):
            host = self._device.on_host(tensor)
            self._copy(host, tensor)
            tensor = host
            start, end = self._pointer(tensor), self._pointer(tensor) + tensor.nbytes
        return zlib.crc32((ctypes.c_ubyte * (end - start)).from_address(start))

    def _looked_at(self, tensor: Any, spec: tuple[Any, ...]) -> tuple[int, int, Any, int]:
        """Metadata of one output. Returns where its bytes are, and what they are where that is looked at again."""
        name, dtype, shape, strides, essential, span = spec
        if self._dtype(tensor) is not dtype:
            raise Refused("DTYPE_MISMATCH", f"{name} is {self._dtype(tensor)}, not {dtype}")
        if self._shape(tensor) != shape:
            raise Refused("SHAPE_MISMATCH", f"{name} has shape {list(self._shape(tensor))}, not {list(shape)}")
        if self._layout(tensor) is not self._strided:
            raise Refused("STRIDE_MISMATCH", f"{name} is {self._layout(tensor)}, not strided")
        if self._place(tensor).type != self._device.name:
            raise Refused("DEVICE_MISMATCH", f"{name} is on {self._place(tensor)}, not on {self._device.name}")
        found = self._strides(tensor)
        if [found[axis] for axis in essential] != [strides[axis] for axis in essential]:
            raise Refused("STRIDE_MISMATCH", f"{name} has strides {list(found)}, not {strides}")
        start = self._pointer(tensor)
        if self._base < start + span and start < self._end:
            raise Refused("OUTPUT_ALIASED", f"{name} lies in the memory of the inputs")
        return start, start + span, tensor, self._sum(start, start + span, tensor) if self._recheck else 0

    def _refuse_type(self, value: Any, name: str) -> None:
        if isinstance(value, self._tensor):
            raise Refused("LAZY_OUTPUT", f"{name} is a {type(value).__name__}, a subclass of torch.Tensor")
        raise Refused("TYPE_MISMATCH", f"{name} is a {type(value).__name__}, not a torch.Tensor")

    def _expect_names(self) -> None:
        name = self._names.rebound()
        if name:
            raise Refused("EVALUATOR_TAMPERED", f"{name} was rebound")

    def _settle(self) -> None:
        """Wait until every further thread has ended or sleeps; with one of Python's, all must wait to be asked.

        A pool that is idle waits without an end for another thread to wake it, and all the others wait so too: nothing
        of it can go on before the next call. Who sleeps for a while, or waits for input, goes on by himself.
        """
        deadline = self._clock() + int(_SETTLE_S * 1e9)
        while self._fstat(self._tasks).st_nlink > self._links and self._clock() < deadline:
            python = len(self._frames()) > 1
            if (python and self._any(_dozes)) or not (self._any(_awake) or (python and self._any(_goes_on))):
                break
            time.sleep(2e-5)
        if len(self._frames()) > 1 and self._any(_goes_on):
            raise Refused("ASYNCHRONOUS_WORK", "a thread of Python's outlives the call")
        self._expect_names()

    def _any(self, what: Callable[[str], bool]) -> bool:
        return any(what(task) for task in os.listdir("/proc/self/task") if task not in self._own)  # noqa: PTH208

    def answer(self, operation: bytes, body: bytes) -> bytes:
        """One command: its status and its result."""
        try:
            if operation == b"R":
                return b"k" + self.run(*struct.unpack("<QQ", body))
            value = json.loads(body)
            actions: dict[bytes, Any] = {
                b"L": self.load,
                b"B": self.bind,
                b"T": self.traced,
                b"S": self.stage,
                b"F": self.fetch,
                b"K": self.kept,
            }
            return b"k" + json.dumps(actions[operation](**value)).encode()
        except Refused as refusal:
            return b"r" + json.dumps([refusal.code, refusal.detail[:500]]).encode()
        except BaseException as error:  # noqa: BLE001 - the candidate's own code, which may raise anything
            return b"r" + json.dumps(["CANDIDATE_RAISED", _say(error)]).encode()


def _essential(shape: list[int], strides: list[int]) -> list[int]:
    """The axes whose strides matter: one of length 1 is never stepped along."""
    return [axis for axis in range(len(strides)) if shape[axis] > 1]


def _waits_in(task: str) -> tuple[int, int, int]:
    """The system call in which a task waits, with its second and fourth argument; zeros while it runs."""
    with open(f"/proc/self/task/{task}/syscall", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
        words = stream.read().split()
    return (int(words[0]), int(words[2], 16), int(words[4], 16)) if len(words) > 4 else (0, 0, 0)  # noqa: PLR2004


def _goes_on(task: str) -> bool:
    """Whether a task may go on without being woken by another one: it does not wait on a futex without an end."""
    try:
        call, operation, limit = _waits_in(task)
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended
    except OSError:
        return True
    return call != _FUTEX or operation & 0x7F not in _FUTEX_WAITS or limit != 0


def _dozes(task: str) -> bool:
    """Whether a task sleeps, and neither for its turn nor for another task."""
    try:
        return not _awake(task) and _waits_in(task)[0] not in {0, _FUTEX}
    except OSError:
        return False


def _awake(task: str) -> bool:
    try:
        with open(f"/proc/self/task/{task}/stat", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
            return stream.read().rpartition(")")[2].split()[0] not in ("S", "Z", "X")
    except OSError:
        return False


def main(fd: int, further: dict[str, int]) -> None:
    """Serve as a child of the `python` ABI."""
    child.serve(fd, Worker, further)
