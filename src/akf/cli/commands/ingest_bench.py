"""`ingest bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.cli.options import check_data_class, check_id
from akf.cli.outputs import free, publish
from akf.cli.result import Result
from akf.contracts.problems import UsageError
from akf.contracts.text import show

_FINEST = 10**8


def ingest_bench(
    paths: Sequence[Path], out: Path | None, name: str, data_class: str, quantiles: Sequence[str], compare: bool
) -> Result:
    """Read results of benchmark clients; without `out` the artifact is part of the answer."""
    from akf.contracts.canonical import canonical_bytes, digest  # noqa: PLC0415
    from akf.traffic.bench import QUANTILES, ingest  # noqa: PLC0415

    free("AKF-F212", out=out)
    check_id(name)
    check_data_class("AKF-F212", data_class)
    options: dict[str, Any] = {"name": name, "data_class": data_class}
    options["quantiles"] = [_quantile(text) for text in quantiles] or QUANTILES
    if compare and len(paths) != 2:  # noqa: PLR2004 - A and B
        raise _usage(f"--compare takes two paths, not {len(paths)}")
    ingested = ingest(paths, **options)
    artifact = ingested.artifact
    comparison = _comparison(paths, artifact, options) if compare else None
    data = canonical_bytes(artifact)
    document: dict[str, Any] = {
        "benchmark": None if out is None else str(out),
        "id": artifact["id"],
        "digest": digest(data),
        "data_class": artifact["data_class"],
        "results": [_summary(result) for result in artifact["results"]],
        "ignored": ingested.ignored,
    }
    if comparison is not None:
        document["comparison"] = comparison
    if out is None:
        document["artifact"] = artifact
    publish((out, data))
    return Result(document)


def _summary(result: dict[str, Any]) -> dict[str, Any]:
    facts = {fact["name"]: fact for fact in result.get("identity", [])}
    model = facts.get("model")
    return {
        "id": result["id"],
        "tool": result["harness"]["name"],
        "source": result["sources"][0]["name"],
        "position": result["position"],
        "model": None if model is None else model["value"],
        "model_stated_by": None if model is None else model["stated_by"],
        **{name: result["requests"][name] for name in ("sent", "completed", "failed")},
        "metrics": len(result["metrics"]),
        "refused": len(result.get("refused", [])),
        "remarks": [remark["text"] for remark in result.get("remarks", [])],
    }


def _comparison(paths: Sequence[Path], artifact: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The first path's result against the second's, by their ids in the artifact."""
    from akf.traffic.bench import compare, ingest  # noqa: PLC0415

    found = {_origin(result): result for result in artifact["results"]}
    sides = []
    for path in paths:
        alone = ingest([path], **options).artifact["results"]
        if len(alone) != 1:
            raise _usage(f"--compare takes two paths of one result each; {path} holds {len(alone)}")
        sides.append(_origin(alone[0]))
    if not found.keys() >= set(sides):
        raise _usage("--compare takes two runs; these paths are parts of one")
    return compare(found[sides[0]], found[sides[1]])


def _origin(result: dict[str, Any]) -> tuple[Any, ...]:
    return (*((source["name"], source["digest"]) for source in result["sources"]), result["position"])


def _quantile(text: str) -> Any:
    from fractions import Fraction  # noqa: PLC0415

    try:
        q = Fraction(text) if len(text) <= len("0.99999999") and "/" not in text and "e" not in text.lower() else None
    except ValueError:
        q = None
    if q is None or not 0 < q < 1 or (q * _FINEST).denominator != 1:
        raise _usage(f"--quantile: {show(text)} is no number between 0 and 1, of at most 8 decimals")
    return q


def _usage(message: str) -> UsageError:
    return UsageError.of("AKF-F212", message, hint="see: akf ingest bench --help")
