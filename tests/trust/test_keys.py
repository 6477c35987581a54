"""Keys are made once, kept private, and pinned by what they are."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.folders import names

from akf.contracts.canonical import digest, parse_canonical
from akf.contracts.problems import ConflictError, InvalidError, PreconditionError, StorageError
from akf.store.layout import ARTIFACTS
from akf.trust.keys import PublicKey, default_directory, init_keys, load_signer, pinned, trust_root
from akf.trust.roles import OWNERS, ROLES

FILES = sorted(["trust.json", *(f"{role}.{suffix}" for role in ROLES for suffix in ("key", "pub"))])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "keys"
    init_keys(folder)
    return folder


@pytest.fixture
def keys(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "keys")
    return tmp_path / "keys"


def test_a_set_has_a_pair_for_each_role_and_a_root(made: Path) -> None:
    assert names(made) == FILES
    assert made.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in made.glob("*.key")} == {
        f"{role}.key": 0o600 for role in ROLES
    }
    root = parse_canonical((made / "trust.json").read_bytes(), "trust.json").value
    assert (root["kind"], root["schema_version"], list(root["keys"])) == ("TrustRoot", 1, sorted(ROLES))
    for role in ROLES:
        signer = load_signer(made, role)
        raw = base64.b64decode(root["keys"][role]["public_key"])
        public = s.load_pem_public_key((made / f"{role}.pub").read_bytes())
        assert raw == signer.public.raw == public.public_bytes(s.Encoding.Raw, s.PublicFormat.Raw)
        assert root["keys"][role]["key_id"] == signer.key_id == digest(raw)
    assert len({pin["key_id"] for pin in root["keys"].values()}) == len(ROLES)


def test_the_root_gives_the_pins_back(made: Path) -> None:
    root = parse_canonical((made / "trust.json").read_bytes(), "trust.json").value
    keys = pinned(root["keys"])
    assert keys == {role: load_signer(made, role).public for role in ROLES}
    assert trust_root(keys) == root


@pytest.mark.parametrize("prepared", ["absent", "empty", "with other files", "deep"])
def test_keys_are_made_where_there_are_none(tmp_path: Path, prepared: str) -> None:
    folder = tmp_path / ("a/b/keys" if prepared == "deep" else "keys")
    if prepared in ("empty", "with other files"):
        folder.mkdir()
    if prepared == "with other files":
        (folder / "README").write_text("mine")
    keys = init_keys(folder)
    assert keys == {role: load_signer(folder, role).public for role in ROLES}


@pytest.mark.parametrize("present", [["trust.json"], ["judge.key"], ["builder.pub"], FILES])
def test_no_key_is_ever_replaced(tmp_path: Path, present: list[str]) -> None:
    for name in present:
        (tmp_path / name).write_bytes(b"precious")
    with pytest.raises(ConflictError) as refused:
        init_keys(tmp_path)
    problem = refused.value.problems[0]
    assert (refused.value.exit_code, problem.code) == (5, "AKF-T013")
    assert sorted(problem.found) == present
    assert ("unfinished" in str(problem.hint)) is ("trust.json" not in present)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == dict.fromkeys(present, b"precious")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o610, 0o666, 0o777])
def test_a_key_that_others_can_use_signs_nothing(keys: Path, mode: int) -> None:
    (keys / "judge.key").chmod(mode)
    with pytest.raises(PreconditionError) as refused:
        load_signer(keys, "judge")
    problem = refused.value.problems[0]
    assert (refused.value.exit_code, problem.code, problem.found) == (4, "AKF-T011", f"{mode:04o}")
    assert "chmod 600" in str(problem.hint)
    (keys / "judge.key").chmod(0o400)
    load_signer(keys, "judge")


def test_a_missing_key_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError) as refused:
        load_signer(tmp_path, "judge")
    assert refused.value.problems[0].code == "AKF-T010"
    assert "akf keys init" in str(refused.value.problems[0].hint)


def test_a_folder_in_the_place_of_a_key_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "judge.key").mkdir(mode=0o700)
    with pytest.raises(StorageError):
        load_signer(tmp_path, "judge")


def unusable() -> dict[str, bytes]:
    ed = Ed25519PrivateKey.generate()
    pem, pkcs8, plain = s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()
    return {
        "rsa": rsa.generate_private_key(65537, 2048).private_bytes(pem, pkcs8, plain),
        "with a passphrase": ed.private_bytes(pem, pkcs8, s.BestAvailableEncryption(b"secret")),
        "public": ed.public_key().public_bytes(pem, s.PublicFormat.SubjectPublicKeyInfo),
        "der": ed.private_bytes(s.Encoding.DER, pkcs8, plain),
        "nothing": b"",
        "cut": ed.private_bytes(pem, pkcs8, plain)[:60],
    }


UNUSABLE = unusable()


@pytest.mark.parametrize("data", UNUSABLE.values(), ids=UNUSABLE)
def test_what_is_no_ed25519_key_is_named_and_never_quoted(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "judge.key").write_bytes(data)
    (tmp_path / "judge.key").chmod(0o600)
    with pytest.raises(InvalidError) as refused:
        load_signer(tmp_path, "judge")
    assert refused.value.problems[0].code == "AKF-T014"
    assert refused.value.__context__ is None


def test_a_signer_does_not_show_its_key(made: Path) -> None:
    signer = load_signer(made, "judge")
    body = (made / "judge.key").read_text().splitlines()[1]
    assert body not in repr(signer) + str(vars(signer))


@pytest.mark.parametrize(
    ("role", "pin"),
    [
        ("emperor", {}),
        ("judge", {"key_id": "sha256:" + "0" * 64, "public_key": base64.b64encode(b"\1" * 32).decode()}),
        ("judge", {"key_id": PublicKey(b"\1" * 31).key_id, "public_key": base64.b64encode(b"\1" * 31).decode()}),
        ("judge", {"key_id": PublicKey(b"\1" * 32).key_id, "public_key": base64.b64encode(b"\1" * 32).decode()[:-1]}),
        ("judge", {"key_id": PublicKey(b"\0" * 32).key_id, "public_key": "A" * 42 + "B="}),
        ("judge", {"key_id": PublicKey(b"\1" * 32).key_id, "public_key": 7}),
        ("judge", {"public_key": base64.b64encode(b"\1" * 32).decode()}),
        ("judge", {**PublicKey(b"\1" * 32).pin(), "comment": "x"}),
        ("judge", None),
    ],
)
def test_a_malformed_pin_is_named(made: Path, role: str, pin: object) -> None:
    honest = load_signer(made, "builder").public.pin()
    with pytest.raises(InvalidError) as refused:
        pinned({"builder": honest, role: pin}, "campaign.json", "/trust/keys")
    problem = refused.value.problems[0]
    assert (problem.code, problem.file, problem.pointer) == ("AKF-T012", "campaign.json", f"/trust/keys/{role}")
    assert list(pinned({"builder": honest})) == ["builder"]


@pytest.mark.parametrize("keys", [None, [], "judge", 1])
def test_pins_are_an_object(keys: object) -> None:
    with pytest.raises(InvalidError):
        pinned(keys)


def test_the_default_folder_follows_the_environment() -> None:
    assert default_directory({"AKF_KEYS": "/k", "XDG_CONFIG_HOME": "/c"}) == Path("/k")
    assert default_directory({"AKF_KEYS": "", "XDG_CONFIG_HOME": "/c"}) == Path("/c/akf/keys")
    assert default_directory({}) == Path.home() / ".config" / "akf" / "keys"


def test_every_kind_in_a_run_has_one_owner() -> None:
    assert set(OWNERS.values()) == set(ROLES)
    assert {slot.kind: slot.role for slot in ARTIFACTS} == {
        "Run": "supervisor", "OptimizationSuite": "supervisor", "Campaign": "supervisor", "Workload": "supervisor",
        "Capture": "supervisor", "Task": "supervisor", "Candidate": "supervisor", "Build": "builder",
        "Plan": "evaluator", "Gate": "evaluator", "Decision": "judge", "Triage": "supervisor",
    }  # fmt: skip


def test_cryptography_is_loaded_only_when_a_key_is_touched() -> None:
    code = "import sys, akf.trust.dsse, akf.trust.keys; print('cryptography' in sys.modules, 'ctypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_pipe_holds_no_key_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "judge.key")
    with pytest.raises(InvalidError) as caught:
        load_signer(tmp_path, "judge")
    assert caught.value.problems[0].code == "AKF-T014"
