"""The Trusted Evaluator: plans first, measures in a process apart, publishes gates."""

from akf.evaluate.gates import evaluate, preview

__all__ = ["evaluate", "preview"]
