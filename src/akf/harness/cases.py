"""Where the operands of a case lie in the arena, and how its call becomes columns of pointers.

Invariants:
- For a correctness case every operand stands alone between guard bytes; for a timed row the K tensors of one
  operand stand side by side, so a batch of K launches reads K inputs and writes K outputs.
- Inputs, guards and outputs are compared byte by byte with what they held before the launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .memory import POISON, Arena
from .request import ITEM_BYTES, Case, Operand

_PAGE = 4096
_LINE = 64
_GUARD = 256


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Region:
    """The tensors of one operand: `count` of them, `stride` bytes apart."""

    operand: Operand
    offset: int
    stride: int


class Layout:
    """Offsets of one case, for one launch with guards or for K launches side by side."""

    def __init__(self, case: Case, count: int, *, guard: bool) -> None:
        self.case = case
        self.count = count
        self.regions: dict[str, Region] = {}
        cursor = 0
        for operand in case.operands:
            shift = operand.misalign * ITEM_BYTES[operand.dtype] if guard else 0
            offset = cursor + (_PAGE if guard else 0) + shift
            stride = _round_up(operand.nbytes, _LINE)
            self.regions[operand.name] = Region(operand, offset, stride)
            cursor = _round_up(offset + stride * count + (_GUARD if guard else 0), _PAGE)
        self._workspace = cursor
        largest = max(
            (argument["bytes"] for call in case.calls.values() for argument in call if argument["kind"] == "workspace"),
            default=0,
        )
        self._workspace_stride = _round_up(largest, _PAGE)
        spaces = max(
            (sum(argument["kind"] == "workspace" for argument in call) for call in case.calls.values()), default=0
        )
        self.operands_end = cursor
        self.size = cursor + self._workspace_stride * spaces + _PAGE

    def tensors(self, keep: int, *, recheck: bool) -> dict[str, Any]:
        """The bind command for a python artifact: where its inputs lie and what it is to return.

        Args:
            keep: how many calls' results are held, so that a later one in their memory is seen.
            recheck: whether what is held is looked at again, for a call that writes into an earlier result.
        """
        return {
            "count": self.count,
            "inputs": [self._tensor(operand) for operand in self.case.operands if operand.access == "in"],
            "outputs": [self._tensor(operand) for operand in self.case.outputs],
            "attributes": self.case.attributes,
            "keep": keep,
            "recheck": recheck,
        }

    def _tensor(self, operand: Operand) -> dict[str, Any]:
        region = self.regions[operand.name]
        return {
            "name": operand.name,
            "dtype": operand.dtype,
            "shape": list(operand.shape),
            "strides": list(operand.steps),
            "offset": region.offset,
            "stride": region.stride,
            "span": operand.nbytes,
        }

    def columns(self, role: str) -> dict[str, Any]:
        """The bind command for one artifact's call."""
        columns: list[list[int]] = []
        integers: list[int] = []
        floats: list[float] = []
        spaces = 0
        for argument in self.case.calls[role]:
            if argument["kind"] == "tensor":
                region = self.regions[argument["operand"]]
                columns.append([region.offset, region.stride])
            elif argument["kind"] == "workspace":
                columns.append([self._workspace + self._workspace_stride * spaces, 0])
                spaces += 1
            elif argument["kind"] == "stream":
                columns.append([-1, 0])
            elif argument["dtype"].startswith("int"):
                integers.append(int(argument["value"]))
            else:
                floats.append(float(argument["value"]))
        return {"count": self.count, "columns": columns, "integers": integers, "floats": floats}

    def image(self, inputs: dict[str, bytes]) -> bytes:
        """The operands' part of the arena before a launch: inputs in place, everything else poison."""
        image = bytearray([POISON]) * self.operands_end
        for name, data in inputs.items():
            offset = self.regions[name].offset
            image[offset : offset + len(data)] = data
        return bytes(image)

    def changed(self, arena: Arena, image: bytes) -> tuple[list[str], bool]:
        """Inputs that a launch has changed, and whether anything outside the operands has changed."""
        after = arena.read(0, len(image))
        mutated: list[str] = []
        spans: list[tuple[int, int]] = []
        for operand in self.case.operands:
            start = self.regions[operand.name].offset
            end = start + operand.nbytes
            spans.append((start, end))
            if operand.access == "in" and after[start:end] != image[start:end]:
                mutated.append(operand.name)
        cursor = 0
        outside = False
        for start, end in [*sorted(spans), (len(image), len(image))]:
            outside = outside or after[cursor:start] != image[cursor:start]
            cursor = end
        return mutated, outside
