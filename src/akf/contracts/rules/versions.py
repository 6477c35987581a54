"""CANN releases, compared as versions and never as strings.

Invariants:
- Only a released version counts: `9.0.0-beta.1`, `9.1.0.RC1` and `8.3.RC1.alpha003` are pre-releases and refused.
- The oldest accepted release is 9.0.0; a new Campaign locks exactly 9.1.0 by default.
- Any other accepted release needs its exact build locked as well.

Source of the version forms: releases and containers named by vLLM-Ascend, and `ascend_toolkit_install.info`.
"""

from __future__ import annotations

import re

CANN_MINIMUM = (9, 0, 0)
CANN_DEFAULT = "9.1.0"

_NUMBER = "(0|[1-9][0-9]{0,3})"
_RELEASE = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}")
_PRE = re.compile(r"(alpha|beta|rc|dev|t\d)", re.IGNORECASE)


def release(text: str) -> tuple[int, int, int] | None:
    """The three numbers of a released version, or None for a pre-release, a range or any other form."""
    match = _RELEASE.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def cann_problem(version: str, build: str | None) -> str | None:
    """Why this CANN version may not be used, in one sentence, or None.

    Args:
        version: the version as the Campaign states it.
        build: the exact inner build, or None while it is a placeholder.
    """
    numbers = release(version)
    if numbers is None:
        what = "a pre-release" if _PRE.search(version) else "not an exact release number"
        return f"CANN {version} is {what}; AKF accepts released versions of the form MAJOR.MINOR.PATCH"
    if numbers < CANN_MINIMUM:
        return f"CANN {version} is older than 9.0.0, the oldest release that AKF accepts"
    if version != CANN_DEFAULT and build is None:
        return f"CANN {version} is not the default {CANN_DEFAULT} and is accepted only with its exact build locked"
    return None
