"""Which exceptions count as swallowed, under every Python that the harness supports and this machine has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.builder import ROOT

NAMES = ("python3.9", "python3.10", "python3.11", "python3.12", "python3.13")
CODE = """
import concurrent.futures, contextlib, decimal, json, threading

def kernel(): raise NotImplementedError("x")
def swallows_fallback():
    try: return kernel()
    except Exception: return 1
def swallows_bare():
    try: return kernel()
    except: return 1
def swallows_suppress():
    with contextlib.suppress(ValueError): raise ValueError
def swallows_finally():
    try: kernel()
    finally: return 3
def swallows_stop():
    try: raise StopIteration
    except StopIteration: return 1
def swallows_in_a_future():
    with concurrent.futures.ThreadPoolExecutor(1) as pool: job = pool.submit(kernel)
    return job.exception() is not None
def swallows_of_a_library():
    try: json.loads("{")
    except ValueError: return 1
def swallows_a_miss():
    try: return {}[1]
    except KeyError: return 1
def swallows_in_exec():
    space = {}
    exec("def f():\\n  try: raise ValueError\\n  except ValueError: return 1", space)
    return space["f"]()
class Inside:
    def __getattr__(self, name):
        try: raise AttributeError
        except AttributeError: return 1
def swallows_in_a_protocol(): return Inside().anything
def swallows_below():
    def inner():
        try: kernel()
        except NotImplementedError: raise ValueError from None
    try: inner()
    except ValueError: return 1
def swallows_in_a_generator():
    def parts():
        try: kernel()
        except NotImplementedError: yield 1
    return list(parts())

def honest_generator():
    def parts():
        yield 1
        yield 2
    parts_of = iter([1])
    next(parts_of)
    try: next(parts_of)
    except StopIteration: pass
    half = parts(); next(half); half.close()
    return [each for each in parts()]
class Counts:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
class Has:
    def __getattr__(self, name): raise AttributeError(name)
    def __getitem__(self, index):
        if index > 3: raise IndexError
        return index
def honest_protocols(): return hasattr(Has(), "x"), getattr(Has(), "y", 1), list(Counts()), list(Has()), 9 in Has()
def honest_library(): return json.loads("[1]"), hasattr(json, "no"), decimal.Decimal("1") / 3
def honest_with():
    with threading.Lock(), contextlib.nullcontext(): return 1
def honest_thread():
    job = threading.Thread(target=lambda: None); job.start(); job.join()
def tampers():
    import sys
    sys.settrace(None); sys.setprofile(None)
"""
DRIVER = """
import importlib.util, os, sys

def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

watched, root = load("swallowed", sys.argv[1]), sys.argv[2]
kernel = load("kernel", root + "/kernel.py")
for name in sorted(vars(kernel)):
    if name.startswith(("swallows", "honest", "tampers")):
        watch = watched.Watch((sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)), root)
        watch.start()
        try:
            vars(kernel)[name]()
        finally:
            watch.stop()
        print(name, len(watch.found), int(watch.tampered))
"""


def interpreters() -> list[str]:
    found = {sys.executable}
    for name in NAMES:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode == 0:
            found.add(path)
    return sorted(found)


@pytest.mark.parametrize("interpreter", interpreters(), ids=lambda path: Path(path).name)
def test_what_counts(tmp_path: Path, interpreter: str) -> None:
    (tmp_path / "kernel.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "driver.py").write_text(DRIVER, encoding="utf-8")
    source = ROOT / "src" / "akf" / "harness" / "swallowed.py"
    command = [interpreter, "-I", "-B", str(tmp_path / "driver.py"), str(source), str(tmp_path)]
    out = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    rows = [line.split() for line in out.stdout.splitlines()]
    assert len(rows) == 18
    for name, count, tampered in rows:
        assert (int(count) > 0) == name.startswith("swallows"), name
        assert (tampered == "1") == name.startswith("tampers"), name
