"""What the proof costs, and the smallest gain that it can show.

Invariants:
- A kernel Task pays the operator gate of every candidate, and the model, serving and reproduction gates of one; any
  other Task pays the latter alone.
- The reproduction gate has enough pairs for the best of all candidates (its error is divided by their number).
- More noise never makes a smaller gain detectable. These are estimates for a plan, never evidence.
"""

from __future__ import annotations

from typing import Any

from akf.opportunity.policy import Policy
from akf.stats import detectable_gain, min_pairs, spread_of_interval


def cost_of(policy: Policy) -> dict[str, Any]:
    """Board time and detectable gain, as a Triage states them."""
    return {
        "kernel_s": policy.candidates * policy.evaluation_s + _service(policy, policy.candidates),
        "service_s": _service(policy, 1),
        "budget_s": policy.board_s,
        "detectable_gain_ratio": detectable(policy),
    }


def detectable(policy: Policy) -> float | None:
    """Smallest true gain of the service that the planned pairs show to exceed the target; None for too few pairs."""
    return detectable_gain(spread(policy), policy.serving_pairs, policy.confidence, policy.target_ratio - 1)


def spread(policy: Policy) -> float:
    """Standard deviation of one pair's ratio, from the half-width of the A/A interval over its pairs."""
    return spread_of_interval(policy.noise_ratio, policy.noise_pairs)


def _service(policy: Policy, candidates: int) -> int:
    """Device time of the model, serving and reproduction gates of one candidate, in seconds."""
    pairs = policy.model_pairs + policy.serving_pairs
    pairs += max(policy.reproduction_pairs, min_pairs(policy.confidence, candidates))
    return int(2 * policy.leg_s * pairs)
