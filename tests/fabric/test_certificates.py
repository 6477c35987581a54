"""TLS with certificates on both sides: who has a good one is answered, nobody else is."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.cli import inside
from tests.support.services import GOOD, JOB

pytest.importorskip("fastapi", reason="services are an extra")
from akf.client import AKFClient, UnreachableError

ON = {"AKF_TLS_CERT": "service.pem", "AKF_TLS_KEY": "service.key", "AKF_TLS_CLIENTS": "ca.pem"}
CLIENT = {"AKF_TLS_CA": "ca.pem", "AKF_TLS_CLIENT_CERT": "client.pem", "AKF_TLS_CLIENT_KEY": "client.key"}


class Authority:
    """Signs certificates into a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        (folder / f"{name}.pem").write_bytes(self._signed(self._name, self._key, 30, authority=True))

    def give(self, name: str, days: int = 30) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        (self.folder / f"{name}.pem").write_bytes(self._signed(subject, key, days, authority=False))
        form = serialization.PrivateFormat.PKCS8
        place = self.folder / f"{name}.key"
        place.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        place.chmod(0o600)

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, *, authority: bool) -> bytes:
        now = dt.datetime.now(dt.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=60))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        )
        return made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    ours, others = Authority(folder, "ca"), Authority(folder, "other-ca")
    for name in ("service", "client"):
        ours.give(name)
    ours.give("expired", days=-1)
    others.give("foreign")
    return folder


def environment(papers: Path, *parts: dict[str, str]) -> dict[str, str]:
    return {name: str(papers / file) for part in parts for name, file in part.items()}


@contextmanager
def serving(words: list[str], env: dict[str, str], said: Path) -> Iterator[str]:
    argv = [sys.executable, "-m", "akf", *words, "--port", "0"]
    with said.open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **env})
    try:
        found = None
        end = time.monotonic() + 30
        while found is None:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.02)
            found = re.search(r"https://\S+:\d+\n", said.read_text())
        yield found[0].strip()
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.soak
def test_a_job_runs_over_certificates_and_whoever_has_none_is_told_so(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = environment(papers, ON, CLIENT)
    board = ["worker", "--backend", "cpu", "--arch", "x86_64", "--folder", str(tmp_path / "worker")]
    with (
        serving([*board, "--host", "0.0.0.0"], both, tmp_path / "w") as worker,  # noqa: S104
        serving(["server", "--store", str(tmp_path / "store")], both, tmp_path / "s") as server,
    ):
        reached = worker.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        shown = {**environment(papers, CLIENT)}
        for variable, value in shown.items():
            monkeypatch.setenv(variable, value)
        with AKFClient(server) as client:
            assert client.register_worker(reached, "cpu", "x86_64")["verified"] is True
            assert (
                client.wait_for_completion(client.submit_job(**JOB, init_code=GOOD), 0.2, 60)["status"] == "completed"
            )
        for name in ("expired", "foreign", ""):
            for variable, kind in (("AKF_TLS_CLIENT_CERT", "pem"), ("AKF_TLS_CLIENT_KEY", "key")):
                monkeypatch.setenv(variable, str(papers / f"{name}.{kind}") if name else "")
            with AKFClient(server) as client, pytest.raises(UnreachableError, match="refused the certificate"):
                client.get_workers_status()
        monkeypatch.setenv("AKF_TLS_CA", str(papers / "other-ca.pem"))
        with AKFClient(server) as client, pytest.raises(UnreachableError, match="TLS refused the certificate"):
            client.get_workers_status()


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"AKF_TLS_CLIENTS": ""}, 2, "AKF-U607"),
        ({"AKF_TLS_KEY": "client.key"}, 1, "AKF-T603"),
        ({"AKF_TLS_CLIENTS": "missing.pem"}, 1, "AKF-T603"),
        ({"AKF_TLS_KEY": "open.key"}, 4, "AKF-T604"),
    ],
)
def test_what_cannot_be_set_up_is_refused_before_anything_listens(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], status: int, code: str
) -> None:
    opened = papers / "open.key"
    opened.write_bytes((papers / "service.key").read_bytes())
    opened.chmod(0o644)
    for name, file in {**ON, **changed}.items():
        monkeypatch.setenv(name, str(papers / file) if file else "")
    for words in (("server", "--store", tmp_path / "store"), ("worker", "--backend", "cpu", "--arch", "x86_64")):
        assert inside(*words, "--port", 0).refused(status).codes == {code}
