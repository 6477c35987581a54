"""Real files, where they are: a second pass over a folder of tool outputs (`AKF_SHARED_DATA`, or beside the checkout).

Without the folder there is nothing to collect; everything that must hold is also shown on profiles of our own.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akf.contracts.problems import InvalidError
from akf.traffic.ascend.profile import ingest
from akf.traffic.profiles import Options

SHARED = Path(os.environ.get("AKF_SHARED_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
OPTIONS = Options(id="real", title=None, data_class="public")
TAKEN = {"torch_npu_profiler/level0": 8_827_454, "torch_npu_profiler/level1": 8_873_737}
REFUSED = {
    "torch_npu_profiler/small_rank1": ("AKF-F114", "memory_record.csv", 2),
    "msprof": ("AKF-F113", "op_summary_1.csv", 17),
    "msprof/op_summary_1.csv": ("AKF-F113", "op_summary_1.csv", 17),
}


if SHARED.is_dir():  # an empty list of parameters would be a skip

    @pytest.mark.parametrize(("name", "computing"), TAKEN.items())
    def test_real_profiles_are_taken(name: str, computing: int) -> None:
        found = ingest([SHARED / name], OPTIONS)
        [line] = found["breakdown"]
        assert line["bounds"] == "profiler"
        assert line["computing_ns"] == computing
        assert all(check["holds"] for check in found["checks"])
        assert sum(entry["calls"] for entry in found["entries"]) == 191

    @pytest.mark.parametrize(("name", "problem"), REFUSED.items())
    def test_real_damage_is_refused_with_its_line(name: str, problem: tuple[str, str, int]) -> None:
        with pytest.raises(InvalidError) as error:
            ingest([SHARED / name], OPTIONS)
        assert [(p.code, Path(p.file or "").name, p.line) for p in error.value.problems] == [problem]
