"""Whatever a file's bytes are: a document of printable text, or a refusal that says what is wrong."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.compiled import Objects
from tests.support.elf_objects import aicore, cubin

from akf.build.inspect import describe_bytes
from akf.contracts.problems import InvalidError
from akf.contracts.text import printable

CODES = {"AKF-F480", "AKF-F481", "AKF-F482", "AKF-F484"}
EDGES = [0, 1, 2, 3, 8, 63, 64, 0x7F, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
MADE = [aicore({"op_0_mix_aic": b"code" * 9, "op_1": b"c"}), cubin({"k": b"code" * 9, "l": b"d"}, 90, 8, "-arch sm_90")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory, compiler: None) -> list[bytes]:
    """Real objects of each kind, small enough to be changed often."""
    del compiler
    objects = Objects(tmp_path_factory.mktemp("objects"))
    library = objects.make("small.so", "-shared", "-fPIC", "-nostdlib", "plain.cpp", "-Wl,-soname,small")
    program = objects.make("small", "-no-pie", "-nostdlib", "plain.cpp", "-Wl,-e,0")
    return [each.read_bytes() for each in (library, program, objects.object())] + MADE


def answered(data: bytes) -> dict[str, Any] | None:
    """The document, which is JSON of printable text; None for a refusal with a known code."""
    found: dict[str, Any] | None = None
    refused: InvalidError | None = None
    try:
        found = describe_bytes(data, "x.o")
    except InvalidError as error:
        refused = error
    if refused is not None:
        assert {problem.code for problem in refused.problems} <= CODES
        assert all(problem.message and problem.file == "x.o" for problem in refused.problems)
        return None
    text = json.dumps(found, ensure_ascii=False)
    assert printable(text) == text
    return found


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_of_an_object_may_change(compiled: list[bytes], data: st.DataObject) -> None:
    changed = bytearray(data.draw(st.sampled_from(compiled), label="object"))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(changed) - 1), st.integers(0, 255)), max_size=12)):
        changed[at] = value
    answered(bytes(changed[: data.draw(st.integers(0, len(changed)))] if data.draw(st.booleans()) else changed))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_field_of_its_tables_may_hold_anything(compiled: list[bytes], data: st.DataObject) -> None:
    changed = bytearray(data.draw(st.sampled_from(compiled), label="object"))
    start, count = struct.unpack_from("<Q", changed, 40)[0], struct.unpack_from("<H", changed, 60)[0]
    places = [(at, "<H") for at in range(16, 64, 2)] + [(at, "<Q") for at in (24, 32, 40)]
    for number in range(count):
        at = start + 64 * number
        places += [(at + each, "<I") for each in (0, 4, 40, 44)] + [
            (at + each, "<Q") for each in (8, 16, 24, 32, 48, 56)
        ]
    for at, form in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4)):
        value = data.draw(st.sampled_from([*EDGES, len(changed), len(changed) - 1, count]))
        struct.pack_into(form, changed, at, value % 256 ** struct.calcsize(form))
    answered(bytes(changed))


@settings(max_examples=200)
@given(st.sampled_from([b"", b"\x7fELF\2\1\1", b"\x7fELF\1\2\1", b"!<arch>\n", b"BC\xc0\xde"]), st.binary(max_size=400))
@example(b"", b"")
def test_any_bytes_at_all(head: bytes, tail: bytes) -> None:
    answered(head + tail)


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=40).filter(lambda t: "\0" not in t), st.binary(min_size=1, max_size=30), max_size=6
    )
)
def test_kernels_come_back_by_name_whatever_their_names_hold(code: dict[str, bytes]) -> None:
    usable = {name: data for name, data in code.items() if name.encode("utf-8", "replace").decode() == name}
    found = answered(aicore(usable))
    assert found is not None
    assert [kernel["name"] for kernel in found["kernels"]] == [printable(name) for name in sorted(usable)]
    assert answered(aicore(dict(reversed(usable.items())))) is not None
