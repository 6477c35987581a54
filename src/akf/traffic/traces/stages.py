"""Cut requests into stages by declared token bounds.

Invariants:
- A request falls into one stage or into none: bounds that overlap are refused before anything is read.
- What falls into none is counted and left out of every other figure; it is never moved to the nearest stage.
- `--bounds` replaces the bounds of a stage that the draft names; it makes no stage.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any

from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean, printable
from akf.traffic.traces.requests import Requests

OUTSIDE = -1
_BOUNDS = re.compile(r"([a-z_]+)=(\d{1,8}):(\d{1,8}),(\d{1,8}):(\d{1,8})")
_FIELDS = ("input_min_tokens", "input_max_tokens", "output_min_tokens", "output_max_tokens")


def with_bounds(stages: list[dict[str, Any]], texts: Sequence[str]) -> None:
    """Replace the bounds of stages by `STAGE=MIN:MAX,MIN:MAX` (input, then output, in tokens).

    Raises:
        UsageError: A text is not of that form or names no stage of the draft.
    """
    by_name = {stage["id"]: stage for stage in stages}
    given: set[str] = set()
    for text in texts:
        match = _BOUNDS.fullmatch(text)
        if match is None:
            hint = "such as --bounds decode=1:2048,257:4096: smallest and largest input, then output, in tokens"
            raise UsageError.of("AKF-F261", f"--bounds: {printable(text)} is not STAGE=MIN:MAX,MIN:MAX", hint=hint)
        name = match[1]
        if name not in by_name:
            near = did_you_mean(name, by_name)
            hint = f"did you mean {near}?" if near else f"the draft has {', '.join(by_name)}"
            raise UsageError.of("AKF-F261", f"--bounds: the draft has no stage {name}", found=name, hint=hint)
        if name in given:
            raise UsageError.of("AKF-F261", f"--bounds: the bounds of {name} are given twice", found=text)
        given.add(name)
        by_name[name]["bounds"] = dict(zip(_FIELDS, map(int, match.groups()[1:]), strict=True))


def cut(requests: Requests, stages: Sequence[dict[str, Any]]) -> array[int]:
    """The place of each request's stage in the list of stages, or `OUTSIDE`."""
    bounds = [tuple(stage["bounds"][field] for field in _FIELDS) for stage in stages]
    places = array("b", [OUTSIDE]) * len(requests)
    for index, (given, answer) in enumerate(zip(requests.inputs, requests.outputs, strict=True)):
        for place, (least, most, shortest, longest) in enumerate(bounds):
            if least <= given <= most and shortest <= answer <= longest:
                places[index] = place
                break
    return places
