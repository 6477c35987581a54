"""Drafts of the arms, from files of the tests' own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from akf.contracts.shipped import shipped
from akf.frameworks.draft import Draft, draft

FILES = shipped("examples") / "frameworks"
QWEN3_8B = FILES / "qwen3-8b.config.json"


def config(folder: Path, **changes: Any) -> Path:
    """Qwen3-8B's config with some fields changed; one that is None is left out."""
    value = json.loads(QWEN3_8B.read_text(encoding="utf-8")) | changes
    return written(folder / "config.json", {key: item for key, item in value.items() if item is not None})


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def drafted(arm: str, folder: Path, settings: dict[str, Any] | None = None, **options: Any) -> Draft:
    """A draft of Qwen3-8B on an arm with these settings."""
    path = None if settings is None else written(folder / "settings.json", settings)
    return draft(arm, options.pop("model_config", QWEN3_8B), path, **options)


def sites(made: Draft) -> dict[str, dict[str, Any]]:
    """The callsites by name, without the arm's."""
    return {site["id"].partition(".")[2]: site for site in made.workload["callsites"]}


def shapes(site: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        operand["name"]: [size if isinstance(size, int) else size["sym"] for size in operand["shape"]]
        for operand in site["operands"]
    }
