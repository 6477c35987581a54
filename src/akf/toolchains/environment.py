"""An environment of packages: made from a route's pinned wheels, or one that is there already.

Invariants:
- What is installed is pinned by content (`requirements.txt` of the route, `pip --require-hashes`, wheels only).
- The environment is AKF's own: nothing of the user's packages is seen, and nothing is written outside its folder.
- Bytecode is not compiled: what runs is the text that the contents' digest covers.
- Where a route needs only headers of a wheel, they are taken out of it, and nothing of it is installed or run.
"""

from __future__ import annotations

import email.parser
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from akf.contracts.canonical import digest_file
from akf.contracts.problems import BlockedError
from akf.contracts.text import printable
from akf.routes.declaration import FOLDER, Packages
from akf.routes.route import Route
from akf.routes.tools import Package, Place

REQUIREMENTS = "requirements.txt"
SKIP = ("__pycache__",)
_INSTALL_S = 3600
_SAID = 600
_MAX_MEMBER = 16 * 1024**2


def make_environment(route: Route, packages: Packages, folder: Path, wheels: Path | None) -> dict[str, str]:
    """Make the environment, or unpack the headers, of a route; digests of the wheels by distribution.

    Args:
        route: whose packages.
        packages: how the route declares them.
        folder: a folder that exists; `env` or `headers` appears in it.
        wheels: a folder of wheels to use instead of the package index.

    Raises:
        BlockedError: there is no interpreter of the version, or the packages cannot be had.
    """
    python = interpreter(packages.python)
    with tempfile.TemporaryDirectory(prefix="akf-wheels-") as scratch:
        store = Path(scratch)
        _pip(python, ["download", "--dest", str(store), *_asked(route, packages, wheels)], wheels)
        found = {_distribution(wheel): wheel for wheel in sorted(store.glob("*.whl"))}
        if packages.install:
            _run([str(python), "-m", "venv", str(folder / "env")])
            inside = ["install", "--no-index", "--find-links", str(store), "--no-compile"]
            _pip(folder / "env" / "bin" / "python", [*inside, *_pinned(route)], wheels)
            for cache in (folder / "env").rglob("__pycache__"):
                shutil.rmtree(cache)
        else:
            for program in route.data.tools:
                if program.found == "headers":
                    _unpack(found[str(program.package)], program.places[0], folder / "headers")
        return {name: digest_file(wheel) for name, wheel in found.items()}


def interpreter(version: str) -> Path:
    """A Python of this version.

    Raises:
        BlockedError: there is none.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return Path(sys.executable)
    found = shutil.which(f"python{version}")
    if found is None or not _says(Path(found), version):
        raise BlockedError.of(
            "AKF-E101",
            f"python{version} is not on PATH; the packages exist for CPython {version}",
            expected=f"python{version}",
            hint=f"install CPython {version} (Debian, Ubuntu: apt-get install python{version}-venv)",
        )
    return Path(found)


def place_of(env: Path, wheels: dict[str, str]) -> Place:
    """Roots and packages of an environment."""
    site = next(iter(sorted(env.glob("lib/python3*/site-packages"))), None)
    roots = {"env": env} if site is None else {"env": env, "packages": site}
    return Place(roots, {} if site is None else installed_packages(site, wheels))


def installed_packages(site: Path, wheels: dict[str, str]) -> dict[str, Package]:
    """Every distribution of an environment."""
    found = {}
    for folder in sorted(site.glob("*.dist-info")):
        try:
            text = (folder / "METADATA").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = email.parser.HeaderParser().parsestr(text)
        name = _normal(str(fields.get("Name", folder.name)))
        found[name] = Package(printable(str(fields.get("Version", "unknown")))[:128], wheels.get(name))
    return found


def python_version(env: Path) -> str | None:
    """The interpreter's version, from its own configuration."""
    try:
        text = (env / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^version(?:_info)?\s*=\s*([0-9][0-9.]*)", text, re.MULTILINE)
    return match[1] if match else None


def _asked(route: Route, packages: Packages, wheels: Path | None) -> list[str]:
    words = _pinned(route)
    if wheels is not None:
        words += ["--no-index", "--find-links", str(wheels.absolute())]
    for name in packages.platforms:
        words += ["--platform", name]
    if packages.platforms:
        words += ["--python-version", packages.python]
    return words


def _pinned(route: Route) -> list[str]:
    file = FOLDER / route.name / REQUIREMENTS
    return ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", str(file)]


def _pip(python: Path, words: list[str], wheels: Path | None) -> None:
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [str(python), "-m", "pip", words[0], *quiet, *words[1:]],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=_INSTALL_S,
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.startswith("ERROR")]
        where = f"in {wheels.name}" if wheels is not None else "from the package index"
        raise BlockedError.of(
            "AKF-E402",
            f"the pinned packages cannot be had {where}: {printable(' '.join(said) or 'pip failed')[:_SAID]}",
            hint="give the network, or a folder that holds the wheels: --wheels FOLDER",
        )


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=_INSTALL_S)
    if done.returncode != 0:
        said = printable(done.stderr.decode("utf-8", "replace") or done.stdout.decode("utf-8", "replace"))[:_SAID]
        hint = "Debian and Ubuntu ship it apart: apt-get install python3-venv"
        raise BlockedError.of("AKF-E402", f"an environment cannot be made: {said}", hint=hint)


def _says(python: Path, version: str) -> bool:
    code = "import sys, json; print(json.dumps(list(sys.version_info[:2])))"
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, check=False, timeout=60)
    try:
        return bool(json.loads(done.stdout) == [int(part) for part in version.split(".")])
    except ValueError:
        return False


def _distribution(wheel: Path) -> str:
    return _normal(wheel.name.split("-")[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _unpack(wheel: Path, prefix: str, target: Path) -> None:
    """Take the files below one folder out of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = PurePosixPath(member.filename)
            inside = member.filename.startswith(f"{prefix}/") and not member.is_dir()
            if inside and ".." not in path.parts and member.file_size <= _MAX_MEMBER:
                file = target / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(member))
