"""What every front end does first, and that it finds nothing of AKF but that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from akf.routes.frontends import front_end, front_end_files
from akf.routes.sandbox import Limits
from akf.routes.source_module import kernel_of, values_of

PROGRAM = """
import importlib.util, json, sys
from pathlib import Path
from akf.routes.source_module import kernel_of, values_of
asked = json.loads(Path("in/request.json").read_text())
print(kernel_of(asked["source"], asked["kernel"], "function")(*values_of(asked["names"], asked["symbols"])))
print(importlib.util.find_spec("akf.contracts"), sys.flags.no_user_site, sys.flags.safe_path)
"""


def test_a_front_end_takes_its_kernel_and_values_and_finds_nothing_else_of_akf(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "kernel.py").write_text("def scale(n, eps):\n    return n, eps\n")
    request: dict[str, object] = {
        "source": "src/kernel.py",
        "kernel": "scale",
        "names": ["n", "eps"],
        "symbols": {"eps": "1e-6", "n": "8"},
    }
    for name, data in front_end_files(tmp_path / "program.py", request).items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)
    step = front_end((), ("x",), Limits())
    command = [sys.executable, *(word.replace("{work}", str(tmp_path)) for word in step.argv)]
    variables = {name: value.replace("{work}", str(tmp_path)) for name, value in step.variables.items()}
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": os.defpath, **variables}, capture_output=True, check=False
    )
    assert done.stdout.decode().splitlines() == ["(8, 1e-06)", "None 1 True"], done.stderr.decode()


@pytest.mark.parametrize(
    ("name", "said"), [("absent", "holds no @tla.kernel function 'absent'"), ("nothing", "'nothing'")]
)
def test_a_source_without_its_kernel_is_said(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("nothing = None\n")
    with pytest.raises(SystemExit, match=said):
        kernel_of(str(tmp_path / "kernel.py"), name, "@tla.kernel function")


def test_a_parameter_without_a_value_is_said_with_its_option() -> None:
    with pytest.raises(SystemExit, match=r"--option symbol\.K=VALUE"):
        values_of(["M", "K"], {"M": "1"})


def test_the_request_is_the_same_whatever_the_order_of_its_fields(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    first = front_end_files(tmp_path / "program.py", {"a": 1, "b": 2})
    assert first == front_end_files(tmp_path / "program.py", {"b": 2, "a": 1})
    assert json.loads(first["request.json"]) == {"a": 1, "b": 2}
