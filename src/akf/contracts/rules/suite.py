"""What an OptimizationSuite must mean beyond its schema.

Invariants:
- An Ascend Suite requires exactly the arms xllm, vllm_ascend and sglang_ascend; `host` and `cuda` the arms they name.
- Every primary KPI names its statistic completely; ids are unique.
"""

from __future__ import annotations

from akf.contracts.loader import Document
from akf.contracts.problems import Problem
from akf.contracts.rules import soc as socs
from akf.contracts.rules.finding import at, duplicates
from akf.contracts.rules.routes import TOOLKITS
from akf.contracts.rules.versions import CANN_DEFAULT, cann_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ASCEND_ARMS = ("xllm", "vllm_ascend", "sglang_ascend")


def suite_problems(document: Document) -> list[Problem]:
    """Problems of one Suite; its arms are checked by `campaign_problems`."""
    suite = document.value
    arms = [arm["id"] for arm in suite["required_arms"]]
    found = [
        *duplicates(document, "/required_arms", arms, "arm"),
        *duplicates(document, "/lanes", suite["lanes"], "lane"),
        *duplicates(document, "/kpis", [kpi["id"] for kpi in suite["kpis"]], "KPI"),
        *toolkit_problems(document, "/toolkit", suite["platform"]),
        *soc_problems(document, "/soc", suite["platform"]),
    ]
    if suite["platform"] == "ascend" and sorted(arms) != sorted(ASCEND_ARMS):
        message = f"an Ascend Suite requires the arms {', '.join(ASCEND_ARMS)}; this one names {', '.join(arms)}"
        found.append(at(document, "/required_arms", "AKF-M002", message, expected=list(ASCEND_ARMS), found=arms))
    for index, kpi in enumerate(suite["kpis"]):
        if (kpi["statistic"] == "quantile") != (kpi.get("quantile") is not None):
            message = f"KPI {kpi['id']!r}: `quantile` is given exactly when the statistic is `quantile`"
            found.append(at(document, f"/kpis/{index}", "AKF-M003", message))
    if not any(kpi["primary"] for kpi in suite["kpis"]):
        found.append(at(document, "/kpis", "AKF-M004", "no KPI is primary, so no gain could ever be claimed"))
    return found


def toolkit_problems(document: Document, pointer: str, platform: str) -> list[Problem]:
    """Problems of the toolkit that stands at `pointer`."""
    toolkit = _get(document, pointer)
    expected = TOOLKITS[platform]
    if toolkit["name"] != expected:
        message = f"platform {platform} has the toolkit {expected}, not {toolkit['name']}"
        return [at(document, f"{pointer}/name", "AKF-M005", message, expected=expected, found=toolkit["name"])]
    if toolkit["version"] is None:
        return []
    if platform == "ascend" and (why := cann_problem(toolkit["version"], toolkit["build"])):
        hint = f"lock {CANN_DEFAULT}, or an accepted release together with the build that `akf arm freeze` reads"
        return [at(document, f"{pointer}/version", "AKF-M006", why, found=toolkit["version"], hint=hint)]
    return []


def soc_problems(document: Document, pointer: str, platform: str) -> list[Problem]:
    """Problems of the SoC that stands at `pointer`."""
    soc = _get(document, pointer)
    if platform != "ascend":
        return []
    if soc["family"] not in socs.FAMILY_NAMES:
        message = f"SoC family {soc['family']!r} is unknown"
        return [
            at(
                document,
                f"{pointer}/family",
                "AKF-M007",
                message,
                expected=list(socs.FAMILY_NAMES),
                found=soc["family"],
            )
        ]
    name = soc["name"]
    if name is None:
        return []
    if socs.family(name) != soc["family"]:
        known = socs.normalise(name)
        hint = f"write it as {known!r}" if known and known != name else "use the full name that the board query prints"
        message = f"SoC {name!r} is not a name of the family {soc['family']}"
        return [at(document, f"{pointer}/name", "AKF-M007", message, found=name, hint=hint)]
    return []


def _get(document: Document, pointer: str) -> Any:
    value: Any = document.value
    for part in pointer.split("/")[1:]:
        value = value[part]
    return value
