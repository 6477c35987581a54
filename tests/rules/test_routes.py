"""Routes exist on their platform only, and two of them on one line of chips only."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.drafts import HOST, Draft, codes, said

from akf.contracts.rules.routes import ASCEND_ROUTES, ROUTES, route_problem

A3 = ("ascend910_93", "ascend910_9391")


@pytest.mark.parametrize("route", ASCEND_ROUTES)
def test_ascend_routes_on_a3(route: str) -> None:
    assert (route_problem("ascend", route, *A3) is None) is (route != "pypto_pro_cce")


@pytest.mark.parametrize(
    ("family", "soc", "allowed"),
    [
        ("ascend950", "ascend950pr_9599", True),
        ("ascend950", "ascend950dt_9582", True),
        ("ascend950", None, True),
        ("ascend950", "ascend950xx_9582", False),
        ("ascend910_93", "ascend910_9391", False),
        ("ascend910_93", None, False),
        ("ascend910b", "ascend910b4", False),
        ("ascend310p", "ascend310p3", False),
    ],
)
def test_pypto_pro_cce_exists_for_950_alone(family: str, soc: str | None, allowed: bool) -> None:
    said = route_problem("ascend", "pypto_pro_cce", family, soc)
    assert (said is None) is allowed
    assert allowed or "950PR and 950DT only" in str(said)


@pytest.mark.parametrize("platform", [*ROUTES, "tpu"])
def test_a_route_never_crosses_platforms(platform: str) -> None:
    known = {route for name, routes in ROUTES.items() for route in routes if name == platform} - {"pypto_pro_cce"}
    every = {route for routes in ROUTES.values() for route in routes} | {"cuda_cpp", "HOST_CPP", ""}
    assert {route for route in every if route_problem(platform, route, *A3) is None} == known


@pytest.mark.parametrize("route", ["pypto_pro_cce", "host_cpp", "triton_cuda", "triton-ascend", "no_such_route"])
def test_a_campaign_that_names_it_is_invalid(tmp_path: Path, route: str) -> None:
    draft = Draft(tmp_path / "suite")
    found = said(draft.check(lambda value: value["capabilities"][0].update(backend=route)))
    assert ("AKF-M014", "/capabilities/0/backend") in found


@pytest.mark.parametrize("route", ["ascendc_direct", "triton_cuda"])
def test_the_host_has_one_route(tmp_path: Path, route: str) -> None:
    draft = Draft(tmp_path / "suite", HOST)
    assert "AKF-M014" in codes(draft.check(lambda value: value["capabilities"][0].update(backend=route)))


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("soc", "ascend910_9382"),
        ("soc_family", "ascend910b"),
        ("toolkit", {"name": "cann", "version": "9.0.0", "build": None}),
        ("toolkit", {"name": "gcc", "version": "9.1.0", "build": None}),
    ],
)
def test_a_tuple_that_could_never_be_met_is_invalid(tmp_path: Path, field: str, other: Any) -> None:
    draft = Draft(tmp_path / "suite")

    def edit(value: dict[str, Any]) -> None:
        value["environment"]["soc"]["name"] = "ascend910_9391"
        value["capabilities"][0][field] = other

    assert ("AKF-M015", f"/capabilities/0/{field}") in said(draft.check(edit))


def test_a_symbol_must_have_a_size(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "suite")
    size = {"sym": "T", "min": 16, "max": 1, "multiple_of": 1}
    found = said(draft.check(lambda value: value["capabilities"][0].update(shape=[size, 4096])))
    assert ("AKF-M016", "/capabilities/0/shape/0") in found
