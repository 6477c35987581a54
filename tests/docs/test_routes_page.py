"""The page of routes is the record's, and with the toolchains at hand the record is what is reached today."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from docs.generate_routes import KERNELS, PAGE, RECORD, page

from akf.contracts.models.base import Route

ROOT = Path(__file__).parents[2]
NEEDED = ("triton-ascend", "triton-cuda", "pto-isa-direct", "catlass-dsl", "pypto")


def test_the_page_is_the_record_s() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(RECORD.read_text(encoding="utf-8")))


def test_every_route_is_in_it_with_every_kernel() -> None:
    builds = json.loads(RECORD.read_text(encoding="utf-8"))["builds"]
    for route in get_args(Route):
        assert f"`{route}`" in PAGE.read_text(encoding="utf-8")
        ran = {each["kernel"] for each in builds if each["route"] == route}
        assert ran in (set(), set(KERNELS))
    assert all(each["outcome"] == "built" for each in builds)


@pytest.mark.soak
def test_what_is_reached_today_is_what_was_recorded() -> None:
    folder = os.environ.get("AKF_TEST_TOOLCHAINS", "")
    for name in NEEDED:
        if not (Path(folder) / name / "toolchain.json").is_file():
            pytest.skip(f"needs AKF_TEST_TOOLCHAINS with {name}")
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate_routes.py"), "--check"],
        env={**os.environ, "AKF_TOOLCHAINS": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
