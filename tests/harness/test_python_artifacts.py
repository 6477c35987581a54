"""A module's files: one or a folder, sealed, read-only, and its walls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.harness.modules import HONEST, artifact, asked, checked, codes, module, outcomes, trio

from akf.harness.bench import Bench
from akf.harness.outcome import HarnessError
from akf.harness.request import parse
from akf.harness.template import Template

PASSES = dict.fromkeys(("sensitivity", "correctness", "isfinite", "hit_proof"), "pass")
WALLS = """
import os, glob
assert os.getpid() == 1 and os.environ.get("AKF_KEYS") is None
assert sorted(os.listdir("/candidate")) == ["candidate.py"]
assert not glob.glob("/home/*") and not glob.glob("/etc/passwd")
for place in ("/candidate/x", "/x", "/usr/x", __file__):
    try: open(place, "w")
    except OSError: continue
    raise AssertionError(place)
open(os.environ["TMPDIR"] + "/gone", "w").write("with the process")
assert os.listdir(os.environ["TMPDIR"]) == ["gone"]
assert not [each for place in __import__("sys").path for each in glob.glob(place + "/akf/*")]
"""


def folder(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("files", "entry"),
    [
        ({"kernel.py": "from parts import scale\n" + module(HONEST), "parts/__init__.py": "scale = 1\n"}, "run"),
        ({"only.py": module(HONEST), "table.txt": "data"}, "run"),
        ({"a.py": module(HONEST), "b.py": "from a import run as other\n"}, "b:other"),
        ({"deep/in.py": module(HONEST), "b.py": ""}, "deep.in:run"),
    ],
    ids=["kernel.py", "only", "named", "deep"],
)
def test_a_folder_of_files(template: Template, tmp_path: Path, files: dict[str, str], entry: str) -> None:
    artifacts = trio(tmp_path, module(HONEST))
    artifacts["candidate"] = artifact(folder(tmp_path / "src", files), entry)
    checks = checked(template, asked(artifacts))
    assert outcomes(checks) == PASSES, checks
    assert checks["hit_proof"].facts["files"] is True


@pytest.mark.parametrize(
    ("files", "entry", "code"),
    [
        ({"a.py": "", "b.py": ""}, "run", "REQUEST_INVALID"),
        ({"a.py": ""}, "b:run", "REQUEST_INVALID"),
        ({"a.py": ""}, "a:no name", "REQUEST_INVALID"),
        ({"a.txt": ""}, "run", "REQUEST_INVALID"),
    ],
)
def test_an_entry_that_names_nothing(
    template: Template, tmp_path: Path, files: dict[str, str], entry: str, code: str
) -> None:
    artifacts = trio(tmp_path, module(HONEST))
    artifacts["candidate"] = artifact(folder(tmp_path / "src", files), entry)
    with pytest.raises(HarnessError) as caught:
        Bench(parse(asked(artifacts)), template=template)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)


def test_other_bytes_than_the_digest_names(template: Template, tmp_path: Path) -> None:
    artifacts = trio(tmp_path, module(HONEST))
    (tmp_path / "candidate.py").write_text(module(HONEST) + "\n", encoding="utf-8")
    with pytest.raises(HarnessError) as caught:
        Bench(parse(asked(artifacts)), template=template)
    assert (caught.value.code, caught.value.exit_code) == ("ARTIFACT_CHANGED", 3)


@pytest.mark.parametrize("kind", ["link", "folder_link", "pipe"])
def test_what_is_no_regular_file_is_refused(template: Template, tmp_path: Path, kind: str) -> None:
    artifacts = trio(tmp_path, module(HONEST))
    source = folder(tmp_path / "src", {"kernel.py": module(HONEST)})
    artifacts["candidate"] = artifact(source)
    if kind == "pipe":
        os.mkfifo(source / "odd")
    else:
        (source / "odd").symlink_to(tmp_path if kind == "folder_link" else tmp_path / "baseline.py")
    with pytest.raises(HarnessError) as caught:
        Bench(parse(asked(artifacts)), template=template)
    assert (caught.value.code, caught.value.exit_code) == ("PATH_ESCAPE", 3)


def test_a_module_sees_its_own_files_and_scratch_space(template: Template, tmp_path: Path) -> None:
    request = asked(trio(tmp_path, module(HONEST, WALLS)), isolation="userns")
    assert outcomes(checked(template, request)) == PASSES


@pytest.mark.parametrize(
    ("body", "head", "code"),
    [
        (HONEST, "", None),
        ("import os\nos._exit(0)", "", "CHILD_EXITED"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "", "CHILD_KILLED"),
        ("import os, time\nif os.fork() == 0: time.sleep(99)\nreturn torch.relu(x @ w + b)", "", "ASYNCHRONOUS_WORK"),
        ("try: raise ValueError\nexcept ValueError: return torch.relu(x @ w + b)", "", "HIDDEN_FALLBACK"),
    ],
    ids=["honest", "leaves", "kills_itself", "process", "swallows"],
)
def test_without_name_spaces(template: Template, tmp_path: Path, body: str, head: str, code: str | None) -> None:
    checks = checked(template, asked(trio(tmp_path, module(body, head)), isolation="none"))
    if code is None:
        assert outcomes(checks) == PASSES, checks
    else:
        assert code in codes(checks), checks


def test_the_next_candidate_is_unaffected(template: Template, tmp_path: Path) -> None:
    """Children are copies of one template: what one does to itself, and what it leaves, is not in the next."""
    vandal = "torch.Tensor.copy_ = None\nimport os, sys, threading\nsys.modules.clear()\nos.environ['X'] = '1'"
    first = checked(template, asked(trio(tmp_path, module(HONEST, vandal))))
    second = checked(template, asked(trio(tmp_path, module(HONEST, "import os\nassert 'X' not in os.environ"))))
    assert "fail" in outcomes(first).values()
    assert outcomes(second) == PASSES


@pytest.mark.skipif(any(map(os.path.exists, ("/dev/nvidiactl", "/dev/davinci_manager"))), reason="a device is here")
@pytest.mark.parametrize("device", [pytest.param("cuda", marks=pytest.mark.soak), "npu"])
def test_a_device_that_is_not_here_is_named(template: Template, tmp_path: Path, device: str) -> None:
    del template  # for the check that torch is there
    request = parse(asked(trio(tmp_path, module(HONEST)), device=device))
    with pytest.raises(HarnessError) as caught:
        Bench(request)
    assert (caught.value.code, caught.value.exit_code) == ("FRAMEWORK_MISSING", 6)
    assert device in caught.value.message
