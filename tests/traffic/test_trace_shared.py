"""A real profile of torch_npu with a part of its real trace, where such files are; nothing is collected elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from akf.traffic.ascend.profile import ingest
from akf.traffic.ascend_trace import read
from akf.traffic.events import Trace
from akf.traffic.profiles import Options

ROOT = Path(os.environ.get("AKF_SHARED_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
TRACES = sorted((ROOT / "torch_npu_profiler").glob("*/trace_view.subset.json"))


if TRACES:  # an empty list of parameters would be a skip

    @pytest.mark.parametrize("trace", TRACES, ids=[trace.parent.name for trace in TRACES])
    def test_real_tasks_of_the_trace_are_kernels_of_the_tables(trace: Path, tmp_path: Path) -> None:
        seen = read(Trace(trace))
        assert seen.tasks.height >= 30
        assert seen.overlap_ns["Computing"] > 0
        folder = shutil.copytree(trace.parent, tmp_path / "profile")
        folder.chmod(0o755)
        shutil.copyfile(trace, folder / "trace_view.json")
        capture = ingest([folder], Options(id="x", title=None, data_class="internal"))
        (line,) = capture["breakdown"]
        assert line["launches"] == 0  # the part holds no flows from host to device
        assert line["host_gap_ns"] == 0
        check = next(check for check in capture["checks"] if check["name"] == "trace-computing-against-kernels")
        assert not check["holds"]  # it is a part
