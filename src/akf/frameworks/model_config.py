"""A model's config.json, and what one rank of it holds.

Invariants:
1. The architecture is one that AKF knows; of another nothing is guessed, whatever it resembles.
2. A field that sizes depend on is a positive whole number; one that may be missing has the value that every framework
   then takes, and only where they take the same. What would make other operators of the model is refused.
3. Sizes are the expressions of the architecture's file, evaluated in its order; a rank holds a whole share of heads,
   of the intermediate size and of the padded vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from akf.contracts.loader import Document
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.rules.finding import at
from akf.contracts.text import did_you_mean, show
from akf.frameworks.models import ARCHITECTURES, model
from akf.routes.expressions import evaluate, parse

MOST = 2**31 - 1
"""No size of a model or a service is larger."""

KV_BYTES = 64 * 2**30
"""A bound of the KV cache: what a die's 64 GiB could hold if nothing else were in memory."""

_DTYPES = {"bfloat16": 2, "float16": 2, "float32": 4}
_DTYPE_KEYS = ("dtype", "torch_dtype")


@dataclass(frozen=True)
class ModelConfig:
    """What the config says: the numbers that sizes depend on, and the rest by name."""

    architecture: str
    dtype: str
    eps: float
    fields: Mapping[str, int]


def number(text: str | int, sizes: Mapping[str, int]) -> int:
    """Return the value of an expression over sizes."""
    return evaluate(parse(text), sizes)


def read(document: Document) -> ModelConfig:
    """Read a config.

    Raises:
        InvalidError: with every problem of the file.
    """
    architecture = _architecture(document)
    data = model(architecture)
    problems = list(_other_operators(document, data["only"]))
    fields = _fields(document, data["field"], problems)
    dtype = _dtype(document, problems)
    eps = _eps(document, problems)
    if problems:
        raise InvalidError(problems)
    return ModelConfig(architecture, dtype, eps, fields)


def sizes(config: ModelConfig, arm: Mapping[str, Any], settings: Mapping[str, int], file: str) -> dict[str, int]:
    """Return all sizes that the expressions of arm and architecture may name.

    Args:
        config: the model's config.
        arm: what is known of the arm.
        settings: settings that are sizes, `tp` among them; defaults are filled in.
        file: the config's name in messages.

    Raises:
        InvalidError: one rank would not hold a whole share.
    """
    data = model(config.architecture)
    found = {**config.fields, **settings, "itemsize": _DTYPES[config.dtype], "kv_bytes": KV_BYTES}
    problems = [
        Problem(
            "AKF-F306",
            f"{rule['size']} is {found[rule['size']]}, which {found[rule['by']]} ranks cannot share",
            file,
            expected=f"a divisor of {found[rule['size']]}",
            found=found[rule["by"]],
        )
        for rule in data["divides"]
        if found[rule["size"]] % found[rule["by"]]
    ]
    tp, heads = found["tp"], found["kv_heads"]
    if heads % tp and not (arm["copies_kv_heads"] and tp % heads == 0):
        also = f", or a multiple of {heads}" if arm["copies_kv_heads"] else ""
        message = f"kv_heads is {heads}, which {tp} ranks of {arm['title']} cannot share"
        problems.append(Problem("AKF-F306", message, file, expected=f"a divisor of {heads}{also}", found=tp))
    found["vocab_pad"] = number(arm["vocab_pad"], found)
    padded = -(-found["vocab"] // found["vocab_pad"]) * found["vocab_pad"]
    if padded % tp:
        message = f"the vocabulary, padded to {padded}, cannot be shared by {tp} ranks"
        problems.append(Problem("AKF-F306", message, file, expected=f"a divisor of {padded}", found=tp))
    if problems:
        raise InvalidError(problems)
    for name, text in data["sizes"].items():
        found[name] = number(text, found)
    return found


def _architecture(document: Document) -> str:
    stated = document.value.get("architectures")
    names = stated if isinstance(stated, list) and all(isinstance(name, str) for name in stated) else []
    if len(names) == 1 and names[0] in ARCHITECTURES:
        return str(names[0])
    what = f"architectures is {show(stated)}" if not names else ", ".join(show(name) for name in names[:8])
    near = did_you_mean(names[0], ARCHITECTURES) if len(names) == 1 else None
    problem = at(
        document,
        "/architectures",
        "AKF-F301",
        f"AKF does not know the operators of this model: {what}",
        expected=sorted(ARCHITECTURES),
        hint=f"did you mean {near}?" if near else "docs/arms-and-models.md says how a model is added",
    )
    raise InvalidError([problem])


def _other_operators(document: Document, rules: list[Mapping[str, Any]]) -> Iterator[Problem]:
    for rule in rules:
        key = rule["key"]
        if "value" not in rule:
            wrong = document.value.get(key) is not None
        elif key in document.value:
            wrong = document.value[key] != rule["value"]
        else:
            wrong = "default" not in rule
        if wrong:
            stated = show(document.value[key]) if key in document.value else "missing"
            expected = rule.get("value", "absent")
            message = f"{key} is {stated}: {rule['why']}"
            yield at(document, f"/{key}", "AKF-F303", message, expected=expected)


def _fields(document: Document, specs: list[Mapping[str, Any]], problems: list[Problem]) -> dict[str, int]:
    found: dict[str, int] = {}
    for spec in specs:
        key = spec["key"]
        value = document.value.get(key)
        if value is None and "default" in spec and _agrees(spec, found):
            value = spec["default"]
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
            what = "missing" if value is None else show(value)
            wanted = f"a whole number from 1 to {MOST}"
            hint = "the frameworks do not agree on a default" if value is None and "default" in spec else None
            problems.append(at(document, f"/{key}", "AKF-F302", f"{key} is {what}", expected=wanted, hint=hint))
            continue
        found[spec["name"]] = value
    return found


def _agrees(spec: Mapping[str, Any], found: Mapping[str, int]) -> bool:
    """Whether the other framework's default is the same."""
    tree = parse(spec["agrees"])
    return {"hidden", "heads"} <= found.keys() and evaluate(tree, found) == spec["default"]


def _eps(document: Document, problems: list[Problem]) -> float:
    value = document.value.get("rms_norm_eps")
    if isinstance(value, float) and 0 < value < 1:
        return value
    what = show(value) if "rms_norm_eps" in document.value else "missing"
    expected = "a number between 0 and 1"
    problems.append(at(document, "/rms_norm_eps", "AKF-F302", f"rms_norm_eps is {what}", expected=expected))
    return 0.0


def _dtype(document: Document, problems: list[Problem]) -> str:
    key = next((key for key in _DTYPE_KEYS if document.value.get(key) is not None), _DTYPE_KEYS[1])
    value = document.value.get(key)
    if isinstance(value, str) and value in _DTYPES:
        return value
    what = "missing" if value is None else show(value)
    problems.append(at(document, f"/{key}", "AKF-F302", f"{key} is {what}", expected=sorted(_DTYPES)))
    return "bfloat16"
