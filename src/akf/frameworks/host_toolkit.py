"""The compiler's own folders on the host: what it adds to every kernel besides the programs that identity names.

Invariants:
- The folders are those that the compiler itself names: its private one, and the headers of its C++ library.
"""

from __future__ import annotations

from pathlib import Path

from akf.contracts.problems import BlockedError
from akf.frameworks.toolkit_tree import Tree, read_toolkit
from akf.routes import host_cpp
from akf.routes.tools import ask

_HEADERS = "c++"


def folders() -> dict[str, Path]:
    """The compiler's folders by name.

    Raises:
        ToolMissing: there is no compiler.
        BlockedError: the compiler does not name them.
    """
    driver = host_cpp.compiler_path()
    library = Path(ask(driver, "-print-libgcc-file-name").strip())
    if not library.is_absolute():
        message = f"{driver.name} does not say where its own library is"
        raise BlockedError.of("AKF-E110", message, found=str(library), hint="is it a whole installation of gcc?")
    found = {"private": library.parent}
    said = ask(driver, "-fsyntax-only", "-x", "c++", "-v", "/dev/null").splitlines()
    searched = [Path(line.strip()) for line in said if line.startswith(" /")]
    headers = [path for path in searched if _HEADERS in path.parts and path.is_dir()]
    return found | {f"headers-{number}": path for number, path in enumerate(headers)}


def tree() -> Tree:
    """All their files.

    Raises:
        ToolMissing: there is no compiler.
        BlockedError: a file cannot be read.
    """
    return read_toolkit(folders())
