"""A compiler sees the system's own files, the sources and a private folder; nothing else of the machine, no network.

Invariants:
- Sources are untrusted text: `#include`, `.incbin` and `#embed` can name any path, so the paths are taken away.
- The jail is a user, mount, PID and network namespace with a root of its own, made by util-linux's own programs.
- Whether it works here is found once with a harmless command, never with a candidate's sources; without it the
  level is `none`, and the Build says so.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache")
_PROBE_S = 20

# Arguments: chroot, new root, folder to read, folder to write, number of system paths, the paths, then the command.
_SCRIPT = r"""
set -eu
enter=$1 root=$2 reads=$3 writes=$4 count=$5
shift 5
mount -t tmpfs -o size=4m,mode=755 tmpfs "$root"
show() {
    if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$root${1%/*}"; : >"$root$1"; fi
    mount --rbind "$1" "$root$1"
    [ "$1" = "$writes" ] || mount -o remount,bind,ro "$root$1" 2>/dev/null || :
}
while [ "$count" -gt 0 ]; do
    if [ -L "$1" ]; then mkdir -p "$root${1%/*}"; ln -s "$(readlink "$1")" "$root$1"; else show "$1"; fi
    count=$((count - 1))
    shift
done
show "$reads"
show "$writes"
show /dev/null
exec "$enter" "$root" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$reads" "$@"
"""
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child")


def jailed(command: Sequence[str], reads: Path, writes: Path, root: Path, extra: Sequence[str] = ()) -> list[str]:
    """The command line that runs `command` in a jail.

    Args:
        command: what runs inside, in the folder `reads`.
        reads: folder of the sources.
        writes: the one folder whose files outlive the jail.
        root: an empty folder, the jail's root.
        extra: further system folders, such as a compiler's own prefix.
    """
    paths = [path for path in dict.fromkeys((*SYSTEM, *extra)) if Path(path).exists()]
    enter = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin") or "chroot"
    places = [enter, str(root), str(reads), str(writes), str(len(paths))]
    return [*_UNSHARE, "/bin/sh", "-c", _SCRIPT, "jail", *places, *paths, *command]


@cache
def works(extra: tuple[str, ...] = ()) -> bool:
    """Whether a jail can be made on this machine."""
    if shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory(prefix="akf-jail-") as scratch:
        folders = [Path(scratch) / name for name in ("reads", "writes", "root")]
        for folder in folders:
            folder.mkdir()
        probe = ["/bin/sh", "-c", 'test ! -e "$1" && : >"$2/seen"', "probe", __file__, str(folders[1])]
        try:
            result = subprocess.run(
                jailed(probe, folders[0], folders[1], folders[2], extra),
                capture_output=True,
                check=False,
                timeout=_PROBE_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return result.returncode == 0 and (folders[1] / "seen").is_file()
