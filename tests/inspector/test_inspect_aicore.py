"""Ascend AICore objects: kernels, cores, and the description beside them, which must hold."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import inside
from tests.support.elf_objects import AICORE, DYN, PROGBITS, X86_64, Part, aicore, described, elf

from akf.build.inspect import describe, describe_bytes
from akf.contracts.problems import IntegrityError

pytestmark = pytest.mark.usefixtures("state")
NAME = "AddOne_0123456789abcdef0123456789abcdef"
CODE = {f"{NAME}_0": b"zero" * 8, f"{NAME}_1": b"one!" * 4}


def put(folder: Path, name: str = NAME, code: dict[str, bytes] | None = None, **changes: Any) -> Path:
    """An object and what describes it."""
    kernels = CODE if code is None else code
    data = aicore(kernels, relocatable=name.endswith("_relocatable"))
    path = folder / f"{name}.o"
    path.write_bytes(data)
    entries = sorted({kernel.removesuffix("_mix_aic").removesuffix("_mix_aiv") for kernel in kernels})
    (folder / f"{name}.json").write_text(json.dumps(described(data, name, entries, **changes)), encoding="utf-8")
    return path


def test_kernels_and_description(tmp_path: Path) -> None:
    found = describe(put(tmp_path))
    assert (found["what"], found["machine"], found["machine_number"]) == ("Ascend AICore object", "ASCEND_AICORE", 4137)
    assert found["flags"] == "0x930000"
    assert found["device"] == {"relocatable": False, "stack_bytes": 32768, "argument_bytes": 48}
    assert found["kernels"] == [
        {"name": name, "core": None, "bytes": len(code), "digest": f"sha256:{hashlib.sha256(code).hexdigest()}"}
        for name, code in CODE.items()
    ]
    assert found["identity"]["compilers"] == [
        "clang version 15.0.5 (clang-0123456789ab flang-0123456789ab)", "Linker: LLD 15.0.5",
    ]  # fmt: skip
    description = found["description"]
    assert description["core_type"] == "VectorCore"
    assert description["magic"] == "RT_DEV_BINARY_MAGIC_ELF_AIVEC"
    assert description["kernel_count"] == 2
    assert [description[name] for name in ("sha256_holds", "name_holds", "kernels_hold")] == [True, True, True]
    assert f"sha256:{description['sha256']}" == found["digest"]
    assert found["twin"] is None


def test_a_mixed_kernel_is_one_name_and_two_cores(tmp_path: Path) -> None:
    code = {f"{NAME}_0_mix_aic": b"cube" * 2, f"{NAME}_0_mix_aiv": b"vect" * 3}
    found = describe(put(tmp_path, code=code, coreType="MIX"))
    assert [kernel["core"] for kernel in found["kernels"]] == ["cube", "vector"]
    assert found["kernel_count"] == 2
    assert (found["description"]["kernel_count"], found["description"]["kernels_hold"]) == (1, True)


def test_the_twin_for_another_linker_step(tmp_path: Path) -> None:
    linked = put(tmp_path)
    twin = put(tmp_path, f"{NAME}_relocatable", {f"{NAME}_relocatable_{n}": c for n, c in enumerate(CODE.values())})
    found = describe(linked)
    assert found["twin"] == {
        "file": twin.name,
        "digest": f"sha256:{hashlib.sha256(twin.read_bytes()).hexdigest()}",
        "relocatable": True,
        "same_kernels": True,
    }
    back = describe(twin)
    assert back["what"] == "relocatable Ascend AICore object"
    assert (back["twin"]["file"], back["twin"]["relocatable"], back["twin"]["same_kernels"]) == (
        linked.name,
        False,
        True,
    )
    put(tmp_path, f"{NAME}_relocatable", {f"{NAME}_relocatable_0": b"only"})
    assert describe(linked)["twin"]["same_kernels"] is False
    twin.write_bytes(b"\x7fELF and no more than that")
    without = describe(linked)
    assert without["twin"] is None
    assert any("cannot be read" in remark for remark in without["remarks"])


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"sha256": "0" * 64}, "AKF-I480", None),
        ({"sha256": "not a digest"}, "AKF-I480", None),
        ({"binFileName": "Other_0"}, "AKF-I481", "/binFileName"),
        ({"binFileSuffix": None}, "AKF-I481", "/binFileName"),
        ({"kernelList": [{"kernelName": f"{NAME}_0"}]}, "AKF-I481", "/kernelList"),
        ({"kernelList": [{"kernelName": f"{NAME}_{n}"} for n in range(3)]}, "AKF-I481", "/kernelList"),
    ],
)
def test_a_description_that_contradicts_its_object_ends_with_3_and_both_are_shown(
    tmp_path: Path, changes: dict[str, Any], code: str, pointer: str | None
) -> None:
    path = put(tmp_path, **changes)
    answer = inside("inspect", path).refused(3)
    assert [(problem["code"], problem["pointer"]) for problem in answer.problems] == [(code, pointer)]
    assert answer.document["kernel_count"] == 2
    held = [answer.document["description"][name] for name in ("sha256_holds", "name_holds", "kernels_hold")]
    assert held.count(False) == 1
    with pytest.raises(IntegrityError):
        describe(path)


def test_an_object_that_was_replaced_is_found_by_every_contradiction(tmp_path: Path) -> None:
    path = put(tmp_path)
    path.write_bytes(aicore({f"{NAME}_9": b"else"}))
    assert inside("inspect", path).refused(3).codes == {"AKF-I480", "AKF-I481"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"binFileName": 1, "sha256": "", "kernelList": []}', "AKF-F485"),
        ('{"binFileName": "a", "sha256": "", "kernelList": {}}', "AKF-F485"),
        ('{"binFileName": "a", "sha256": "", "kernelList": [{"kernelName": null}]}', "AKF-F485"),
        ('{"binFileName": "a", "sha256": "", "kernelList": ["a"]}', "AKF-F485"),
        ('{"binFileName": "a", "binFileName": "b"}', "AKF-S006"),
        ("[]", "AKF-S012"),
        ("", "AKF-S001"),
    ],
)
def test_a_description_that_cannot_be_read_is_invalid_and_the_object_is_shown(
    tmp_path: Path, text: str, code: str
) -> None:
    path = put(tmp_path)
    path.with_suffix(".json").write_text(text, encoding="utf-8")
    answer = inside("inspect", path).refused(1)
    assert answer.codes == {code}
    assert (answer.document["kernel_count"], answer.document["description"]) == (2, None)


def test_a_pipe_beside_the_object_is_not_waited_for(tmp_path: Path) -> None:
    path = put(tmp_path)
    path.with_suffix(".json").unlink()
    os.mkfifo(path.with_suffix(".json"))
    os.mkfifo(tmp_path / f"{NAME}_relocatable.o")
    answer = inside("inspect", path).refused(1)
    assert answer.codes == {"AKF-F002"}
    assert any("twin" in remark for remark in answer.document["remarks"])


def test_other_json_beside_it_is_not_believed(tmp_path: Path) -> None:
    path = put(tmp_path)
    path.with_suffix(".json").write_text('{"hash": "abc", "name": "add_kernel"}', encoding="utf-8")
    found = describe(path)
    assert found["description"] is None
    assert f"{NAME}.json beside it describes no AICore object" in found["remarks"]
    path.with_suffix(".json").unlink()
    assert f"no {NAME}.json beside it says what it is" in describe(path)["remarks"]


def test_device_code_inside_a_host_library_is_found() -> None:
    first, second = aicore({"one_mix_aiv": b"1111"}), aicore({"two": b"2222"})
    lead = b"\1\0\0\0\2\0\0\0" + b"\0" * 12
    held = lead + first + b"\0" * 12 + second
    host = elf(
        [Part(".ascend.kernel.ascend910b1.ops", PROGBITS, held), Part(".nv_fatbin", PROGBITS, b"x")], X86_64, DYN
    )
    found = describe_bytes(host, "libops.so")
    assert [(row["offset"], row["bytes"], row["kernels"]) for row in found["carries"]] == [
        (len(lead), len(first), ["one_mix_aiv"]),
        (len(lead) + len(first) + 12, len(second), ["two"]),
    ]
    assert {row["machine_number"] for row in found["carries"]} == {AICORE}
    assert [row["digest"] for row in found["carries"]] == [
        f"sha256:{hashlib.sha256(data).hexdigest()}" for data in (first, second)
    ]
    assert found["remarks"][0] == ".nv_fatbin holds CUDA code that is not read"


def test_device_code_that_cannot_be_read_is_said() -> None:
    held = b"\x7fELF" * 40 + aicore({"one": b"1"})[:-8]
    found = describe_bytes(elf([Part(".ascend.kernel.soc.ops", PROGBITS, held)], X86_64, DYN), "libops.so")
    assert found["carries"] == []
    assert "what begins at 0 of .ascend.kernel.soc.ops cannot be read as ELF" in found["remarks"]
    assert "only the first 32 images that it carries were read" in found["remarks"]
