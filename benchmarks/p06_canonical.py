"""P6: canonical JSON, against `rfc8785`.

Run it from anywhere: `python benchmarks/p06_canonical.py [VALUES]`. Before anything is timed, VALUES (100,000) fuzzed
values must give the same bytes on both sides: every exponent of a double, text that looks like numbers, keys whose
order differs between UTF-8 and UTF-16. `pytest -m soak tests/property` compares a million.

Growth: items of the document, at 1x, 10x and 100x.
"""

import hashlib
import json
import math
import random
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import rfc8785  # noqa: E402
from benchmarks.side_by_side import ROUNDS, compare, median_seconds, report, report_growth  # noqa: E402

from akf.contracts.canonical import canonical_bytes, jcs, parse_canonical  # noqa: E402 (the checkout comes first)

VALUES = 100_000
AT_ONCE = 10
ITEMS = 100
SIZES = (1, 10, 100)
STRINGS = ("a", "é", "😀", "\ue000", "\uffff", '"', "\\", "\n", "\x1f", "1.0,", "-0.0]", "e-6}", "e+16,", ":", "[{")


ODDS = 0.4


def number(rng: random.Random) -> float:
    (value,) = struct.unpack("<d", rng.randbytes(8))
    if rng.random() < ODDS:
        value = rng.choice((1, -1)) * 10 ** rng.uniform(-8, 22)
    if not math.isfinite(value):
        return -0.0
    return float(round(value)) if rng.random() < ODDS else float(value)


def text(rng: random.Random) -> str:
    return "".join(rng.choices(STRINGS, k=rng.randrange(4)))


def fuzzed(rng: random.Random, depth: int = 3) -> Any:
    shapes: list[Callable[[], Any]] = [
        lambda: number(rng),
        lambda: number(rng),
        lambda: text(rng),
        lambda: rng.choice((None, True, False, rng.randint(1 - 2**53, 2**53 - 1))),
        lambda: [fuzzed(rng, depth - 1) for _ in range(rng.randrange(4))],
        lambda: {text(rng): fuzzed(rng, depth - 1) for _ in range(rng.randrange(4))},
        lambda: {text(rng): fuzzed(rng, depth - 1) for _ in range(rng.randrange(4))},
    ]
    value: Any = rng.choice(shapes if depth else shapes[:4])()
    return value


def gate(items: int, *, whole: bool) -> dict[str, Any]:
    """Return a document like a Gate: digests, integers, ratios (64.0 among them where `whole`), text."""
    rng = random.Random(6)
    rows = [
        {
            "id": f"row-{at}",
            "digest": f"sha256:{hashlib.sha256(str(at).encode()).hexdigest()}",
            "period_ns": rng.randrange(10**9),
            "gain_ratio": float(rng.randrange(100)) if whole else rng.uniform(0.001, 1),
            "note": "text for people (see above), with é",
            "samples": [rng.randrange(1_000_000) for _ in range(8)],
            "held": True,
            "reason": None,
        }
        for at in range(items)
    ]
    return {"kind": "Gate", "schema_version": 1, "rows": rows}


def repeated(function: Any, value: Any) -> None:
    for _ in range(AT_ONCE):
        function(value)


def main() -> None:
    rng = random.Random(20_260_101)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else VALUES
    for _ in range(count):
        value = fuzzed(rng)
        if jcs(value) != rfc8785.dumps(value):
            raise ValueError(f"the bytes differ for {value!r}")
    print(f"P6  {count} fuzzed values: the same bytes")
    for what, whole in (("", False), (", floats like 64.0", True)):
        document = gate(ITEMS, whole=whole)
        data = canonical_bytes(document)
        if data != rfc8785.dumps(document) + b"\n" or json.loads(data) != document:
            raise ValueError("the documents differ")
        found = compare(
            partial(repeated, canonical_bytes, document), partial(repeated, rfc8785.dumps, document), ROUNDS
        )
        report("P6", f"canonical bytes of {len(data) // 1024} KB{what}", "at least 10 times as fast", found)
        print(f"    AKF is {1 / found.ratio:.1f} times as fast")
    parsed = compare(partial(repeated, partial(parse_canonical, file="f"), data), partial(repeated, json.loads, data))
    print(f"    reading a canonical file, all rules, against json.loads alone: {parsed}")
    times = [median_seconds(partial(canonical_bytes, gate(ITEMS * size, whole=False))) for size in SIZES]
    report_growth(SIZES, times)


if __name__ == "__main__":
    main()
