"""What a person names is known by what lies there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import opprof
from tests.support.traces import array, kineto, layers, two_steps, write

from akf.contracts.problems import InvalidError
from akf.traffic.formats import ingest
from akf.traffic.profiles import Options

OPTIONS = Options(id="x", title=None, data_class="internal")


def test_a_folder_of_torch(tmp_path: Path) -> None:
    write(tmp_path, kineto(two_steps()), "rank0.json.gz")
    assert ingest([tmp_path], OPTIONS)["tool"]["name"] == "torch.profiler"


def test_a_folder_of_msprof_op_with_a_picture_as_a_trace(tmp_path: Path) -> None:
    opprof.vector_launch(tmp_path)
    write(tmp_path, kineto(two_steps()), "trace.json")
    assert ingest([tmp_path], OPTIONS)["tool"]["name"] == "msprof op"


def test_paths_of_different_profilers(tmp_path: Path) -> None:
    write(tmp_path / "torch", kineto(two_steps()), "rank0.json")
    opprof.vector_launch(tmp_path / "op")
    with pytest.raises(InvalidError) as caught:
        ingest([tmp_path / "torch", tmp_path / "op"], OPTIONS)
    (problem,) = caught.value.problems
    assert problem.code == "AKF-F164"
    assert "op of msprof op" in problem.message


@pytest.mark.parametrize("name", ["empty", "notes"])
def test_nothing_that_is_known(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "notes", array(layers()), "trace_view.json")
    with pytest.raises(InvalidError) as caught:
        ingest([tmp_path / name], OPTIONS)
    assert caught.value.problems[0].code == "AKF-F127"
