"""`keys init`."""

from __future__ import annotations

from pathlib import Path

from akf.cli.commands.run import folder_of_keys
from akf.cli.result import Result
from akf.trust.keys import init_keys


def init(folder: Path | None) -> Result:
    """Make the keys of all roles."""
    where = folder_of_keys(folder)
    keys = init_keys(where)
    listed = [{"role": role, "key_id": key.key_id} for role, key in keys.items()]
    return Result({"folder": str(where), "trust_root": str(where / "trust.json"), "keys": listed})
