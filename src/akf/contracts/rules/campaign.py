"""What a Campaign must mean beyond its schema.

Invariants:
- Capability tuples agree with the Campaign's platform, SoC and toolkit; routes exist there.
- Write paths stay inside the inbox: baseline, oracle, workload, thresholds, gates, decisions, ledger and shared
  toolkit folders are out of reach.
- No threshold or margin lies below the noise limit; the pairs suffice for the confidence.
- Gains and guards are KPIs of the Suite.
- Every pinned key has the id that follows from it, and no two roles share one.
"""

from __future__ import annotations

from akf.contracts.loader import Document
from akf.contracts.problems import Problem
from akf.contracts.rules.finding import at, duplicates
from akf.contracts.rules.routes import route_problem
from akf.contracts.rules.suite import soc_problems, toolkit_problems
from akf.contracts.text import show
from akf.stats.signed_rank import min_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WRITABLE = "inbox"
UNSAFE_VARIABLES = ("LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP")


def campaign_problems(document: Document) -> list[Problem]:
    """Problems of one Campaign by itself."""
    campaign = document.value
    platform = campaign["platform"]
    found = [
        *toolkit_problems(document, "/environment/toolkit", platform),
        *soc_problems(document, "/environment/soc", platform),
        *_machine(document, platform),
        *_capabilities(document, platform),
        *_write_paths(document),
        *_acceptance(document),
        *_trust(document),
    ]
    for index, variable in enumerate(campaign["environment"].get("variables", ())):
        if variable["name"] in UNSAFE_VARIABLES:
            message = f"variable {variable['name']} puts foreign code into every process and may not be part of an arm"
            found.append(at(document, f"/environment/variables/{index}", "AKF-M018", message))
    return found


def membership_problems(campaign: Document, suite: Document) -> list[Problem]:
    """Problems between a Campaign and the Suite that it names."""
    mine, whole = campaign.value, suite.value
    found = []

    def differs(pointer: str, mine: Any, theirs: Any, what: str) -> None:
        if _conflict(mine, theirs):
            message = f"{what} is {show(mine)}, the Suite's is {show(theirs)}"
            found.append(at(campaign, pointer, "AKF-M010", message, expected=theirs, found=mine))

    differs("/suite/id", mine["suite"]["id"], whole["id"], "the Suite's id")
    differs("/platform", mine["platform"], whole["platform"], "the platform")
    differs("/workload/id", mine["workload"]["id"], whole["workload"]["id"], "the workload")
    for key in ("name", "architecture", "dtype"):
        differs(f"/model/{key}", mine["model"][key], whole["model"][key], f"the model's {key}")
    differs(
        "/environment/soc/family",
        mine["environment"]["soc"]["family"],
        whole["soc"]["family"],
        "the SoC family",
    )
    for key in ("tp", "pp", "dp", "ep"):
        differs(f"/ranks/{key}", mine["ranks"][key], whole["parallel"][key], f"the {key} size")
    if whole["toolkit_policy"] == "exact_across_arms":
        for key in ("name", "version", "build"):
            differs(
                f"/environment/toolkit/{key}",
                mine["environment"]["toolkit"][key],
                whole["toolkit"][key],
                f"the toolkit's {key}",
            )
    arms = [arm["id"] for arm in whole["required_arms"]]
    if mine["arm"] not in arms:
        message = f"arm {mine['arm']!r} is not an arm of the Suite"
        found.append(at(campaign, "/arm", "AKF-M011", message, expected=arms, found=mine["arm"]))
    if mine["lane"] not in whole["lanes"]:
        message = f"lane {mine['lane']!r} is not a lane of the Suite"
        found.append(at(campaign, "/lane", "AKF-M011", message, expected=whole["lanes"], found=mine["lane"]))
    return [*found, *_kpis(campaign, whole)]


def _conflict(mine: Any, theirs: Any) -> bool:
    """Whether two statements contradict each other; a placeholder contradicts nothing."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return any(_conflict(mine.get(name), theirs.get(name)) for name in mine.keys() | theirs.keys())
    return mine is not None and theirs is not None and mine != theirs


def _kpis(campaign: Document, suite: dict[str, Any]) -> list[Problem]:
    """Gains and guards are KPIs of the Suite, with the same gate, metric, direction and statistic."""
    kpis = {kpi["id"]: kpi for kpi in suite["kpis"]}
    found = []
    acceptance = campaign.value["acceptance"]
    for group in ("gains", "guards"):
        for index, rule in enumerate(acceptance.get(group, ())):
            pointer = f"/acceptance/{group}/{index}"
            kpi = kpis.get(rule["id"])
            if kpi is None:
                message = f"rule {rule['id']!r} is not a KPI of the Suite"
                found.append(
                    at(
                        campaign,
                        f"{pointer}/id",
                        "AKF-M012",
                        message,
                        expected=sorted(kpis),
                        found=rule["id"],
                    )
                )
                continue
            if kpi["primary"] != (group == "gains"):
                what = "primary" if kpi["primary"] else "not primary"
                message = f"rule {rule['id']!r} stands under {group}, but the KPI is {what}"
                found.append(at(campaign, pointer, "AKF-M012", message))
            for mine, theirs in (
                ("gate", "scope"),
                ("metric", "metric"),
                ("better", "better"),
                ("quantile", "quantile"),
            ):
                if rule.get(mine) != kpi.get(theirs):
                    message = f"rule {rule['id']!r}: `{mine}` differs from the KPI's"
                    found.append(
                        at(
                            campaign,
                            pointer,
                            "AKF-M012",
                            message,
                            expected=kpi.get(theirs),
                            found=rule.get(mine),
                        )
                    )
    named = {rule["id"] for group in ("gains", "guards") for rule in acceptance.get(group, ())}
    absent = sorted(kpi["id"] for kpi in suite["kpis"] if kpi["primary"] and kpi["id"] not in named)
    if absent:
        message = f"primary KPIs of the Suite are not claimed: {', '.join(absent)}"
        found.append(at(campaign, "/acceptance/gains", "AKF-M012", message, expected=absent))
    return found


def _machine(document: Document, platform: str) -> list[Problem]:
    environment = document.value["environment"]
    if platform in {"ascend", "host"} and environment.get(platform) is None:
        message = f"platform {platform} needs the machine facts under `{platform}`"
        return [at(document, "/environment", "AKF-M013", message, hint="write every fact as null in a draft")]
    return []


def _capabilities(document: Document, platform: str) -> list[Problem]:
    environment = document.value["environment"]
    found = []
    for index, capability in enumerate(document.value["capabilities"]):
        pointer = f"/capabilities/{index}"
        why = route_problem(platform, capability["backend"], capability["soc_family"], capability["soc"])
        if why:
            found.append(at(document, f"{pointer}/backend", "AKF-M014", why, found=capability["backend"]))
        pairs = (
            ("soc", capability["soc"], environment["soc"]["name"]),
            ("soc_family", capability["soc_family"], environment["soc"]["family"]),
            ("toolkit", capability["toolkit"], environment["toolkit"]),
        )
        for name, mine, theirs in pairs:
            if _conflict(mine, theirs):
                message = f"capability tuple {index}: `{name}` differs from the environment's, so it could never be met"
                found.append(at(document, f"{pointer}/{name}", "AKF-M015", message, expected=theirs, found=mine))
        for place, size in enumerate(capability["shape"]):
            if isinstance(size, dict) and size["min"] > size["max"]:
                message = f"symbol {size['sym']}: min {size['min']} exceeds max {size['max']}"
                found.append(at(document, f"{pointer}/shape/{place}", "AKF-M016", message))
    return found


def _write_paths(document: Document) -> list[Problem]:
    found = []
    for index, path in enumerate(document.value["write_paths"]):
        if path != WRITABLE and not path.startswith(f"{WRITABLE}/"):
            message = f"agents may write below `{WRITABLE}` only, not to {path!r}"
            found.append(at(document, f"/write_paths/{index}", "AKF-M017", message, expected=WRITABLE, found=path))
    return found


def _acceptance(document: Document) -> list[Problem]:
    acceptance = document.value["acceptance"]
    found = [
        *duplicates(document, "/acceptance/gains", [rule["id"] for rule in acceptance["gains"]], "gain"),
        *duplicates(document, "/acceptance/guards", [rule["id"] for rule in acceptance.get("guards", ())], "guard"),
        *duplicates(document, "/acceptance/accuracy", [s["name"] for s in acceptance.get("accuracy", ())], "suite"),
    ]
    if not any(rule["gate"] == "operator" for rule in acceptance["gains"]):
        message = "no gain is judged on the operator gate, so no candidate could ever be promotable"
        hint = "add the gain in operator latency that is worth a release"
        found.append(at(document, "/acceptance/gains", "AKF-M035", message, hint=hint))
    noise = document.value["noise"]["noise_limit_ratio"]
    bounds = [
        (f"/acceptance/gains/{i}/threshold_ratio", rule["threshold_ratio"])
        for i, rule in enumerate(acceptance["gains"])
    ]
    bounds += [
        (f"/acceptance/guards/{i}/margin_ratio", rule["margin_ratio"])
        for i, rule in enumerate(acceptance.get("guards", ()))
    ]
    bounds.append(("/acceptance/row_margin_ratio", acceptance["row_margin_ratio"]))
    for pointer, bound in bounds:
        if noise is not None and bound is not None and bound < noise:
            message = f"{bound} lies below the noise limit {noise}: the noise alone could decide"
            hint = "raise it to the noise limit or above, or measure on a quieter machine"
            found.append(at(document, pointer, "AKF-M019", message, expected=noise, found=bound, hint=hint))
    for index, rule in enumerate([*acceptance["gains"], *acceptance.get("guards", ())]):
        if (rule["statistic"] == "quantile") != (rule.get("quantile") is not None):
            group, place = (
                ("gains", index) if index < len(acceptance["gains"]) else ("guards", index - len(acceptance["gains"]))
            )
            message = f"rule {rule['id']!r}: `quantile` is given exactly when the statistic is `quantile`"
            found.append(at(document, f"/acceptance/{group}/{place}", "AKF-M003", message))
    needed = min_pairs(acceptance["confidence"])
    for name in ("operator", "model", "serving", "reproduction"):
        if acceptance["pairs"][name] < needed:
            message = (
                f"{acceptance['pairs'][name]} pairs cannot give an interval at confidence {acceptance['confidence']}"
            )
            found.append(
                at(
                    document,
                    f"/acceptance/pairs/{name}",
                    "AKF-M020",
                    message,
                    expected=needed,
                    hint=f"plan at least {needed}",
                )
            )
    if acceptance["pairs"]["blocks"] % 2 == 0:
        found.append(
            at(
                document,
                "/acceptance/pairs/blocks",
                "AKF-M026",
                "the number of blocks must be odd: a pair's ratio is their median",
            )
        )
    return found


def _trust(document: Document) -> list[Problem]:
    trust = document.value["trust"]
    if trust["mode"] == "unsigned":
        if trust["keys"] is not None:
            message = "an unsigned Campaign pins no keys"
            return [at(document, "/trust/keys", "AKF-M021", message, hint="set keys to null, or mode to signed")]
        return []
    if trust["keys"] is None:
        return []
    wrong = [role for role, key in sorted(trust["keys"].items()) if not _is_its_id(key)]
    if wrong:
        hint = "take both from the trust.json that `akf keys init` wrote"
        return [
            at(
                document,
                f"/trust/keys/{role}/key_id",
                "AKF-T012",
                f"the key of {role!r} is not the one its key_id names",
                hint=hint,
            )
            for role in wrong
        ]
    ids = [key["key_id"] for key in trust["keys"].values()]
    if len(set(ids)) != len(ids):
        message = "two roles share one key, so one of them could sign for the other"
        return [at(document, "/trust/keys", "AKF-M027", message, hint="make a key for each role: akf keys init")]
    return []


def _is_its_id(key: dict[str, str]) -> bool:
    from base64 import b64decode  # noqa: PLC0415 - a draft pins no keys
    from hashlib import sha256  # noqa: PLC0415 - as above

    return key["key_id"] == "sha256:" + sha256(b64decode(key["public_key"])).hexdigest()
