"""P1 to P3: the command line as whole processes, against check-jsonschema, in-toto-verify and Python's own start.

Run it from anywhere: `python benchmarks/p01_validate.py`. Byte code is cached for all sides, as it is once installed.
Before anything is timed, every side must accept the document, and refuse one with a field too many.
P1 compares `akf validate-campaign` (structure of four files, meaning, readiness) with `check-jsonschema` on the
Campaign alone, and with `in-toto-verify` of a layout of one step. P2 compares `validate-suite` of three arms with P1.
P3 compares `--help`, `--version` and a usage error with `python -c pass`.

Growth: the number of capability tuples of the Campaign, at 1x, 10x and 100x.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from benchmarks.side_by_side import ROUNDS, Run, compare, median_seconds, process, report, report_growth  # noqa: E402

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "suites" / "qwen3-8b-a3-bf16"
CAMPAIGN = SUITE / "arms" / "xllm.json"
AKF = (sys.executable, "-m", "akf")
SIZES = (1, 10, 100)


def fails(run: Run) -> bool:
    try:
        run()
    except subprocess.CalledProcessError:
        return True
    return False


def checker(document: Path) -> Run:
    tool = str(Path(sys.executable).with_name("check-jsonschema"))
    return process(tool, "--schemafile", str(ROOT / "schemas" / "campaign.schema.json"), str(document))


def campaign(folder: Path, tuples: int, **more: object) -> Path:
    """A copy of the Suite whose Campaign has `tuples` times as many capability tuples."""
    shutil.copytree(SUITE, folder)
    target = folder / "arms" / "xllm.json"
    value = json.loads(CAMPAIGN.read_text(encoding="utf-8"))
    value["capabilities"] *= tuples
    target.write_text(json.dumps({**value, **more}, indent=2), encoding="utf-8")
    return target


def in_toto(folder: Path) -> Run:
    """A layout of one step with its link, signed, and the command that verifies it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415
    from in_toto.models.layout import Layout, Step  # noqa: PLC0415 - the peer is optional
    from in_toto.models.link import Link  # noqa: PLC0415
    from in_toto.models.metadata import Envelope  # noqa: PLC0415
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]  # noqa: PLC0415

    folder.mkdir()
    signer = CryptoSigner.generate_ed25519()
    key = signer.public_key.to_dict()
    key["keyid"] = signer.public_key.keyid
    layout = Layout(steps=[Step(name="build", pubkeys=[signer.public_key.keyid])], keys={signer.public_key.keyid: key})
    layout.set_relative_expiration(years=1)
    envelope = Envelope.from_signable(layout)
    envelope.create_signature(signer)
    envelope.dump(str(folder / "root.layout"))
    link = Envelope.from_signable(Link(name="build"))
    link.create_signature(signer)
    link.dump(str(folder / f"build.{signer.public_key.keyid[:8]}.link"))
    public = folder / "key.pub"
    raw = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer.public_key.keyval["public"]))
    public.write_bytes(raw.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    tool = str(Path(sys.executable).with_name("in-toto-verify"))
    return process(
        tool, "-l", str(folder / "root.layout"), "--verification-keys", str(public), "--link-dir", str(folder)
    )


def verify(work: Path) -> None:
    broken = campaign(work / "broken", 1, unknown_field=1)
    good = process(*AKF, "validate-campaign", str(CAMPAIGN))
    if fails(good) or fails(checker(CAMPAIGN)):
        raise ValueError("a side refuses the good document")
    if not fails(process(*AKF, "validate-campaign", str(broken))) or not fails(checker(broken)):
        raise ValueError("a side accepts the broken document")


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        os.environ["PYTHONPYCACHEPREFIX"] = str(work / "bytecode")
        verify(work)
        ours = process(*AKF, "validate-campaign", str(CAMPAIGN))
        size = CAMPAIGN.stat().st_size
        report(
            "P1",
            f"validate-campaign, {size} bytes",
            "<= 0.20x check-jsonschema",
            compare(ours, checker(CAMPAIGN), ROUNDS),
        )
        try:
            report(
                "P1", "validate-campaign", "<= 0.45x in-toto-verify", compare(ours, in_toto(work / "in-toto"), ROUNDS)
            )
        except ImportError:
            print("P1  in-toto: peer missing")
        suite = process(*AKF, "validate-suite", str(SUITE / "suite.json"))
        report("P2", "validate-suite, three arms", "<= 1.05x P1", compare(suite, ours, ROUNDS))
        bare = process(sys.executable, "-c", "pass")
        for words in (("--help",), ("--version",)):
            report("P3", f"akf {words[0]}", "<= 5x python -c pass", compare(process(*AKF, *words), bare, ROUNDS))
        usage = Path(work / "usage.sh")
        usage.write_text(f"{sys.executable} -m akf bogus; exit 0\n", encoding="utf-8")
        plain = Path(work / "plain.sh")
        plain.write_text(f"{sys.executable} -c pass; exit 0\n", encoding="utf-8")
        comparison = compare(process("sh", str(usage)), process("sh", str(plain)), ROUNDS)
        report("P3", "a usage error", "<= 5x python -c pass", comparison)
        grown = [campaign(work / f"x{times}", times) for times in SIZES]
        report_growth(SIZES, [median_seconds(process(*AKF, "validate-campaign", str(path))) for path in grown])


if __name__ == "__main__":
    main()
