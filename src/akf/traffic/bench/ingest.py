"""From files and folders to one ServingBenchmark.

Invariants:
1. The same files give the same bytes, in whatever order or folder they are named; a file named twice counts once.
2. Files of one run stand in one folder and are read together; two runs, also of one file, are two results.
3. In a folder, files that are no benchmark result are passed over and named; a file named by itself is read or refused.
4. A problem anywhere means that nothing is made; all problems of all files are said at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from akf.contracts.models import ServingBenchmark
from akf.contracts.models.base import SCHEMA_VERSION
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.text import printable
from akf.traffic.bench import aiperf, aisbench, client, evalscope, guidellm
from akf.traffic.bench.draft import Draft
from akf.traffic.bench.figures import figures
from akf.traffic.bench.foreign import File, Foreign, documents
from akf.traffic.bench.meaning import looked_for, recognised, tools

MAX_FILES = 1_000
MOST_PROBLEMS = 50
QUANTILES = tuple(Fraction(text) for text in ("0.5", "0.9", "0.95", "0.99"))
_SUFFIXES = (".json", ".jsonl", ".csv")
_SKIPPED = (".pytorch.json",)
_PICKLE = "benchmark_data.db"
_LONGEST_NAME = 256


@dataclass
class _Read:
    """A file with its documents, all of one tool and layout."""

    file: File
    tool: str
    layout: str
    documents: list[Foreign] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


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
    read, ignored = _read_all(paths, problems)
    drafts = [] if problems else [draft for group in _groups(read) for draft in _drafts(group)]
    for draft in drafts:
        problems += draft.problems
    if not drafts and not problems:
        text = f"no benchmark result among {len(ignored)} files of {', '.join(map(os.fspath, paths))}"
        problems.append(Problem("AKF-F208", text, hint=f"looked for the keys of {looked_for()}"))
    if problems:
        raise InvalidError(_listed(problems))
    results = [_result(draft, quantiles) for draft in drafts]
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


def _read_all(paths: Iterable[Path], problems: list[Problem]) -> tuple[list[_Read], list[str]]:
    read: list[_Read] = []
    ignored: list[str] = []
    seen: set[str] = set()
    for path, asked in _expanded(paths, problems):
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        try:
            found = _read_one(path, asked)
        except InvalidError as error:
            problems += error.problems
            continue
        if found is None:
            ignored.append(path.name)
        else:
            read.append(found)
    return read, ignored


def _expanded(paths: Iterable[Path], problems: list[Problem]) -> list[tuple[Path, bool]]:
    """The files, and whether each was named by itself."""
    found: list[tuple[Path, bool]] = []
    for path in paths:
        if not path.is_dir():
            found.append((path, True))
            continue
        inside = 0
        for folder, names, files in os.walk(path):
            names.sort()
            for file in sorted(files):
                if file.endswith(_SUFFIXES) and not file.endswith(_SKIPPED):
                    inside += 1
                    found.append((Path(folder, file), False))
        if inside > MAX_FILES:
            text = f"the folder holds {inside} files that may be results"
            problems.append(Problem("AKF-F209", text, os.fspath(path), expected=MAX_FILES, hint="name smaller folders"))
            return []
    return found


def _read_one(path: Path, asked: bool) -> _Read | None:
    if path.name == _PICKLE:
        raise InvalidError.of(
            "AKF-F210",
            "this database holds pickled Python objects and is never opened",
            file=os.fspath(path),
            hint="name its folder: benchmark_summary.json and benchmark_percentile.json are read",
        )
    file = File(path)
    if path.suffix == ".csv":
        table = aisbench.rows(file)
        if table is None:
            if asked:
                raise InvalidError([_unknown(file, None)])
            return None
        if table[1]:
            raise InvalidError(table[1])
        return _Read(file, "aisbench", "table", rows=table[0])
    found = documents(file.data, file.name)
    fits = [recognised(document.value) for document in found]
    if not asked and not any(fits):
        return None
    problems = [_unknown(file, document, fit) for document, fit in zip(found, fits, strict=True) if len(fit) != 1]
    kinds = {fit[0] for fit in fits if len(fit) == 1}
    if not problems and len(kinds) > 1:
        listed = " and ".join(sorted(tools()[tool]["title"] for tool, _ in kinds))
        problems = [
            Problem("AKF-F208", f"the file holds results of {listed}", file.name, hint="name one file for each tool")
        ]
    problems += [
        _infinite(document, fit[0][0])
        for document, fit in zip(found, fits, strict=True)
        if len(fit) == 1 and _endless(document, fit[0][0])
    ]
    if problems:
        raise InvalidError(problems)
    tool, layout = next(iter(kinds))
    return _Read(file, tool, layout, found)


def _unknown(file: File, document: Foreign | None, fits: Sequence[tuple[str, str]] = ()) -> Problem:
    if fits:
        listed = " and of ".join(tools()[tool]["title"] for tool, _ in fits)
        message = f"this document has the keys of {listed}, so nobody can say who wrote it"
    else:
        message = "this is no benchmark result that AKF knows"
    hint = f"looked for the keys of {looked_for()}"
    if document is None:
        return Problem(
            "AKF-F208", message, file.name, None, 1, hint=f"looked for the header {', '.join(aisbench.HEADER)}, …"
        )
    return document.problem("AKF-F208", message, hint=hint)


def _endless(document: Foreign, tool: str) -> bool:
    if not document.infinite:
        return False
    allowed = tools()[tool].get("infinity", [])
    inside = sum(1 for key in allowed if str(document.value.get(key)) == "Infinity")
    return inside == 0


def _infinite(document: Foreign, tool: str) -> Problem:
    text = f"Infinity is not a JSON value, and {tools()[tool]['title']} does not write it here"
    return document.problem("AKF-S007", text, found="Infinity")


def _groups(read: list[_Read]) -> list[list[_Read]]:
    """Files that describe the same run: of one tool and folder; for AISBench also of one name."""
    groups: dict[tuple[str, ...], list[_Read]] = {}
    for one in read:
        key = [one.tool, os.path.realpath(one.file.path.parent)]
        if one.tool == "aisbench":
            key.append(one.file.path.stem)
        elif one.tool not in {"evalscope", "aiperf"}:
            key.append(one.file.path.name)
        groups.setdefault(tuple(key), []).append(one)
    return list(groups.values())


def _drafts(group: list[_Read]) -> list[Draft]:
    group.sort(key=lambda one: one.layout)
    tool = group[0].tool
    files = sorted((one.file for one in group), key=lambda file: (file.path.name, file.digest))
    parts = {one.layout: one for one in group}
    layout = "+".join(sorted(parts))
    if len(parts) != len(group) or (tool == "evalscope" and any(len(one.documents) != 1 for one in group)):
        draft = Draft(tool, layout, files, 1)
        names = ", ".join(printable(file.path.name) for file in files)
        text = f"several files of one folder hold the same part of a run: {names}"
        draft.problems.append(Problem("AKF-F206", text, files[0].name, hint="one folder for each run"))
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


def _aiperf(parts: dict[str, _Read], layout: str, files: list[File]) -> list[Draft]:
    draft = Draft("aiperf", layout, files, 1)
    summaries = parts["summary"].documents if "summary" in parts else [None]
    aiperf.read(draft, summaries[0], parts["records"].documents if "records" in parts else [])
    return [draft]


def _guidellm(one: _Read) -> list[Draft]:
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


def _aisbench(parts: dict[str, _Read], layout: str, files: list[File]) -> list[Draft]:
    if "stripped" in parts:
        draft = Draft("aisbench", layout, files, 1)
        draft.problems.append(aisbench.stripped(parts["stripped"].documents[0]))
        return [draft]
    common = parts["common"].documents[0] if "common" in parts else None
    table = parts.get("table")
    rows = table.rows if table else []
    drafts = []
    for position, stage in enumerate(aisbench.stages(common, rows), 1):
        draft = Draft("aisbench", f"{layout}:{stage}"[:_LONGEST_NAME], files, position)
        aisbench.read(draft, stage, common, table.file if table else None, rows)
        drafts.append(draft)
    return drafts


def _result(draft: Draft, quantiles: Sequence[Fraction]) -> dict[str, Any]:
    fields = draft.fields
    completed: int = fields["completed"]
    if draft.fields.get("sent") is None and draft.fields.get("failed") is not None:
        fields["sent"] = completed + fields["failed"]
    metrics, refused = figures(draft, quantiles)
    _consistent(draft)
    tokens: dict[str, Any] = {"input_tokens": fields.get("input_tokens"), "output_tokens": fields.get("output_tokens")}
    for side in ("input", "output"):
        total = fields.get(f"{side}_tokens")
        mean = fields.get(f"{side}_mean_tokens")
        if total is not None and completed:
            mean = float(Fraction(total, completed))
        if mean is not None:
            tokens[f"{side}_mean_tokens"] = mean
    if "total_tokens" in fields:
        tokens["total_tokens"] = fields["total_tokens"]
    version = printable(draft.version) if draft.version else None
    sources = [{"name": printable(file.path.name)[:_LONGEST_NAME], "digest": file.digest} for file in draft.sources]
    result = {
        "id": "run",
        "harness": {"name": draft.tool, "version": version, "layout": draft.layout},
        "sources": sources,
        "position": draft.position,
        "identity": draft.identity,
        "load": draft.load,
        "duration_ns": fields.get("duration_ns") or None,
        "requests": {
            "sent": fields.get("sent"), "completed": completed, "failed": fields.get("failed"),
            "failed_from": draft.failed_from if fields.get("failed") is not None else None,
            **({"incomplete": fields["incomplete"]} if "incomplete" in fields else {}),
        },
        "tokens": tokens,
        "throughput": {
            name: fields[name]
            for name in ("requests_per_s", "input_tokens_per_s", "output_tokens_per_s", "total_tokens_per_s")
            if name in fields
        },
        "metrics": metrics,
        "refused": refused,
        "remarks": sorted(draft.remarks, key=lambda remark: (remark["name"], remark["text"])),
    }  # fmt: skip
    if "good_per_s" in fields or "attainment" in fields:
        result["goodput"] = _goodput(draft)
    return result


def _goodput(draft: Draft) -> dict[str, Any]:
    objectives = sorted(draft.objectives, key=lambda entry: entry["concept"]) if draft.objectives else None
    goodput: dict[str, Any] = {"objectives": objectives}
    if "good_per_s" in draft.fields:
        goodput["rate_per_s"] = draft.fields["good_per_s"]
    if "attainment" in draft.fields:
        goodput |= {"attainment_ratio": draft.fields["attainment"], "attainment_over": draft.attainment_over}
    return goodput


def _consistent(draft: Draft) -> None:
    """The printed rate of requests is the completed ones over the duration, within the digits that tools print."""
    fields = draft.fields
    printed, duration, completed = fields.get("requests_per_s"), fields.get("duration_ns"), fields["completed"]
    if not printed or not duration or not completed:
        return
    own = completed * 1_000_000_000 / duration
    if abs(own - printed) > own / 100:
        text = f"{completed} requests in {duration} ns are {own:.6g} a second, printed are {printed:.6g}"
        draft.remark("throughput-disagrees", text)


def _listed(problems: list[Problem]) -> list[Problem]:
    unique = {(p.file, p.pointer, p.line, p.code, p.message): p for p in problems}
    ordered = sorted(unique.values(), key=Problem.sort_key)
    if len(ordered) <= MOST_PROBLEMS:
        return ordered
    more = len(ordered) - MOST_PROBLEMS
    last = ordered[MOST_PROBLEMS - 1]
    return [
        *ordered[:MOST_PROBLEMS],
        Problem("AKF-F211", f"{more} more problems are not listed", last.file, last.pointer, last.line, last.column),
    ]
