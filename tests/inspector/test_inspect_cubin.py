"""CUDA cubins of both layouts of the flags."""

from __future__ import annotations

import hashlib

import pytest
from tests.support.elf_objects import CUDA, REL, Part, cubin, elf

from akf.build.inspect import describe_bytes

CODE = {"scale": b"\1\2\3\4" * 8, "_Z5otherPfi": b"\5" * 16}


def test_kernels_are_the_entry_points() -> None:
    found = describe_bytes(cubin(CODE), "k.cubin")
    assert (found["what"], found["machine"], found["machine_number"]) == ("CUDA cubin", "EM_CUDA", 190)
    assert found["kernels"] == [
        {
            "name": name,
            "registers": 10,
            "parameter_bytes": 12,
            "shared_bytes": 1024,
            "bytes": len(CODE[name]),
            "digest": f"sha256:{hashlib.sha256(CODE[name]).hexdigest()}",
        }
        for name in ("_Z5otherPfi", "scale")
    ]
    assert "helper" in found["exported"]


@pytest.mark.parametrize(
    ("sm", "version", "options", "arch"),
    [
        (90, 7, None, "sm_90"),
        (90, 8, None, None),
        (90, 8, "-arch sm_90a -m 64 ", "sm_90a"),
        (100, 8, "-v -arch=sm_100", "sm_100"),
        (80, 8, "-O3", None),
    ],
)
def test_the_architecture(sm: int, version: int, options: str | None, arch: str | None) -> None:
    found = describe_bytes(cubin(CODE, sm, version, options), "k.cubin")
    assert (found["device"]["sm"], found["device"]["arch"]) == (sm, arch)
    assert bool(found["remarks"]) == (arch is None)
    assert found["abi_version"] == version


def test_the_variant_of_the_older_layout_is_in_the_flags() -> None:
    data = bytearray(cubin(CODE, 90, 7))
    data[49] |= 0x08  # e_flags, the second byte
    assert describe_bytes(bytes(data), "k.cubin")["device"]["arch"] == "sm_90a"


def test_flags_and_assembler_that_disagree_are_said() -> None:
    found = describe_bytes(cubin(CODE, 90, 8, "-arch sm_80"), "k.cubin")
    assert found["remarks"] == ["its flags say sm_90, its assembler says sm_80"]


def test_the_assembler_is_named() -> None:
    said = describe_bytes(cubin(CODE, 90, 8, "-arch sm_90 -m 64 "), "k.cubin")["device"]["assembler"]
    assert said == ["ptxas", "Cuda compilation tools, release 13.0, V13.0.88", "Build 1", "-arch sm_90 -m 64"]


def test_shared_memory_of_a_relocatable_cubin_has_no_bytes() -> None:
    parts = [Part(".nv.shared.k", 0x7000000A, size=49152), Part(".nv.constant0.k", 0x70000064, b"c" * 64)]
    found = describe_bytes(elf(parts, CUDA, REL, 0x5A04, (0x41, 8)), "k.cubin")
    assert found["what"] == "relocatable CUDA cubin"
    assert [(row["bytes"], row["digest"] is None) for row in found["sections"][:2]] == [(49152, True), (64, False)]
