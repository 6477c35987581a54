"""P8: `akf audit` of a run with about 1,000 gates as a whole process, against SHA-256 of its bytes.

Run it from anywhere: `python benchmarks/p08_audit.py`. The run is built in memory by the tests' builder and written
down: 167 attempts of six gates, each with its plan, raw samples, sources and objects. Before anything is timed, the
audit must accept the run and refuse it with one byte of one gate changed.

An audit recomputes every interval from raw samples and verifies every signature besides hashing, so the ratio to
plain hashing is far above 1. It is printed with and without signatures.

Growth: attempts, at 1x and 10x; both passes over the ledger's prefix of each attempt make it more than linear.
"""

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from benchmarks.side_by_side import compare, median_seconds, process, report, report_growth  # noqa: E402
from tests.support.evidence import Changes, RunMaker  # noqa: E402

from akf.store import layout  # noqa: E402 (the checkout comes first)

ATTEMPTS = 167
ROUNDS = 5
HASH = """
import hashlib, os, sys
for base, folders, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(base, name), "rb") as stream:
            hashlib.sha256(stream.read()).digest()
"""


def write(folder: Path, attempts: int, *, signed: bool) -> tuple[Path, int]:
    """A run on disk; returns its folder and its size in bytes."""
    maker = RunMaker(Changes(signed=signed))
    for number in range(attempts):
        maker.attempt(candidate=f"candidate-{number}")
    files = maker.made("candidate-0").files
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if path not in {layout.LEDGER, layout.JOURNAL}:
            target.chmod(0o444)
    return folder, sum(map(len, files.values()))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        audit = (sys.executable, "-m", "akf", "audit", "--quiet")
        for signed in (False, True):
            run, size = write(work / f"run-{signed}", ATTEMPTS, signed=signed)
            hashing = process(sys.executable, "-c", HASH, str(run))
            what = f"audit of {ATTEMPTS * 6} gates, {size / 1e6:.0f} MB, {'signed' if signed else 'unsigned'}"
            goal = "<= 6x" if signed else "<= 1.6x"
            report("P8", what, f"{goal} SHA-256 of its bytes", compare(process(*audit, str(run)), hashing, ROUNDS, 0))
        small, _ = write(work / "small", ATTEMPTS // 10, signed=True)
        large = work / "run-True"
        report_growth((1, 10), [median_seconds(process(*audit, str(run))) for run in (small, large)])
        gate = large / "attempts" / "candidate-7" / "gates" / "operator.json"
        gate.chmod(0o644)
        gate.write_bytes(gate.read_bytes().replace(b'"outcome":"pass"', b'"outcome":"fail"', 1))
        try:
            process(*audit, str(large))()
        except Exception as refused:  # noqa: BLE001 - any refusal will do
            print(f"    a changed byte is refused: {refused}"[:100])
        else:
            raise ValueError("the audit accepts a changed gate")


if __name__ == "__main__":
    main()
