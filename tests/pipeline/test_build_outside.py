"""`build SOURCE --route R`: a diagnostic Build outside any run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.support.cli import inside
from tests.support.runs import CANDIDATES, tree

from akf.contracts.canonical import digest
from akf.contracts.documents import load

SOURCE = CANDIDATES / "rmsnorm-fused" / "src"

pytestmark = pytest.mark.usefixtures("state", "compiler")


def line(source: Path, out: Path, *more: str) -> list[object]:
    return ["build", source, "--route", "host_cpp", "--soc", "native", "--out", out, *more]


def test_a_source_becomes_an_object_and_a_record_that_says_diagnostic(tmp_path: Path) -> None:
    answer = inside(*line(SOURCE, tmp_path / "out")).accepted().document
    assert (answer["outcome"], answer["stage"], answer["diagnostic"]) == ("built", "shared_object", True)
    assert answer["reproducible"] is True
    value = load(tmp_path / "out" / "build.json", "Build").value
    assert (value["parents"], value["diagnostic"]) == ([], True)
    for output in value["outputs"]:
        assert digest((tmp_path / "out" / "build" / output["path"]).read_bytes()) == output["digest"]
    assert str(tmp_path) not in json.dumps(value)


def test_the_record_is_the_same_wherever_it_is_made(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "elsewhere" / "src")
    records = []
    for source, name in ((SOURCE, "one"), (tmp_path / "elsewhere" / "src", "two")):
        inside(*line(source, tmp_path / name)).accepted()
        records.append((tmp_path / name / "build.json").read_bytes())
    assert records[0] == records[1]


def test_the_digest_of_the_source_covers_every_file(tmp_path: Path) -> None:
    found = set()
    for index, text in enumerate(("", "// more\n")):
        source = tmp_path / f"src{index}"
        shutil.copytree(SOURCE, source)
        if text:
            (source / "notes.txt").write_text(text)
        inside(*line(source, tmp_path / f"out{index}")).accepted()
        found.add(load(tmp_path / f"out{index}" / "build.json").value["source_digest"])
    assert len(found) == 2


def test_one_file_is_a_source(tmp_path: Path) -> None:
    inside(*line(SOURCE / "kernel.cpp", tmp_path / "out")).accepted()
    assert "launch" not in load(tmp_path / "out" / "build.json").value


@pytest.mark.skipif(shutil.which("clang++") is None and shutil.which("clang++-19") is None, reason="needs clang")
def test_another_compiler_is_another_toolkit(tmp_path: Path) -> None:
    inside(*line(SOURCE, tmp_path / "out", "--option", "compiler=clang++")).accepted()
    value = load(tmp_path / "out" / "build.json").value
    assert value["outcome"] == "built"
    assert value["toolkit"]["name"] == "clang"
    assert value["tools"][0]["name"] == "clang++"
    assert value["options"] == [{"name": "compiler", "value": "clang++"}]


def test_what_does_not_compile_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "kernel.cpp").write_text("#error \x1b[2J no\n")
    answer = inside(*line(tmp_path / "kernel.cpp", tmp_path / "out")).accepted().document
    assert (answer["outcome"], answer["stage"]) == ("failed", "source")
    assert answer["stopped"]["code"] == "SOURCE_REJECTED"
    assert "\x1b" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--soc", "ascend910b4"], 2, "AKF-U401"),
        (["--option", "compiler=tcc"], 2, "AKF-U405"),
        (["--option", "compiler"], 2, "AKF-U405"),
        (["--option", "flag=-fplugin=evil.so"], 2, "AKF-U405"),
        (["--route", "host-cpp"], 2, "AKF-U402"),
        (["--route", "triton_cuda", "--soc", "sm_90"], 1, "AKF-M043"),
        (["--keys", "keys"], 2, "AKF-U406"),
        (["--toolchain", "nobody"], 4, "AKF-P403"),
    ],
)
def test_what_is_refused_leaves_nothing(words: list[str], status: int, code: str, tmp_path: Path) -> None:
    before = tree(tmp_path)
    assert inside(*line(SOURCE, tmp_path / "out", *words)).refused(status).codes == {code}
    assert tree(tmp_path) == before


def test_a_launch_spec_of_another_abi_is_refused(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "src")
    file = tmp_path / "src" / "launch.json"
    file.write_text(file.read_text().replace('"abi": "c"', '"abi": "ascend"'))
    assert inside(*line(tmp_path / "src", tmp_path / "out")).refused(1).codes == {"AKF-M043"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "src")
    (tmp_path / "src" / "more.h").symlink_to("/etc/passwd")
    assert inside(*line(tmp_path / "src", tmp_path / "out")).refused(1).codes == {"AKF-S103"}


def test_the_folder_appears_once(tmp_path: Path) -> None:
    inside(*line(SOURCE, tmp_path / "out")).accepted()
    before = tree(tmp_path)
    assert inside(*line(SOURCE, tmp_path / "out")).refused(5).codes == {"AKF-C101"}
    assert tree(tmp_path) == before


def test_in_a_run_a_candidate_is_named(tmp_path: Path) -> None:
    assert inside("build", tmp_path).refused(2).codes == {"AKF-U406"}
    assert inside("build", tmp_path, "mine", "--soc", "native").refused(2).codes == {"AKF-U406"}
