"""A signature speaks for one role about one artifact's exact bytes; each thing that does not hold is said."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.problems import IntegrityError
from akf.trust.dsse import PAYLOAD_TYPE, pae, sign, statement, verify
from akf.trust.keys import PublicKey, Signer, init_keys, load_signer
from akf.trust.roles import ROLES

NAME = "attempts/c1/gates/operator.json"
GATE = canonical_bytes({"id": "c1-operator", "kind": "Gate", "schema_version": 1})


@pytest.fixture(scope="module")
def signers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Signer]:
    folder = tmp_path_factory.mktemp("trust") / "keys"
    init_keys(folder)
    return {role: load_signer(folder, role) for role in ROLES}


@pytest.fixture(scope="module")
def pins(signers: dict[str, Signer]) -> dict[str, PublicKey]:
    return {role: signer.public for role, signer in signers.items()}


@pytest.fixture(scope="module")
def envelope(signers: dict[str, Signer]) -> bytes:
    return sign(NAME, GATE, signers["evaluator"])


def made(payload: bytes, signer: Signer, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """An envelope around any payload, with a signature that is right."""
    signature = base64.b64encode(signer.sign(pae(payload_type, payload))).decode()
    return canonical_bytes(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": payload_type,
            "signatures": [{"keyid": signer.key_id, "sig": signature}],
        }
    )


def codes(envelope: bytes, pins: dict[str, PublicKey], *, name: str = NAME, data: bytes = GATE) -> list[str]:
    with pytest.raises(IntegrityError) as refused:
        verify(envelope, name, data, "evaluator", pins)
    assert all(problem.file == name and name in problem.message for problem in refused.value.problems)
    return sorted(problem.code for problem in refused.value.problems)


def test_what_is_signed_verifies(envelope: bytes, signers: dict[str, Signer], pins: dict[str, PublicKey]) -> None:
    verified = verify(envelope, NAME, GATE, "evaluator", pins)
    assert verified
    assert verified == ("evaluator", signers["evaluator"].key_id, "Gate", NAME, digest(GATE))
    assert verify(envelope, NAME, GATE, "evaluator", pins, kind="Gate") == verified


def test_signing_is_deterministic(envelope: bytes, signers: dict[str, Signer]) -> None:
    assert sign(NAME, GATE, signers["evaluator"]) == envelope
    assert sign(NAME, GATE, signers["evaluator"], kind="Gate") == envelope


def test_the_encoding_is_the_one_of_the_specification() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("", b"") == b"DSSEv1 0  0 "


def test_the_statement_is_an_in_toto_statement(envelope: bytes) -> None:
    outer = json.loads(envelope)
    assert outer["payloadType"] == "application/vnd.in-toto+json"
    assert json.loads(base64.b64decode(outer["payload"])) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": NAME, "digest": {"sha256": digest(GATE).removeprefix("sha256:")}}],
        "predicateType": "urn:akf:predicate:artifact:1",
        "predicate": {"role": "evaluator", "kind": "Gate"},
    }


def test_another_implementation_agrees(envelope: bytes, signers: dict[str, Signer]) -> None:
    securesystemslib = pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
    signer = pytest.importorskip("securesystemslib.signer", reason="securesystemslib is not installed")
    value = json.loads(envelope)
    theirs = securesystemslib.Envelope.from_dict(value)
    public = signers["evaluator"].public
    key = signer.SSlibKey(public.key_id, "ed25519", "ed25519", {"public": public.raw.hex()})
    assert list(theirs.verify([key], 1)) == [public.key_id]


def test_changed_bytes_are_found(envelope: bytes, pins: dict[str, PublicKey]) -> None:
    for position in range(len(GATE)):
        changed = GATE[:position] + bytes([GATE[position] ^ 1]) + GATE[position + 1 :]
        with pytest.raises(IntegrityError) as refused:
            verify(envelope, NAME, changed, "evaluator", pins, kind="Gate")
        assert [problem.code for problem in refused.value.problems] == ["AKF-T007"]
        assert refused.value.problems[0].expected == digest(changed).removeprefix("sha256:")


def test_every_changed_byte_of_an_envelope_is_found(envelope: bytes, pins: dict[str, PublicKey]) -> None:
    for position in range(len(envelope)):
        for other in (envelope[position] ^ 1, ord("A"), ord("=")):
            if other != envelope[position]:
                changed = envelope[:position] + bytes([other]) + envelope[position + 1 :]
                assert codes(changed, pins)
    for position in range(len(envelope)):
        assert codes(envelope[:position] + envelope[position + 1 :], pins)


def test_another_name_is_found(envelope: bytes, pins: dict[str, PublicKey]) -> None:
    assert codes(envelope, pins, name="attempts/c2/gates/operator.json") == ["AKF-T006"]


@pytest.mark.parametrize("other", ["supervisor", "builder", "judge"])
def test_the_key_of_another_role_is_no_evidence(
    other: str, signers: dict[str, Signer], pins: dict[str, PublicKey]
) -> None:
    assert codes(sign(NAME, GATE, signers[other]), pins) == ["AKF-T004", "AKF-T008"]
    honest_words = canonical_bytes(statement(NAME, digest(GATE), "evaluator", "Gate"))
    with pytest.raises(IntegrityError, match=f"pinned for {other}, not with the key pinned for evaluator"):
        verify(made(honest_words, signers[other]), NAME, GATE, "evaluator", pins)


def test_a_key_made_on_the_spot_is_no_evidence(tmp_path: Path, pins: dict[str, PublicKey]) -> None:
    init_keys(tmp_path / "keys")
    assert codes(sign(NAME, GATE, load_signer(tmp_path / "keys", "evaluator")), pins) == ["AKF-T004"]


def test_a_role_without_a_pin_verifies_nothing(envelope: bytes, pins: dict[str, PublicKey]) -> None:
    assert codes(envelope, {role: key for role, key in pins.items() if role != "evaluator"}) == ["AKF-T004"]
    assert codes(envelope, {}) == ["AKF-T004"]


def test_the_key_id_alone_convinces_nobody(signers: dict[str, Signer], pins: dict[str, PublicKey]) -> None:
    value = json.loads(sign(NAME, GATE, signers["judge"], kind="Gate"))
    value["signatures"][0]["keyid"] = signers["evaluator"].key_id
    assert codes(canonical_bytes(value), pins) == ["AKF-T005", "AKF-T008"]


def test_one_key_for_two_roles_does_not_mix_them(signers: dict[str, Signer]) -> None:
    shared = {"evaluator": signers["judge"].public, "judge": signers["judge"].public}
    assert codes(sign(NAME, GATE, signers["judge"]), shared) == ["AKF-T008"]


def test_another_kind_is_found(signers: dict[str, Signer], pins: dict[str, PublicKey]) -> None:
    assert codes(sign(NAME, GATE, signers["evaluator"], kind="Decision"), pins) == ["AKF-T008"]


def test_everything_that_does_not_hold_is_said_at_once(signers: dict[str, Signer], pins: dict[str, PublicKey]) -> None:
    other = sign("elsewhere.json", GATE + b" ", signers["builder"], kind="Build")
    assert codes(other, pins) == ["AKF-T004", "AKF-T006", "AKF-T007", "AKF-T008", "AKF-T008"]


def test_exactly_one_signature(envelope: bytes, signers: dict[str, Signer], pins: dict[str, PublicKey]) -> None:
    value = json.loads(envelope)
    one = value["signatures"][0]
    second = json.loads(sign(NAME, GATE, signers["judge"]))["signatures"][0]
    for signatures in ([], [one, one], [one, second], [second, one]):
        assert codes(canonical_bytes(value | {"signatures": signatures}), pins) == ["AKF-T003"]


def test_another_payload_type_is_found(envelope: bytes, signers: dict[str, Signer], pins: dict[str, PublicKey]) -> None:
    payload = base64.b64decode(json.loads(envelope)["payload"])
    assert codes(made(payload, signers["evaluator"], "text/plain"), pins) == ["AKF-T002"]
    relabelled = json.loads(made(payload, signers["evaluator"], "text/plain")) | {"payloadType": PAYLOAD_TYPE}
    assert codes(canonical_bytes(relabelled), pins) == ["AKF-T005"]


HONEST = statement(NAME, digest(GATE), "evaluator", "Gate")
SUBJECT = HONEST["subject"][0]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[]\n",
        b"null\n",
        b"\xff\n",
        canonical_bytes(HONEST)[:-1],
        json.dumps(HONEST).encode() + b"\n",
        canonical_bytes(HONEST | {"_type": "https://in-toto.io/Statement/v0.1"}),
        canonical_bytes(HONEST | {"predicateType": "https://slsa.dev/provenance/v1"}),
        canonical_bytes(HONEST | {"extra": 1}),
        canonical_bytes({key: item for key, item in HONEST.items() if key != "predicate"}),
        canonical_bytes(HONEST | {"subject": []}),
        canonical_bytes(HONEST | {"subject": [SUBJECT, SUBJECT]}),
        canonical_bytes(HONEST | {"subject": [SUBJECT, SUBJECT | {"name": "other.json"}]}),
        canonical_bytes(HONEST | {"subject": [7]}),
        canonical_bytes(HONEST | {"subject": {"name": NAME}}),
        canonical_bytes(HONEST | {"subject": [SUBJECT | {"digest": {}}]}),
        canonical_bytes(HONEST | {"subject": [SUBJECT | {"digest": SUBJECT["digest"] | {"md5": "0"}}]}),
        canonical_bytes(HONEST | {"subject": [SUBJECT | {"digest": "sha256"}]}),
        canonical_bytes(HONEST | {"predicate": HONEST["predicate"] | {"verdict": "promotable"}}),
        canonical_bytes(HONEST | {"predicate": []}),
    ],
)
def test_a_signed_payload_that_is_no_such_statement(
    payload: bytes, signers: dict[str, Signer], pins: dict[str, PublicKey]
) -> None:
    assert codes(made(payload, signers["evaluator"]), pins) == ["AKF-T001"]


def malformed(envelope: bytes) -> list[Any]:
    value = json.loads(envelope)
    one = value["signatures"][0]
    return [
        b"", b"{}\n", b"[]\n", b"null\n", b"\xff", envelope[:-1], envelope + b"\n", b" " + envelope,
        json.dumps(value, indent=1).encode() + b"\n",
        value | {"extra": 1},
        {key: item for key, item in value.items() if key != "payload"},
        value | {"payload": 7}, value | {"payload": None}, value | {"payload": value["payload"] + "\n"},
        value | {"payload": "é"}, value | {"payload": value["payload"][:-1]}, value | {"payload": "AB=="},
        value | {"signatures": {}}, value | {"signatures": None}, value | {"signatures": [7]},
        value | {"signatures": [one | {"extra": 1}]}, value | {"signatures": [{"sig": one["sig"]}]},
        value | {"signatures": [one | {"keyid": 7}]}, value | {"signatures": [one | {"sig": None}]},
        value | {"signatures": [one | {"sig": ""}]}, value | {"signatures": [one | {"sig": one["sig"][:-4]}]},
        value | {"signatures": [one | {"sig": one["sig"].replace("=", "")}]},
        value | {"signatures": [one | {"sig": one["sig"][:-3] + chr(ord(one["sig"][-3]) ^ 1) + "=="}]},
    ]  # fmt: skip


def test_a_malformed_envelope_is_named(envelope: bytes, pins: dict[str, PublicKey]) -> None:
    for broken in malformed(envelope):
        data = broken if isinstance(broken, bytes) else canonical_bytes(broken)
        assert codes(data, pins) == ["AKF-T001"], data


def test_only_artifacts_are_signed(signers: dict[str, Signer]) -> None:
    with pytest.raises(IntegrityError) as refused:
        sign("x.json", canonical_bytes({"id": "x"}), signers["judge"])
    assert refused.value.problems[0].code == "AKF-T009"


@given(data=st.binary(max_size=300))
def test_no_bytes_make_the_verifier_fail_otherwise(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        verify(data, NAME, GATE, "evaluator", {"evaluator": PublicKey(b"\1" * 32)})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["_type", "subject", "name", "digest", "sha256", "predicate", "predicateType", "role", "kind"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(value=st.dictionaries(st.sampled_from([*HONEST, "extra"]), json_values))
def test_no_signed_statement_makes_the_verifier_fail_otherwise(
    value: dict[str, Any], signers: dict[str, Signer], pins: dict[str, PublicKey]
) -> None:
    for payload in (value, HONEST | value):
        if payload != HONEST:
            assert codes(made(canonical_bytes(payload), signers["evaluator"]), pins)
