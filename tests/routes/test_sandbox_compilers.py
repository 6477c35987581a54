"""What a compiler can reach from the sandbox: the system's files and the sources, not what else is on the machine."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.sandboxes import NAMESPACED, QUICK, Place

from akf.routes import host_cpp
from akf.routes.sandbox import LEVELS, Level, can_fix_layout

MARK = "akf-test-secret-7f3a"
LARGE = QUICK._replace(memory_bytes=2 * 1024**3, wall_s=60)
READERS = {
    "include": '#include "{path}"\n',
    "include behind a macro": '#define FILE "{path}"\n#include FILE\n',
    "assembler": 'asm(".section .rodata\\n.incbin \\"{path}\\"\\n.text");\n',
    "assembler's include": 'asm(".include \\"{path}\\"");\n',
    "probe": '#if __has_include("{path}")\n#error "it is there"\n#endif\n',
    "dependency pragma": '#pragma GCC dependency "{path}"\n',
    "by way of the own folder": '#include "../../../../../../../../../../../../{path}"\n',
}
ARGUMENTS = {
    "response file": ("@{path}",),
    "forced include": ("-include", "{path}"),
    "quote folder": ("-iquote", "{folder}", "-include", "secret.txt"),
    "macros": ("-imacros", "{path}"),
    "specs": ("-specs={path}",),
    "wrapper": ("-wrapper", "/bin/cat,{path}"),
}


@pytest.fixture(params=LEVELS)
def place(request: pytest.FixtureRequest, tmp_path: Path, compiler: None) -> Place:
    del compiler
    return Place(tmp_path, request.param)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text(f'const char* leaked = "{MARK}";\n')
    return path


def _compile(place: Place, *more: str) -> tuple[int, str, bytes]:
    driver = str(host_cpp.compiler_path())
    ended = place.run(driver, "-shared", "-fPIC", "-o", "out/k.so", *more, "src/kernel.cpp", limits=LARGE)
    product = place.out / "k.so"
    return ended.status, ended.text, product.read_bytes() if product.exists() else b""


@pytest.mark.parametrize("how", READERS)
def test_no_file_of_the_machine_enters_an_object_or_a_log(how: str, place: Place, secret: Path) -> None:
    text = READERS[how].format(path=secret) + 'extern "C" int answer() { return 42; }\n'
    (place.work / "src" / "kernel.cpp").write_text(text)
    _, said, product = _compile(place)
    assert MARK not in said
    assert "it is there" not in said
    assert MARK.encode() not in product


@pytest.mark.parametrize("how", ARGUMENTS)
def test_no_argument_brings_a_file_in(how: str, tmp_path: Path, secret: Path, compiler: None) -> None:
    del compiler
    place = Place(tmp_path, "bwrap")
    (place.work / "src" / "kernel.cpp").write_text('extern "C" int answer() { return 42; }\n')
    words = [word.format(path=secret, folder=secret.parent) for word in ARGUMENTS[how]]
    _, said, product = _compile(place, *words)
    assert MARK not in said
    assert MARK.encode() not in product


def test_the_same_readers_find_a_file_of_the_sources(place: Place) -> None:
    """The control: what is among the sources is read, headers in folders too."""
    (place.work / "src" / "part").mkdir()
    (place.work / "src" / "part" / "answer.h").write_text(f'extern "C" const char* leaked() {{ return "{MARK}"; }}\n')
    (place.work / "src" / "kernel.cpp").write_text('#include <cmath>\n#include "part/answer.h"\n')
    status, said, product = _compile(place)
    assert status == 0, said
    assert MARK.encode() in product


def test_the_level_changes_no_byte_of_the_object(tmp_path: Path) -> None:
    made = set()
    for level in LEVELS:
        place = Place(tmp_path / level, level)
        (place.work / "src" / "kernel.cpp").write_text('extern "C" int f(int x) { return x * 3; }\n')
        status, said, product = _compile(place)
        assert status == 0, said
        made.add(product)
    assert len(made) == 1


@pytest.mark.parametrize("level", NAMESPACED)
def test_a_source_cannot_be_swapped_while_it_is_compiled(level: Level, tmp_path: Path) -> None:
    """A step that rewrites its own source gets nowhere: what was digested is what the next step compiles."""
    place = Place(tmp_path, level)
    source = place.work / "src" / "kernel.cpp"
    source.write_text("int honest;\n")
    ended = place.sh(
        "echo 'int swapped;' >src/kernel.cpp; mv src/kernel.cpp src/x; rm -f src/kernel.cpp; ln -sf /x src/kernel.cpp; "
        "chmod 777 src src/kernel.cpp; mount -t tmpfs x src; mv src gone; cat src/kernel.cpp"
    )
    assert ended.status == 0
    assert ended.text.endswith("int honest;\n")
    assert source.read_text() == "int honest;\n"


def test_two_threads_build_and_both_are_bounded(tmp_path: Path) -> None:
    """A limit of one build is not spent by another."""
    results = {}

    def work(name: str, script: str) -> None:
        results[name] = Place(tmp_path / name, "bwrap").sh(script)

    Place(tmp_path / "probe", "bwrap")
    threads = [
        threading.Thread(target=work, args=("bad", "while :; do head -c 4000000 /dev/zero >out/f$((i = i + 1)); done")),
        threading.Thread(target=work, args=("good", "sleep 0.3; echo fine >out/x")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (results["bad"].stopped, results["good"].stopped, results["good"].status) == ("disk", None, 0)


def test_address_randomisation_is_off_inside(place: Place) -> None:
    """The same program at the same address, run after run; with randomisation on, it differs."""
    if not can_fix_layout():
        pytest.skip("this machine forbids personality(2)")
    script = "import ctypes\nprint(ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value)"
    assert len({place.python(script).text for _ in range(3)}) == 1
    assert len({place.python(script, randomised=True).text for _ in range(3)}) > 1
