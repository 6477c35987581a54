"""Ed25519 keys, one pair for each role.

Invariants:
- Private keys are readable by their owner alone; a signer is refused where others can read its key.
- Keys are never replaced: a folder that holds any key, or a half-made set, is left as it is.
- A key's id is the SHA-256 of its raw public bytes, so an id cannot be claimed by another key.
- ``cryptography`` is imported inside the functions that need it.
"""

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import ConflictError, InvalidError, PreconditionError, Problem
from akf.store._system import storage
from akf.store.publish import StagedFolder, make_folder, publish_file
from akf.trust.roles import ROLES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

TRUST_FILE = "trust.json"

_RAW_BYTES = 32
_KEY_FILE_BYTES = 65_536


class PublicKey:
    """A pinned public key."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.key_id = "sha256:" + hashlib.sha256(raw).hexdigest()

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Tell whether this key made the signature over exactly this data."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def pin(self) -> dict[str, str]:
        """Return the key as a Campaign and a trust root write it."""
        return {"key_id": self.key_id, "public_key": base64.b64encode(self.raw).decode()}

    @cached_property
    def _key(self) -> "Ed25519PublicKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

        return Ed25519PublicKey.from_public_bytes(self.raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"PublicKey({self.key_id})"


class Signer:
    """A role's private key, ready to sign."""

    def __init__(self, role: str, key: "Ed25519PrivateKey") -> None:
        self.role = role
        self.public = PublicKey(key.public_key().public_bytes_raw())
        self.key_id = self.public.key_id
        self._key = key

    def sign(self, data: bytes) -> bytes:
        """Return the Ed25519 signature of the data, 64 bytes."""
        return self._key.sign(data)

    def __repr__(self) -> str:
        return f"Signer({self.role}, {self.key_id})"


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the user's keys are: ``$AKF_KEYS``, else under ``$XDG_CONFIG_HOME`` or ``~/.config``."""
    if environ.get("AKF_KEYS"):
        return Path(environ["AKF_KEYS"])
    config = environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "akf" / "keys"


def init_keys(directory: Path) -> dict[str, PublicKey]:
    """Create a key pair for every role, and the trust root that pins them; return the public keys.

    A new folder appears whole. In a folder that exists, ``trust.json`` comes last: without it the set is
    unfinished.

    Raises:
        ConflictError: The folder holds a key or a trust root already; nothing was changed.
        StorageError: The file system refused.
    """
    _refuse_existing(directory)
    files, keys = _new_set()
    if os.path.lexists(directory):
        for name, data, mode in files:
            publish_file(directory / name, data, mode=mode)
        return keys
    make_folder(directory.parent)
    with StagedFolder(directory, mode=0o700) as stage:
        for name, data, mode in files:
            stage.write(name, data, mode=mode)
    return keys


def load_signer(directory: Path, role: str) -> Signer:
    """Load a role's private key.

    Raises:
        PreconditionError: There is no such key, or others than its owner can read it.
        InvalidError: The file holds no Ed25519 private key.
        StorageError: The key cannot be read.
    """
    if role not in ROLES:
        raise ValueError(f"not a role: {role!r}")
    path = directory / f"{role}.key"
    with storage(path, "read"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise PreconditionError.of(
                "AKF-T010",
                f"there is no key of the {role} at {path}",
                file=str(path),
                hint="create keys with `akf keys init`, or name their folder with --keys or AKF_KEYS",
            ) from error
        try:
            status = os.fstat(descriptor)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise InvalidError.of("AKF-T014", f"{path} is no regular file, so it holds no key", file=str(path))
            mode = stat.S_IMODE(status.st_mode)
            if mode & 0o077:
                raise PreconditionError.of(
                    "AKF-T011",
                    f"the key of the {role} at {path} can be used by others than its owner",
                    file=str(path),
                    expected="0600",
                    found=f"{mode:04o}",
                    hint=f"chmod 600 {path}",
                )
            data = os.read(descriptor, _KEY_FILE_BYTES)
        finally:
            os.close(descriptor)
    return Signer(role, _private_key(data, path))


def pinned(keys: Any, file: str | None = None, pointer: str = "/keys") -> dict[str, PublicKey]:
    """Return the public key of each role from the ``keys`` of a Campaign or a trust root.

    Raises:
        InvalidError: A role is unknown, or a key is not what its id says.
    """
    if not isinstance(keys, dict):
        raise InvalidError.of("AKF-T012", "keys is not an object", file=file, pointer=pointer)
    found: dict[str, PublicKey] = {}
    problems = []
    for role, pin in keys.items():
        reason = _wrong_pin(role, pin)
        if reason:
            problems.append(
                Problem("AKF-T012", f"the key of {role!r} {reason}", file=file, pointer=f"{pointer}/{role}")
            )
        else:
            found[role] = PublicKey(base64.b64decode(pin["public_key"]))
    if problems:
        raise InvalidError(problems)
    return found


def trust_root(keys: Mapping[str, PublicKey]) -> dict[str, Any]:
    """Return the document that pins the key of each role from outside a run."""
    pins = {role: key.pin() for role, key in keys.items()}
    identity = digest(canonical_bytes(pins)).removeprefix("sha256:")[:12]
    return {"kind": "TrustRoot", "schema_version": 1, "id": f"trust-{identity}", "keys": pins}


def _new_set() -> tuple[list[tuple[str, bytes, int]], dict[str, PublicKey]]:
    from cryptography.hazmat.primitives import serialization as s  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    files: list[tuple[str, bytes, int]] = []
    keys = {}
    for role in ROLES:
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
        files += [(f"{role}.key", private, 0o600), (f"{role}.pub", public, 0o644)]
        keys[role] = PublicKey(key.public_key().public_bytes_raw())
    files.append((TRUST_FILE, canonical_bytes(trust_root(keys)), 0o444))
    return files, keys


def _refuse_existing(directory: Path) -> None:
    names = [TRUST_FILE, *(f"{role}.{suffix}" for role in ROLES for suffix in ("key", "pub"))]
    present = [name for name in names if os.path.lexists(directory / name)]
    if not present:
        return
    if TRUST_FILE in present:
        hint = "use these keys, or choose another folder with --keys or AKF_KEYS"
    else:
        hint = f"the set is unfinished: no {TRUST_FILE}; move these files away if nothing was signed with them"
    raise ConflictError.of(
        "AKF-T013",
        f"{directory} holds keys already; nothing was changed",
        file=str(directory),
        found=present,
        hint=hint,
    )


def _private_key(data: bytes, path: Path) -> "Ed25519PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidError.of(
            "AKF-T014",
            f"{path} holds no unencrypted Ed25519 private key",
            file=str(path),
            hint="create keys with `akf keys init`",
        )
    return key


def _wrong_pin(role: Any, pin: Any) -> str | None:
    if role not in ROLES:
        return f"is of no known role; roles are {', '.join(ROLES)}"
    if not isinstance(pin, dict) or pin.keys() != {"key_id", "public_key"}:
        return "is not an object of key_id and public_key"
    try:
        raw = base64.b64decode(pin["public_key"], validate=True)
    except (binascii.Error, ValueError, TypeError):
        return "is not base64"
    if len(raw) != _RAW_BYTES or base64.b64encode(raw).decode() != pin["public_key"]:
        return f"is not {_RAW_BYTES} bytes in canonical base64"
    if PublicKey(raw).key_id != pin["key_id"]:
        return "is not the one its key_id names"
    return None
