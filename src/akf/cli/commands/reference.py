"""`schema` and `explain`: the contracts, looked up."""

from __future__ import annotations

from pathlib import Path

from akf.cli.commands.validate import LAUNCH_SPEC
from akf.cli.result import Result
from akf.contracts import codes, schemas
from akf.contracts.problems import UsageError
from akf.contracts.shipped import shipped
from akf.contracts.text import did_you_mean
from akf.store.publish import StagedFolder, make_folder


def schema(kind: str | None, export: Path | None) -> Result:
    """List, print or export schemas."""
    if export is not None and kind is not None:
        raise UsageError.of("AKF-U004", "KIND and --export exclude each other: an export holds all kinds")
    if export is not None:
        make_folder(export.absolute().parent)
        names = []
        with StagedFolder(export) as stage:
            for path in sorted(shipped("schemas").glob("*.schema.json")):
                stage.write(path.name, path.read_bytes(), mode=0o644)
                names.append(path.name)
        return Result({"folder": str(export), "files": names})
    if kind is None:
        listed = [
            {"kind": name, "file": file.name, "id": schemas.schema(name)["$id"]}
            for name, file in sorted(schemas.kinds().items())
        ]
        return Result({"schemas": listed})
    if kind not in schemas.kinds():
        meant = did_you_mean(kind, schemas.kinds())
        hint = f"did you mean {meant}?" if meant else "akf schema lists all kinds"
        if kind == LAUNCH_SPEC:
            hint = "a launch spec has no schema: AGENTS.md describes it, akf validate FILE --kind LaunchSpec checks it"
        raise UsageError.of(
            "AKF-U002", f"there is no kind {kind!r}", expected=sorted(schemas.kinds()), found=kind, hint=hint
        )
    return Result({"kind": kind, "schema": schemas.schema(kind)})


def explain(code: str) -> Result:
    """Explain one code or verdict, however it is spelled."""
    entry = codes.find(code)
    if entry is None:
        meant = codes.nearest(code)
        hint = f"did you mean {meant}?" if meant else "docs/errors.md lists all codes"
        raise UsageError.of("AKF-U002", f"there is no code or verdict {code!r}", found=code, hint=hint)
    return Result(entry.to_json())
