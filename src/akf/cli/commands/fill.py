"""`fill`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from akf.cli.commands.run import folder_of_keys
from akf.cli.result import Result
from akf.contracts.documents import load
from akf.contracts.problems import PreconditionError, UsageError
from akf.contracts.shipped import shipped

ROUTE = "host_cpp"


def fill(campaign: Path, host: bool, out: Path | None, keys: Path | None, values: list[str]) -> Result:
    """Fill a draft by this machine's facts, or by hand."""
    if host:
        if values:
            raise UsageError.of("AKF-U004", "--host and --set exclude each other", hint="see: akf fill --help")
        return Result(_host(campaign, out, keys))
    if not values and keys is None:
        message = "say what to fill: --host, --set POINTER=VALUE or --keys FOLDER"
        raise UsageError.of("AKF-U006", message, hint="see: akf fill --help")
    return Result(_by_hand(campaign, out, keys, values))


def _by_hand(campaign: Path, out: Path | None, keys: Path | None, values: list[str]) -> dict[str, Any]:
    from akf.store.draft import KEYS, assignment, fill_draft  # noqa: PLC0415
    from akf.trust.keys import pinned  # noqa: PLC0415

    wanted = dict(assignment(text) for text in values)
    if keys is not None:
        root = pinned(load(keys / "trust.json", "TrustRoot").value["keys"])
        wanted[KEYS] = {role: key.pin() for role, key in root.items()}
    return fill_draft(campaign, wanted, out or campaign.with_name(f"{campaign.stem}.filled.json"))


def _host(campaign: Path, out: Path | None, keys: Path | None) -> dict[str, Any]:
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    from akf.evaluate.baseline import measure_baseline  # noqa: PLC0415
    from akf.evaluate.secrets import state_directory  # noqa: PLC0415
    from akf.frameworks.fill import fill_host, fillable, together  # noqa: PLC0415
    from akf.frameworks.host_reference import Baseline, build_baseline, toolkit_tree  # noqa: PLC0415
    from akf.frameworks.toolkit_tree import keep  # noqa: PLC0415
    from akf.lease import HOST, FileLeases, default_folder, held  # noqa: PLC0415
    from akf.trust.keys import init_keys, pinned  # noqa: PLC0415

    draft = load(campaign, "Campaign").value
    folder = out or Path(f"{draft['suite']['id']}-ready")
    fillable(campaign, folder)
    where = folder_of_keys(keys)
    made = False
    public = None
    if draft["trust"]["mode"] == "signed":
        made = not (where / "trust.json").exists()
        public = init_keys(where) if made else pinned(load(where / "trust.json", "TrustRoot").value["keys"])

    def measure(campaign: dict[str, Any], workload: dict[str, Any], baseline: Baseline) -> Any:
        ops = dict.fromkeys(site["op"] for site in workload["callsites"])
        with held(FileLeases(default_folder()), [HOST], "akf fill --host"), TemporaryDirectory() as scratch:
            parts = []
            for op in ops:
                arm = baseline if op == baseline.spec.symbol else build_baseline(Path(scratch) / op, op)
                parts.append(measure_baseline(_task_of(op), campaign, arm))
        return together(parts)

    answer = fill_host(campaign, folder, public, measure)
    keep(toolkit_tree(), state_directory())
    return {**answer, "keys": str(where), "keys_created": made}


def _task_of(op: str) -> dict[str, Any]:
    """The shipped Task of one of the arm's operators, with the text of its reference."""
    folders = sorted(path.parent for path in (shipped("examples") / "tasks").glob("*/task.json"))
    for folder in folders:
        task: dict[str, Any] = orjson.loads((folder / "task.json").read_bytes())
        if task["op"] == op and ROUTE in task["routes"]:
            task["reference"]["text"] = (folder / "reference.py").read_text(encoding="utf-8")
            return task
    message = f"no shipped Task says how the operator {op} is called, so its baseline cannot be measured"
    raise PreconditionError.of("AKF-P132", message, found=op, hint="fill by hand: --set POINTER=VALUE")
