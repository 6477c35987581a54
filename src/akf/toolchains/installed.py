"""An installed CANN, read from its own files.

Invariants:
- Identity is read from the installation, never from an environment variable or a folder's name.
- Both layouts are read: `<arch>-linux/*_install.info` of today, `version.cfg` of releases up to 8.3.
- Every component is recorded with its own version: images that mix releases are real.
- A toolkit counts from 9.0.0 on, and only as a release; versions are parsed, never compared as text.

Source of the forms: CANN's installation folders (`ascend_toolkit_install.info` holds package_name, version,
innerversion, arch, one `key=value` a line; `version.cfg` holds `<component>_running_version=[build:version]`).
"""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any, NamedTuple

from akf.contracts.canonical import digest
from akf.contracts.files import read_input
from akf.contracts.problems import BlockedError, InvalidError
from akf.contracts.rules.versions import CANN_MINIMUM, release
from akf.contracts.text import printable

TOOLKIT = "toolkit"
_INFO = re.compile(r"ascend_([a-z0-9-]+)_install\.info")
_RUNNING = re.compile(r"([a-z0-9_]+)_running_version=\[([^:\]]*):([^\]]*)\]")
_MAX_NAME = 200


class Installed(NamedTuple):
    """What an installation says of itself."""

    root: Path
    toolkit: dict[str, str]
    components: list[dict[str, Any]]


def read_installed(path: Path) -> Installed:
    """Read an installed CANN.

    Raises:
        InvalidError: there is none, or its files do not say what it is.
        BlockedError: it is a pre-release or older than the oldest that AKF accepts.
    """
    infos = sorted(each for each in path.glob("*-linux/ascend_*_install.info") if _INFO.fullmatch(each.name))
    components = [_component(path, each) for each in infos]
    if not components and (path / "version.cfg").is_file():
        components = _old(path, path / "version.cfg")
    toolkits = [each for each in components if each["name"] == TOOLKIT]
    if not toolkits:
        raise InvalidError.of(
            "AKF-S401",
            f"{path.name} is no installed CANN: no <arch>-linux/ascend_toolkit_install.info and no version.cfg",
            file=path.name,
            hint=_near(path),
        )
    mine = f"{platform.machine()}-linux/"
    chosen = next((each for each in toolkits if each["file"].startswith(mine)), toolkits[0])
    _accept(chosen)
    toolkit = {"name": "cann", "version": chosen["version"], "build": chosen.get("build") or chosen["version"]}
    return Installed(path.resolve(), toolkit, components)


def _component(root: Path, file: Path) -> dict[str, Any]:
    data = read_input(file)
    fields = _fields(data, file.name)
    match = _INFO.fullmatch(file.name)
    value: dict[str, Any] = {
        "name": match[1] if match else file.name,
        "version": fields["version"],
        "file": file.relative_to(root).as_posix(),
        "digest": digest(data),
    }
    for ours, theirs in (("build", "innerversion"), ("architecture", "arch")):
        if fields.get(theirs):
            value[ours] = fields[theirs]
    return value


def _fields(data: bytes, name: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        key, equals, text = line.partition("=")
        if not equals:
            continue
        key, text = key.strip(), printable(text.strip())[:_MAX_NAME]
        if found.get(key, text) != text:
            message = f"{name} says {key} twice: {found[key]} and {text}"
            raise InvalidError.of("AKF-S402", message, file=name, line=number)
        found[key] = text
    if not found.get("version"):
        message = f"{name} says no version"
        raise InvalidError.of("AKF-S402", message, file=name, expected="version=MAJOR.MINOR.PATCH")
    return found


def _old(root: Path, file: Path) -> list[dict[str, Any]]:
    data = read_input(file)
    found = []
    for name, build, version in _RUNNING.findall(data.decode("utf-8", "replace")):
        value = {
            "name": printable(name)[:_MAX_NAME],
            "version": printable(version)[:_MAX_NAME] or "unknown",
            "file": file.relative_to(root).as_posix(),
            "digest": digest(data),
        }
        if build:
            value["build"] = printable(build)[:_MAX_NAME]
        found.append(value)
    return sorted(found, key=lambda each: each["name"])


def _accept(toolkit: dict[str, Any]) -> None:
    version = toolkit["version"]
    numbers = release(version)
    if numbers is None or numbers < CANN_MINIMUM:
        what = "no released version" if numbers is None else "older than 9.0.0"
        raise BlockedError.of(
            "AKF-E401",
            f"CANN {version} is {what}; AKF accepts released versions from 9.0.0 on",
            file=toolkit["file"],
            expected="9.0.0 or newer, without beta, RC or alpha",
            found=version,
            hint="install a release: Ascend-cann-toolkit_9.1.0_linux-<arch>.run from hiascend.com",
        )


def _near(path: Path) -> str:
    """Installations that stand below the folder that was named."""
    if not path.is_dir():
        return "name the folder of an installed CANN, such as /usr/local/Ascend/cann"
    below = sorted(each for each in path.iterdir() if list(each.glob("*-linux/ascend_toolkit_install.info"))[:1])
    if below:
        return f"did you mean {', '.join(str(each) for each in below[:3])}?"
    return "name the folder that holds set_env.sh of CANN, or an environment with bin/python"
