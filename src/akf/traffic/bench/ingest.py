"""From files and folders to one ServingBenchmark.

Invariants:
1. The same files give the same bytes, in whatever order or folder they are named; a file named twice counts once.
2. Files of one run stand in one folder and are read together; two runs, also of one file, are two results.
3. A problem anywhere means that nothing is made; all problems of all files are said at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from akf.contracts.models import ServingBenchmark
from akf.contracts.models.base import SCHEMA_VERSION
from akf.contracts.problems import InvalidError, Problem, unlisted
from akf.contracts.text import printable
from akf.traffic.bench import aiperf, aisbench, client, evalscope, guidellm
from akf.traffic.bench.draft import Draft
from akf.traffic.bench.meaning import looked_for
from akf.traffic.bench.result import result_of
from akf.traffic.bench.sources import Read, read_all
from akf.traffic.foreign import File

MOST_PROBLEMS = 50
QUANTILES = tuple(Fraction(text) for text in ("0.5", "0.9", "0.95", "0.99"))
_LONGEST_NAME = 256
_ALONE = {
    ("evalscope", "summary"), ("evalscope", "percentiles"), ("evalscope", "arguments"), ("aiperf", "summary"),
    ("aisbench", "common"), ("aisbench", "stripped"),
}  # fmt: skip
"""Parts of a run of which a file holds one; of every other layout it may hold several, one after another."""


@dataclass
class Ingested:
    """The artifact, and the files of folders that were passed over."""

    artifact: dict[str, Any]
    ignored: list[str]


def ingest(
    paths: Sequence[Path],
    *,
    name: str = "serving-benchmark",
    data_class: str = "internal",
    quantiles: Sequence[Fraction] = QUANTILES,
) -> Ingested:
    """Read benchmark results.

    Args:
        paths: Files and folders.
        name: Id of the artifact.
        data_class: How the data may travel.
        quantiles: What is computed from detail, beside what the tools printed.

    Raises:
        InvalidError: A file is malformed, or nobody's.
        StorageError: A file cannot be read.
    """
    problems: list[Problem] = []
    read, ignored = read_all(paths, problems)
    drafts = [] if problems else [draft for group in _groups(read) for draft in _drafts(group)]
    for draft in drafts:
        problems += draft.problems
    if not drafts and not problems:
        text = f"no benchmark result among {len(ignored)} files of {', '.join(map(os.fspath, paths))}"
        problems.append(Problem("AKF-F208", text, hint=f"looked for the keys of {looked_for()}"))
    if problems:
        raise InvalidError(_listed(problems))
    results = [result_of(draft, quantiles) for draft in drafts]
    results.sort(
        key=lambda result: (
            [source["name"] for source in result["sources"]],
            str(result["sources"]),
            result["position"],
        )
    )
    for number, result in enumerate(results, 1):
        result["id"] = f"run-{number}"
    artifact = {
        "kind": "ServingBenchmark", "schema_version": SCHEMA_VERSION, "id": name, "data_class": data_class,
        "results": results,
    }  # fmt: skip
    model = ServingBenchmark.model_validate(artifact)
    made: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return Ingested(made, sorted(ignored))


def _groups(read: list[Read]) -> list[list[Read]]:
    """Files that describe the same run: of one tool and folder; for AISBench also of one name."""
    groups: dict[tuple[str, ...], list[Read]] = {}
    for one in read:
        key = [one.tool, os.path.realpath(one.file.path.parent)]
        if one.tool == "aisbench":
            key.append(one.file.path.stem)
        elif one.tool not in {"evalscope", "aiperf"}:
            key.append(one.file.path.name)
        groups.setdefault(tuple(key), []).append(one)
    return list(groups.values())


def _drafts(group: list[Read]) -> list[Draft]:
    group.sort(key=lambda one: one.layout)
    tool = group[0].tool
    files = sorted((one.file for one in group), key=lambda file: (file.path.name, file.digest))
    parts = {one.layout: one for one in group}
    layout = "+".join(sorted(parts))
    if len(parts) != len(group):
        draft = Draft(tool, layout, files, 1)
        names = ", ".join(printable(file.path.name) for file in files)
        text = f"several files of one folder hold the same part of a run: {names}"
        draft.problems.append(Problem("AKF-F206", text, files[0].name, hint="one folder for each run"))
        return [draft]
    several = [one for one in group if len(one.documents) > 1 and (tool, one.layout) in _ALONE]
    if several:
        draft = Draft(tool, layout, files, 1)
        for one in several:
            draft.fault(one.documents[1], (), "a second document follows; this part of a run is one", "AKF-F206")
        return [draft]
    if tool == "evalscope":
        draft = Draft(tool, layout, files, 1)
        evalscope.read(draft, {name: one.documents[0] for name, one in parts.items()})
        return [draft]
    if tool == "aiperf":
        return _aiperf(parts, layout, files)
    if tool == "guidellm":
        return _guidellm(group[0])
    if tool == "aisbench":
        return _aisbench(parts, layout, files)
    drafts = []
    for position, document in enumerate(group[0].documents, 1):
        draft = Draft(tool, group[0].layout, files, position)
        client.READERS[tool](draft, document)
        drafts.append(draft)
    return drafts


def _aiperf(parts: dict[str, Read], layout: str, files: list[File]) -> list[Draft]:
    draft = Draft("aiperf", layout, files, 1)
    summaries = parts["summary"].documents if "summary" in parts else [None]
    aiperf.read(draft, summaries[0], parts["records"].documents if "records" in parts else [])
    return [draft]


def _guidellm(one: Read) -> list[Draft]:
    drafts = []
    position = 0
    for document in one.documents:
        benchmarks = document.value["benchmarks"]
        if not isinstance(benchmarks, list) or not benchmarks:
            draft = Draft("guidellm", one.layout, [one.file], 1)
            draft.fault(document, ("benchmarks",), "the report holds no benchmark", "AKF-F206")
            return [draft]
        for index in range(len(benchmarks)):
            position += 1
            draft = Draft("guidellm", one.layout, [one.file], position)
            guidellm.read(draft, document, index)
            drafts.append(draft)
    return drafts


def _aisbench(parts: dict[str, Read], layout: str, files: list[File]) -> list[Draft]:
    if "stripped" in parts:
        draft = Draft("aisbench", layout, files, 1)
        draft.problems.append(aisbench.stripped(parts["stripped"].documents[0]))
        return [draft]
    common = parts["common"].documents[0] if "common" in parts else None
    table = parts.get("table")
    rows = table.rows if table else []
    drafts = []
    for position, stage in enumerate(aisbench.stages(common, rows), 1):
        draft = Draft("aisbench", printable(f"{layout}:{stage}")[:_LONGEST_NAME], files, position)
        aisbench.read(draft, stage, common, table.file if table else None, rows)
        drafts.append(draft)
    return drafts


def _listed(problems: list[Problem]) -> list[Problem]:
    unique = {(p.file, p.pointer, p.line, p.code, p.message): p for p in problems}
    ordered = sorted(unique.values(), key=Problem.sort_key)
    kept, more = ordered[:MOST_PROBLEMS], len(ordered) - MOST_PROBLEMS
    return [*kept, unlisted("AKF-F211", more, kept[-1])] if more > 0 else kept
