"""`capability`: what the routes declare, by the command line."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.support.cli import inside

from akf.contracts.models.base import Route

pytestmark = pytest.mark.usefixtures("state")


def test_every_route_is_listed_with_what_is_real_without_cann() -> None:
    listed = inside("capability", "list").accepted().document["routes"]
    assert [each["route"] for each in listed] == list(get_args(Route))
    assert all(each["without_cann"] and each["stages"] for each in listed)


@pytest.mark.parametrize("route", get_args(Route))
def test_every_route_is_explained_with_how_to_get_its_tools(route: str) -> None:
    document = inside("capability", "explain", route).accepted().document
    assert all(tool["get"] for tool in document["tools"])
    assert {output["role"] for output in document["outputs"]} >= {"kernel_object"}


def test_a_soc_is_spelled_as_the_tools_do_or_refused() -> None:
    document = inside("capability", "explain", "triton_ascend", "--soc", "ascend910b4").accepted().document
    assert document["soc"] == {"name": "ascend910b4", "tools_say": "Ascend910B4"}
    inside("capability", "explain", "triton_ascend", "--soc", "910B4").refused(2)
    assert inside("capability", "explain", "triton").refused(2).problems[0]["hint"] == "did you mean triton_cuda?"
