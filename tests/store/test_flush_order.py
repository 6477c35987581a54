"""What survives a power failure is shown by the order of system calls: data, then name, then folder."""

from collections.abc import Callable
from pathlib import Path

from tests.support import strace

NAMES = "openat,write,pwrite64,fsync,fdatasync,link,linkat,rename,renameat,renameat2,mkdir,mkdirat,ftruncate"

PUBLISH = """
import sys
from pathlib import Path
from akf.store.publish import publish_file, replace_sidecar
root = Path(sys.argv[1])
publish_file(root / "a.json", b"data")
replace_sidecar(root / "b.sig.json", b"data", root / "b.json")
replace_sidecar(root / "b.sig.json", b"more", root / "b.json")
"""

STAGE = """
import sys
from pathlib import Path
from akf.store.publish import StagedFolder
with StagedFolder(Path(sys.argv[1]) / "run") as stage:
    for number in range(5):
        stage.write(f"deep/{number}.json", b"data")
"""

LEDGER = """
import sys
from pathlib import Path
from akf.store import ledger
root = Path(sys.argv[1])
ledger.append(root, "run", "run.json", "sha256:" + "0" * 64)
path = root / "ledger.jsonl"
path.write_bytes(path.read_bytes() + b"torn")
ledger.append(root, "task", "tasks/a.json", "sha256:" + "1" * 64)
"""

FOLDERS = """
import sys
from pathlib import Path
from akf.store.publish import make_folder
make_folder(Path(sys.argv[1]) / "a" / "b")
"""


def trace(code: str, tmp_path: Path) -> tuple[list[strace.Call], Path]:
    folder = tmp_path / "folder"
    folder.mkdir()
    calls, _ = strace.run(code, [str(folder)], tmp_path, names=NAMES)
    return [call for call in calls if str(folder) in call.text], folder


def positions(calls: list[strace.Call], wanted: Callable[[strace.Call], bool]) -> list[int]:
    return [index for index, call in enumerate(calls) if wanted(call)]


def flushes(call: strace.Call, path: str) -> bool:
    return call.name == "fsync" and f"<{path}>" in call.text and not call.failed


def test_a_file_is_flushed_before_its_name_and_the_folder_after(tmp_path: Path) -> None:
    calls, folder = trace(PUBLISH, tmp_path)
    names = positions(calls, lambda c: c.name in ("linkat", "rename", "renameat"))
    flushed_folder = positions(calls, lambda c: flushes(c, str(folder)))
    assert len(names) == len(flushed_folder) == 3
    start = 0
    for name, after in zip(names, flushed_folder, strict=True):
        writes = positions(calls[:name], lambda c: c.name == "write")[-1:]
        flushed = [index for index in positions(calls[:name], lambda c: c.name == "fsync") if index >= start]
        assert start <= writes[0] < flushed[0] < name < after
        written = calls[writes[0]].text.split(",")[0]
        assert calls[flushed[0]].text.startswith(written)  # the same descriptor of the same file
        start = after + 1


def test_every_file_and_folder_is_flushed_before_the_one_rename(tmp_path: Path) -> None:
    calls, folder = trace(STAGE, tmp_path)
    (rename,) = positions(calls, lambda c: c.name.startswith("rename"))
    assert "RENAME_NOREPLACE" in calls[rename].text
    stage = calls[positions(calls, lambda c: c.name.startswith("mkdir"))[0]].text.split('"')[1]
    wanted = [f"{folder}/{stage}/deep/{number}.json" for number in range(5)]
    wanted += [f"{folder}/{stage}/deep", f"{folder}/{stage}"]
    last_write = max(positions(calls, lambda c: c.name == "write"))
    order = [positions(calls, lambda c, p=path: flushes(c, p)) for path in wanted]  # type: ignore[misc]
    assert all(len(found) == 1 for found in order)
    assert last_write < min(order)[0]
    assert max(order[:5])[0] < order[5][0] < order[6][0] < rename
    assert positions(calls, lambda c: flushes(c, str(folder)))[0] > rename


def test_a_line_is_flushed_and_a_cut_is_flushed_before_the_next_line(tmp_path: Path) -> None:
    calls, folder = trace(LEDGER, tmp_path)
    path = f"{folder}/ledger.jsonl"
    about = [c.name for c in calls if f"<{path}>" in c.text and c.name != "openat"]
    assert about == ["write", "fsync", "write", "ftruncate", "fsync", "write", "fsync"]


def test_a_new_ledger_is_flushed_with_its_folder(tmp_path: Path) -> None:
    calls, folder = trace(LEDGER, tmp_path)
    assert positions(calls, lambda c: flushes(c, str(folder)))


def test_each_new_folder_is_flushed_into_its_parent_before_the_next(tmp_path: Path) -> None:
    calls, folder = trace(FOLDERS, tmp_path)
    made = positions(calls, lambda c: c.name.startswith("mkdir"))
    first = [i for i in positions(calls, lambda c: flushes(c, str(folder))) if i > made[0]]
    second = [i for i in positions(calls, lambda c: flushes(c, f"{folder}/a")) if i > made[1]]
    assert made[0] < first[0] < made[1] < second[0]
