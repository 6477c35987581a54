"""A draft Workload of one arm: its callsites, and stages that a trace of requests has yet to fill.

Invariants:
1. Everything in it follows from the files that were read; each is named by its digest, none by its folder.
2. What is wrong with the config and with the settings is said at once.
3. Weights and sizes of the stages are placeholders; their token bounds are declared, and cut every request that fits
   the longest sequence into exactly one stage.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from akf.contracts.digests import digest
from akf.contracts.loader import Document, parse, read_input
from akf.contracts.problems import InvalidError, PreconditionError, Problem, UsageError
from akf.contracts.schemas import validate
from akf.contracts.text import did_you_mean, printable
from akf.frameworks import model_config, settings
from akf.frameworks.arms import ARMS
from akf.frameworks.arms import arm as arm_data
from akf.frameworks.callsites import Situation, callsites
from akf.frameworks.health import Evidence, read_logs
from akf.frameworks.models import model
from akf.frameworks.revisions import placed
from akf.frameworks.settings import Setting
from akf.routes.expressions import ExpressionError

_SHORT_INPUT, _SHORT_OUTPUT, _LONGEST_OUTPUT = 2048, 256, 4096
_MOST_RANKS = 1 << 16
_CONCURRENCY = {"short_prefill": 16, "long_prefill": 4, "decode": 64, "mixed": 16}


@dataclass(frozen=True)
class Draft:
    """The Workload, and what it was made of."""

    workload: dict[str, Any]
    settings: Mapping[str, Setting]
    evidence: Evidence
    revision: str | None


def draft(
    arm_name: str,
    model_path: Path,
    config_path: Path | None = None,
    logs: Sequence[Path] = (),
    *,
    revision: str | None = None,
    tp: int | None = None,
    name: str | None = None,
    identity: str | None = None,
) -> Draft:
    """Make the draft.

    Args:
        arm_name: the arm.
        model_path: the model's config.json.
        config_path: the framework's configuration; without one its defaults are taken.
        logs: logs of the framework; what they show to be in force outweighs the configuration.
        revision: version or commit of the framework.
        tp: tensor parallel size, where the configuration does not say it.
        name: the model's name; the config does not hold it.
        identity: id of the Workload.

    Raises:
        UsageError: the arm is not known, the revision is no revision, or `tp` contradicts the configuration.
        PreconditionError: the revision is not mapped.
        InvalidError: config, configuration or log cannot be taken.
    """
    if arm_name not in ARMS:
        near = did_you_mean(arm_name, ARMS)
        hint = f"did you mean {near}?" if near else None
        message = f"--arm: {printable(arm_name)} is none of {', '.join(ARMS)}"
        raise UsageError.of("AKF-F300", message, expected=list(ARMS), found=arm_name, hint=hint)
    arm = arm_data(arm_name)
    order = placed(arm, revision)
    evidence, log_sources = read_logs(logs, arm_name)
    model_document = _document(model_path)
    document = None if config_path is None else _document(config_path)
    problems: list[Problem] = []
    found = settings.read(arm, document, evidence.facts(), problems)
    try:
        config = model_config.read(model_document)
    except InvalidError as error:
        raise InvalidError([*error.problems, *problems]) from None
    if problems:
        raise InvalidError(problems)
    found = {key: _effective(setting, config.fields) for key, setting in found.items()}
    found["tp"] = _ranks(arm, found["tp"], tp)
    values = {key: setting.value for key, setting in found.items()}
    whole = {key: value for key, value in values.items() if isinstance(value, int) and not isinstance(value, bool)}
    try:
        sizes = model_config.sizes(config, arm, whole, model_document.file)
        sites = callsites(Situation(config, arm, values, sizes, order))
    except ExpressionError as error:
        message = f"no shapes follow from the sizes of this model and these settings: {error}"
        raise InvalidError.of("AKF-F302", message, file=model_document.file) from None
    read_files = [model_document, *([] if document is None else [document])]
    label = name or config.architecture
    workload = {
        "kind": "Workload",
        "schema_version": 1,
        "id": identity or f"{model(config.architecture)['id']}-{arm_name}-tp{values['tp']}",
        "title": f"{label} on {arm['title']}, tensor parallel size {values['tp']}",
        "data_class": "internal",
        "model": label,
        "dtype": config.dtype,
        "source": {
            "kind": "declared",
            "description": _description(arm, revision, document is not None),
            "files": [*map(_named, read_files), *log_sources],
        },
        "stages": _stages(values["max_model_len"], values["max_batch_requests"]),
        "callsites": sites,
    }
    return Draft(_valid(workload), found, evidence, revision)


def _document(path: Path) -> Document:
    return parse(read_input(path), os.fspath(path))


def _named(document: Document) -> dict[str, str]:
    return {"name": printable(Path(document.file).name), "digest": digest(document.source)}


def _effective(setting: Setting, fields: Mapping[str, int]) -> Setting:
    """A default may be a number of the model's config."""
    named = setting.origin == "default" and isinstance(setting.value, str) and setting.value in fields
    return Setting(fields[setting.value], "default") if named else setting


def _ranks(arm: Mapping[str, Any], stated: Setting, option: int | None) -> Setting:
    if option is None:
        return stated
    alone = next(spec for spec in arm["setting"] if spec["name"] == "tp")["type"] == "one"
    problem: tuple[str, Any] | None = None
    if not 1 <= option <= _MOST_RANKS:
        problem = (f"--tp {option} is no number of ranks", f"from 1 to {_MOST_RANKS}")
    elif alone and option != 1:
        problem = (f"--tp {option}: of {arm['title']} only one rank is mapped", 1)
    elif stated.origin == "config" and stated.value != option:
        problem = (f"--tp {option} contradicts the configuration, which says {stated.value}", stated.value)
    if problem is not None:
        raise UsageError.of("AKF-F309", problem[0], expected=problem[1], found=option)
    return Setting(option, "option")


def _description(arm: Mapping[str, Any], revision: str | None, configured: bool) -> str:
    which = "of no stated revision" if revision is None else printable(revision)
    how = "its configuration" if configured else "its defaults"
    return (
        f"Callsites from the model's config and from AKF's map of {arm['title']} {which}, with {how}. Stages are"
        " declared; weights and sizes stay open until a trace of the real service is ingested."
    )


def _stages(longest: int, requests: int) -> list[dict[str, Any]]:
    """The four stages: short or long prompt, short or long answer."""
    output = min(_LONGEST_OUTPUT, longest // 2)
    prompt = longest - output
    short_prompt, short_output = min(_SHORT_INPUT, prompt // 2), min(_SHORT_OUTPUT, output // 2)
    if min(short_prompt, short_output) < 1:
        message = f"the longest sequence, {longest} tokens, leaves no room for stages of short and long requests"
        raise PreconditionError.of("AKF-F311", message, expected="at least 8 tokens", found=longest)
    prompts = {"short": (1, short_prompt), "long": (short_prompt + 1, prompt)}
    outputs = {"short": (1, short_output), "long": (short_output + 1, output)}
    cut = {
        "short_prefill": ("short", "short"),
        "long_prefill": ("long", "short"),
        "decode": ("short", "long"),
        "mixed": ("long", "long"),
    }
    return [
        {
            "id": stage,
            "bounds": {
                "input_min_tokens": prompts[first][0],
                "input_max_tokens": prompts[first][1],
                "output_min_tokens": outputs[second][0],
                "output_max_tokens": outputs[second][1],
            },
            "concurrency": min(_CONCURRENCY[stage], requests),
            "arrivals": {"process": "closed_loop"},
            "weight_ratio": None,
            "shapes": None,
        }
        for stage, (first, second) in cut.items()
    ]


def _valid(workload: dict[str, Any]) -> dict[str, Any]:
    """What stands for a file must be one that AKF takes."""
    problems = validate(parse(orjson.dumps(workload), "the draft"), "Workload")
    if problems:
        raise InvalidError(problems)
    return workload
