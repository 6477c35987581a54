"""In a run, with the real triton-ascend: every specialisation of the support domain, and the frozen cache.

`hivmc` comes with CANN, which nobody here has. Where a binary is needed, a stand-in copies the IR: keys,
specialisations, the cache's form and what a miss does are the real package's; the object is none.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support import ascend
from tests.support.cli import inside

from akf.build import cache
from akf.contracts.canonical import digest

Value = dict[str, Any]
REAL = Path(os.environ.get("AKF_TEST_TOOLCHAINS") or "/nonexistent") / "triton-ascend"
pytestmark = [
    pytest.mark.skipif(
        not (REAL / "toolchain.json").is_file(),
        reason="needs AKF_TEST_TOOLCHAINS with a toolchain: akf toolchain add --packages triton_ascend",
    )
]


def stored(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """A store of toolchains with the real one in it."""
    folder.mkdir(parents=True)
    (folder / "triton-ascend").symlink_to(REAL)
    patch.setenv("AKF_TOOLCHAINS", str(folder))


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    del state
    stored(tmp_path / "store", monkeypatch)


def built(folder: Path, files: dict[str, str] | None = None, **claim: Any) -> tuple[Path, Value]:
    run = ascend.opened(folder, ascend.ROUTE, ascend.triton("0.5"), ascend.arm)
    ascend.submit(run, folder / "agent", ascend.ROUTE, files or ascend.triton("1.0"), **claim).accepted()
    inside("build", run, "mine").accepted()
    assert inside("audit", run).status == 0
    value: Value = json.loads((run / "attempts" / "mine" / "build.json").read_bytes())
    return run / "attempts" / "mine" / "build", value


def test_without_cann_the_build_says_how_deep_it_reached_and_no_gate_takes_it(tmp_path: Path) -> None:
    folder, value = built(tmp_path)
    assert (value["outcome"], value["stage"]) == ("built", "hivm_ir")
    assert (value["stopped"]["code"], value["stopped"]["tool"]) == ("TOOLCHAIN_MISSING", "hivmc")
    assert value["toolkit"]["name"] == "bishengir"
    assert value["reproduction"]["reproducible"] is True
    rows = [each for each in value["specialisations"] if each["subject"] == "candidate"]
    seen = {{pair["name"]: pair["value"] for pair in row["arguments"]}["t"]: row["points"] for row in rows}
    assert seen == {"i32, equal to 1": 1, "i32, divisible by 16": 4, "i32": 59}
    keys = {
        subject: {row["key"] for row in value["specialisations"] if row["subject"] == subject}
        for subject in ("candidate", "perturbed")
    }
    assert [len(each) for each in keys.values()] == [3, 3]
    assert not keys["candidate"] & keys["perturbed"]
    assert not list(folder.rglob(cache.MANIFEST))
    run = folder.parents[2]
    assert inside("evaluate", run, "mine", "--gate", "operator").refused(4).codes == {"AKF-P401"}


def test_a_source_that_keeps_an_argument_unspecialised_needs_one(tmp_path: Path) -> None:
    """The key is the compiler's: what it does not tell apart is one."""
    files = ascend.triton("1.0")
    files["kernel.py"] = files["kernel.py"].replace("@triton.jit", '@triton.jit(do_not_specialize=["t"])')
    _, value = built(tmp_path, files)
    (row,) = [each for each in value["specialisations"] if each["subject"] == "candidate"]
    assert row["points"] == 64


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param("tl.constexpr", "tl.constexpr, MORE: tl.constexpr", "'MORE'", id="constexpr without a value"),
        pytest.param("row < t", "row < t +", "SyntaxError", id="syntax", marks=pytest.mark.soak),
        pytest.param('"int32"', '"int64"', "compiler takes it as i32", id="another type", marks=pytest.mark.soak),
    ],
)
def test_what_cannot_be_specialised_is_a_failed_build(old: str, new: str, said: str, tmp_path: Path) -> None:
    files = {name: text.replace(old, new) for name, text in ascend.triton("1.0").items()}
    wrong = {**ascend.triton("0.5"), "launch.json": files["launch.json"]}
    run = ascend.opened(tmp_path, ascend.ROUTE, wrong, ascend.arm)
    ascend.submit(run, tmp_path / "agent", ascend.ROUTE, files).accepted()
    document = inside("build", run, "mine").accepted().document
    assert document["outcome"] == "failed"
    assert said in document["reasons"][0]
    assert inside("audit", run).status == 0


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Value]:
    """A Build with CANN, whose last tool is a stand-in; read it, do not change it."""
    folder = tmp_path_factory.mktemp("frozen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("AKF_STATE", str(folder / "state"))
        stored(folder / "store", patch)
        inside("toolchain", "add", ascend.hivmc(ascend.cann(folder / "cann"))).accepted()
        return built(folder)


def test_the_cache_holds_every_specialisation_and_the_manifest_binds_it(frozen: tuple[Path, Value]) -> None:
    folder, value = frozen
    assert (value["stage"], value["toolkit"]["name"]) == ("device_object", "cann")
    assert {each["id"] for each in value["toolchains"]} == {"cann-9.1.0", "triton-ascend"}
    for subject in ("candidate", "perturbed"):
        manifest = orjson.loads((folder / subject / cache.MANIFEST).read_bytes())
        keys = {row["key"] for row in value["specialisations"] if row["subject"] == subject}
        assert {entry["key"] for entry in manifest["entries"]} == keys
        for entry in manifest["entries"]:
            assert [each["name"] for each in entry["files"]] == [
                "add_rms_norm.json", "add_rms_norm.npubin", "add_rms_norm.ttadapter", "add_rms_norm.ttir",
            ]  # fmt: skip
            for each in entry["files"]:
                assert digest((folder / each["path"]).read_bytes()) == each["digest"]
    for row in value["specialisations"]:
        place = folder / row["subject"] / row["id"]
        cached, recorded = place / "cache.add_rms_norm.npubin", place / "kernel.o"
        assert cached.read_bytes() == recorded.read_bytes(), "the recorded commands make what the cache holds"


SERVING = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Device:
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0
    def get_current_target(self): return GPUTarget("npu", "Ascend910_9391", 0)

class Tensor:
    def __init__(self, dtype, at=0): self.dtype, self.at = dtype, at
    def data_ptr(self): return self.at

driver.set_active(Device())
from triton.compiler import compiler
real, log = compiler.get_cache_manager, open(sys.argv[2], "w")
def asked(key):
    from triton.runtime.cache import _base64
    log.write(json.dumps({"key": _base64(key)}) + "\\n"); log.flush()
    return real(key)
compiler.get_cache_manager = asked
import importlib.util
spec = importlib.util.spec_from_file_location("engine_kernel", sys.argv[3])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
at, rows = int(sys.argv[4]), [int(word) for word in sys.argv[5:]]
half = [Tensor("bfloat16", at) for _ in range(4)]
for t in rows:
    made = module.add_rms_norm.run(*half[:4], Tensor("float32"), half[0], 1e-6, t, 1024, grid=(1,), warmup=True)
    print(t, len(made.asm["npubin"]))
"""


class Served:
    """The real package in a process of its own, in a mount namespace where the cache is read-only."""

    def __init__(self, folder: Path, build: Path, source: str) -> None:
        self.manifest = orjson.loads((build / "candidate" / cache.MANIFEST).read_bytes())
        self.cache, self.log = folder / "served", folder / "launches.jsonl"
        self.cache.mkdir()
        cache.lay_out(self.manifest, build, self.cache)
        self._folder = folder
        (folder / "engine").mkdir()
        (folder / "engine" / "kernel.py").write_text(source)
        (folder / "serve.py").write_text(SERVING)

    def launch(self, *rows: int, at: int = 0, read_only: bool = True) -> subprocess.CompletedProcess[str]:
        python = REAL / "env" / "bin" / "python"
        packages = next((REAL / "env" / "lib").glob("python3*/site-packages"))
        words = [
            python,
            self._folder / "serve.py",
            packages,
            self.log,
            self._folder / "engine" / "kernel.py",
            at,
            *rows,
        ]
        mount = (
            f"mount --bind {self.cache} {self.cache} && mount -o remount,ro,bind {self.cache} && " if read_only else ""
        )
        line = f'{mount}exec "$@"'
        return subprocess.run(
            ["unshare", "--mount", "--map-root-user", "--user", "sh", "-c", line, "serve", *map(str, words)],
            env={"PATH": f"{packages}/ascendnpuir/bin:/usr/bin:/bin", "TRITON_CACHE_DIR": str(self.cache),
                 "HOME": str(self._folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, check=False, text=True, timeout=300,
        )  # fmt: skip

    def check(self) -> Value:
        return cache.verify(self.manifest, self.cache, self.log.read_bytes(), self.log.name)


@pytest.fixture
def served(frozen: tuple[Path, Value], tmp_path: Path) -> Served:
    probe = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "--user", "true"], capture_output=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip("needs user and mount name spaces: unshare --mount --map-root-user --user")
    (tmp_path / "serving").mkdir()
    return Served(tmp_path / "serving", frozen[0], ascend.triton("1.0")["kernel.py"])


def test_every_size_of_the_domain_is_answered_from_the_read_only_cache(served: Served) -> None:
    done = served.launch(*range(1, 65))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 64
    assert served.check() == {"name": "frozen_cache", "outcome": "pass"}


@pytest.mark.parametrize(("rows", "at"), [((2**31,), 0), ((16,), 8)], ids=["a wider integer", "a tensor not aligned"])
def test_a_miss_is_seen_with_the_real_package(served: Served, rows: tuple[int, ...], at: int) -> None:
    """The package opens the folder of an entry before it looks for it: on a read-only cache a miss is an error."""
    done = served.launch(*rows, at=at)
    assert done.returncode != 0
    assert "Read-only file system" in done.stderr
    check = served.check()
    assert (check["outcome"], check["reasons"]) == ("fail", ["CACHE_MISS"])


def test_a_miss_on_a_cache_that_can_be_written_is_found_afterwards(served: Served) -> None:
    """The package compiles then, silently; without hivmc it fails late, and the folder that it opened stays."""
    served.cache.chmod(0o755)
    served.launch(16, at=8, read_only=False)
    check = served.check()
    assert (check["outcome"], check["reasons"]) == ("fail", ["CACHE_MISS"])
    assert "appeared while serving" in check["note"]
