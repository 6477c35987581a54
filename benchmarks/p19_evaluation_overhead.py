"""P19: what an evaluation costs beyond the work that is planned, with a kernel of about 1 ms.

Run it from anywhere: `python benchmarks/p19_evaluation_overhead.py [binary|python]`. It compiles a kernel for
`out = 2 x + 1` that takes about a millisecond, as baseline and as candidate, and lets the harness measure A/B in this
process, with clocks around its parts: starting and ending the children, the launches as the parent sees them, and
making and checking what is launched (new inputs, poisoned outputs, comparison in bytes, the oracle). What is left of
the wall time is the overhead: freezing and waking the children, the plan, the bookkeeping. The goal is at most 15 % of
the wall time.

Other processes of a shared machine keep a child from stopping when it is told to. So each part is also given without
the time in which the kernel's scheduler had parent or child wait for a processor (`/proc/PID/schedstat`), and the goal
is about that; the plain share stands beside it.

Where torch is installed the same is measured with modules. Their children are forked from a template, which imports
torch once a command: its start is a planned start. After every change of sides they run five batches that are no
samples.

Before anything is timed, the harness has to accept the kernel and refuse one that is wrong.

Growth: pairs, at 1x, 10x and 100x. The work is linear in them.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import ROUNDS_OVER_A_SECOND, report_growth  # noqa: E402
from tests.harness.builder import Task, built, seed  # noqa: E402 (the checkout comes first)
from tests.harness.modules import asked, operand, written  # noqa: E402

from akf.harness import request as requests  # noqa: E402
from akf.harness import timing  # noqa: E402
from akf.harness.bench import Bench  # noqa: E402
from akf.harness.memory import Arena  # noqa: E402
from akf.harness.pool import Pool  # noqa: E402
from akf.harness.process import Child  # noqa: E402
from akf.harness.template import Template  # noqa: E402
from akf.routes.launch_spec import parse_spec  # noqa: E402

GOAL = 0.15
PLANNED = ("starts", "launches", "verification")
ELEMENTS = 4096
LAUNCH_NS = 1_000_000
PAIRS, BLOCKS, BATCHES = 12, 3, 3
SIZES = (1, 10, 100)
TRIES = 8
SPEC = parse_spec({
    "abi": "c", "symbol": "affine", "graph_safe": True,
    "args": [
        {"name": "x", "kind": "tensor", "dtype": "float32", "shape": ["n"], "access": "in"},
        {"name": "out", "kind": "tensor", "dtype": "float32", "shape": ["n"], "access": "out"},
        {"name": "n", "kind": "scalar", "dtype": "int64", "value": "n"},
    ],
})  # fmt: skip
KERNEL = """
#include <cstdint>
extern "C" void affine(const float* x, float* out, std::int64_t n) {
    volatile float sink = 0.0f;
    for (int turn = 0; turn < TURNS; ++turn)
        for (std::int64_t i = 0; i < n; ++i) sink = sink + x[i];
    for (std::int64_t i = 0; i < n; ++i) out[i] = FACTOR * x[i] + 1.0f;
}
"""


MODULE = """
import torch

def run(x):
    for _ in range(TURNS):
        x * 0.5
    return FACTOR * x + 1.0
"""
REFERENCE = "def reference(x):\n    return (2.0 * x + 1.0,)\n"


class Modules(NamedTuple):
    """What `Task` is for shared objects."""

    artifacts: dict[str, Any]
    rows: list[dict[str, Any]]

    def request(self, plan: Any = None, artifacts: Any = None) -> dict[str, Any]:
        """The request's JSON value."""
        return asked(artifacts or self.artifacts, rows=self.rows, cases=self.rows, reference=REFERENCE, plan=plan)


class Spent(NamedTuple):
    """Nanoseconds of one measurement by what they were spent on, and what of them was waiting for a processor."""

    wall: int
    parts: dict[str, int]
    waits: dict[str, int]

    @property
    def plain(self) -> float:
        """Share of the wall time that was not planned."""
        return 1 - sum(self.parts[name] for name in PLANNED) / self.wall

    @property
    def overhead(self) -> float:
        """The same without waiting for a processor."""
        planned = sum(self.parts[name] - self.waits.get(name, 0) for name in PLANNED)
        return 1 - planned / (self.wall - sum(self.waits.values()))


def kernel(folder: Path, name: str, turns: int, factor: str = "2.0f") -> dict[str, str]:
    """Compile the kernel with so many turns."""
    source = folder / name / "src" / "kernel.cpp"
    source.parent.mkdir(parents=True)
    source.write_text(KERNEL.replace("TURNS", str(turns)).replace("FACTOR", factor), encoding="utf-8")
    return built(source, SPEC, folder)


def launch_ns(path: str) -> int:
    """Least nanoseconds of one launch in this process."""
    function = ctypes.CDLL(path).affine
    x, out = (ctypes.c_float * ELEMENTS)(), (ctypes.c_float * ELEMENTS)()
    times = []
    for _ in range(TRIES):
        start = time.perf_counter_ns()
        function(x, out, ctypes.c_int64(ELEMENTS))
        times.append(time.perf_counter_ns() - start)
    return min(times)


def task(folder: Path) -> Task:
    """Baseline and candidate of about 1 ms, and one that is wrong."""
    first = launch_ns(kernel(folder, "probe", 50)["path"])
    turns = max(1, 50 * LAUNCH_NS // first)
    artifacts = {name: kernel(folder, name, turns) for name in ("baseline", "candidate")}
    artifacts["perturbed"] = kernel(folder, "perturbed", turns, "3.0f")
    found = Task(REFERENCE, SPEC, artifacts)
    found.cases = found.rows = [found.case("row", {"n": ELEMENTS}, {})]
    return found


def modules(folder: Path) -> Modules:
    """The same as modules."""

    def module(name: str, turns: int, factor: str = "2.0") -> dict[str, str]:
        return written(folder, name, MODULE.replace("TURNS", str(turns)).replace("FACTOR", factor))

    row = {"id": "row", "seed": seed("row"), "operands": [operand("x", [ELEMENTS]), operand("out", [ELEMENTS], "out")]}
    probe = Modules({"baseline": module("probe", 50)}, [row])
    facts = timing.calibrate(Bench(requests.parse(probe.request()), pin=True))
    first = facts["side"]["calibration"][-1]["ns_per_launch"]
    turns = max(1, 50 * LAUNCH_NS // first)
    artifacts = {name: module(name, turns) for name in ("baseline", "candidate")}
    return Modules(artifacts | {"perturbed": module("perturbed", turns, "3.0")}, [row])


def request(of: Task | Modules, pairs: int, launches: int, trip: int, candidate: str = "candidate") -> Any:
    """A request to measure A/B."""
    plan = {"pairs": pairs, "blocks": BLOCKS, "batches": BATCHES, "launches": {"row": launches},
            "round_trip_ns": trip, "runs": ["ab"]}  # fmt: skip
    artifacts = of.artifacts | {"candidate": of.artifacts[candidate]}
    return requests.parse(of.request(plan=plan, artifacts=artifacts))


@contextmanager
def clocks() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Clocks around the parts of the harness: all of their time, and the waiting in it."""
    spent: Counter[str] = Counter()
    waits: Counter[str] = Counter()
    starting: list[Any] = []  # what a start does inside is the start's
    parts = (
        ("starts", Template, "__init__"), ("starts", Template, "close"),
        ("starts", Child, "__init__"), ("starts", Child, "close"), ("arenas", Arena, "__init__"),
        ("verification", Pool, "__init__"), ("verification", Pool, "fill"), ("verification", Pool, "verify"),
        ("freeze", Child, "freeze"), ("thaw", Child, "thaw"), ("ask", Child, "ask"), ("run", Child, "run"),
    )  # fmt: skip
    originals = [(owner, name, getattr(owner, name)) for _, owner, name in parts]
    for (part, owner, name), (_, _, original) in zip(parts, originals, strict=True):
        setattr(owner, name, _timed(spent, waits, starting, part, original))
    try:
        yield spent, waits
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _timed(
    spent: Counter[str], waits: Counter[str], starting: list[Any], part: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    def timed(self: Any, *arguments: Any, **named: Any) -> Any:
        if starting and part != "starts":
            return original(self, *arguments, **named)
        if part == "starts":
            starting.append(self)
        entered = time.perf_counter_ns()
        parent, child, start = _waited("self"), _child_waited(self), time.perf_counter_ns()
        try:
            return original(self, *arguments, **named)
        finally:
            elapsed = time.perf_counter_ns() - start
            if part == "starts":
                starting.remove(self)
            where = ("launches" if arguments[1] else "waking") if part == "run" else part
            spent[where] += elapsed
            # While the child launches, the parent may wait for a processor without making anything longer.
            others = 0 if part == "run" else _waited("self") - parent
            waits[where] += min(max(_child_waited(self) - child, others, 0), elapsed)
            spent["clocks"] += time.perf_counter_ns() - entered - elapsed

    return timed


def _child_waited(owner: Any) -> int:
    return sum(_waited(str(pid)) for pid in {getattr(owner, "pid", 0), getattr(owner, "session", 0)} if pid)


def _waited(pid: str) -> int:
    """Nanoseconds that a process has waited for a processor so far; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def measure(of: Task | Modules, pairs: int, launches: int, trip: int) -> Spent:
    """Measure A/B once."""
    with clocks() as (spent, waits):
        start = time.perf_counter_ns()
        result = timing.measure(Bench(request(of, pairs, launches, trip), pin=True))
        wall = time.perf_counter_ns() - start
    outcome = result["checks"]["ab"].outcome
    if outcome not in {"pass", "incomparable"}:  # a busy machine's clocks may disagree
        raise RuntimeError(f"the harness says {outcome} of an honest kernel")
    wall -= spent.pop("clocks")  # what these clocks cost is no part of an evaluation
    return Spent(wall, dict(spent), dict(waits))


def main(title: str, make: Callable[[Path], Task | Modules]) -> None:
    """Check both answers, then measure."""
    with tempfile.TemporaryDirectory(prefix="akf-p19-") as scratch:
        of = make(Path(scratch))
        calibrated = timing.calibrate(Bench(requests.parse(of.request()), pin=True))["facts"]
        launches, trip = calibrated["launches"]["row"], calibrated["round_trip_ns"]
        wrong = timing.measure(Bench(request(of, 1, launches, trip, "perturbed"), pin=True))
        if wrong["checks"]["ab"].outcome != "fail":
            raise RuntimeError("the harness accepts a wrong kernel")
        rounds = [measure(of, PAIRS, launches, trip) for _ in range(ROUNDS_OVER_A_SECOND)]
        middle = sorted(rounds, key=lambda each: each.overhead)[len(rounds) // 2]
        shares, plain = (sorted(getattr(each, name) for each in rounds) for name in ("overhead", "plain"))
        print(f"P19  an evaluation of {title} of about 1 ms: share of the wall time that was not planned")
        around = f"({shares[0]:.1%} to {shares[-1]:.1%}, {len(rounds)} rounds)"
        print(f"    goal <= {GOAL:.0%}; measured {middle.overhead:.1%} {around}")
        print(f"    with waiting for a processor: {plain[len(plain) // 2]:.1%} ({plain[0]:.1%} to {plain[-1]:.1%})")
        print(
            f"    {launches} launches a batch, round trip {trip / 1e3:.0f} us, wall {middle.wall / 1e9:.2f} s, of it:"
        )
        for name, nanoseconds in sorted(middle.parts.items(), key=lambda each: -each[1]):
            waited = middle.waits.get(name, 0) / middle.wall
            print(f"      {name:<13} {nanoseconds / middle.wall:6.1%}, waiting for a processor {waited:6.1%}")
        report_growth(SIZES, [measure(of, pairs, launches, trip).wall / 1e9 for pairs in SIZES])


KINDS: dict[str, tuple[str, Callable[[Path], Task | Modules]]] = {
    "binary": ("shared objects", task),
    "python": ("modules", modules),
}

if __name__ == "__main__":
    if os.getsid(0) != os.getpid():  # a session of its own may run ahead of others, as the harness does
        again = subprocess.run([sys.executable, __file__, *sys.argv[1:]], check=False, start_new_session=True)
        sys.exit(again.returncode)
    for kind in sys.argv[1:] or [name for name in KINDS if name == "binary" or find_spec("torch")]:
        main(*KINDS[kind])
