"""Real objects of real compilers, from packages that are pinned by hash; nothing of them is kept.

`vllm-ascend` 0.23.0 for x86-64 carries 175 AICore objects that CANN's compiler made, each with a description that holds
its sha256. `nvidia-cuda-nvcc-cu12` 12.4.131 carries ptxas, which makes a cubin and says of it what the inspector reads.
"""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from akf.build.inspect import describe

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the packages are those for x86-64"),
]
ASCEND = (
    "vllm-ascend==0.23.0",
    "vllm_ascend-0.23.0-cp311-cp311-manylinux_2_34_x86_64.whl",
    "4f0d25d3b6d8ae85753b53d4bd8d910418865baf413fa779b87012ad1a4a3f87",
)
NVCC = (
    "nvidia-cuda-nvcc-cu12==12.4.131",
    "nvidia_cuda_nvcc_cu12-12.4.131-py3-none-manylinux2014_x86_64.whl",
    "e4c9a35435c3b0e36c6397c5696334c9ea6650e524736cbd1c5d345ea099bb04",
)
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 place, .param .f32 factor)
{
    .reg .f32 %f<3>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 room[512];
    ld.param.u64 %rd1, [place];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.f32 %f1, [factor];
    st.shared.f32 [room], %f1;
    bar.sync 0;
    ld.shared.f32 %f2, [room];
    st.global.f32 [%rd2], %f2;
    ret;
}
"""


def fetched(package: tuple[str, str, str], folder: Path) -> Path:
    """The unpacked package, whose bytes are the pinned ones."""
    wanted, name, pinned = package
    platforms = [f"--platform=manylinux{each}_x86_64" for each in ("_2_34", "2014")]
    subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "-q", "--no-deps", wanted, "--only-binary", ":all:", *platforms,
            "--python-version", "3.11", "--dest", str(folder),
        ],
        check=True,
    )  # fmt: skip
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == pinned
    with zipfile.ZipFile(folder / name) as wheel:
        wheel.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.fixture(scope="module")
def ascend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel of vllm-ascend."""
    return fetched(ASCEND, tmp_path_factory.mktemp("ascend"))


def test_all_aicore_objects_of_vllm_ascend(ascend: Path) -> None:
    objects = sorted(ascend.rglob("ai_core/tbe/kernel/**/*.o"))
    assert len(objects) == 175
    seen: Counter[object] = Counter()
    for path in objects:
        found = describe(path)  # raises where a description does not hold
        description = found["description"]
        assert description["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert found["machine_number"] == 0x1029
        assert found["kernel_count"] == len(found["kernels"]) > 0
        seen[found["what"]] += 1
        seen[description["core_type"]] += 1
        seen[found["flags"]] += 1
        seen["kernels"] += found["kernel_count"]
        seen["twins"] += found["twin"] is not None and found["twin"]["same_kernels"]
        cores = {kernel["core"] for kernel in found["kernels"]}
        assert (None in cores) == (description["core_type"] != "MIX")
    assert seen == {
        "Ascend AICore object": 135, "relocatable Ascend AICore object": 40, "VectorCore": 84, "MIX": 83, "AiCore": 8,
        "0x930000": 113, "0x940000": 62, "kernels": 4401, "twins": 80,
    }  # fmt: skip


def test_device_code_that_its_libraries_carry(ascend: Path) -> None:
    found = describe(ascend / "vllm_ascend" / "libvllm_ascend_kernels.so")
    assert (found["what"], found["machine"]) == ("shared object", "EM_X86_64")
    assert [row["bytes"] for row in found["carries"]] == [189_600, 61_888, 72_152]
    assert {row["machine_number"] for row in found["carries"]} == {0x1029}
    assert all(row["kernels"] for row in found["carries"])


def test_a_cubin_is_what_its_assembler_says(tmp_path: Path) -> None:
    ptxas = next(fetched(NVCC, tmp_path).rglob("bin/ptxas"))
    ptxas.chmod(0o755)
    (tmp_path / "k.ptx").write_text(PTX, encoding="utf-8")
    for arch in ("sm_80", "sm_90", "sm_90a"):
        command = [str(ptxas), "-v", f"-arch={arch}", "k.ptx", "-o", f"{arch}.cubin"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        used = re.search(r"Used (\d+) registers, (\d+) bytes smem", done.stderr)
        assert used is not None, done.stderr
        found = describe(tmp_path / f"{arch}.cubin")
        assert (found["device"]["sm"], found["device"]["arch"]) == (int(arch[3:5]), arch)
        (kernel,) = found["kernels"]
        assert (kernel["name"], kernel["registers"], kernel["parameter_bytes"]) == ("scale", int(used[1]), 12)
        assert kernel["shared_bytes"] >= int(used[2]) == 512
