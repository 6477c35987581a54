"""The arguments of an event of torch's traces, and the fields beside the events.

Invariants:
1. What has another type than it should is missing, but for what a task cannot do without.
2. No path, host name, process or thread id is among what is kept.
"""

from __future__ import annotations

from typing import Any

from akf.contracts.text import show
from akf.traffic.events import Event
from akf.traffic.kernels import named

DTYPES = {
    "double": "float64", "float": "float32", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3", "c10::Float8_e5m2": "float8_e5m2", "long int": "int64", "long": "int64",
    "int": "int32", "short int": "int16", "short": "int16", "signed char": "int8", "unsigned char": "uint8",
    "bool": "bool",
}  # fmt: skip
"""Element types as C++ spells them, in AKF's spelling; what else stands there is no tensor."""

_MOST_OPERANDS = 64
_LARGEST = 2**63 - 1


def whole_of(args: Event, key: str, other: object) -> int:
    """A number that must be there, in `args` or else as the event's own process or thread."""
    value = args.get(key, other)
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(f"its {key} is {show(value)}, not a number")
    return value


def number_of(args: Event, *keys: str) -> int | None:
    """A number that may be missing; 0 is what the profiler writes for none."""
    value = next((args[key] for key in keys if key in args), None)
    return value if type(value) is int and 0 < value <= _LARGEST else None


def operands_of(args: Event) -> tuple[str | None, str | None]:
    """Shapes and element types as the Ascend profilers spell the lists: `64,256;256` and `float32;float32`."""
    dims, kinds = args.get("Input Dims", args.get("Input dims")), args.get("Input type")
    if not isinstance(dims, list):
        return None, None
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(dims) else [None] * len(dims)
    shapes, dtypes = [], []
    for size, kind in zip(dims, kinds, strict=True):
        several = isinstance(size, list) and bool(size) and all(isinstance(part, list) for part in size)
        for part in size if several else [size]:
            if not isinstance(part, list) or not all(type(number) is int and number >= 0 for number in part):
                return None, None
            shapes.append(",".join(map(str, part)))
            dtypes.append(DTYPES.get(kind, "") if isinstance(kind, str) else "")
    return (";".join(shapes), ";".join(dtypes)) if len(shapes) <= _MOST_OPERANDS else (None, None)


def rank_of(head: dict[str, Any]) -> int | None:
    """The rank; None where none is told."""
    told = head.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    return rank if type(rank) is int and 0 <= rank < 2**31 else None


def settings_of(head: dict[str, Any], on_device: bool) -> tuple[tuple[str, str], ...]:
    """What of the head changes what is recorded or says where; nothing that names a person, a host or a path."""
    keys = ["schemaVersion", "record_shapes", "with_stack", "profile_memory", "with_flops"]
    if on_device:
        keys += ["cuda_driver_version", "cuda_runtime_version", "cupti_version"]
    kept = {key: str(head[key]) for key in keys if type(head.get(key)) is int}
    told = head.get("deviceProperties")
    names = (
        {part["name"] for part in told if isinstance(part, dict) and isinstance(part.get("name"), str)}
        if (on_device and isinstance(told, list))
        else set()
    )
    if len(names) == 1:
        kept["device"] = named(names.pop())
    return tuple(sorted(kept.items()))
