"""A profile with any damage ends as a Capture or as problems with lines, never otherwise, and never half."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.profiles import KERNEL_DETAILS, Ran, kernel_table, profiler_info

from akf.contracts.canonical import canonical_bytes, parse_canonical
from akf.contracts.problems import InvalidError, Problem
from akf.contracts.schemas import validate
from akf.traffic.ascend.profile import ingest
from akf.traffic.profiles import Options

START = 1736408883704643212
ROWS = [
    Ran("aclnnRelu_Relu_Relu", "Relu", "AI_VECTOR_CORE", START, 1_000, shapes=("16,4096;", "16,4096"),
        dtypes=("DT_BF16;FLOAT", "DT_BF16")),
    Ran("hcom_allReduce__586_0_1", "hcom_allReduce_", "HCCL", START + 500, 1_000),
    Ran("Conv2D1", "Conv2D", "AI_CORE", START + 2_000, 1_000, 2, ("2;3", ""), ("FLOAT;INT8", "BOOL")),
]  # fmt: skip
OPTIONS = Options(id="capture", title=None, data_class="internal")


@cache
def table(layout: str) -> bytes:
    return kernel_table(ROWS, KERNEL_DETAILS[layout]).encode()


PUT = [b"", b",", b'"', b"\n", b"\r", b"\0", b"N/A", b"E+15", b"-", b"9" * 30, b";"]
DAMAGE = st.tuples(st.integers(0, 3_000), st.integers(0, 12), st.sampled_from(PUT) | st.binary(max_size=4))


@settings(max_examples=60)
@given(st.sampled_from(sorted(KERNEL_DETAILS)), st.lists(DAMAGE, min_size=1, max_size=3))
def test_any_damage_is_answered(layout: str, damage: list[tuple[int, int, bytes]]) -> None:
    data = table(layout)
    for at, length, put in damage:
        place = at % (len(data) + 1)
        data = data[:place] + put + data[place + length :]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "kernel_details.csv")
        path.write_bytes(data)
        Path(scratch, "profiler_info_0.json").write_text(json.dumps(profiler_info()))
        try:
            found: dict[str, Any] | None = ingest([path.parent], OPTIONS)
            problems: tuple[Problem, ...] = ()
        except InvalidError as error:
            found, problems = None, error.problems
    assert all(problem.file in {None, str(path)} for problem in problems)
    assert all(problem.line is None or problem.line <= data.count(b"\n") + 1 for problem in problems)
    if found is not None:
        assert validate(parse_canonical(canonical_bytes(found), "capture.json"), "Capture") == []
        [line] = found["breakdown"]
        lines = ("computing_ns", "communication_ns", "waiting_ns", "host_gap_ns", "idle_ns")
        assert sum(line[name] for name in lines) == line["step_ns"]
