"""What options of several commands must be, refused in the same words before anything is read."""

from __future__ import annotations

from collections.abc import Sequence

from akf.contracts.ids import id_problem
from akf.contracts.problems import UsageError
from akf.contracts.text import did_you_mean, is_name, show

LONGEST_NAME = 256


def check_one_of(code: str, option: str, value: str | None, known: Sequence[str]) -> None:
    """Refuse a word that is none of those that are known; None is no word.

    Raises:
        UsageError: It is none.
    """
    if value is not None and value not in known:
        near = did_you_mean(value, known)
        hint = f"did you mean {near}?" if near else None
        message = f"{option}: {show(value)} is not one of {', '.join(known)}"
        raise UsageError.of(code, message, expected=list(known), found=value, hint=hint)


def check_data_class(code: str, value: str) -> None:
    """Refuse what is no data class.

    Raises:
        UsageError: It is none.
    """
    from typing import get_args  # noqa: PLC0415

    from akf.contracts.models.base import DataClass  # noqa: PLC0415

    check_one_of(code, "--data-class", value, get_args(DataClass))


def check_id(value: str | None) -> None:
    """Refuse an id that no artifact may have.

    Raises:
        UsageError: It is none.
    """
    if value is not None and (problem := id_problem(value, field="--id")) is not None:
        raise UsageError([problem])


def check_name(code: str, option: str, value: str | None) -> None:
    """Refuse what is no name but a path, an address or nothing.

    Raises:
        UsageError: It is none.
    """
    if value is not None and not is_name(value, LONGEST_NAME):
        message = f"{option}: {show(value)} is no name of 1 to {LONGEST_NAME} characters"
        raise UsageError.of(code, message, hint=f"the name alone, without folders: {option} Qwen3-8B")


def check_target(code: str, value: float | None) -> None:
    """Refuse a target that is no speed-up.

    Raises:
        UsageError: It is none.
    """
    from akf.opportunity.policy import LIMITS  # noqa: PLC0415

    least, most = LIMITS["target_ratio"]
    if value is not None and not least <= value <= most:
        message = f"--target: a speed-up of {value} is none; 1.05 is 5 % more"
        raise UsageError.of(code, message, expected=f"a ratio from {least} to {most}", found=str(value))
