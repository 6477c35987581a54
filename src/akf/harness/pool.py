"""The inputs of one timed row: new ones for every batch, and the check of what the launches made of them.

Invariants:
- The K launches of a batch read K different inputs and write K different outputs.
- No batch repeats an input: each operand is a window of a stream that moves by a secret number of elements, and in
  every slot one secret element of every operand is changed besides. A few secret slots hold a twin: an input of an
  earlier batch with one element changed.
- One secret slot's input changes while the batch runs, well before its launch: who works on all slots of a batch at
  once, from the addresses of the first, answers for what stood there before.
- A large product is held to the oracle at secret places, and as a whole to Freivalds' check (`product`).
- Which outputs are held to the oracle is drawn after the batch ran, fewer where a tensor is large; every output must be
  written and finite.
"""

# ruff: noqa: B905 - zip has no strict= in Python 3.9
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional
from weakref import WeakKeyDictionary

import numpy as np

from . import draw, outcome, product
from .bench import Bench
from .cases import Layout
from .dtypes import DTYPES, decode
from .memory import POISON, Arena
from .oracle import compare, within
from .outcome import ChildFailure
from .request import Case, Operand

SAMPLES = 6
HELD_ELEMENTS = 1 << 21
TWINS = 2
SUSPECTS = 16
BAIT_LAUNCHES = 4
_SEEN_BYTES = 8


@dataclass
class Window:
    """What one operand holds in the current batch: a place in its stream, and one change per slot."""

    shift: int
    offset: int
    places: Any
    values: Any


@dataclass
class Shown:
    """An input that a process has had, and the outputs that it gave."""

    inputs: dict[str, Any]
    outputs: list[Any]


@dataclass
class Twin:
    """One slot whose input differs from an earlier one in one element."""

    inputs: dict[str, Any]
    earlier: Shown
    change: product.Change


class Bait:
    """The change of one input while a batch runs; what it did is known when the batch has ended.

    Launches come in the order of the slots. The change counts only if the launch two before its slot had not ended when
    it was made; one that came too late leaves a slot whose answer is held against nobody. An output that is there while
    that of an earlier launch is not, even when looked at later, was made out of turn.
    """

    def __init__(self, slot: int, began: Any, before: Any, change: Callable[[], None]) -> None:
        self.slot = slot
        self.made = self.counts = self.backwards = False
        self._began, self._before, self._change = began, before, change

    def poll(self) -> bool:
        """Make the change as soon as the batch is under way. Returns whether that is done."""
        if not self.made and (self._before != POISON).any() and (self._began == POISON).all():
            self.made = self.backwards = True
        if not self.made and (self._began != POISON).any():
            self._change()
            self.made = True
            self.counts = not (self._before != POISON).any()
        return self.made


class Pool:
    """Streams of inputs of a row; the traffic between them and an arena."""

    def __init__(self, bench: Bench, case: Case, count: int) -> None:
        self.case = case
        self.count = count
        self.layout = Layout(case, count, guard=False)
        self._bench = bench
        self._secret = draw.stream(case.seed, "batches")
        self._every = np.arange(count)
        self._streams = {
            operand.name: draw.draw(operand, draw.stream(case.seed, operand.name), count + 1).reshape(-1)
            for operand in case.inputs
        }
        elements = sum(operand.span for operand in case.operands)
        self._samples = max(1, min(SAMPLES, HELD_ELEMENTS // elements))
        self.folded = product.applies(bench.request.product, case)
        self._windows: dict[str, Window] = {}
        self._twins: dict[int, Twin] = {}
        self._bait: Optional[Bait] = None
        self._shown: WeakKeyDictionary[Arena, list[Shown]] = WeakKeyDictionary()

    def fill(self, arena: Arena) -> None:
        """Poison into the outputs, then new inputs into all slots, twins over some.

        What is written last is still in this core's cache when the child runs: the outputs come first.
        """
        for operand in self.case.operands:
            if operand.access == "out":
                region = self.layout.regions[operand.name]
                arena.poison(region.offset, region.stride * self.count)
        for operand in self.case.inputs:
            window = self._windows[operand.name] = self._draw(operand)
            slots = self._slots(arena, operand)
            for into, source in self._parts(operand, slots, window):
                into[...] = source
            slots[self._every, window.places] = window.values
        self._bait = None
        self._twins = {}
        earlier = self._shown.get(arena, [])[: self.count // 2]
        for slot, shown in zip(self._secret.choice(self.count, size=len(earlier), replace=False).tolist(), earlier):
            self._twins[slot] = self._twin(shown)
            for operand in self.case.inputs:
                self._slots(arena, operand)[slot] = self._twins[slot].inputs[operand.name].reshape(-1)

    def bait(self, arena: Arena) -> Optional[Bait]:
        """What may change while the batch runs; none where a batch is short, or an answer may look like poison."""
        slot = self.count - 1 - int(self._secret.integers(max(1, self.count // 4)))
        operand = self.case.outputs[0]
        if self.count < BAIT_LAUNCHES or DTYPES[operand.dtype].exact or operand.access != "out" or slot in self._twins:
            return None
        changed = self.case.inputs[int(self._secret.integers(len(self.case.inputs)))]
        window, slots = self._windows[changed.name], self._slots(arena, changed)
        value = draw.changed(changed, window.values[slot : slot + 1], self._secret)[0]

        def change() -> None:
            slots[slot, window.places[slot]] = window.values[slot] = value

        written = self._slots(arena, operand).view(np.uint8)[:, :_SEEN_BYTES]
        self._bait = Bait(slot, written[self.count // 8], written[slot - 2], change)
        return self._bait

    def verify(self, arena: Arena) -> None:
        """Check the batch: all inputs, all outputs as far as the eye sees, a secret sample against the oracle.

        Raises:
            ChildFailure: An input was changed, or an output is wrong.
        """
        for operand in self.case.operands:
            if operand.access == "in" and not self._unchanged(arena, operand):
                raise ChildFailure(outcome.INPUT_MUTATED, f"{operand.name} in a timed batch")
        suspects = sorted({int(slot) for operand in self.case.outputs for slot in self._suspects(arena, operand)})
        if len(suspects) > SUSPECTS:
            suspects = self._secret.choice(suspects, size=SUSPECTS, replace=False).tolist()
        drawn = self._secret.choice(self.count, size=min(self._samples, self.count), replace=False).tolist()
        bait = self._bait
        wanted = dict.fromkeys([*suspects, *self._twins, *drawn])
        shown = [self._hold(arena, slot) for slot in wanted if bait is None or slot != bait.slot]
        self._shown[arena] = shown[-TWINS:]
        if bait is not None and bait.backwards:
            raise ChildFailure(outcome.RESULT_REPLAY, "outputs of a timed batch are made out of turn")
        if bait is not None and bait.counts:
            self._expect_changed(arena, bait.slot)

    def _draw(self, operand: Operand) -> Window:
        """Where the window stands, which element of each slot changes, and to what."""
        size = self._size(operand)
        shift, offset = int(self._secret.integers(self.count)), int(self._secret.integers(size))
        places = self._secret.integers(size, size=self.count)
        starts = (self._every + shift) % self.count * size + offset
        return Window(
            shift, offset, places, draw.changed(operand, self._streams[operand.name][starts + places], self._secret)
        )

    def _twin(self, shown: Shown) -> Twin:
        inputs = {name: tensor.copy() for name, tensor in shown.inputs.items()}
        operand = self.case.inputs[int(self._secret.integers(len(self.case.inputs)))]
        flat = inputs[operand.name].reshape(-1)
        place = int(self._secret.integers(flat.size))
        flat[place] = draw.changed(operand, flat[place : place + 1], self._secret)[0]
        return Twin(inputs, shown, product.Change(operand.name, place))

    def _unchanged(self, arena: Arena, operand: Operand) -> bool:
        """Whether all slots hold what `fill` wrote; the changes are undone on the way."""
        window, slots = self._windows[operand.name], self._slots(arena, operand)
        for slot, twin in self._twins.items():
            if slots[slot].tobytes() != twin.inputs[operand.name].tobytes():
                return False
            slots[slot] = self._window(operand, slot)
            slots[slot, window.places[slot]] = window.values[slot]
        if slots[self._every, window.places].tobytes() != window.values.tobytes():
            return False
        starts = (self._every + window.shift) % self.count * self._size(operand) + window.offset
        slots[self._every, window.places] = self._streams[operand.name][starts + window.places]
        region = self.layout.regions[operand.name]
        if region.stride != operand.nbytes:
            return all(np.array_equal(into, source) for into, source in self._parts(operand, slots, window))
        return all(
            arena.equal(int(into.ctypes.data) - arena.base, int(source.ctypes.data), into.nbytes)
            for into, source in self._parts(operand, slots, window)
            if into.size
        )

    def _suspects(self, arena: Arena, operand: Operand) -> Any:
        """Slots that look as if nothing, or something that is not finite, was written."""
        slots = self._slots(arena, operand)
        if DTYPES[operand.dtype].exact:
            found = (slots.view(np.uint8) == POISON).all(axis=1)
        else:
            with np.errstate(all="ignore"):
                wide = np.float64 if operand.dtype == "float64" else np.float32
                found = ~np.isfinite(_written(operand, slots).sum(axis=1, dtype=wide))
        return np.flatnonzero(found)

    def _hold(self, arena: Arena, slot: int) -> Shown:
        """Hold one slot's outputs to the oracle."""
        twin = self._twins.get(slot)
        inputs = twin.inputs if twin else self._inputs(slot)
        outputs = [np.array(draw.in_shape(operand, self._slots(arena, operand)[slot])) for operand in self.case.outputs]
        try:
            if self.folded:
                self._fold(outputs[0], inputs, twin.change if twin else None, slot)
            else:
                self._compare(outputs, self._bench.oracle.expected(self.case, inputs))
        except ChildFailure as error:
            if twin and all(now.tobytes() == old.tobytes() for now, old in zip(outputs, twin.earlier.outputs)):
                raise ChildFailure(
                    outcome.RESULT_REPLAY, "a timed output is that of an earlier, similar input"
                ) from error
            raise
        return Shown(inputs, outputs)

    def _expect_changed(self, arena: Arena, slot: int) -> None:
        try:
            self._hold(arena, slot)
        except ChildFailure as error:
            if error.code != outcome.WRONG_RESULT:
                raise
            raise ChildFailure(outcome.RESULT_REPLAY, "a timed output was made before its launch") from error

    def _fold(self, result: Any, inputs: dict[str, Any], change: Optional[product.Change], slot: int) -> None:
        request, operand = self._bench.request, self.case.outputs[0]
        places = [product.Change(name, int(window.places[slot])) for name, window in self._windows.items()]
        changes = places if change is None else [change]
        if request.product is not None and not (result.view(np.uint8) == POISON).all():
            tolerance = request.tolerances[operand.dtype]
            code = product.wrong(request.product, self.case, inputs, result, changes, self._secret, tolerance)
        else:
            code = outcome.OUTPUT_NOT_WRITTEN
        if code:
            raise ChildFailure(code, f"{operand.name} in a timed batch")

    def _compare(self, results: list[Any], expected: list[Any]) -> None:
        for operand, actual, wide in zip(self.case.outputs, results, expected):
            tolerance = self._bench.request.tolerances[operand.dtype]
            if within(actual, wide, tolerance, operand.dtype):
                continue
            where = f"{operand.name} in a timed batch"
            if all(byte == POISON for byte in actual.tobytes()):
                raise ChildFailure(outcome.OUTPUT_NOT_WRITTEN, where)
            errors = compare(actual, wide, tolerance, operand.dtype)
            if errors.non_finite:
                raise ChildFailure(outcome.NON_FINITE, where)
            if not errors.accepted:
                raise ChildFailure(outcome.WRONG_RESULT, where)

    def _inputs(self, slot: int) -> dict[str, Any]:
        """What a slot without a twin held."""
        found = {}
        for operand in self.case.inputs:
            window, tensor = self._windows[operand.name], self._window(operand, slot).copy()
            tensor[window.places[slot]] = window.values[slot]
            found[operand.name] = tensor
        return found

    def _window(self, operand: Operand, slot: int) -> Any:
        window, size = self._windows[operand.name], self._size(operand)
        start = (slot + window.shift) % self.count * size + window.offset
        return self._streams[operand.name][start : start + size]

    def _parts(self, operand: Operand, slots: Any, window: Window) -> list[tuple[Any, Any]]:
        """The slots in two runs, each beside the piece of the stream that it holds."""
        stream, size = self._streams[operand.name], self._size(operand)
        head = self.count - window.shift
        first = stream[window.shift * size + window.offset : self.count * size + window.offset]
        second = stream[window.offset : window.shift * size + window.offset]
        return [(slots[:head], first.reshape(head, size)), (slots[head:], second.reshape(window.shift, size))]

    def _slots(self, arena: Arena, operand: Operand) -> Any:
        """The operand's tensors in the arena, one flat tensor a line; not to be kept."""
        region = self.layout.regions[operand.name]
        store = DTYPES[operand.dtype].store
        raw: Any = np.frombuffer(arena.view(region.offset, region.stride * self.count), dtype=store)
        return raw.reshape(self.count, -1)[:, : self._size(operand)]

    @staticmethod
    def _size(operand: Operand) -> int:
        return operand.span


def _written(operand: Operand, slots: Any) -> Any:
    """The elements of an output that a launch writes, as numbers: not what lies between rows."""
    if operand.strides:
        places = draw.in_shape(operand, np.arange(operand.span)).reshape(-1)
        slots = slots[:, places]
    return decode(slots, operand.dtype)
