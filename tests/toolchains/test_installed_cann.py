"""An installed CANN is read from its own files, in both layouts; what is no release of 9.0.0 or newer is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.installations import INFO, install

from akf.contracts.problems import AkfError, BlockedError, InvalidError
from akf.toolchains.installed import read_installed


def old(root: Path, running: str) -> Path:
    root.mkdir(parents=True)
    (root / "version.cfg").write_text(
        "# version: 1.0\n"
        f"runtime_running_version=[7.6.0.1.220:{running}]\n"
        f"toolkit_running_version=[7.6.0.1.220:{running}]\n"
        f"toolkit_upgrade_version=[7.6.0.1.220:{running}]\n"
    )
    return root


def refused(path: Path, kind: type[AkfError], code: str) -> str:
    with pytest.raises(kind) as caught:
        read_installed(path)
    assert [problem.code for problem in caught.value.problems] == [code]
    return str(caught.value)


def test_version_and_inner_build_are_what_the_file_says(tmp_path: Path) -> None:
    found = read_installed(install(tmp_path / "cann"))
    assert found.toolkit == {"name": "cann", "version": "9.1.0", "build": "V100R001C25SPC005B220"}
    assert [(each["name"], each["architecture"]) for each in found.components] == [("toolkit", "x86_64")]


def test_a_link_to_a_version_is_the_version(tmp_path: Path) -> None:
    install(tmp_path / "cann-9.1.0")
    (tmp_path / "cann").symlink_to("cann-9.1.0")
    assert read_installed(tmp_path / "cann").root == tmp_path / "cann-9.1.0"


def test_every_component_keeps_its_own_version(tmp_path: Path) -> None:
    """An image that mixes a release with a pre-release of its operators is real; it is recorded, not averaged."""
    root = install(tmp_path / "cann")
    install(root, "9.2.0-beta.2", "V100R001C26", "x86_64-linux/ascend_950-ops-transformer_install.info")
    versions = {each["name"]: each["version"] for each in read_installed(root).components}
    assert versions == {"950-ops-transformer": "9.2.0-beta.2", "toolkit": "9.1.0"}


@pytest.mark.parametrize("version", ["9.0.0", "9.0.1", "9.1.0", "10.0.0"])
def test_releases_from_9_0_0_on_are_taken(version: str, tmp_path: Path) -> None:
    assert read_installed(install(tmp_path / "cann", version)).toolkit["version"] == version


@pytest.mark.parametrize(
    "version", ["9.0.0-beta.1", "9.1.0.RC1", "9.2.0-beta.2", "8.5.2", "8.3.RC1.alpha003", "9.1", "9.1.0 beta", "latest"]
)
def test_a_pre_release_and_what_is_older_is_refused(version: str, tmp_path: Path) -> None:
    assert version in refused(install(tmp_path / "cann", version), BlockedError, "AKF-E401")


def test_the_old_layout_is_read_and_refused_by_its_version(tmp_path: Path) -> None:
    assert "8.3.RC1" in refused(old(tmp_path / "latest", "8.3.RC1"), BlockedError, "AKF-E401")


def test_the_old_layout_of_a_release_counts(tmp_path: Path) -> None:
    found = read_installed(old(tmp_path / "latest", "9.0.0"))
    assert found.toolkit == {"name": "cann", "version": "9.0.0", "build": "7.6.0.1.220"}
    assert [each["name"] for each in found.components] == ["runtime", "toolkit"]


def test_the_folder_above_names_what_stands_below(tmp_path: Path) -> None:
    install(tmp_path / "Ascend" / "cann-9.1.0")
    assert "cann-9.1.0?" in refused(tmp_path / "Ascend", InvalidError, "AKF-S401")


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    refused(tmp_path, InvalidError, "AKF-S401")
    refused(tmp_path / "missing", InvalidError, "AKF-S401")


@pytest.mark.parametrize("text", ["", "innerversion=V1\n", "version=9.1.0\nversion=9.0.0\n", "version=\n"])
def test_a_file_that_says_nothing_or_two_things(text: str, tmp_path: Path) -> None:
    root = install(tmp_path / "cann")
    (root / INFO).write_text(text)
    refused(root, InvalidError, "AKF-S402")


def test_what_a_file_says_cannot_paint_a_terminal(tmp_path: Path) -> None:
    found = read_installed(install(tmp_path / "cann", inner="V1\x1b[2J"))
    assert "\x1b" not in found.toolkit["build"]
