"""Tools of CANN that nobody here has: scripts with a recorded identity that say what they were called with.

Recorded sources: the version text is the banner that CANN 9.1.0's compiler left in the `.comment` section of the
kernels of pto-kernels 0.1.7; the command lines are those that TileLang 0.1.4, CATLASS DSL 2.1.0 and PyPTO 0.2.0 carry
in their packages. A script that takes a command line does not show that the tool takes it: docs/not-proved.md says so.
"""

from __future__ import annotations

from pathlib import Path

BANNER = "clang version 15.0.5 (clang-5c68a1cb1231 flang-5c68a1cb1231)"
_SCRIPT = f"""#!/bin/sh
if [ "$1" = --version ]; then
    echo '{BANNER}'
    exit 0
fi
out=
previous=
for word in "$@"; do
    [ "$previous" = -o ] && out=$word
    previous=$word
done
[ -n "$out" ] || exit 2
printf '%s\\n' "$@" >"$out"
"""


def recorder(path: Path) -> Path:
    """A tool that writes its arguments, one a line, to the file behind `-o`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_SCRIPT)
    path.chmod(0o755)
    return path
