"""Signatures beside artifacts: DSSE envelopes with in-toto statements.

Invariants:
- An envelope is canonical JSON with one signature; signing the same bytes with the same key gives the same
  envelope.
- The signature covers the payload's type and bytes (DSSE's pre-authentication encoding); the payload names
  the artifact, its digest, its kind and the signer's role.
- Verification trusts nothing in the envelope: the key comes from the caller's pins for the role, never from a
  keyid.
- A refusal lists everything that does not hold, not the first.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from akf.contracts.canonical import canonical_bytes, digest, parse_canonical
from akf.contracts.problems import AkfError, IntegrityError, Problem
from akf.trust.keys import PublicKey, Signer

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:akf:predicate:artifact:1"

_SIGNATURE_BYTES = 64


class Verified(NamedTuple):
    """What a signature that holds says."""

    role: str
    key_id: str
    kind: str
    name: str
    digest: str


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding, the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def statement(artifact_name: str, artifact_digest: str, role: str, kind: str) -> dict[str, Any]:
    """Return the in-toto statement about one artifact."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": artifact_name, "digest": {"sha256": artifact_digest.removeprefix("sha256:")}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"role": role, "kind": kind},
    }


def sign(artifact_name: str, artifact_bytes: bytes, signer: Signer, *, kind: str | None = None) -> bytes:
    """Return the envelope that stands beside an artifact.

    Args:
        artifact_name: The artifact's path relative to its run.
        artifact_bytes: Its exact bytes.
        signer: Who signs, for which role.
        kind: The artifact's kind, where the caller knows it; otherwise it is read from the bytes.
    """
    kind = _kind(artifact_name, artifact_bytes) if kind is None else kind
    payload = canonical_bytes(statement(artifact_name, digest(artifact_bytes), signer.role, kind))
    signature = signer.sign(pae(PAYLOAD_TYPE, payload))
    return canonical_bytes(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": signer.key_id, "sig": base64.b64encode(signature).decode()}],
        }
    )


def verify(
    envelope_bytes: bytes,
    artifact_name: str,
    artifact_bytes: bytes,
    role: str,
    public_keys: Mapping[str, PublicKey],
    *,
    kind: str | None = None,
) -> Verified:
    """Verify that `role` signed exactly these bytes under exactly this name.

    Args:
        envelope_bytes: The bytes of the signature's file.
        artifact_name: The artifact's path relative to its run.
        artifact_bytes: Its exact bytes.
        role: The role that owns the artifact.
        public_keys: The pinned key of each role.
        kind: The artifact's kind, where the caller knows it; otherwise it is read from the bytes.

    Raises:
        IntegrityError: Says everything that does not hold.
    """
    kind = _kind(artifact_name, artifact_bytes) if kind is None else kind
    about = _About(artifact_name)
    opened = _open(envelope_bytes, about)
    artifact_digest = digest(artifact_bytes)
    wanted = statement(artifact_name, artifact_digest, role, kind)
    problems = [
        *_signature_problems(opened, role, public_keys, about),
        *_statement_problems(opened.payload, wanted, about),
    ]
    if problems:
        raise IntegrityError(problems)
    return Verified(role, opened.key_id, kind, artifact_name, artifact_digest)


class _About(NamedTuple):
    """Makes problems about one artifact's signature."""

    name: str

    def problem(self, code: str, reason: str, *, expected: Any = None, found: Any = None) -> Problem:
        return Problem(
            code,
            f"the signature of {self.name} does not hold: {reason}",
            file=self.name,
            expected=expected,
            found=found,
        )

    def malformed(self, reason: str) -> IntegrityError:
        return IntegrityError([self.problem("AKF-T001", reason)])


class _Opened(NamedTuple):
    payload: bytes
    key_id: str
    signature: bytes


def _open(envelope_bytes: bytes, about: _About) -> _Opened:
    """Return the payload, the key id and the signature of a well-formed envelope."""
    try:
        value = parse_canonical(envelope_bytes, about.name).value
    except AkfError as error:
        raise about.malformed(f"the envelope is not canonical JSON ({error.problems[0].message})") from error
    if not isinstance(value, dict) or value.keys() != {"payload", "payloadType", "signatures"}:
        raise about.malformed("the envelope is not an object of payload, payloadType and signatures")
    if value["payloadType"] != PAYLOAD_TYPE:
        raise IntegrityError(
            [
                about.problem(
                    "AKF-T002",
                    "its payload type is another",
                    expected=PAYLOAD_TYPE,
                    found=value["payloadType"],
                )
            ]
        )
    signatures = value["signatures"]
    if not isinstance(signatures, list):
        raise about.malformed("signatures is not a list")
    if len(signatures) != 1:
        raise IntegrityError(
            [about.problem("AKF-T003", "it must hold exactly one signature", expected=1, found=len(signatures))]
        )
    entry = signatures[0]
    if not isinstance(entry, dict) or entry.keys() != {"keyid", "sig"} or not isinstance(entry["keyid"], str):
        raise about.malformed("the signature is not an object of keyid and sig")
    signature = _decode(entry["sig"], "sig", about)
    if len(signature) != _SIGNATURE_BYTES:
        raise about.malformed(f"sig is not {_SIGNATURE_BYTES} bytes long")
    return _Opened(_decode(value["payload"], "payload", about), entry["keyid"], signature)


def _decode(text: Any, field: str, about: _About) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise about.malformed(f"{field} is not base64") from error
    if base64.b64encode(data).decode() != text:  # spare bits or a second spelling
        raise about.malformed(f"{field} is not base64 in its one canonical form")
    return data


def _signature_problems(opened: _Opened, role: str, keys: Mapping[str, PublicKey], about: _About) -> list[Problem]:
    payload, key_id, signature = opened
    key = keys.get(role)
    if key is None or key.key_id != key_id:
        owner = next((name for name, other in sorted(keys.items()) if other.key_id == key_id), None)
        whose = f"which is pinned for {owner}" if owner else "which is not pinned at all"
        pinned = key.key_id if key else "no key"
        reason = f"it is made with key {key_id[:23]}, {whose}, not with the key pinned for {role}"
        return [about.problem("AKF-T004", reason, expected=pinned, found=key_id)]
    if not key.verifies(signature, pae(PAYLOAD_TYPE, payload)):
        return [about.problem("AKF-T005", f"the key pinned for {role} did not make it over this payload")]
    return []


def _statement_problems(payload: bytes, wanted: dict[str, Any], about: _About) -> list[Problem]:
    try:
        found = parse_canonical(payload, about.name).value
    except AkfError as error:
        reason = f"the statement is not canonical JSON ({error.problems[0].message})"
        return [about.problem("AKF-T001", reason)]
    if found == wanted:
        return []
    shape = _shape(found)
    if shape != _shape(wanted):
        return [about.problem("AKF-T001", "the statement is not an in-toto statement about one AKF artifact")]
    problems = []
    for code, label, pick in _CLAIMS:
        if pick(found) != pick(wanted):
            reason = f"it speaks about another {label}"
            problems.append(about.problem(code, reason, expected=pick(wanted), found=pick(found)))
    return problems or [about.problem("AKF-T001", "the statement holds values of another type")]


_CLAIMS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("AKF-T006", "name", lambda s: s["subject"][0]["name"]),
    ("AKF-T007", "digest", lambda s: s["subject"][0]["digest"]["sha256"]),
    ("AKF-T008", "role", lambda s: s["predicate"]["role"]),
    ("AKF-T008", "kind", lambda s: s["predicate"]["kind"]),
)


def _shape(value: Any) -> Any:
    """Return the statement's outline: its fields, how many subjects, and its two types."""
    if not isinstance(value, dict):
        return None
    subjects = value.get("subject")
    if not isinstance(subjects, list):
        return None
    predicate = value.get("predicate")
    return (
        sorted(value),
        value.get("_type"),
        value.get("predicateType"),
        [
            (sorted(s), sorted(s["digest"]) if isinstance(s.get("digest"), dict) else None)
            if isinstance(s, dict)
            else None
            for s in subjects
        ],
        sorted(predicate) if isinstance(predicate, dict) else None,
    )


def _kind(name: str, data: bytes) -> str:
    value = parse_canonical(data, name).value
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise IntegrityError.of("AKF-T009", f"{name} is no artifact: it names no kind", file=name)
    return str(value["kind"])
