"""A compiler sees the system's own files and the folders that are named; nothing else of the machine, no network.

Invariants:
- Sources are untrusted text: `#include`, `.incbin` and `#embed` can name any path, so the paths are taken away.
- The jail is a user, mount, PID and network namespace with a root of its own, made by util-linux's own programs.
- The first process inside is a shell that waits: a program that is process 1 itself would be deaf to signals.
- Whether it works here is found once with a harmless command, never with a candidate's sources; without it the
  level is `none`, and the Build says so.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache")
_PROBE_S = 20

# Arguments: chroot, new root, working folder, number of mounts, for each of them its mode, source and target; command.
_SCRIPT = r"""
set -eu
enter=$1 root=$2 work=$3 count=$4
shift 4
mount -t tmpfs -o size=4m,mode=755 tmpfs "$root"
while [ "$count" -gt 0 ]; do
    if [ "$1" = link ]; then
        mkdir -p "$root${3%/*}"
        ln -s "$(readlink "$2")" "$root$3"
    else
        if [ -d "$2" ]; then mkdir -p "$root$3"; else mkdir -p "$root${3%/*}"; : >"$root$3"; fi
        mount --rbind "$2" "$root$3"
        [ "$1" = write ] || mount -o remount,bind,ro "$root$3" 2>/dev/null || :
    fi
    count=$((count - 1))
    shift 3
done
exec "$enter" "$root" /bin/sh -c 'cd "$1" && shift && "$@"; status=$?; exit "$status"' sh "$work" "$@"
"""
TOOLS_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the jail's own programs are; what runs inside has the environment that it is given and no other."""
_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child")


class Mount(NamedTuple):
    """A folder or file of this machine, and where it stands in the jail."""

    source: str
    target: str
    writable: bool = False


def jailed(
    command: Sequence[str], work: str, mounts: Sequence[Mount], root: Path, variables: Mapping[str, str]
) -> list[str]:
    """The command line that runs `command` in a jail.

    Args:
        command: what runs inside, as it is named there.
        work: its working folder, as it is named there.
        mounts: what is shown beside the system's own files, in this order.
        root: an empty folder, the jail's root.
        variables: the whole environment inside; outside, `TOOLS_PATH` is the jail's own.
    """
    system = [Mount(path, path) for path in (*SYSTEM, "/dev/null") if Path(path).exists()]
    enter = shutil.which("chroot", path=TOOLS_PATH) or "chroot"
    unshare = shutil.which(_UNSHARE[0], path=TOOLS_PATH) or _UNSHARE[0]
    inside = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command]
    shown = [word for mount in (*system, *mounts) for word in (_mode(mount), mount.source, mount.target)]
    places = [enter, str(root), work, str(len(shown) // 3)]
    return [unshare, *_UNSHARE[1:], "/bin/sh", "-c", _SCRIPT, "jail", *places, *shown, *inside]


def _mode(mount: Mount) -> str:
    if mount.source == mount.target and Path(mount.source).is_symlink():
        return "link"
    return "write" if mount.writable else "read"


@cache
def works() -> bool:
    """Whether a jail can be made on this machine."""
    if shutil.which("unshare", path=TOOLS_PATH) is None:
        return False
    with tempfile.TemporaryDirectory(prefix="akf-jail-") as scratch:
        writes, root = Path(scratch, "writes"), Path(scratch, "root")
        for folder in (writes, root):
            folder.mkdir()
        probe = ["/bin/sh", "-c", 'test ! -e "$1" && : >/probe/seen', "probe", __file__]
        try:
            result = subprocess.run(
                jailed(probe, "/probe", [Mount(str(writes), "/probe", writable=True)], root, {}),
                capture_output=True,
                check=False,
                env={"PATH": TOOLS_PATH},
                timeout=_PROBE_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return result.returncode == 0 and (writes / "seen").is_file()
