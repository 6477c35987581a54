"""`build`: a Candidate of a run, or a source outside any run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akf.cli.commands.run import folder_of_keys
from akf.cli.result import Result
from akf.contracts.problems import UsageError


def build(
    place: Path,
    candidate: str | None,
    route: str | None,
    soc: str | None,
    out: Path | None,
    toolchains: list[str],
    options: list[str],
    keys: Path | None,
) -> Result:
    """Build a Candidate, or a source by a route."""
    from akf.build import build as in_run  # noqa: PLC0415
    from akf.build import build_diagnostic  # noqa: PLC0415

    outside = {"--soc": soc, "--out": out, "--option": options}
    if route is None:
        wrong = [name for name, value in outside.items() if value]
        if candidate is None or wrong:
            what = f"{wrong[0]} belongs to a build with --route" if wrong else "Missing argument 'CANDIDATE'"
            hint = "in a run: akf build RUN CANDIDATE; outside: akf build SOURCE --route ROUTE --soc SOC --out FOLDER"
            raise UsageError.of("AKF-U406", what, hint=hint)
        return Result({"candidate": candidate, **_shown(in_run(place, candidate, folder_of_keys(keys), toolchains))})
    if candidate is not None or keys is not None or soc is None or out is None:
        what = "a build with --route takes SOURCE, --soc and --out, and neither CANDIDATE nor --keys"
        raise UsageError.of("AKF-U406", what, hint="akf build SOURCE --route ROUTE --soc SOC --out FOLDER")
    value = build_diagnostic(place, route, soc, out, toolchains, options)
    document = {"path": str(out), "diagnostic": True, "route": route, "soc": value["soc"], **_shown(value)}
    return Result(document)


def _shown(value: dict[str, Any]) -> dict[str, Any]:
    shown = {
        "outcome": value["outcome"],
        "stage": value["stage"],
        "reasons": value.get("reasons", []),
        "reproducible": value.get("reproduction", {}).get("reproducible"),
        "outputs": value["outputs"],
    }
    shown |= {name: value[name] for name in ("stopped", "specialisations") if name in value}
    if value.get("diagnostic"):
        shown |= {
            "stopped": value.get("stopped"),
            "reproduction": value.get("reproduction"),
            "notes": value.get("notes", []),
            "toolkit": value["toolkit"],
        }
    return shown
