"""The page of routes is the record's; `.ci/run` holds the record against what is reached."""

from __future__ import annotations

import json
from typing import get_args

from docs.generate_routes import KERNELS, PAGE, RECORD, page

from akf.contracts.models.base import Route


def test_the_page_is_the_record_s() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(json.loads(RECORD.read_text(encoding="utf-8")))


def test_every_route_is_in_it_with_every_kernel_or_with_the_tool_that_it_lacks() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    lacking = {each["route"] for each in record["blocked"]}
    for route in get_args(Route):
        ran = {each["kernel"] for each in record["builds"] if each["route"] == route}
        assert ran == (set() if route in lacking else set(KERNELS))
    assert all(each["outcome"] == "built" for each in record["builds"])
    assert all(each["tool"] and each["get"] for each in record["blocked"])
