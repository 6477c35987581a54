"""Which route may be named where. Unknown combinations fail closed.

Invariants:
- Evidence never crosses platforms: an Ascend Campaign names Ascend routes only, `host` and `cuda` their own.
- `pypto_pro_cce` exists for 950PR and 950DT alone.
- `python`, a module that nothing compiles, exists everywhere; whether it may be promoted is another question.
"""

from __future__ import annotations

from akf.contracts.gates import PYTHON

ASCEND_ROUTES = (
    "ascendc_direct", "catlass_cpp", "triton_ascend", "tilelang_ascend_ascendc", "tilelang_ascend_pto_headers",
    "tilelang_ascend_npuir", "catlass_dsl", "pypto_tensor_ptoas", "pypto_pro_cce", "pto_isa_direct",
)  # fmt: skip
ROUTES = {"ascend": ASCEND_ROUTES, "host": ("host_cpp",), "cuda": ("triton_cuda",)}
TOOLKITS = {"ascend": "cann", "host": "gcc", "cuda": "cuda"}
ONLY_950 = ("pypto_pro_cce",)


def route_problem(platform: str, route: str, family: str, soc: str | None) -> str | None:
    """Why this route may not be named here, in one sentence, or None."""
    known = (*ROUTES.get(platform, ()), PYTHON)
    if route not in known:
        return f"route {route} does not exist on platform {platform}; there are: {', '.join(known)}"
    if route in ONLY_950 and not (
        family == "ascend950" and (soc is None or soc.startswith(("ascend950pr", "ascend950dt")))
    ):
        return f"route {route} exists for 950PR and 950DT only, not for {soc or family}"
    return None
