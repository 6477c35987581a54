"""What the four operations of the wire contract run of a package, and what they answer.

Invariants:
- Which file is run follows from the operation and the operator's name, which is a plain name.
- A missing file, a broken package, an exit status and a time that is up are answers, in the contract's words.
- Times are microseconds; what is no positive, finite number is no time.
- All runs of one operation share its time.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from akf.contracts.text import show
from akf.fabric import profilers
from akf.fabric.interface import Outcome
from akf.fabric.running import Ended
from akf.fabric.unpack import artifacts, read_regular

REFERENCE_BYTES = 512 * 1024**2
REFERENCE_DONE = "REFERENCE_GENERATION_SUCCESS"
PROFILE_S = 300.0
LONGEST_S = 86_400.0
_RESULT_BYTES = 1 << 20
_OP_NAME = re.compile(r"[^/\0]{1,200}")
_SCRIPT_DSLS = ("pypto", "triton_cuda", "triton_ascend")
_PRINTED = re.compile(r"PROFILE_RESULT: ?([0-9.eE+-]{1,32})")
_SAID = 2000
_NO_ROOFLINE = {
    "success": False,
    "error": "this worker computes no roofline: its operations, bytes and the device's peaks are not in a package",
    "remedy": "state work in a Task and peaks in a Campaign: akf judge holds each row of a gate against that floor",
}

Body = dict[str, Any]


class Place(NamedTuple):
    """An unpacked package, and the way to run something of it.

    Attributes:
        work: where it lies.
        run: runs a command in it, within what is left of the operation's time.
        python: the interpreter.
        backend: of the worker.
    """

    work: Path
    run: Callable[[list[str]], Awaitable[Ended]]
    python: str
    backend: str

    async def script(self, name: str) -> Ended | None:
        """Run one of its scripts; none when it is not there."""
        if not (self.work / name).is_file() or (self.work / name).is_symlink():
            return None
        return await self.run([self.python, name])


def seconds(value: Any, default: float) -> float:
    """A time limit as a client gives it; one that is none is the default."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
        return default
    return float(min(max(value, 0), LONGEST_S))


def script_of(operation: str, op_name: str) -> str:
    """The file that an operation runs; for a name that is none, one that no package holds."""
    return f"{operation}_{op_name}.py" if _OP_NAME.fullmatch(op_name) else f"{operation}_{show(op_name)}.py/"


def outcome_of(ended: Ended) -> Outcome:
    """What one run says."""
    if ended.how == "ended":
        return "ok" if ended.status == 0 else "candidate_failed"
    return ended.how


class Operation(NamedTuple):
    """One operation: how it runs, and what it answers when it could not.

    Attributes:
        name: as the wire has it.
        run: what it does with a package.
        failed: its answer for an outcome and words about it.
        late: what is said when the time is up.
    """

    name: str
    run: Callable[[Place, str, Mapping[str, Any]], Awaitable[Body]]
    failed: Callable[[Outcome, str], Body]
    late: str


async def _verify(place: Place, op_name: str, _: Mapping[str, Any]) -> Body:
    name = script_of("verify", op_name)
    ended = await place.script(name)
    if ended is None:
        return _verify_failed("candidate_failed", f"Verification script {name} not found.")
    if ended.how != "ended":
        return _verify_failed(outcome_of(ended), ended.detail)
    found, left_out = artifacts(place.work)
    log = ended.log + "".join(f"\n[the artifact {show(each)} is too big and left out]" for each in left_out[:20])
    return {"success": ended.succeeded, "log": log, "artifacts": found, "outcome": outcome_of(ended)}


def _verify_failed(outcome: Outcome, text: str) -> Body:
    return {"success": False, "log": text, "artifacts": {}, "outcome": outcome}


async def _reference(place: Place, op_name: str, _: Mapping[str, Any]) -> Body:
    name = script_of("verify", op_name)
    ended = await place.script(name)
    if ended is None:
        return _reference_failed("candidate_failed", f"Verification script {name} not found.")
    if not ended.succeeded:
        return _reference_failed(outcome_of(ended), ended.detail or ended.log)
    if REFERENCE_DONE not in ended.log:
        return _reference_failed("candidate_failed", f"{ended.log}\n{REFERENCE_DONE} was not printed.")
    data = read_regular(place.work, f"{op_name}_reference.pt", REFERENCE_BYTES)
    if data is None:
        return _reference_failed("candidate_failed", f"{ended.log}\nReference file {op_name}_reference.pt not found.")
    return {"success": True, "log": ended.log, "reference_data": base64.b64encode(data).decode(), "outcome": "ok"}


def _reference_failed(outcome: Outcome, text: str) -> Body:
    return {"success": False, "log": text, "reference_data": "", "outcome": outcome}


async def _single(place: Place, op_name: str, _: Mapping[str, Any]) -> Body:
    name = script_of("profile_single", op_name)
    ended = await place.script(name)
    if ended is None:
        return _single_failed("candidate_failed", f"Profile script {name} not found.")
    if not ended.succeeded:
        return _single_failed(outcome_of(ended), ended.detail or ended.log)
    found = _stored_time(place.work, "profile_single_result.json")
    if found is None and (printed := _PRINTED.findall(ended.log)):
        found = positive(printed[-1])
    if found is None:
        return _single_failed("candidate_failed", f"{ended.log}\nNo time was found.")
    return {"time_us": found, "success": True, "log": ended.log, "outcome": "ok"}


def _single_failed(outcome: Outcome, text: str) -> Body:
    return {"time_us": None, "success": False, "log": text, "outcome": outcome}


async def _profile(place: Place, op_name: str, settings: Mapping[str, Any]) -> Body:
    """The baseline, whose failure is tolerated, unless its time is given; then the candidate."""
    base = positive(settings.get("override_base_time_us"))
    if base is None:
        base, _ = await _timed(place, f"profile_{op_name}_base.py", "base_profile_result.json", settings)
    gen, ended = await _timed(place, f"profile_{op_name}_generation.py", "generation_profile_result.json", settings)
    body = _profile_failed("ok", "")
    body |= {"gen_time": gen, "base_time": base, "artifacts": artifacts(place.work)[0]}
    if gen is None:
        why = "its script is not there" if ended is None else ended.detail or ended.log[-_SAID:]
        outcome = "candidate_failed" if ended is None or ended.how == "ended" else outcome_of(ended)
        return body | {"outcome": outcome, "error": f"the candidate was not timed: {why}"}
    del body["error"]
    if base is not None:
        body["speedup"] = base / gen
    return body


async def _timed(
    place: Place, script: str, result: str, settings: Mapping[str, Any]
) -> tuple[float | None, Ended | None]:
    """One script's time, by itself or by the backend's profiler."""
    if not _OP_NAME.fullmatch(script):
        return None, None
    dsl, backend = str(settings.get("dsl", "")), str(settings.get("backend") or place.backend)
    if backend == "cpu" or any(name in dsl for name in _SCRIPT_DSLS):
        ended = await place.script(script)
        return (_stored_time(place.work, result) if ended is not None and ended.succeeded else None), ended
    if not (place.work / script).is_file():
        return None, None
    return await profilers.timed(place.work, place.run, [place.python, script], backend, settings)


def _profile_failed(outcome: Outcome, text: str) -> Body:
    return {
        "gen_time": None,
        "base_time": None,
        "speedup": 0.0,
        "roofline_time": None,
        "roofline_speedup": 0.0,
        "roofline": dict(_NO_ROOFLINE),
        "artifacts": {},
        "error": text,
        "outcome": outcome,
    }


def positive(value: Any) -> float | None:
    """A time in microseconds; none when it is no positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def _stored_time(work: Path, name: str) -> float | None:
    data = read_regular(work, name, _RESULT_BYTES)
    try:
        value = orjson.loads(data or b"")
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return positive(value.get("avg_time_us")) or positive(value.get("execution_time_us"))


VERIFY = Operation("verify", _verify, _verify_failed, "Verification timed out after {} seconds.")
REFERENCE = Operation(
    "generate_reference", _reference, _reference_failed, "Reference generation timed out after {} seconds."
)
PROFILE = Operation("profile", _profile, _profile_failed, "Profiling timed out after {} seconds.")
SINGLE = Operation("profile_single_task", _single, _single_failed, "Profiling timed out after {} seconds.")
