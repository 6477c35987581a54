"""The judge: bytes in, a Decision out. No clock, no environment, no file system, no random numbers.

`decide(files, candidate)` reads a run's files as bytes by run-relative path. Row 0 of the decision table is
`evidence.read` and `lines` (IntegrityError, exit 3); `planned` finds the measurement behind a rule, `checks` computes
outcomes anew from raw samples, `roofline` knows what no kernel can beat; `table` holds rows 1 to 7.
"""

from akf.judge.decide import decide

__all__ = ["decide"]
