"""TLS of services and of their clients, with certificates on both sides.

Invariants:
- A service with TLS demands a certificate of every client, signed by the authority that it names: a connection without
  one, or with an expired or foreign one, ends before anything is asked.
- A client that names an authority trusts that one only; host names are always checked.
- Files that are none, that do not belong together or whose key others may read are refused before anything listens.
"""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.problems import InvalidError, PreconditionError, UsageError

CERTIFICATE, KEY, CLIENTS = "AKF_TLS_CERT", "AKF_TLS_KEY", "AKF_TLS_CLIENTS"
AUTHORITY, OWN, OWN_KEY = "AKF_TLS_CA", "AKF_TLS_CLIENT_CERT", "AKF_TLS_CLIENT_KEY"
_ENDED = ("disconnected", "reset", "ReadError", "RemoteProtocolError", "closed")


class Tls(NamedTuple):
    """What a service shows, and whose certificates it takes."""

    certificate: Path
    key: Path
    clients: Path

    def settings(self) -> dict[str, Any]:
        """The same for uvicorn."""
        return {
            "ssl_certfile": str(self.certificate), "ssl_keyfile": str(self.key), "ssl_ca_certs": str(self.clients),
            "ssl_cert_reqs": ssl.CERT_REQUIRED,
        }  # fmt: skip


def of_service(certificate: Path | None, key: Path | None, clients: Path | None) -> Tls | None:
    """The TLS of a service, from its options or the environment; none where nothing is named.

    Raises:
        UsageError: some of the three are named, not all.
        InvalidError: a file is none of its kind, or key and certificate do not belong together.
        PreconditionError: others may read the key.
    """
    named = {CERTIFICATE: certificate, KEY: key, CLIENTS: clients}
    found = {name: given or _path(name) for name, given in named.items()}
    if not any(found.values()):
        return None
    missing = [name for name, path in found.items() if path is None]
    if missing:
        hint = "--tls-cert, --tls-key and --tls-clients go together"
        raise UsageError.of("AKF-U607", f"TLS needs {', '.join(missing)} too", hint=hint)
    tls = Tls(*(path for path in found.values() if path is not None))
    _private(tls.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _loaded(context, tls.certificate, tls.key, tls.clients)
    return tls


def of_client() -> ssl.SSLContext | bool:
    """What a client checks and shows, from the environment; the usual authorities where nothing is named.

    Raises:
        InvalidError: a file is none of its kind, or key and certificate do not belong together.
        PreconditionError: others may read the key.
    """
    authority, own, key = (_path(name) for name in (AUTHORITY, OWN, OWN_KEY))
    if authority is None and own is None:
        return True
    if own is not None:
        _private(key or own)
    context = ssl.create_default_context() if authority is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _loaded(context, own, key, authority)
    return context


def _path(name: str) -> Path | None:
    return Path(os.environ[name]) if os.environ.get(name) else None


def _private(key: Path) -> None:
    if key.is_file() and key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PreconditionError.of("AKF-T604", "others may read the key", file=str(key), hint=f"chmod 600 {key}")


def _loaded(context: ssl.SSLContext, certificate: Path | None, key: Path | None, authority: Path | None) -> None:
    file = certificate
    try:
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        file = authority
        if authority is not None:
            context.load_verify_locations(authority)
    except (ssl.SSLError, OSError) as error:
        text = f"TLS cannot be set up with it: {error.strerror or error}"
        hint = "each is a PEM file, and the key is that of the certificate"
        raise InvalidError.of("AKF-T603", text, file=str(file), hint=hint) from error


def explained(why: str, url: str) -> str:
    """What ended a connection, with the remedy where it was a certificate."""
    remedy = f"{AUTHORITY} names whom to trust, {OWN} and {OWN_KEY} what to show"
    if "SSL" in why or "certificate" in why.lower():
        return f"TLS refused the certificate: {why}. {remedy}"
    if url.startswith("https:") and any(word in why for word in _ENDED):
        return f"{why}: so ends a service that refused the certificate, or its want. {remedy}"
    return why
