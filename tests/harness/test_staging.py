"""Tensors that lie elsewhere than in the arena: staged before a launch, fetched after it; a copy plays the device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.builder import ROOT

DRIVER = """
import json, os, struct, sys, types
names = ("confine", "child", "devices", "swallowed", "python_child")
package = types.ModuleType("akf_child"); package.__path__ = []; sys.modules["akf_child"] = package
for name in names:
    module = types.ModuleType("akf_child." + name); module.__package__ = "akf_child"
    sys.modules[module.__name__] = module; setattr(package, name, module)
    path = sys.argv[1] + "/" + name + ".py"
    exec(compile(open(path).read(), path, "exec"), module.__dict__)
devices, python_child = package.devices, package.python_child
waited = []
devices.KINDS["cpu"] = devices.Kind(None, copies=True)
devices.Device.synchronize = lambda self: waited.append(1)

fd = os.memfd_create("arena"); os.ftruncate(fd, 8192)
worker = python_child.Worker({"arena_fd": os.dup(fd), "arena_bytes": 8192, "tree": sys.argv[2], "device": "cpu"})
worker.load("kernel.py", "run")
tensor = {"dtype": "float32", "shape": [4], "strides": [1], "stride": 64, "span": 16}
inputs, outputs = [{"name": "x", "offset": 0, **tensor}], [{"name": "out", "offset": 4096, **tensor}]
worker.bind(3, inputs, outputs, {}, 1, False)
for slot in range(3): os.pwrite(fd, struct.pack("4f", *[slot + 1.0] * 4), 64 * slot)
read = lambda: [struct.unpack("f", os.pread(fd, 4, 4096 + 64 * slot))[0] for slot in range(3)]
states = []
worker.stage(); os.pwrite(fd, bytes(192), 0); states.append(read())
worker.run(0, 3); states.append(read()); waits = len(waited)
worker.fetch(); states.append(read())
back = [struct.unpack("f", os.pread(fd, 4, 64 * slot))[0] for slot in range(3)]
print(json.dumps([states, waits, back]), file=sys.__stdout__)
"""


def test_inputs_are_staged_and_results_fetched(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason='needs torch: pip install "ascend-kernel-forge[torch]"')
    (tmp_path / "kernel.py").write_text("def run(x):\n    out = x * 2\n    x += 1\n    return out\n", encoding="utf-8")
    (tmp_path / "driver.py").write_text(DRIVER, encoding="utf-8")
    command = [
        sys.executable,
        "-I",
        "-B",
        str(tmp_path / "driver.py"),
        str(ROOT / "src" / "akf" / "harness"),
        str(tmp_path),
    ]
    out = subprocess.run(command, check=False, capture_output=True, text=True, timeout=90)
    assert out.returncode == 0, out.stderr
    nothing = [0.0, 0.0, 0.0]
    changed = [2.0, 3.0, 4.0]
    assert out.stdout.strip() == str([[nothing, nothing, [2.0, 4.0, 6.0]], 3, changed])
