"""From an agent's folder to a Candidate: `submit` takes one folder, `intake` all that wait in a run's inbox."""

from akf.candidates.submit import intake, submit

__all__ = ["intake", "submit"]
