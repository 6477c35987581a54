"""The secret of a gate: drawn before the Build is opened, committed to by digest, revealed in that gate only.

Invariants:
- It lives outside the run's folder, readable by its owner alone, under the run's nonce, attempt and gate.
- The same gate of the same attempt gets the same secret again, so that an interrupted evaluation can be resumed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from pathlib import Path

from akf.contracts.problems import ConflictError, IntegrityError
from akf.store.publish import make_folder, publish_file

_BYTES = 32


def state_directory() -> Path:
    """Where secrets live: ``$AKF_STATE``, else under ``$XDG_STATE_HOME`` or ``~/.local/state``."""
    if os.environ.get("AKF_STATE"):
        return Path(os.environ["AKF_STATE"])
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "akf"


def secret_for(nonce: str, attempt: str, gate: str) -> bytes:
    """The gate's secret, made when there is none yet."""
    path = _path(nonce, attempt, gate)
    make_folder(path.parent, mode=0o700)
    with suppress(ConflictError):
        publish_file(path, secrets.token_bytes(_BYTES), mode=0o600)
    return path.read_bytes()


def committed_secret(nonce: str, attempt: str, gate: str, wanted: str) -> bytes:
    """The secret that a plan committed to.

    Raises:
        IntegrityError: it is gone, so the plan can never be fulfilled.
    """
    path = _path(nonce, attempt, gate)
    data = path.read_bytes() if path.is_file() else b""
    if secret_digest(data) != wanted:
        message = f"the secret that the {gate} plan of {attempt!r} committed to is not on this machine"
        hint = "resume on the machine and as the user that planned, or bring its secrets back (AKF_STATE)"
        raise IntegrityError.of("AKF-I216", message, expected=wanted, hint=hint)
    return data


def secret_digest(secret: bytes) -> str:
    """The digest that the plan commits to."""
    return "sha256:" + hashlib.sha256(secret).hexdigest()


def _path(nonce: str, attempt: str, gate: str) -> Path:
    return state_directory() / "secrets" / nonce / attempt / gate
