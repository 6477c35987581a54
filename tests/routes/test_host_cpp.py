"""The host_cpp route: the same bytes from two folders, nothing but listed flags, a typed answer without a compiler."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from akf.routes.host_cpp import (
    FLAGS,
    SourceRefused,
    ToolMissing,
    compile_command,
    compile_shared,
    compiler_identity,
    launcher_source,
)
from akf.routes.launch_spec import parse_spec

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++: apt-get install g++")
KERNEL = 'extern "C" int answer() { return 42; }\n'


def write(folder: Path, text: str, name: str = "kernel.cpp") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


@needs_compiler
def test_two_folders_give_the_same_bytes(tmp_path: Path) -> None:
    text = '#include "part.h"\nextern "C" const char* where() { return __FILE__; }\n' + KERNEL
    outputs = []
    for name in ("one", "another-much-longer-name"):
        folder = write(write(tmp_path / name, text), "#pragma once\n", "part.h")
        result = compile_shared(folder, ["kernel.cpp", "part.h"], tmp_path / f"{name}.so")
        assert result, result.stderr
        outputs.append((tmp_path / f"{name}.so").read_bytes())
    assert outputs[0] == outputs[1]


@needs_compiler
def test_compiled_object_can_be_called(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "kernel.so"
    result = compile_shared(write(tmp_path / "src", KERNEL), ["kernel.cpp"], out)
    assert result.outputs.keys() == {"kernel.so"}
    assert ctypes.CDLL(str(out)).answer() == 42


@needs_compiler
def test_record_of_a_compilation_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    result = compile_shared(write(tmp_path, KERNEL), ["kernel.cpp"], tmp_path / "kernel.so")
    assert result.command == ("g++", *FLAGS, "-o", "out/kernel.so", "src/kernel.cpp")
    assert result.env == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C",
        "LC_ALL": "C",
        "HOME": "{work}/home",
        "TMPDIR": "{work}/tmp",
        "SOURCE_DATE_EPOCH": "0",
    }


@needs_compiler
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("int f( {", "error"),
        ('extern "C" void missing(); extern "C" void f() { missing(); }', "undefined reference"),
        ('#include "/etc/shadow-of-nothing"', "No such file"),
    ],
)
def test_source_that_does_not_compile(tmp_path: Path, text: str, said: str) -> None:
    result = compile_shared(write(tmp_path / "src", text), ["kernel.cpp"], tmp_path / "kernel.so")
    assert not result
    assert result.returncode != 0
    assert said in result.stderr
    assert str(tmp_path) not in result.stderr
    assert not (tmp_path / "kernel.so").exists()


@needs_compiler
def test_endless_messages_are_cut(tmp_path: Path) -> None:
    text = "\n".join(f'#warning "{index} {"x" * 100}"' for index in range(2000)) + "\nint f( {"
    result = compile_shared(write(tmp_path / "src", text), ["kernel.cpp"], tmp_path / "kernel.so")
    assert len(result.stderr) <= 16 * 1024


@needs_compiler
def test_compiler_that_does_not_end_is_killed(tmp_path: Path) -> None:
    text = "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i ^ n; return s; }\n"
    text += "".join(f"constexpr long v{index} = f(200000 + {index});\n" for index in range(4000))
    result = compile_shared(write(tmp_path / "src", text), ["kernel.cpp"], tmp_path / "kernel.so", timeout=0.3)
    assert result.timed_out
    assert not result


@needs_compiler
def test_identity_names_every_program_by_digest() -> None:
    identity = compiler_identity()
    assert identity["native"]
    assert str(identity["target"]).count("-") >= 2
    programs = identity["programs"]
    assert isinstance(programs, dict)
    for name in ("cc1plus", "as", "ld"):
        assert programs[name]["digest"].startswith("sha256:")


@pytest.mark.parametrize(
    "source", ["/etc/passwd.cpp", "../kernel.cpp", "-fplugin=x.cpp", "a b.cpp", "kernel.s", "kernel.o", "@args.cpp"]
)
def test_source_path_is_refused(source: str) -> None:
    with pytest.raises(SourceRefused):
        compile_command([source], "out.so")


def test_header_alone_is_nothing_to_compile() -> None:
    with pytest.raises(SourceRefused, match="no C\\+\\+ source"):
        compile_command(["kernel.h"], "out.so")


@pytest.mark.parametrize("flag", ["-fplugin=evil.so", "-B/tmp", "-wrapper", "-specs=x", "-I/"])
def test_flag_is_refused(flag: str) -> None:
    with pytest.raises(SourceRefused, match="flag"):
        compile_command(["kernel.cpp"], "out.so", [flag])


def test_sources_are_in_order_whatever_the_caller_says() -> None:
    assert compile_command(["b.cpp", "a.cpp"], "o") == compile_command(["a.cpp", "b.cpp"], "o")


def test_missing_compiler_has_a_name_and_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="apt-get install") as caught:
        compile_shared(write(tmp_path / "src", KERNEL), ["kernel.cpp"], tmp_path / "kernel.so")
    assert caught.value.name == "g++"


@needs_compiler
def test_launcher_passes_every_kind_of_argument(tmp_path: Path) -> None:
    spec = parse_spec(
        {
            "abi": "c",
            "symbol": "mix",
            "args": [
                {"name": "out", "kind": "tensor", "dtype": "float64", "shape": [1], "access": "out"},
                {"name": "a", "kind": "scalar", "dtype": "int32", "value": 1},
                {"name": "b", "kind": "scalar", "dtype": "float32", "value": "s"},
                {"name": "scratch", "kind": "workspace", "dtype": "float32", "shape": [4]},
                {"name": "c", "kind": "scalar", "dtype": "int64", "value": 2},
                {"name": "d", "kind": "scalar", "dtype": "float64", "value": "s"},
                {"name": "stream", "kind": "stream"},
            ],
        }
    )
    kernel = """
    #include <cstdint>
    extern "C" void mix(double* out, std::int32_t a, float b, float* scratch, std::int64_t c, double d, void* stream) {
        *out = stream == nullptr && scratch[0] == 0.5f ? a + 10.0 * b + 100.0 * c + 1000.0 * d : -1.0;
    }
    """
    folder = write(write(tmp_path / "src", kernel), launcher_source(spec), "launcher.cpp")
    assert compile_shared(folder, ["kernel.cpp"], tmp_path / "kernel.so")
    assert compile_shared(folder, ["launcher.cpp"], tmp_path / "launcher.so")
    function = ctypes.cast(ctypes.CDLL(str(tmp_path / "kernel.so")).mix, ctypes.c_void_p)
    results = (ctypes.c_double * 3)()
    scratch = (ctypes.c_float * 4)(0.5)
    table = (ctypes.c_void_p * 9)()
    for index in range(3):
        address = ctypes.addressof(results) + 8 * index
        table[3 * index : 3 * index + 3] = [address, ctypes.addressof(scratch), None]
    integers, floats = (ctypes.c_int64 * 2)(3, 4), (ctypes.c_double * 2)(0.5, 0.25)
    batch = ctypes.CDLL(str(tmp_path / "launcher.so")).akf_batch
    batch.restype = ctypes.c_int64
    assert batch(function, table, integers, floats, ctypes.c_int64(2)) == 2
    assert list(results) == [658.0, 658.0, 0.0]
