"""A candidate and its reference as one package, laid out as workers of the AIKG wire run it.

Invariants:
- The same inputs give the same bytes.
- The candidate runs in a process of its own: it cannot end the check by ending, and it does not hold the reference's
  results. The check is a diagnosis all the same, no evidence: nothing is confined beyond what the worker confines.
- The device is chosen inside the package, by the id that was leased, as AIKG packages do.
- The package runs on Python 3.9 and newer, with the framework of the reference and nothing else.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

PROGRAM = Path(__file__).with_name("check_program.py")
RESULT = "check_result.json"
"""What the check leaves among the artifacts."""
_MTIME = 1_700_000_000
RUN_TIMES, WARMUP_TIMES = 50, 5


class Content(NamedTuple):
    """What is checked."""

    op_name: str
    reference: str
    candidate: str
    backend: str
    arch: str
    dsl: str
    framework: str

    @property
    def reference_file(self) -> str:
        """The reference's name in the package."""
        return f"{self.op_name}_{self.framework}.py"

    @property
    def candidate_file(self) -> str:
        """The candidate's name in the package."""
        return f"{self.op_name}_{self.dsl}_impl.py"


def packed(content: Content, device: int, *, run_times: int = RUN_TIMES, warmup_times: int = WARMUP_TIMES) -> bytes:
    """The tar archive: check, both profiles, reference, candidate."""
    op = content.op_name
    settings = {
        "backend": content.backend, "device": device, "framework": content.framework,
        "reference": content.reference_file, "candidate": content.candidate_file,
        "run_times": run_times, "warmup_times": warmup_times,
    }  # fmt: skip
    files = {
        f"verify_{op}.py": _entry("verify", settings),
        f"profile_{op}_base.py": _entry("profile_base", settings),
        f"profile_{op}_generation.py": _entry("profile_generation", settings),
        content.reference_file: content.reference,
        content.candidate_file: content.candidate,
        PROGRAM.name: PROGRAM.read_text(encoding="utf-8"),
    }
    return archive({name: text.encode("utf-8") for name, text in files.items()})


def profile_settings(content: Content, timeout_s: int) -> dict[str, Any]:
    """What the worker is told with a profile."""
    return {
        "backend": content.backend, "arch": content.arch, "dsl": content.dsl, "framework": content.framework,
        "run_times": RUN_TIMES, "warmup_times": WARMUP_TIMES, "timeout": timeout_s,
    }  # fmt: skip


def archive(files: dict[str, bytes]) -> bytes:
    """Files as a plain tar archive, in the order of their names."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(files[name]), _MTIME, 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    return target.getvalue()


def _entry(action: str, settings: dict[str, Any]) -> str:
    """One script of the package; the settings are JSON, so nothing of them is code."""
    text = json.dumps(json.dumps(settings, sort_keys=True))
    return (
        f"import json\nimport sys\n\nimport {PROGRAM.stem}\n\nsys.exit({PROGRAM.stem}.{action}(json.loads({text})))\n"
    )
