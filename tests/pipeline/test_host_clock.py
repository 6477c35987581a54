"""What is said of the host's clock: known to be fixed, known to vary, or that it cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from akf.frameworks.host_clock import clock


def shown(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return folder


GOVERNOR = {f"cpu{number}/cpufreq/scaling_governor": "performance" for number in (0, 1)}


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({**GOVERNOR, "intel_pstate/no_turbo": "1"}, "fixed"),
        ({**GOVERNOR, "cpufreq/boost": "0"}, "fixed"),
        ({**GOVERNOR, "cpufreq/boost": "1"}, "varies"),
        ({**GOVERNOR, "intel_pstate/no_turbo": "0"}, "varies"),
        ({**GOVERNOR, "cpu1/cpufreq/scaling_governor": "schedutil", "cpufreq/boost": "0"}, "varies"),
        ({"cpu0/cpufreq/scaling_governor": "ondemand", "cpufreq/boost": "0"}, "varies"),
        (GOVERNOR, "cannot tell"),
        ({"cpufreq/boost": "0"}, "cannot tell"),
        ({}, "cannot tell"),
    ],
)
def test_what_the_kernel_shows_decides(tmp_path: Path, files: dict[str, str], answer: str) -> None:
    found = clock(shown(tmp_path, files), tmp_path / "no-cpuinfo")
    assert found["answer"] == answer
    assert found["why"]
    assert found["mhz_under_load"] == []


def test_frequencies_under_load_are_lowest_and_highest(tmp_path: Path) -> None:
    lines = "processor : 0\ncpu MHz\t\t: 2299.998\nprocessor : 1\ncpu MHz\t\t: 3100.5\ncpu MHz : no number\n"
    (tmp_path / "cpuinfo").write_text(lines)
    assert clock(tmp_path, tmp_path / "cpuinfo")["mhz_under_load"] == [2299, 3100]


def test_this_machine_answers() -> None:
    assert clock()["answer"] in {"fixed", "varies", "cannot tell"}
