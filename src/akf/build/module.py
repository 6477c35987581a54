"""The Build of a module: nothing is compiled; its files are frozen as they are, beside the Task's wrong module.

Invariants:
- No tool takes part and no command runs, so nothing of the candidate runs either.
- Outputs are the bytes that were submitted, under their names; execute bits go: a module is imported, not executed.
- The object that a gate proves to have run is the digest of such a tree, which follows from the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akf.build.objects import output
from akf.contracts.gates import PYTHON
from akf.store.untrusted import TreeFile

STAGE = "source"


def module_build(
    candidate: Mapping[str, Any],
    parents: Sequence[Mapping[str, str]],
    environment: Mapping[str, Any],
    trees: Mapping[str, Sequence[TreeFile]],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The Build of a Candidate of the `python` ABI, and its files.

    Args:
        candidate: the Candidate.
        parents: references to Run, Task and Candidate.
        environment: the Campaign's; its SoC and toolkit are what the module will run on.
        trees: files of the `candidate` and of the `perturbed` module.
    """
    named = [(subject, f"{subject}/{file.path}", file.data) for subject, files in trees.items() for file in files]
    value = {
        "kind": "Build",
        "schema_version": 1,
        "id": candidate["id"],
        "parents": list(parents),
        "outcome": "built",
        "route": PYTHON,
        "soc": environment["soc"]["name"],
        "toolkit": environment["toolkit"],
        "stage": STAGE,
        "tools": [],
        "commands": [],
        "variables": [],
        "inputs_digest": candidate["source_digest"],
        "isolation": "none",
        "outputs": [output(path, subject, "module", "host_code", data) for subject, path, data in named],
    }
    return value, {path: data for _, path, data in named}
