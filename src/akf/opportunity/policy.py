"""What a triage goes by: each value with the place that it comes from.

Invariants:
- A value is the flag's, else the Campaign's, else the Capture's (noise alone), else the documented default. A default
  is marked `assumed` and never passes for a statement.
- A Policy is a value: with the same Policy, Workload and Capture a triage gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Number = int | float

DEFAULTS: dict[str, Number] = {
    "target_ratio": 1.05,
    "local_speedup_ratio": 2.0,
    "confidence": 0.95,
    "noise_ratio": 0.01,
    "noise_pairs": 12,
    "model_pairs": 12,
    "serving_pairs": 12,
    "reproduction_pairs": 12,
    "candidates": 10,
    "evaluation_s": 600,
    "leg_s": 300,
    "board_s": 36000,
    "most_eager_ratio": 0.05,
    "most_padding_ratio": 0.25,
    "most_recompiles": 0,
    "most_jit_compiles": 0,
    "most_unmapped_ratio": 0.3,
    "most_missing_calls_ratio": 0.02,
    "least_compute_ratio": 0.7,
    "least_transfer_ratio": 0.7,
    "least_balance_ratio": 0.2,
    "least_launch_ratio": 1.0,
    "least_provider_ratio": 1.05,
}
"""Every value, in the order in which a Triage lists them."""


MOST = 1_000_000
YEAR_S = 31_536_000
_SHARES = ("noise_ratio", "most_eager_ratio", "most_padding_ratio", "most_unmapped_ratio", "most_missing_calls_ratio",
           "least_compute_ratio", "least_transfer_ratio", "least_balance_ratio")  # fmt: skip

LIMITS: dict[str, tuple[Number, Number]] = {
    **dict.fromkeys(DEFAULTS, (0, MOST)),
    **dict.fromkeys(("target_ratio", "local_speedup_ratio", "least_provider_ratio"), (1, MOST)),
    **dict.fromkeys(_SHARES, (0, 1)),
    **dict.fromkeys(("noise_pairs", "model_pairs", "serving_pairs", "reproduction_pairs", "candidates"), (1, MOST)),
    **dict.fromkeys(("evaluation_s", "leg_s"), (1, YEAR_S)),
    "board_s": (0, YEAR_S),
}
"""Least and most of each value. A speed-up is at least 1; what was never measured is no noise of 0; and no product of
values leaves the numbers that every JSON reader holds."""


class Policy(NamedTuple):
    """The values, and what of the Campaign bounds the domain.

    Attributes:
        values: every value of `DEFAULTS` by name.
        sources: where each of them comes from: `flag`, `campaign`, `capture` or `default`.
        capabilities: the Campaign's capability tuples; None when there is no Campaign.
        arm: arm whose callsites are meant; None for all.
        stage: stage of the Workload that is meant; None for what the Capture says.
    """

    values: Mapping[str, Number]
    sources: Mapping[str, str]
    capabilities: Sequence[Mapping[str, Any]] | None = None
    arm: str | None = None
    stage: str | None = None

    def __getattr__(self, name: str) -> Any:
        """A value by its name."""
        values = self.values
        if name not in values:
            raise AttributeError(name)
        return values[name]

    def listed(self) -> list[dict[str, Any]]:
        """The values as a Triage states them."""
        return [
            {
                "name": name,
                "value": self.values[name],
                "source": self.sources[name],
                "assumed": self.sources[name] == "default",
            }
            for name in DEFAULTS
        ]


def policy_of(
    capture: Mapping[str, Any],
    campaign: Mapping[str, Any] | None = None,
    flags: Mapping[str, Number | None] | None = None,
    *,
    stage: str | None = None,
) -> Policy:
    """The Policy for one Capture.

    Args:
        capture: the Capture, for its A/A noise and its stage.
        campaign: the Campaign, where there is one; what its draft leaves open is not stated.
        flags: values that were given by hand, by name; None is not given.
        stage: stage that was named by hand.
    """
    values: dict[str, Number] = {}
    sources: dict[str, str] = {}
    places: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("flag", flags or {}),
        ("campaign", _campaign(campaign) if campaign is not None else {}),
        ("capture", _noise(capture)),
        ("default", DEFAULTS),
    )
    for name in DEFAULTS:
        for source, found in places:
            if found.get(name) is not None:
                values[name], sources[name] = found[name], source
                break
    return Policy(
        values,
        sources,
        None if campaign is None else tuple(campaign["capabilities"]),
        None if campaign is None else campaign["arm"],
        stage or capture.get("stage"),
    )


def _campaign(campaign: Mapping[str, Any]) -> dict[str, Any]:
    """What a Campaign states: its own section first, then what its acceptance, noise policy and budget imply."""
    acceptance = campaign["acceptance"]
    gains = [
        rule["threshold_ratio"]
        for rule in acceptance["gains"]
        if rule["gate"] != "operator" and rule["threshold_ratio"] is not None
    ]
    found: dict[str, Any] = {
        "target_ratio": 1 + min(gains) if gains else None,
        "confidence": acceptance["confidence"],
        **{f"{gate}_pairs": acceptance["pairs"][gate] for gate in ("model", "serving", "reproduction")},
        "board_s": campaign["budget"]["board_s"],
    }
    limit = campaign["noise"]["noise_limit_ratio"]
    if limit is not None:
        found |= {"noise_ratio": limit, "noise_pairs": acceptance["pairs"]["operator"]}
    stated = campaign.get("opportunity") or {}
    return found | {name: value for name, value in stated.items() if value is not None}


def _noise(capture: Mapping[str, Any]) -> dict[str, Any]:
    """The widest A/A interval that was measured with the Capture."""
    widths = [(max(1 - each["low_ratio"], each["high_ratio"] - 1), each["pairs"]) for each in capture.get("noise", ())]
    if not widths:
        return {}
    width, pairs = max(widths)
    return {"noise_ratio": max(width, 0.0), "noise_pairs": pairs}
