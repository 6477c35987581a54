"""What a compiler can reach: the system's files and the sources, not what else is on the machine."""

from pathlib import Path

import pytest

from akf.routes import host_cpp, jail

MARK = "akf-test-secret-7f3a"
READERS = {
    "include": '#include "{path}"\n',
    "include behind a macro": '#define FILE "{path}"\n#include FILE\n',
    "assembler": 'asm(".section .rodata\\n.incbin \\"{path}\\"\\n.text");\n',
    "probe": '#if __has_include("{path}")\n#error "it is there"\n#endif\n',
}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    try:
        host_cpp.compiler_path()
    except host_cpp.ToolMissing as error:
        pytest.skip(str(error))
    if not jail.works():
        pytest.skip("user namespaces are not permitted here")
    folder = tmp_path / "src"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("how", READERS)
def test_no_file_of_the_machine_enters_an_object_or_a_log(how: str, sources: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(f'const char* leaked = "{MARK}";\n')
    text = READERS[how].format(path=secret) + 'extern "C" int answer() { return 42; }\n'
    (sources / "kernel.cpp").write_text(text)
    out = tmp_path / "kernel.so"
    result = host_cpp.compile_shared(sources, ["kernel.cpp"], out)
    assert result.isolation == "userns"
    assert MARK not in result.stderr
    assert "it is there" not in result.stderr
    assert not out.exists() or MARK.encode() not in out.read_bytes()


def test_the_sources_own_headers_are_there(sources: Path, tmp_path: Path) -> None:
    (sources / "part").mkdir()
    (sources / "part" / "answer.h").write_text("#pragma once\nconstexpr int answer_value = 42;\n")
    (sources / "kernel.cpp").write_text(
        '#include <cmath>\n#include "part/answer.h"\nextern "C" int f() { return answer_value; }\n'
    )
    result = host_cpp.compile_shared(sources, ["kernel.cpp", "part/answer.h"], tmp_path / "kernel.so")
    assert result, result.stderr


def test_the_jail_changes_no_byte_of_the_object(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sources / "kernel.cpp").write_text('extern "C" int f(int x) { return x * 3; }\n')
    inside = host_cpp.compile_shared(sources, ["kernel.cpp"], tmp_path / "inside.so")
    monkeypatch.setattr(jail, "works", lambda _extra=(): False)
    outside = host_cpp.compile_shared(sources, ["kernel.cpp"], tmp_path / "outside.so")
    assert (inside.isolation, outside.isolation) == ("userns", "none")
    assert (tmp_path / "inside.so").read_bytes() == (tmp_path / "outside.so").read_bytes()
    assert inside.command[:-2] == outside.command[:-2]
