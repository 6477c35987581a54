"""SoC names as tools print them, their families, and what is never guessed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.drafts import Draft, said

from akf.contracts.rules.soc import FAMILIES, FAMILY_NAMES, family, from_board, normalise

A2, A3, P310 = "ascend910b", "ascend910_93", "ascend310p"

# Chip Name and NPU Name of `npu-smi info -t board`, with the family that the board is of.
BOARDS = [
    ("910B4", None, "ascend910b4", A2),
    ("910B2", None, "ascend910b2", A2),
    ("910B2C", None, "ascend910b2c", A2),
    ("910B4-1", None, "ascend910b4-1", A2),
    ("Ascend910", "9392", "ascend910_9392", A3),
    ("Ascend910", "9391", "ascend910_9391", A3),
    ("Ascend910", "9362", "ascend910_9362", A3),
    (" Ascend910 ", " 9382 ", "ascend910_9382", A3),
    ("310P3", None, "ascend310p3", P310),
    ("Ascend950DT", "9582", "ascend950dt_9582", "ascend950"),
    ("Ascend950PR", "9599", "ascend950pr_9599", "ascend950"),
]
PRINTED = [
    ("Ascend910_9391", "ascend910_9391"),
    ("ASCEND910B4", "ascend910b4"),
    ("910B4", "ascend910b4"),
    ("ascend910b4\n", "ascend910b4"),
    ("Ascend310P7", "ascend310p7"),
]
UNKNOWN = [
    "Ascend910",  # the table of `npu-smi info` on A3: no suffix, so no name
    "Ascend910_9399",
    "910",
    "910C",
    "910B5",
    "ascend910b",
    "ascend910_93",
    "ascend950",
    "ascend950xx_9582",
    "ascend950dt_",
    "ascend950dt_958",
    "ascend950dt_95822",
    "ascend950dt-9582",
    "Ascend910 9391",
    "9391",
    "xascend910b4",
    "",
    "950DT",
    "H200",
]


@pytest.mark.parametrize(("chip", "npu", "name", "of"), BOARDS)
def test_board_prints(chip: str, npu: str | None, name: str, of: str) -> None:
    assert from_board(chip, npu) == name
    assert family(name) == of


@pytest.mark.parametrize(("printed", "name"), PRINTED)
def test_other_prints(printed: str, name: str) -> None:
    assert normalise(printed) == name


@pytest.mark.parametrize("printed", UNKNOWN)
def test_what_the_table_does_not_know_is_unknown(printed: str) -> None:
    assert normalise(printed) is None


def test_an_a2_board_does_not_become_an_a3_one_by_an_npu_name() -> None:
    assert from_board("910B4", "9391") is None
    assert from_board("Ascend910", None) is None


@pytest.mark.parametrize("name", [name for names in FAMILIES.values() for name in names])
def test_a_full_name_is_itself_and_of_one_family(name: str) -> None:
    assert normalise(name) == name == normalise(name.upper())
    assert [each for each, names in FAMILIES.items() if name in names] == [family(name)]


@given(st.text(max_size=24))
def test_any_text_is_answered_and_a_name_stays_a_name(text: str) -> None:
    name = normalise(text)
    assert name is None or (normalise(name) == name and family(name) in FAMILY_NAMES)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Ascend910_9391", "write it as 'ascend910_9391'"),
        ("ascend910b4", "use the full name"),
        ("ascend910_93", "use the full name"),
        ("ascend950dt_9582", "use the full name"),
    ],
)
def test_a_campaign_names_the_full_name_of_its_family(tmp_path: Path, name: str, hint: str) -> None:
    draft = Draft(tmp_path / "suite")
    result = draft.check(lambda value: value["environment"]["soc"].update(name=name))
    problem = next(p for p in result.problems if (p.code, p.pointer) == ("AKF-M007", "/environment/soc/name"))
    assert problem.hint is not None
    assert hint in problem.hint


def test_an_unknown_family_is_refused(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    found = said(draft.check(lambda value: value["environment"]["soc"].update(family="ascend920")))
    assert ("AKF-M007", "/environment/soc/family") in found
