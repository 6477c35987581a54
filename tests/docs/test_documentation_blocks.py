"""Every fenced block of the documentation says what it is, and what it says holds.

The marks (docs/contributing.md): `console run` is run and its output compared; `console needs=npu|cuda|ci` is listed;
`json valid=KIND` is validated; `text shown` is only to be looked at. A block without a mark fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.generator.markdown import Block, blocks
from docs.generator.pages import ROOT, pages
from tests.docs.walk import START, Walk
from tests.support.runs import Shared

from akf.contracts.loader import parse
from akf.contracts.schemas import validate
from akf.routes.launch_spec import parse_spec

STAGE = re.compile(r"^<!-- starts: (?P<stage>[a-z]+) -->$", re.MULTILINE)
END = "\x00"
NEEDS = {"npu", "cuda", "ci"}
BY_CI = {
    'python -m pip install -e ".[host]" && python -m akf demo': 'pip install -q -e ".[host]"',
    'python -m pip install -e ".[test]" && python -m pytest': "python -m pytest",
    "python -m pip install -e .": "pip install -q -e",
    "python -m unittest discover -s tests -v": "python -m unittest discover -s tests -v",
    "akf demo": "-m akf demo",
    "akf fill suites/host-demo/arms/host_reference.json --host --out ready": "-m akf demo",
    "akf evaluate $RUN rmsnorm-fused --gate operator": "-m akf demo",
    "akf build examples/kernels/triton_ascend/softmax --route triton_ascend --soc ascend910b4 "
    "--option constexpr.BLOCK=1024 --out softmax": "akf build examples/kernels/triton_ascend/softmax",
}
"""Commands that only `.ci/run` runs, because they install or measure, and the step of it that does."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def marked(name: str) -> list[tuple[Path, Block]]:
    return [
        (path, block) for path in pages() for block in blocks(path.read_text(encoding="utf-8")) if name in block.marks
    ]


def ids(found: list[tuple[Path, Block]]) -> list[str]:
    return [f"{name_of(path)}:{block.number}" for path, block in found]


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_every_block_has_one_known_mark(path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8")):
        language, known = block.info.split()[:1], {"run", "needs", "valid", "shown"}
        where = f"{name_of(path)}:{block.number} ```{block.info}"
        assert len(block.marks) == 1, where
        assert set(block.marks) <= known, where
        wanted = {"run": "console", "needs": "console", "valid": "json", "shown": "text"}[next(iter(block.marks))]
        assert language == [wanted], where


@pytest.mark.parametrize(("path", "block"), marked("shown"), ids=ids(marked("shown")))
def test_a_block_to_look_at_holds_no_command(path: Path, block: Block) -> None:
    typed = [line for line in block.lines if re.match(r"\s*(\$ |akf [a-z]+ |python -m |pip )", line)]
    assert typed == [], name_of(path)


@pytest.mark.parametrize(("path", "block"), marked("needs"), ids=ids(marked("needs")))
def test_a_block_that_is_not_run_here_says_what_it_needs(path: Path, block: Block) -> None:
    assert block.marks["needs"] in NEEDS, name_of(path)
    if block.marks["needs"] == "ci":
        steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        for command in (line[2:] for line in block.lines if line.startswith("$ ")):
            assert BY_CI[command] in steps, command


@pytest.mark.parametrize(("path", "block"), marked("valid"), ids=ids(marked("valid")))
def test_a_json_block_is_valid(path: Path, block: Block) -> None:
    kind, text = block.marks["valid"], "\n".join(block.lines)
    if kind == "LaunchSpec":
        parse_spec(json.loads(text))
        return
    document = parse(text.encode(), name_of(path))
    assert [str(problem) for problem in validate(document, kind)] == []


def test_the_readme_types_the_two_commands_exactly() -> None:
    typed = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert typed.count('$ python -m pip install -e ".[host]" && python -m akf demo') == 1
    assert typed.count('$ python -m pip install -e ".[test]" && python -m pytest') == 1


RUNNABLE = sorted({path for path, _ in marked("run")})


@pytest.fixture(scope="session")
def walk(shared: Shared) -> Walk:
    return Walk(shared)


@pytest.mark.parametrize("path", RUNNABLE, ids=name_of)
def test_blocks_to_run_print_what_the_page_says(path: Path, walk: Walk, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    stage = STAGE.search(text)
    work = walk.copy(stage["stage"] if stage else START, tmp_path / "work")
    for block in blocks(text):
        if "run" in block.marks:
            for command, wanted, found, status in run(block, work, walk.environment(work)):
                where = f"{name_of(path)}:{block.number}\n$ {command}\n{found}"
                assert status == 0, where
                assert matches(wanted, found), f"{where}\n--- the page says\n{wanted}"


def run(block: Block, work: Path, environment: dict[str, str]) -> Iterator[tuple[str, str, str, int]]:
    """Run a block as one shell session; yield every command with what the page and the shell say."""
    steps = list(parts(block))
    script = "".join(f"{{ {command}\n}} 2>&1\nprintf '{END}%d{END}' \"$?\"\n" for command, _ in steps)
    script = script.replace(END, "\\000")
    result = subprocess.run(
        ["bash", "-c", script], cwd=work, env=environment, capture_output=True, timeout=120, check=False
    )
    said = result.stdout.decode().split(END)
    assert len(said) == 2 * len(steps) + 1, said
    for index, (command, wanted) in enumerate(steps):
        yield command, wanted, said[2 * index], int(said[2 * index + 1])


def parts(block: Block) -> Iterator[tuple[str, str]]:
    """Every command of a block and the output that follows it; `> ` goes on with a command."""
    command = ""
    output: list[str] = []
    for line in [*block.lines, "$ "]:
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(output)
            assert command or not output, f"output before a command: {output}"
            command, output = line[2:], []
        elif line.startswith("> ") and not output:
            command += "\n" + line[2:]
        else:
            output.append(line)


def matches(wanted: str, found: str) -> bool:
    """Whether the output is the page's: a line `...` stands for any lines, `...` in a line for any text."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", "[^\n]*") + r"[ ]*\n"
        for line in wanted.splitlines()
    )
    return re.fullmatch(pattern, found if not found or found.endswith("\n") else found + "\n") is not None


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a\n...", "a\n", True),
        ("a ... c", "a b c\n", True),
        ("a", "a\nb\n", False),
        ("a ... c", "a b\nc\n", False),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_what_three_dots_stand_for(wanted: str, found: str, same: bool) -> None:
    assert matches(wanted, found) is same


def test_the_shell_session_keeps_its_variables(tmp_path: Path) -> None:
    block = Block("console run", ("$ A=1", "$ echo $A", "1", "$ false; echo $?", "1"), 1, "")
    found = [(wanted, said, status) for _, wanted, said, status in run(block, tmp_path, dict(os.environ))]
    assert found == [("", "", 0), ("1", "1\n", 0), ("1", "1\n", 0)]
