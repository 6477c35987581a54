"""The inputs of one timed row, the verified outputs, and the check of every timed launch.

Invariants:
- The K launches of a batch read K different inputs and write K different outputs.
- Which input lies in which slot changes by a secret rotation before every batch, and a few secret slots hold a
  decoy: a pool input with one element changed. Recalling results by address or by a part of the input shows.
- Every output of every batch is compared: bit by bit with the verified output of its input, or, where a kernel
  does not repeat itself bit by bit, with the oracle.
"""

# ruff: noqa: B905 - zip has no strict= in Python 3.9
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import draw, outcome
from .bench import Bench
from .cases import Layout
from .memory import POISON, Arena
from .oracle import compare, within
from .outcome import ChildFailure
from .request import Case, Operand

DECOYS = 2


@dataclass
class Decoy:
    """One slot whose input is in no pool."""

    slot: int
    inputs: dict[str, Any]
    expected: list[Any]


class Pool:
    """K inputs of a row; verified outputs per role; the traffic between pool and arena."""

    def __init__(self, bench: Bench, case: Case, count: int) -> None:
        self.case = case
        self.count = count
        self.layout = Layout(case, count, guard=False)
        self.bitwise = {"baseline": True, "candidate": True}
        self._bench = bench
        self._inputs: dict[str, Any] = {}
        self._verified: dict[tuple[str, str], Any] = {}
        self._secret = draw.stream(case.seed, "rotation")
        self._shift = 0
        self._decoys: list[Decoy] = []
        for operand in case.inputs:
            tensors = draw.draw(operand, draw.stream(case.seed, operand.name), count)
            self._inputs[operand.name] = self._strided(operand, tensors)

    def fill(self, arena: Arena, role: str) -> None:
        """Inputs into their slots by a fresh rotation, decoys over some, poison into the outputs."""
        self._shift = int(self._secret.integers(self.count))
        for operand in self.case.operands:
            if operand.access == "out":
                region = self.layout.regions[operand.name]
                arena.poison(region.offset, region.stride * self.count)
            else:
                self._spread(arena, operand, self._inputs[operand.name])
        self._decoys = [self._decoy(int(slot)) for slot in self._choose_slots(role)]
        for decoy in self._decoys:
            for operand in self.case.inputs:
                self._put(arena, operand, decoy.slot, decoy.inputs[operand.name])

    def verify(self, arena: Arena, role: str) -> None:
        """Check every launch of the batch.

        Raises:
            ChildFailure: An input was changed, or an output is wrong.
        """
        for decoy in self._decoys:
            self._verify_decoy(arena, role, decoy)
        for operand in self.case.operands:
            if operand.access == "in":
                if not self._spread_equal(arena, operand, self._inputs[operand.name]):
                    raise ChildFailure(outcome.INPUT_MUTATED, f"{operand.name} in a timed batch")
                continue
            verified = self._verified.get((role, operand.name))
            if verified is not None and self._spread_equal(arena, operand, verified):
                continue
            if verified is not None:
                self.bitwise[role] = False
            self._learn(arena, role)
            return

    def _learn(self, arena: Arena, role: str) -> None:
        """Hold every output to the oracle, then remember it as verified."""
        outputs = {operand.name: self._gather(arena, operand) for operand in self.case.outputs}
        decoys = {(decoy.slot + self._shift) % self.count for decoy in self._decoys}
        for index in set(range(self.count)) - decoys:
            results = [self._tensor(operand, outputs[operand.name][index]) for operand in self.case.outputs]
            expected = self._bench.oracle.expected(self.case, self._row(index))
            self._compare(results, expected, "a timed batch")
        for operand in self.case.outputs:
            self._verified.setdefault((role, operand.name), outputs[operand.name])

    def _row(self, index: int) -> dict[str, Any]:
        return {operand.name: self._tensor(operand, self._inputs[operand.name][index]) for operand in self.case.inputs}

    def _compare(self, results: list[Any], expected: list[Any], where: str) -> None:
        for operand, actual, wide in zip(self.case.outputs, results, expected):
            tolerance = self._bench.request.tolerances[operand.dtype]
            if within(actual, wide, tolerance):
                continue
            if all(byte == POISON for byte in actual.tobytes()):
                raise ChildFailure(outcome.OUTPUT_NOT_WRITTEN, f"{operand.name} in {where}")
            errors = compare(actual, wide, tolerance)
            if errors.non_finite:
                raise ChildFailure(outcome.NON_FINITE, f"{operand.name} in {where}")
            if not errors.accepted:
                raise ChildFailure(outcome.WRONG_RESULT, f"{operand.name} in {where}")

    def _verify_decoy(self, arena: Arena, role: str, decoy: Decoy) -> None:
        index = (decoy.slot + self._shift) % self.count
        for operand in self.case.operands:
            region = self.layout.regions[operand.name]
            offset = region.offset + decoy.slot * region.stride
            if operand.access == "in":
                data = np.ascontiguousarray(decoy.inputs[operand.name])
                if not arena.equal(offset, data.ctypes.data, operand.nbytes):
                    raise ChildFailure(outcome.INPUT_MUTATED, f"{operand.name} in a timed batch")
                self._put(arena, operand, decoy.slot, self._tensor(operand, self._inputs[operand.name][index]))
        results = [self._read(arena, operand, decoy.slot) for operand in self.case.outputs]
        verified = [self._tensor(o, self._verified[role, o.name][index]) for o in self.case.outputs]
        try:
            self._compare(results, decoy.expected, "a timed batch")
        except ChildFailure as error:
            if all(mine.tobytes() == old.tobytes() for mine, old in zip(results, verified)):
                raise ChildFailure(
                    outcome.RESULT_REPLAY, "a timed output is that of an earlier, similar input"
                ) from error
            raise
        for operand, old in zip(self.case.outputs, verified):
            self._put(arena, operand, decoy.slot, old)

    def _choose_slots(self, role: str) -> list[int]:
        if (role, self.case.outputs[0].name) not in self._verified:
            return []  # the first batch of a role is held to the oracle as a whole
        return sorted(self._secret.choice(self.count, size=min(DECOYS, self.count // 2), replace=False).tolist())

    def _decoy(self, slot: int) -> Decoy:
        """The slot's pool input with one element changed by more than its own size."""
        index = (slot + self._shift) % self.count
        inputs = {name: tensor.copy() for name, tensor in self._row(index).items()}
        operand = self.case.inputs[int(self._secret.integers(len(self.case.inputs)))]
        flat = inputs[operand.name].reshape(-1)
        place = int(self._secret.integers(flat.size))
        if flat.dtype.kind in "iu":
            flat[place] ^= 1
        else:
            flat[place] = -2 * flat[place] - flat.dtype.type(operand.distribution.get("scale", 1.0))
        return Decoy(slot, inputs, self._bench.oracle.expected(self.case, inputs))

    def _strided(self, operand: Operand, tensors: Any) -> Any:
        stride = self.layout.regions[operand.name].stride
        flat = np.ascontiguousarray(tensors).reshape(self.count, -1).view(np.uint8)
        if flat.shape[1] == stride:
            return flat
        wide = np.full((self.count, stride), POISON, dtype=np.uint8)
        wide[:, : flat.shape[1]] = flat
        return wide

    def _tensor(self, operand: Operand, raw: Any) -> Any:
        return raw[: operand.nbytes].view(operand.dtype).reshape(operand.shape)

    def _parts(self, operand: Operand, table: Any) -> list[tuple[int, int, int]]:
        """Arena offset, address and length of the two pieces of a rotation."""
        region = self.layout.regions[operand.name]
        base, stride = int(table.ctypes.data), region.stride
        head = (self.count - self._shift) * stride
        return [
            (region.offset, base + self._shift * stride, head),
            (region.offset + head, base, self._shift * stride),
        ]

    def _spread(self, arena: Arena, operand: Operand, table: Any) -> None:
        for offset, address, length in self._parts(operand, table):
            arena.write(offset, address, length)

    def _spread_equal(self, arena: Arena, operand: Operand, table: Any) -> bool:
        return all(arena.equal(offset, address, length) for offset, address, length in self._parts(operand, table))

    def _put(self, arena: Arena, operand: Operand, slot: int, tensor: Any) -> None:
        region = self.layout.regions[operand.name]
        data = np.ascontiguousarray(tensor)
        arena.write(region.offset + slot * region.stride, int(data.ctypes.data), operand.nbytes)

    def _read(self, arena: Arena, operand: Operand, slot: int) -> Any:
        region = self.layout.regions[operand.name]
        data = arena.read(region.offset + slot * region.stride, operand.nbytes)
        return np.frombuffer(data, dtype=operand.dtype).reshape(operand.shape)

    def _gather(self, arena: Arena, operand: Operand) -> Any:
        """The outputs in pool order: the rotation undone."""
        region = self.layout.regions[operand.name]
        data = np.frombuffer(arena.read(region.offset, region.stride * self.count), dtype=np.uint8)
        return np.roll(data.reshape(self.count, region.stride), self._shift, axis=0)
