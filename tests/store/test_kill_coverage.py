"""The hooks of the kill harness see every system call that changes a disk: strace counts the same ones."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.support import strace

BEGIN, END = "/akf-begin", "/akf-end"

NAMES = (
    "open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,splice,fallocate,"
    "fsync,fdatasync,sync_file_range,syncfs,sync,msync,link,linkat,symlink,symlinkat,rename,renameat,renameat2,unlink,"
    "unlinkat,mkdir,mkdirat,mknod,mknodat,rmdir,truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchown,fchownat,"
    "utimensat,setxattr,fsetxattr"
)

HARNESS = """
import os, sys, json
from pathlib import Path
import concurrent.futures, ctypes, shutil
from akf.store import _steps, ledger, leftovers
from akf.store.lock import RunLock
from akf.store.publish import StagedFolder, clean, make_folder, publish_file, replace_sidecar, settle, stale
from akf.store import _system
from akf.trust.keys import init_keys
from tests.support.kill import hooked
root = Path(sys.argv[1])
init_keys(root / "warm")  # loads what is loaded late

def work():
{work}

def through(number, name, real, args, kwargs):
    return real(*args, **kwargs)

def mark(path):
    try:
        os.rmdir(path)
    except OSError:
        pass

mark("{begin}")
with hooked(through) as seen:
    work()
mark("{end}")
print(json.dumps(seen))
"""

WORKS = {
    "publish_file": """
    publish_file(root / "a.json", b"x" * 100_000)
    try:
        publish_file(root / "a.json", b"again")
    except Exception:
        pass
""",
    "named": """
    _system._libc_renameat2 = lambda: None
    name = leftovers.temporary_name(leftovers.TEMPORARY)
    folder = os.open(root, os.O_RDONLY)
    _steps.publish_named(folder, root / "b.json", b"data", 0o444)
""",
    "sidecar": """
    for _ in range(2):
        replace_sidecar(root / "a.sig.json", b"data", root / "a.json")
    settle(root / "a.sig.json", root)
""",
    "staged folder": """
    for _ in range(2):
        with StagedFolder(root / "build", orphan_of=root / "build.json") as stage:
            for number in range(40):
                stage.write(f"deep/{number % 3}/{number}", b"data" * number)
            stage.folder("empty")
    try:
        with StagedFolder(root / "build") as stage:
            stage.write("x", b"")
    except Exception:
        pass
""",
    "guarded rename": """
    _system._libc_renameat2 = lambda: None
    with StagedFolder(root / "run") as stage:
        stage.write("x", b"data")
""",
    "ledger": """
    with RunLock(root):
        ledger.append(root, "run", "run.json", "sha256:" + "0" * 64)
        os.truncate(root / "ledger.jsonl", 50)
        ledger.repair(root)
        ledger.append(root, "run", "run.json", "sha256:" + "0" * 64)
""",
    "keys": """
    init_keys(root / "new" / "keys")
    os.mkdir(root / "there")
    init_keys(root / "there")
""",
    "clean": """
    make_folder(root / "a" / "b")
    stage = StagedFolder(root / "a" / "run").__enter__()
    stage.write("x/y", b"data")
    stage._close()
    os.rename(stage.path, root / "a" / ".akf-stage-1-1-0123456789abcdef")
    assert clean(stale(root))
""",
}

SAME = {
    "openat": "open", "creat": "open", "openat2": "open", "pwrite64": "write", "pwrite": "write", "linkat": "link",
    "renameat": "rename", "replace": "rename", "renameat2": "rename", "unlinkat": "unlink", "remove": "unlink",
    "rmdir": "unlink", "mkdirat": "mkdir", "fchmodat": "chmod", "fchmod": "chmod", "truncate": "ftruncate",
}  # fmt: skip


def counted(calls: list[strace.Call]) -> Counter[str]:
    """The calls between the two marks that change a disk, under one name for each family."""
    marks = [i for i, c in enumerate(calls) if f'"{BEGIN}"' in c.text or f'"{END}"' in c.text]
    found: Counter[str] = Counter()
    for call in calls[marks[0] + 1 : marks[1]]:
        if call.name in ("open", "openat", "openat2") and not re.search(r"O_CREAT|O_TMPFILE|O_TRUNC", call.text):
            continue
        if call.name in ("write", "writev") and not re.match(r"\d+</", call.text):
            continue  # a pipe or a terminal
        found[SAME.get(call.name, call.name)] += 1
    return found


@pytest.mark.parametrize("name", WORKS)
def test_the_hooks_see_what_strace_sees(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    code = HARNESS.replace("{work}", WORKS[name]).replace("{begin}", BEGIN).replace("{end}", END)
    calls, said = strace.run(code, [str(folder)], tmp_path, names=NAMES)
    hooks = Counter(SAME.get(call, call) for call in json.loads(said))
    assert hooks == counted(calls)
    assert hooks
