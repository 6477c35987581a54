"""Steps that the profiler numbered: whether numbers, times and tasks agree.

Invariants:
1. The profiler gives a task the number of the step in which it starts. So a number is one of the step trace's, where
   there is one; and no task of a step starts before the last one of the step before has started.
2. Between a step's first task and the next one's lies the end of the step. So a step is not longer than what lies
   between the last start before it and the first start after it.
3. Without a step trace a step lasts from its first task to the next one's; a task that runs on is cut there.
4. What contradicts this is refused, with the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from akf.contracts.problems import InvalidError, Problem
from akf.traffic.ascend.statistics import SPANS, STEP_ROUNDING_NS
from akf.traffic.kernels import WINDOW

LISTED = 20
_AGAIN = "export the profile again"
_START, _LINE = pl.col("start_ns"), pl.col("line")


class Starts:
    """When the tasks of each step start, and in which line."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []

    def add(self, file: str, tasks: pl.DataFrame) -> None:
        """Take the tasks of a piece of a file; those without a step are of none."""
        ends = tasks.drop_nulls("step").group_by("rank", step=pl.col("step") % WINDOW)
        found = ends.agg(
            first=_START.min(),
            first_line=_LINE.sort_by("start_ns", "line").first(),
            last=_START.max(),
            last_line=_LINE.sort_by("start_ns", "line").last(),
            end=(_START + pl.col("duration_ns")).max(),
        )
        self._parts.append(found.with_columns(file=pl.lit(file)))

    def empty(self) -> bool:
        """Whether no task has a step."""
        return all(part.is_empty() for part in self._parts)

    def steps(self) -> pl.DataFrame:
        """Each step of each rank in the order of numbers: first and last start with file and line, and the last end."""
        parts = pl.concat(self._parts).sort("rank", "step", "first", "file", "first_line")
        by_last = parts.sort("rank", "step", "last", "file", "last_line").group_by("rank", "step", maintain_order=True)
        last = by_last.agg(pl.col("last", "last_line", "file").last(), pl.col("end").max())
        first = parts.group_by("rank", "step", maintain_order=True).agg(
            pl.col("first", "first_line").first(), first_file=pl.col("file").first()
        )
        return first.join(last, on=["rank", "step"], maintain_order="left")

    def spans(self) -> pl.DataFrame:
        """The steps as spans of time, where nothing else says how long they last."""
        end = pl.max_horizontal(pl.col("end"), pl.col("first") + 1)
        return self.steps().select(
            "rank", "step", start_ns="first", end_ns=pl.col("first").shift(-1).over("rank").fill_null(end)
        ).select(*SPANS)  # fmt: skip

    def refuse(self, stages: pl.DataFrame | None, stage_file: str) -> None:
        """Refuse what cannot be.

        Args:
            stages: The step trace: `step`, `stage_ns`, `line`.
            stage_file: What it is called.

        Raises:
            InvalidError: With the lines.
        """
        problems = list(self._apart())
        if stages is not None and stages["step"].null_count() < stages.height:
            problems += self._known(stages, stage_file)
            problems = problems or list(self._short(stages, stage_file))  # which rests on right numbers
        if problems:
            raise InvalidError(problems[:LISTED])

    def _apart(self) -> Iterator[Problem]:
        after = self.steps().with_columns(
            pl.col("step", "first", "first_line").shift(-1).over("rank").name.prefix("next_")
        )
        for row in after.filter(pl.col("last") > pl.col("next_first")).iter_rows(named=True):
            message = (
                f"Step Id {row['step']}, but the task starts after step {row['next_step']} began in line "
                f"{row['next_first_line']}: one of the two numbers is wrong"
            )
            yield Problem("AKF-F136", message, row["file"], line=row["last_line"], hint=_AGAIN)

    def _known(self, stages: pl.DataFrame, stage_file: str) -> Iterator[Problem]:
        strange = self.steps().filter(~pl.col("step").is_in(stages["step"].drop_nulls().implode()))
        for row in strange.iter_rows(named=True):
            message = f"Step Id {row['step']} is no step of {Path(stage_file).name}"
            yield Problem("AKF-F136", message, row["first_file"], line=row["first_line"], hint=_AGAIN)

    def _short(self, stages: pl.DataFrame, stage_file: str) -> Iterator[Problem]:
        room = pl.col("first").shift(-1).over("rank") - pl.col("last").shift(1).over("rank")
        steps = self.steps().with_columns(room=room).join(stages.drop_nulls("step"), on="step")
        long = steps.filter(pl.col("stage_ns") > pl.col("room") + STEP_ROUNDING_NS).sort("rank", "step")
        for row in long.iter_rows(named=True):
            between = f"only {row['room']} ns lie between the task before it and the one after it"
            message = f"step {row['step']} took {row['stage_ns']} ns, but {between}"
            yield Problem("AKF-F134", message, stage_file, line=row["line"], hint=_AGAIN)


def refuse_numbers(steps: pl.DataFrame, paths: Sequence[Path]) -> None:
    """Refuse numbers of steps that come twice, or that are none."""
    file = paths[0] if len(paths) == 1 else paths[0].parent
    steps = steps.drop_nulls("step")
    device = ["device"] if "device" in steps.columns else []
    again = steps.filter(~pl.struct(*device, "step").is_first_distinct())
    lines = pl.concat([again, steps.filter(pl.col("step") >= WINDOW)]).select("line", "step").unique().sort("line")
    if lines.height:
        raise InvalidError(
            Problem(
                "AKF-F134",
                f"step {step} is there twice" if step < WINDOW else f"{step} is no number of a step",
                str(file),
                line=line if len(paths) == 1 else None,
                hint=_AGAIN,
            )
            for line, step in lines.head(LISTED).iter_rows()
        )
