"""CANN releases: parsed as versions, pre-releases refused, anything but the default locked with its build."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.drafts import Draft, said

from akf.contracts.rules.versions import CANN_DEFAULT, CANN_MINIMUM, cann_problem, release

BUILD = "V100R001C25SPC005B220"
RELEASED = ["9.0.0", "9.0.1", "9.1.0", "9.10.0", "10.0.0"]
REFUSED = [
    ("9.0.0-beta.1", "a pre-release"),
    ("9.1.0.RC1", "a pre-release"),
    ("9.1.0 beta", "a pre-release"),
    ("9.2.0-beta.2", "a pre-release"),
    ("9.1.0rc1", "a pre-release"),
    ("8.3.RC1.alpha003", "a pre-release"),
    ("8.3.RC2", "a pre-release"),
    ("8.5.2", "older than 9.0.0"),
    ("8.5.1", "older than 9.0.0"),
    ("8.99.99", "older than 9.0.0"),
    (">=9.0.0", "not an exact release"),
    ("9.1.x", "not an exact release"),
    ("9.1", "not an exact release"),
    ("9.1.0.0", "not an exact release"),
    ("v9.1.0", "not an exact release"),
    ("09.1.0", "not an exact release"),
    ("9.01.0", "not an exact release"),
    (" 9.1.0", "not an exact release"),
    ("9.1.0\n", "not an exact release"),
    ("\uff19.1.0", "not an exact release"),
    ("9.1.0+local", "not an exact release"),
    ("latest", "not an exact release"),
    ("99999.1.0", "not an exact release"),
]


@pytest.mark.parametrize("version", RELEASED)
def test_a_released_version_is_taken_with_its_build(version: str) -> None:
    assert cann_problem(version, BUILD) is None


@pytest.mark.parametrize(("version", "why"), REFUSED)
@pytest.mark.parametrize("build", [None, BUILD])
def test_no_other_form_is_taken_with_or_without_a_build(version: str, why: str, build: str | None) -> None:
    said = cann_problem(version, build)
    assert said is not None
    assert why in said


@pytest.mark.parametrize("version", RELEASED)
def test_only_the_default_may_stand_without_its_build(version: str) -> None:
    assert (cann_problem(version, None) is None) is (version == CANN_DEFAULT)


@given(st.tuples(*[st.integers(0, 20)] * 3))
def test_order_is_that_of_numbers(numbers: tuple[int, int, int]) -> None:
    text = ".".join(map(str, numbers))
    assert release(text) == numbers
    assert (cann_problem(text, BUILD) is None) is (numbers >= CANN_MINIMUM)


@given(st.text(max_size=20))
def test_any_text_is_answered(text: str) -> None:
    assert (release(text) is not None) is (re.fullmatch(r"((0|[1-9][0-9]{0,3})(\.|$)){3}(?<!\.)", text) is not None)
    cann_problem(text, None)


@pytest.mark.parametrize("version", ["9.0.0-beta.1", "9.1.0.RC1", "8.5.2", "9.0.1"])
def test_a_campaign_says_it_at_the_version(tmp_path: Path, version: str) -> None:
    draft = Draft(tmp_path / "suite")
    found = said(draft.check(lambda value: value["environment"]["toolkit"].update(version=version)))
    assert ("AKF-M006", "/environment/toolkit/version") in found


@pytest.mark.parametrize("version", ["9.0.0", "9.0.1"])
def test_an_older_release_is_valid_when_it_is_locked_everywhere(tmp_path: Path, version: str) -> None:
    draft = Draft(tmp_path / "suite")
    locked = {"name": "cann", "version": version, "build": BUILD}

    def lock(value: dict[str, object]) -> None:
        value["environment"]["toolkit"] = locked  # type: ignore[index]
        for capability in value["capabilities"]:  # type: ignore[attr-defined]
            capability["toolkit"] = locked

    draft.check_suite(lambda value: value.update(toolkit=locked))
    assert said(draft.check(lock)) == set()


def test_a_suite_says_it_too(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    result = draft.check_suite(lambda value: value["toolkit"].update(version="9.1.0.RC1"))
    assert ("AKF-M006", "/toolkit/version") in said(result)


@pytest.mark.parametrize("name", ["gcc", "cuda"])
def test_the_toolkit_is_the_platforms(tmp_path: Path, name: str) -> None:
    draft = Draft(tmp_path / "suite")
    result = draft.check(lambda value: value["environment"]["toolkit"].update(name=name))
    assert ("AKF-M005", "/environment/toolkit/name") in said(result)
