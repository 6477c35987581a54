"""Device kernels of a capture, given to the callsites of a Workload.

Invariants:
1. Which kernels answer a callsite is data: the `[[kernel]]` tables of the arms, by operator and provider. A provider
   that no table knows is not guessed.
2. A kernel is known by its exact name, without what numbers its variants; a name alone never outweighs its operands.
3. Operands decide: a callsite takes a kernel only if one size per symbol explains every operand that its table names,
   and their element types where both are known. A table may say of an operand that the kernel sees it in another shape.
4. One callsite, or none: what several could have launched stays without one. Shapes as they stand come before shapes
   that are grouped otherwise. A callsite whose symbols are a part of every other's is the special case of them all and
   wins: a decode step is the mixed step with one token a request.
5. Without recorded shapes the name must belong to a single callsite, and must have been seen in a capture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, get_args

from akf.contracts.models.base import DType
from akf.frameworks.arms import kernels
from akf.frameworks.shapes import is_weight, solve

_VARIANT = re.compile(r"_\d+$")  # of a Triton kernel or of a tiling: `split_qkv_rmsnorm_rope_kernel_2`
_BINARY = re.compile(r"^(.+?)_[0-9a-f]{32}(?:_|$)")  # the symbol in task_time: type, 32 digits, mode, tiling key
_INTERFACE = "aclnn"  # and then: interface, implementation and type, with `_` between
_UNKNOWN = frozenset({"", "N/A", "NA"})
_DTYPES = frozenset(get_args(DType))

Seen = Mapping[str, Any]


@dataclass(frozen=True)
class _Answer:
    """One callsite and one way in which a kernel may answer it."""

    callsite: Mapping[str, Any]
    kernel: Mapping[str, Any]
    verified: bool


class Mapper:
    """The callsites of one Workload, found by kernel.

    Args:
        workload: the Workload.
        arm: whose capture it is; None takes the callsites of every arm, and what two of them answer alike stays open.
    """

    def __init__(self, workload: Mapping[str, Any], arm: str | None) -> None:
        self._answers: dict[str, list[_Answer]] = {}
        for callsite in workload["callsites"]:
            owner = callsite.get("arm") or arm
            if owner is None or (arm is not None and owner != arm):
                continue
            for kernel in kernels(owner, callsite["op"], callsite["provider"]):
                for verified, names in ((True, kernel.get("names", ())), (False, kernel.get("unverified", ()))):
                    for name in names:
                        self._answers.setdefault(name, []).append(_Answer(callsite, kernel, verified))

    def of(
        self,
        kernel: str,
        op_type: str | None,
        inputs: Sequence[Seen],
        outputs: Sequence[Seen],
        graph: bool | None = None,
    ) -> tuple[str | None, dict[str, int]]:
        """Return the callsite that launched this kernel and the sizes of its symbols, or None and nothing.

        Args:
            kernel: as the profiler names it.
            op_type: operator type, where it was recorded.
            inputs: operands, as a Capture's entry holds them.
            outputs: likewise.
            graph: whether it was replayed; a callsite that only runs eagerly launched no replayed kernel.
        """
        found: dict[str, dict[str, int]] = {}
        answers = [answer for name in _names(kernel, op_type) for answer in self._answers.get(name, ())]
        if graph:
            answers = [answer for answer in answers if answer.callsite["graph"]["mode"] == "graph"]
        if all(operand["shape"] is None for operand in (*inputs, *outputs)):
            ids = {answer.callsite["id"] for answer in answers if answer.verified}
            return (ids.pop(), {}) if len(ids) == 1 else (None, {})
        for grouped in (False, True):
            for answer in answers:
                symbols = _explained(answer, inputs, outputs, grouped)
                if symbols is not None and found.setdefault(answer.callsite["id"], symbols) != symbols:
                    return None, {}
            if found:
                break
        for name, symbols in found.items():
            if all(other == name or symbols.keys() < more.keys() for other, more in found.items()):
                return name, symbols
        return None, {}


def _names(kernel: str, op_type: str | None) -> list[str]:
    """Return under what a row may be known: its type, or what its name says of it; each also without a variant."""
    if op_type is not None and op_type not in _UNKNOWN:
        names = [op_type]
    else:
        names = [kernel]
        if kernel.startswith(_INTERFACE):
            names.append(kernel.rpartition("_")[2])
        elif (match := _BINARY.match(kernel)) is not None:
            names.append(match[1])
    return list(dict.fromkeys(form for name in names for form in (name, _VARIANT.sub("", name))))


def _explained(
    answer: _Answer, inputs: Sequence[Seen], outputs: Sequence[Seen], grouped: bool
) -> dict[str, int] | None:
    """Return the sizes under which the callsite's operands are those of this launch, or None."""
    operands = _operands(answer)
    if operands is None:
        return None
    found: dict[str, int] = {}
    for wanted, seen in ((answer.kernel["inputs"], inputs), (answer.kernel["outputs"], outputs)):
        sizes = _side(operands, wanted, seen, grouped)
        if sizes is None or any(found.setdefault(symbol, size) != size for symbol, size in sizes):
            return None
    return found


def _operands(answer: _Answer) -> dict[str, Mapping[str, Any]] | None:
    """Return the callsite's operands as the kernel sees them, by name; None if it cannot have seen them so."""
    operands = {operand["name"]: operand for operand in answer.callsite["operands"]}
    for name, shape in answer.kernel.get("seen", {}).items():
        other = [_dimension(answer.callsite, text) for text in shape]
        if name not in operands or None in other:
            return None
        operands[name] = {**operands[name], "shape": other}
    return operands


def _side(
    operands: Mapping[str, Mapping[str, Any]], wanted: Sequence[str], seen: Sequence[Seen], grouped: bool
) -> list[tuple[str, int]] | None:
    """Return the sizes that the inputs, or the outputs, give to symbols; None if they are not the callsite's."""
    if wanted[-1:] == ["..."]:
        wanted = wanted[:-1]
    elif any(operand["shape"] for operand in seen[len(wanted) :]):
        return None
    found: list[tuple[str, int]] = []
    for name, operand in zip_longest(wanted, seen[: len(wanted)]):
        if name == "*":
            continue
        if name not in operands:
            if operand is not None and operand["shape"]:
                return None
            continue
        sizes = _sizes(operands[name], operand, grouped) if operand is not None else None
        if sizes is None:
            return None
        found.extend(sizes.items())
    return found


def _dimension(callsite: Mapping[str, Any], text: str) -> Any:
    """Return what a callsite has under the name of a symbol, an attribute, or `operand_place`; None if nothing."""
    for attribute in callsite.get("attributes", ()):
        if attribute["name"] == text:
            return attribute["value"]
    for operand in callsite["operands"]:
        for place, size in enumerate(operand["shape"]):
            if f"{operand['name']}_{place}" == text or (not isinstance(size, int) and size["sym"] == text):
                return size
    return None


def _sizes(operand: Mapping[str, Any], seen: Seen, grouped: bool) -> dict[str, int] | None:
    """Return the sizes of one operand's symbols, or None if it is not the one that was seen."""
    if not seen["shape"] or (seen["dtype"] in _DTYPES and seen["dtype"] != operand["dtype"]):
        return None
    shape = operand["shape"]
    if operand["name"] == "weight":
        return {} if is_weight(shape, seen["shape"], seen.get("layout")) else None
    return solve(shape, seen["shape"], grouped=grouped)
