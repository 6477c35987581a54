"""From a file in the inbox to a Decision: the supervisor's commands, one after the other.

Invariants:
- These are the steps of whoever holds the keys, by the command line; no agent runs them or learns where the keys are.
- What an agent made gets into a run through `akf intake` and in no other way.
- A gate that the machine spoiled is measured again, as anyone may; every try stays in the record.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from akf.agents.control import akf, refused
from akf.agents.files import Files, write_candidate

LIMIT_S = 1800.0
TRIES = 3


class Supervisor(NamedTuple):
    """A run and the folder of its keys."""

    run: Path
    keys: Path

    def open(self, task: Path) -> None:
        """Open a Task.

        Raises:
            AkfError: the run does not take it.
        """
        file = task / "task.json" if task.is_dir() else task
        self._need("open-task", self.run, file, keys=True)

    def take(self, name: str, files: Files) -> str:
        """Put a candidate into the inbox and take it from there; its id in the run.

        Raises:
            AkfError: it is refused.
        """
        write_candidate(self.run / "inbox", name, files)
        answer = akf("intake", self.run, "--keys", self.keys, limit_s=LIMIT_S)
        entries = answer.document.get("submissions", ())
        entry = next((each for each in entries if each["name"] == name and each["candidate"] is not None), None)
        if entry is None:  # the folders of others may be refused as well, and are no matter here
            raise refused(answer.status, answer.document)
        return str(entry["candidate"])

    def decide(self, candidate: str, name: str) -> dict[str, Any]:
        """Build, measure and judge a candidate.

        Args:
            candidate: its id in the run.
            name: its folder in the inbox.

        Returns:
            `{candidate, gate, verdict, tries, reasons, gain, decision}`; `tries` is the Decision's count of
            evaluations of the Task.

        Raises:
            AkfError: a step is refused.
        """
        gate: dict[str, Any] = {}
        for attempt in range(TRIES):
            self._need("build", self.run, candidate, keys=True)
            gate = self._need("evaluate", self.run, candidate, "--gate", "operator", keys=True)
            if gate["gate_status"] != "incomparable" or attempt == TRIES - 1:
                break
            candidate = self._need("submit", self.run, self.run / "inbox" / name, "--retry", keys=True)["candidate"]
        decided = self._need("judge", self.run, self.run / "attempts" / candidate / "gates", keys=True)
        decision = decided["decision"]
        gain = next((each["interval"] for each in gate["checks"] if each["name"].startswith("gain:")), None)
        return {
            "candidate": candidate, "gate": gate["gate_status"], "verdict": decided["verdict"],
            "tries": decision["tries"],
            "reasons": list(dict.fromkeys(each["code"] for each in decision["reasons"])), "gain": gain,
            "decision": decided["path"],
        }  # fmt: skip

    def _need(self, command: str, *words: str | Path, keys: bool = False) -> dict[str, Any]:
        more: tuple[str | Path, ...] = ("--keys", self.keys) if keys else ()
        return akf(command, *words, *more, limit_s=LIMIT_S).need()
