"""Who may ask a service for what.

Invariants:
- Without tokens a service listens on loopback only, and everybody there is `anonymous` and may do everything.
- With tokens nobody is answered without one. A token is a bearer, or the password of HTTP Basic, so that a client that
  knows no tokens can carry one in its address: `http://akf:TOKEN@host`.
- A certificate (`akf.trust.tls`) opens the door and gives no role: without tokens whoever has one may do everything,
  with tokens both are needed.
- Only digests of tokens are kept; they are compared in constant time.
- Roles include each other: an `admin` may what a `user` may, a `user` what a `reader` may.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from akf.contracts.problems import InvalidError, PreconditionError, StorageError

ANONYMOUS = "anonymous"
ROLES = ("reader", "user", "admin")
_SHORTEST_TOKEN = 16
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Who(NamedTuple):
    """Who asks; the nice value is the weight of its jobs."""

    name: str
    role: str
    nice: int = 0

    def may(self, role: str) -> bool:
        """Whether it has at least this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Access:
    """The tokens of a service.

    Args:
        tokens: SHA-256 of each token, with who has it.
        certified: whether nobody reaches the service without a certificate that it takes.
    """

    def __init__(self, tokens: Sequence[tuple[str, Who]] = (), *, certified: bool = False) -> None:
        self._tokens = tuple(tokens)
        self._certified = certified

    @property
    def open(self) -> bool:
        """Whether everybody who reaches the service may do everything."""
        return not self._tokens and not self._certified

    @property
    def nice(self) -> dict[str, int]:
        """The nice values of everybody who has one."""
        return {who.name: who.nice for _, who in self._tokens}

    def who(self, authorization: str | None) -> Who | None:
        """Who shows this `Authorization` header; none when it is nobody's."""
        if not self._tokens:
            return Who(ANONYMOUS, "admin")
        shown = digest(_token(authorization or ""))
        found = [who for known, who in self._tokens if hmac.compare_digest(known, shown)]
        return found[0] if found else None


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def of_environment(variable: str, file: Path | None, *, certified: bool = False) -> Access:
    """The tokens of a file, and the one token of an administrator in an environment variable.

    Raises:
        InvalidError: the file is no list of tokens, or a token is too short to be one.
        PreconditionError: others may read the file.
    """
    tokens = [] if file is None else _read(file)
    single = os.environ.get(variable)
    if single is not None:
        if len(single) < _SHORTEST_TOKEN:
            hint = "python -c 'import secrets; print(secrets.token_urlsafe())' makes one"
            message = f"the token in {variable} has fewer than {_SHORTEST_TOKEN} characters"
            raise InvalidError.of("AKF-T601", message, hint=hint)
        tokens.append((digest(single), Who("admin", "admin")))
    return Access(tokens, certified=certified)


def demand_loopback(host: str, access: Access) -> None:
    """Refuse to listen beyond this machine without tokens.

    Raises:
        PreconditionError: the address is reachable for others, and everybody would be answered.
    """
    if access.open and not is_loopback(host):
        hint = "give tokens, demand certificates (--tls-clients), or listen on 127.0.0.1 behind an SSH tunnel"
        raise PreconditionError.of("AKF-P601", f"without a token nobody but this machine may reach {host}", hint=hint)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _token(authorization: str) -> str:
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return ""
    return ""


def _read(file: Path) -> list[tuple[str, Who]]:
    try:
        mode = file.stat().st_mode
        text = file.read_bytes()
    except OSError as error:
        raise StorageError.of("AKF-F603", f"tokens cannot be read: {error.strerror}", file=str(file)) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PreconditionError.of("AKF-T602", "others may read the tokens", file=str(file), hint=f"chmod 600 {file}")
    try:
        listed = orjson.loads(text)["tokens"]
        return [_entry(each) for each in listed]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        hint = 'as in {"tokens": [{"name": "ann", "role": "user", "nice": 0, "sha256": "..."}]}'
        raise InvalidError.of("AKF-T601", f"this is no list of tokens: {error}", file=str(file), hint=hint) from error


def _entry(value: dict[str, object]) -> tuple[str, Who]:
    name, role, nice, sha256 = value["name"], value["role"], value.get("nice", 0), value["sha256"]
    if set(value) - {"name", "role", "nice", "sha256"}:
        raise ValueError(f"unknown fields beside {name!r}")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == ANONYMOUS:
        raise ValueError(f"no name: {name!r}")
    if role not in ROLES:
        raise ValueError(f"the role of {name} is not one of {', '.join(ROLES)}")
    if not isinstance(nice, int) or isinstance(nice, bool) or not -20 <= nice <= 19:  # noqa: PLR2004 - as `nice` has it
        raise ValueError(f"the nice value of {name} is not one from -20 to 19")
    if not isinstance(sha256, str) or not _DIGEST.fullmatch(sha256):
        raise ValueError(f"the digest of {name}'s token is no SHA-256 in hexadecimal")
    return sha256, Who(name, str(role), nice)
