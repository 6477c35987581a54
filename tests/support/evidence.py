"""A complete run as bytes in memory, for the judge: real artifacts, signatures, ledger lines and sample files.

`evidence()` makes a run whose candidate is promotable. A test changes one thing of it by name:

- `gains={"gate/rule": (low, high)}`: the interval that the samples give, as gains (0.2 is 20 %); `rows` and `noise`
  do the same for a Task's row in the operator gate and for A/A.
- `outcomes={"gate/check": "fail"}`: what the gate claims of a check; a dict adds fields, a list replaces the check by
  several, None drops it. Gates claim `pass` of everything else, whatever the samples say.
- `edit={"plan/operator": function}`: changes an artifact in place before it is sealed, signed and written down.
- `samples={"gate/measurement": function}`: changes the records of a sample file, or gives its bytes.

Everything follows from fixed formulas, so that the same arguments give the same bytes.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support import captures

from akf.contracts.canonical import digest, jcs
from akf.contracts.gates import GATES, PER_RANK, fold, required_checks
from akf.contracts.identity import expected
from akf.contracts.justified import opportunity_of
from akf.contracts.tree import tree_digest
from akf.judge import decide
from akf.opportunity.policy import policy_of
from akf.opportunity.triage import triage
from akf.stats import claim_error, critical_rank, quantile_support
from akf.store import ledger
from akf.store.run import checked, facts_of, ref
from akf.store.verify import signature_path, tries
from akf.trust import dsse
from akf.trust.keys import Signer
from akf.trust.roles import OWNERS, ROLES

Value = dict[str, Any]
Files = dict[str, bytes]
Range = tuple[float, float]

REPOSITORY = Path(__file__).parents[2]
HARNESS = "sha256:" + "a" * 64
GAIN, GUARD, NOISE = (0.20, 0.25), (-0.004, 0.006), (-0.003, 0.003)
PAIRS = {"operator": 8, "model": 6, "serving": 6, "reproduction": 8}
SOURCES = {"kernel.cpp": b"// eight accumulators\n", "launch.json": b"{}\n"}
OBJECT, TWIN = b"\x7fELF candidate\n", b"\x7fELF perturbed\n"
MODULES = {"candidate": b"def run(x): ...\n", "perturbed": b"def run(x): wrong\n"}
LAUNCHES = {"decode-1": 2000, "decode-8": 500}
CAPTURED = (1, 8)
LAUNCH_NS, LEG_NS = 20_000, 20_000_000
SIZE = {"sym": "T", "min": 1, "max": 16, "multiple_of": 1}
DTYPE = {"host": "float32", "ascend": "bfloat16"}


@dataclass(frozen=True)
class Changes:
    """What is different from a promotable candidate."""

    platform: str = "host"
    candidate: str = "fused"
    gates: Sequence[str] = GATES
    signed: bool = True
    abi: str = "binary"
    graph: str = "eager"
    opportunity: bool = True
    share: float = 0.5
    isolation: str = "userns"
    evidence: str = "measured"
    tp: int = 1
    others: int = 0
    resumes: Mapping[str, int] = field(default_factory=dict)
    gains: Mapping[str, Range] = field(default_factory=dict)
    rows: Mapping[str, Range] = field(default_factory=dict)
    noise: Mapping[str, Range] = field(default_factory=dict)
    outcomes: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    identity: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    edit: Mapping[str, Callable[[Value], object]] = field(default_factory=dict)
    samples: Mapping[str, Callable[[list[Value]], list[Value] | bytes]] = field(default_factory=dict)


@dataclass
class Made:
    """A run in memory; `files` is what the judge reads."""

    files: Files
    candidate: str
    signers: Mapping[str, Signer]

    def decide(self) -> Value:
        """The Decision; it must satisfy its schema."""
        decision = decide(self.files, self.candidate)
        checked(decision)
        return decision

    @property
    def base(self) -> str:
        """The attempt's folder."""
        return f"attempts/{self.candidate}"

    def value(self, path: str) -> Value:
        """The artifact at a path relative to the attempt, or to the run."""
        inside = f"{self.base}/{path}"
        found: Value = json.loads(self.files[inside if inside in self.files else path])
        return found

    def lines(self) -> list[Value]:
        """The ledger's lines as JSON values."""
        return [json.loads(line) for line in self.files["ledger.jsonl"].splitlines()]

    def rechain(self, lines: Sequence[Value]) -> None:
        """Write the ledger anew with a chain that holds, as somebody could who writes into the folder."""
        prev, data = digest(self.files["run.json"]), b""
        for seq, line in enumerate(lines):
            raw = ledger.render(
                seq, prev, line["event"], path=line["path"], artifact=line["digest"], facts=line["facts"]
            )
            data, prev = data + raw, digest(raw)
        self.files["ledger.jsonl"] = data

    def put(self, path: str, value: Value, *, role: str | None = None) -> None:
        """Write an artifact anew, signed by its owner or by `role`, and set its line's digest."""
        data = checked(value)
        self.files[path] = data
        beside = signature_path(path)
        if beside in self.files or role is not None:
            self.files[beside] = dsse.sign(path, data, self.signers[role or OWNERS[value["kind"]]], kind=value["kind"])
        lines = self.lines()
        for line in lines:
            if line["path"] == path:
                line["digest"] = digest(data)
        self.rechain(lines)


@cache
def signer(name: str) -> Signer:
    """A key that follows from its name."""
    role = name if name in ROLES else "evaluator"
    return Signer(role, Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest()))


def evidence(**changes: Any) -> Made:
    """A run with one attempt; see the module's text for what may be changed."""
    run = RunMaker(Changes(**changes))
    run.attempt()
    return run.made()


class RunMaker:
    """Builds a run step by step, in the order in which a real one grows."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.files: Files = {}
        self.lines: list[ledger.Line] = []
        root = _root(changes)
        self.campaign = root["campaign.json"]
        self.task = copy.deepcopy(_task(changes))
        for path, value in root.items():
            self._write(path, value)
        run = self._run(root)
        self._write("run.json", run)
        opening = ledger.opening(digest(self.files["run.json"]))
        self.lines += ledger.read(opening, digest(self.files["run.json"]))
        self.files["ledger.jsonl"] = opening
        self.task["parents"] = [self._ref("run.json")]
        self._edit("task", self.task)
        if changes.opportunity:
            self._triage()
        self.record(f"tasks/{self.task['id']}.json", self.task)
        for number in range(changes.others):
            self._other(f"other-{number}")

    def _triage(self) -> None:
        """The Triage of the inputs as they were before any edit, and the Task's opportunity as it follows from it."""
        root = _root(replace(self.changes, edit={}))
        campaign, workload, capture = (root[f"{name}.json"] for name in ("campaign", "workload", "capture"))
        parents = [self._ref(f"{name}.json") for name in ("campaign", "workload", "capture")]
        body = triage(workload, capture, policy_of(capture, campaign))
        value = {"kind": "Triage", "schema_version": 1, "id": "triage-decode", "parents": parents, **body}
        self._edit("triage", value)
        self.record("triage/triage-decode.json", value)
        reference = self._ref("triage/triage-decode.json")
        self.task["parents"].append(reference)
        self.task["opportunity"] = opportunity_of(value, reference, self.task["callsite"], self.task, capture)
        self._edit("opportunity", self.task["opportunity"])

    def made(self, candidate: str | None = None) -> Made:
        """What the judge reads, for the last attempt or another one."""
        names = (*ROLES, "stranger")
        return Made(dict(self.files), candidate or self.changes.candidate, {name: signer(name) for name in names})

    def attempt(self, **changes: Any) -> None:
        """Add an attempt with its gates."""
        self.changes = replace(self.changes, **changes)
        base = f"attempts/{self.changes.candidate}"
        parents = [self._ref("run.json"), self._ref(f"tasks/{self.task['id']}.json")]
        self.files |= {f"{base}/source/{name}": data for name, data in SOURCES.items()}
        candidate = _candidate(self.changes, parents)
        candidate["try_number"] += sum(
            line.facts.get("source_digest") == candidate["source_digest"] for line in self.lines
        )
        self._edit("candidate", candidate)
        self.record(f"{base}/candidate.json", candidate)
        parents.append(self._ref(f"{base}/candidate.json"))
        self.files |= {f"{base}/build/{path}": data for path, (_, _, data) in _outputs(self.changes).items()}
        build = _build(self.changes, self.campaign, parents)
        self._edit("build", build)
        self.record(f"{base}/build.json", build)
        parents.append(self._ref(f"{base}/build.json"))
        for gate in GATES:
            if gate in self.changes.gates:
                self.gate(gate, parents, candidate)

    def gate(self, gate: str, parents: list[Value], candidate: Value) -> None:
        """Add one gate: its plan, its samples, the gate itself."""
        changes, base = self.changes, f"attempts/{self.changes.candidate}"
        secret = hashlib.sha256(f"{changes.candidate} {gate}".encode()).hexdigest()
        plan: Value = {
            "kind": "Plan",
            "schema_version": 1,
            "id": gate,
            "gate": gate,
            "parents": list(parents),
            "secret_digest": digest(bytes.fromhex(secret)),
            "harness_digest": HARNESS,
            "measurements": planned(gate, self.campaign, self.task, f"{base}/samples/{gate}"),
            "tries_before": tries(self.lines, self.task["id"]),
            "estimate": {"wall_s": 12},
        }
        self._edit(f"plan/{gate}", plan)
        self.record(f"{base}/plan/{gate}.json", plan)
        again = changes.resumes.get(gate, 0)
        for _ in range(again):
            self._line("resume", f"{base}/plan/{gate}.json", facts_of(plan))
        value: Value = {
            "kind": "Gate",
            "schema_version": 1,
            "id": gate,
            "gate": gate,
            "parents": [*parents, self._ref(f"{base}/plan/{gate}.json")],
            "identity": {**self._identity(candidate), **changes.identity.get(gate, {})},
            "isolation": changes.isolation,
            "evidence": changes.evidence,
            "status": "pass",
            "checks": [*_checks(gate, changes, self.campaign, self.task), *changes.extra.get(gate, ())],
            "samples": list({each["path"]: self._samples(gate, each) for each in plan["measurements"]}.values()),
            "secret": secret,
            "harness_digest": HARNESS,
            "hypothesis": "unobserved",
            "resumes": again,
        }
        if not value["checks"]:
            value["checks"] = [{"name": "nothing", "category": "evidence", "outcome": "pass", "profiler": "off"}]
        value["status"] = fold([check["outcome"] for check in value["checks"]])
        self._edit(f"gates/{gate}", value)
        self.record(f"{base}/gates/{gate}.json", value)

    def record(self, path: str, value: Value) -> None:
        """Write an artifact with its signature and its ledger line."""
        self._write(path, value)
        self._line(value["kind"].lower(), path, facts_of(value))

    def _samples(self, gate: str, measurement: Value) -> Value:
        """Write the raw samples of a planned measurement, unless they are shared, and name them."""
        path = measurement["path"]
        if path not in self.files:
            records = sampled(gate, measurement, self.changes)
            change = self.changes.samples.get(f"{gate}/{measurement['id']}")
            found = records if change is None else change(records)
            self.files[path] = found if isinstance(found, bytes) else lines_of(found)
        data = self.files[path]
        return {"measurement": measurement["id"], "path": path, "digest": digest(data), "bytes": len(data)}

    def _identity(self, candidate: Value) -> Value:
        return expected(self.campaign, digest(self.files["workload.json"]), self.task, candidate)

    def _other(self, name: str) -> None:
        """Another candidate's evaluation, as the ledger remembers it."""
        facts: dict[str, str | int] = {"task": self.task["id"]}
        there = f"attempts/{name}"
        self._line("candidate", f"{there}/candidate.json", {**facts, "source_digest": digest(name.encode())})
        self._line("build", f"{there}/build.json", {})
        facts |= {"candidate": name, "gate": "operator", "secret_digest": digest(f"secret {name}".encode())}
        self._line("plan", f"{there}/plan/operator.json", facts)

    def _run(self, root: Mapping[str, Value]) -> Value:
        values = list(root.values())
        run = {
            "kind": "Run",
            "schema_version": 1,
            "id": f"{self.campaign['id']}-000000000000",
            "nonce": "0" * 64,
            "akf_version": "0.1.0",
            "parents": [self._ref(path) for path in root],
            "sources": [
                {"kind": each["kind"], "name": "input.json", "digest": digest(b"as written")} for each in values
            ],
        }
        self._edit("run", run)
        return run

    def _ref(self, path: str) -> dict[str, str]:
        return ref(json.loads(self.files[path]), self.files[path])

    def _edit(self, name: str, value: Value) -> None:
        change = self.changes.edit.get(name)
        if change is not None:
            change(value)

    def _write(self, path: str, value: Value) -> None:
        data = checked(value)
        self.files[path] = data
        if self.changes.signed:
            owner = signer(OWNERS[value["kind"]])
            self.files[signature_path(path)] = dsse.sign(path, data, owner, kind=value["kind"])

    def _line(self, event: str, path: str, facts: Mapping[str, str | int]) -> None:
        artifact = digest(self.files.get(path, path.encode()))
        raw = ledger.render(
            len(self.lines), self.lines[-1].chain, event, path=path, artifact=artifact, facts=dict(facts)
        )
        self.files["ledger.jsonl"] += raw
        self.lines = list(ledger.read(self.files["ledger.jsonl"], digest(self.files["run.json"])))


def planned(gate: str, campaign: Value, task: Value, folder: str) -> list[Value]:
    """The measurements that a gate of this Campaign plans: every rule that it must show, each with its A/A."""
    acceptance = campaign["acceptance"]
    rules = [("gain", rule) for rule in acceptance["gains"] if gate in {rule["gate"], "reproduction"}]
    rules += [("guard", rule) for rule in acceptance.get("guards", ()) if rule["gate"] == gate]
    return [
        _measurement(gate, each, rule, campaign, task, folder) for purpose, rule in rules for each in ("aa", purpose)
    ]


def sampled(gate: str, measurement: Value, changes: Changes) -> list[Value]:
    """Raw samples whose interval is the wanted one."""
    name = f"{gate}/{measurement['rule']}"
    default = {"aa": NOISE, "gain": GAIN, "guard": GUARD}[measurement["purpose"]]
    wanted = (changes.noise if measurement["purpose"] == "aa" else changes.gains).get(name, default)
    by_row = {row["id"]: wanted for row in measurement["rows"]}
    if gate == "operator" and measurement["purpose"] != "aa":
        by_row |= changes.rows
    count = 1
    if measurement["statistic"] == "quantile":
        count = -(-quantile_support(measurement["quantile"]) // measurement["pairs"])
    own = int(hashlib.sha256(measurement["path"].encode()).hexdigest()[:5], 16)  # no two files are alike
    around = LAUNCH_NS if measurement["design"] == "abba" else LEG_NS
    records = []
    for sample_id, row, pair, block, segment, side in _places(measurement):
        ratio = ratios(by_row[row], measurement["pairs"])[pair]
        value = around * (1 + 7 * list(by_row).index(row)) * LAUNCHES.get(row, 1) + own
        if side == "B":
            value = round(value / ratio if measurement["better"] == "lower" else value * ratio)
        records.append(
            {
                "id": sample_id, "row": row, "pair": pair, "block": block, "segment": segment, "side": side,
                "values": [value] * count,
            }
        )  # fmt: skip
    return records


@cache
def ratios(wanted: Range, pairs: int, confidence: float = 0.95) -> tuple[float, ...]:
    """Ratios of the pairs whose signed-rank interval is `wanted`, to about seven digits."""
    spread = [(2 * ((5 * pair) % pairs) - (pairs - 1)) / (pairs - 1) for pair in range(pairs)]
    averages = sorted((x + y) / 2 for x, y in combinations_with_replacement(sorted(spread), 2))
    rank = critical_rank(pairs, claim_error(confidence))
    assert rank is not None, f"{pairs} pairs give no interval"
    low, high = 1 + wanted[0], 1 + wanted[1]
    centre, step = (low * high) ** 0.5, (high / low) ** (0.5 / averages[-1 - rank])
    return tuple(centre * step**each for each in spread)


def lines_of(records: Sequence[Value]) -> bytes:
    """A sample file."""
    return b"".join(jcs(record) + b"\n" for record in records)


def _places(measurement: Value) -> list[tuple[str, str, int, int, int, str]]:
    sides = {"abba": ("ABBA", "ABBA"), "legs": ("AB", "BA")}[measurement["design"]]
    return [
        (_id(pair, block, segment, row["id"]), row["id"], pair, block, segment, side)
        for pair in range(measurement["pairs"])
        for row in measurement["rows"]
        for block in range(measurement["blocks"])
        for segment, side in enumerate(sides[pair % 2])
    ]


def _id(pair: int, block: int, segment: int, row: str) -> str:
    return f"p{pair:02d}.b{block}.s{segment}.{row}"


def _measurement(gate: str, purpose: str, rule: Value, campaign: Value, task: Value, folder: str) -> Value:
    pairs = campaign["acceptance"]["pairs"]
    abba = rule["gate"] == "operator"
    name = f"{rule['id']}.{purpose}"
    rows = [{"id": row["id"], "weight": row["weight"], "launches": LAUNCHES.get(row["id"], 1)} for row in task["rows"]]
    value: Value = {
        "id": name,
        "purpose": purpose,
        "rule": rule["id"],
        **{each: rule[each] for each in ("metric", "unit", "better", "statistic", "quantile") if each in rule},
        "design": "abba" if abba else "legs",
        "rows": rows if abba else [{"id": "all", "weight": 1.0, "launches": 1}],
        "pairs": pairs[gate],
        "blocks": pairs["blocks"] if abba else 1,
        **({"batches": 1} if abba else {}),
        "path": f"{folder}/{name}.jsonl",
    }
    return value | {"samples": [place[0] for place in _places(value)]}


def _checks(gate: str, changes: Changes, campaign: Value, task: Value) -> list[Value]:
    """What the gate claims: `pass`, on every rank and in every bucket, unless a change says otherwise."""
    found: list[Value] = []
    for name in required_checks(gate, campaign, tuple(row["id"] for row in task["rows"])):
        claim = changes.outcomes.get(f"{gate}/{name}", "pass")
        kind = name.partition(":")[0]
        category = {"gain": "gain", "guard": "guard", "row": "guard", "accuracy": "guard"}.get(kind, "evidence")
        check: Value = {
            "name": name, "category": "environment" if gate == "environment" else category, "outcome": "pass",
            "profiler": "off",
        }  # fmt: skip
        if (gate, name) == ("operator", "hit_proof"):
            check["figures"] = hit_figures(changes)
        if claim is None:
            continue
        several = claim if isinstance(claim, list) else [claim if isinstance(claim, dict) else {"outcome": claim}]
        if name in PER_RANK and not isinstance(claim, list):
            buckets = CAPTURED if changes.graph == "graph" and gate in {"model", "serving"} else (None,)
            ranks = range(changes.tp)
            places = [{"rank": rank, "bucket_tokens": bucket} for rank in ranks for bucket in buckets]
            several = [{**place, **several[0]} for place in places]
        found += [{name: item for name, item in (check | each).items() if item is not None} for each in several]
    return found


def _candidate(changes: Changes, parents: list[Value]) -> Value:
    sources = [
        {"path": path, "digest": digest(data), "bytes": len(data), "executable": False}
        for path, data in sorted(SOURCES.items())
    ]
    claim = {
        "route": _route(changes),
        "abi": changes.abi,
        "hypothesis": {
            "active_bound": "compute",
            "metric": "latency",
            "direction": "lower",
            "size_low_ratio": 0.1,
            "size_high_ratio": 0.3,
            "falsified_by": "The latency of decode-8 does not fall.",
        },
        "data_flow_change": "Eight independent accumulators instead of one.",
        "failure_boundary": "H must be a multiple of 8.",
        "license": "Apache-2.0",
        "owner": "kernel-team",
    }
    return {
        "kind": "Candidate",
        "schema_version": 1,
        "id": changes.candidate,
        "parents": list(parents),
        "try_number": 1,
        "claim": claim | ({"launch": "launch.json"} if changes.abi == "binary" else {}),
        "sources": sources,
        "source_digest": tree_digest((str(each["path"]), False, str(each["digest"])) for each in sources),
        "manifest_digest": digest(b"the manifest"),
    }


def _outputs(changes: Changes) -> dict[str, tuple[str, str, bytes]]:
    """Subject, role and bytes of every output, by path."""
    if changes.abi == "python":
        return {f"{subject}/kernel.py": (subject, "module", data) for subject, data in MODULES.items()}
    return {
        "candidate/kernel.so": ("candidate", "kernel_object", OBJECT),
        "perturbed/kernel.so": ("perturbed", "kernel_object", TWIN),
    }


def hit_figures(changes: Changes) -> list[Value]:
    """What the operator gate says of its hit proof."""
    digests = {subject: digest(data) for subject, _, data in _outputs(changes).values()}
    figures: Value = {"positive_mapped": True, "positive_function_inside": True, "negative_mapped_in_baseline": False}
    if changes.abi == "python":
        digests = {subject: tree_digest([("kernel.py", False, found)]) for subject, found in digests.items()}
        figures = {"positive_files": True}
    figures |= {
        f"perturbation_{name}": value for name, value in {"cases": 2, "differs": True, "rejected": True}.items()
    }
    figures |= {"positive_object_digest": digests["candidate"], "perturbation_object_digest": digests["perturbed"]}
    return [{"name": name, "value": value} for name, value in sorted(figures.items())]


def _build(changes: Changes, campaign: Value, parents: list[Value]) -> Value:
    compiled = changes.abi != "python"
    cc = {"name": "cc", "version_text": "cc 1", "files": [{"name": "cc", "digest": digest(b"cc")}]}
    return {
        "kind": "Build",
        "schema_version": 1,
        "id": changes.candidate,
        "parents": list(parents),
        "outcome": "built",
        "route": _route(changes),
        "soc": campaign["environment"]["soc"]["name"],
        "toolkit": campaign["environment"]["toolkit"],
        "stage": "shared_object" if compiled else "source",
        "tools": [cc] if compiled else [],
        "commands": [{"argv": ["cc", "kernel.cpp"], "returncode": 0, "log_digest": digest(b"")}] if compiled else [],
        "variables": [],
        "isolation": "userns" if compiled else "none",
        "outputs": [
            {
                "path": path, "subject": subject, "role": role, "trust": "host_code", "digest": digest(data),
                "bytes": len(data),
            }
            for path, (subject, role, data) in _outputs(changes).items()
        ],
    }  # fmt: skip


def _route(changes: Changes) -> str:
    if changes.abi == "python":
        return "python"
    return {"host": "host_cpp", "ascend": "ascendc_direct"}[changes.platform]


def _task(changes: Changes) -> Value:
    dtype = DTYPE[changes.platform]
    return {
        "kind": "Task",
        "schema_version": 1,
        "id": "rmsnorm",
        "parents": None,
        "title": "RMSNorm",
        "type": "kernel",
        "op": "rms_norm",
        "callsite": {"host": "rms-norm", "ascend": "xllm.rms-norm"}[changes.platform],
        "graph": changes.graph,
        "routes": [] if changes.abi == "python" else [_route(changes)],
        "abi": {
            "kind": changes.abi,
            "operands": [
                {"name": "x", "access": "in", "dtype": dtype, "shape": [SIZE, 4096], "layout": "ND"},
                {"name": "out", "access": "out", "dtype": dtype, "shape": [SIZE, 4096], "layout": "ND"},
            ],
        },
        "domain": [SIZE],
        "rows": [
            {
                "id": row, "symbols": {"T": sizes}, "attributes": {}, "weight": weight, "bytes": 32768 * sizes,
                "operations": 16384 * sizes,
            }
            for row, sizes, weight in (("decode-1", 1, 0.4), ("decode-8", 8, 0.6))
        ],
        "tolerance": {"atol": 1e-6, "rtol": 1e-5},
        "reference": {"path": "reference.py", "entry": "reference", "text": "def reference(x): ..."},
        "perturbed": [{"route": _route(changes), "path": "perturbed", "files": [{"path": "k.cpp", "text": "//"}]}],
        "budget": {"attempts": 50, "evaluation_s": 300, "tokens": 0},
        "write_paths": ["inbox"],
        "opportunity": None,
    }  # fmt: skip


def _root(changes: Changes) -> dict[str, Value]:
    """Suite, Campaign, Workload and Capture: the shipped ones, with every open fact filled."""
    name, arm = {"host": ("host-demo", "host_reference"), "ascend": ("qwen3-8b-a3-bf16", "xllm")}[changes.platform]
    folder = REPOSITORY / "suites" / name
    suite, workload = (json.loads((folder / f"{each}.json").read_bytes()) for each in ("suite", "workload"))
    campaign = json.loads((folder / "arms" / f"{arm}.json").read_bytes())
    for value in (suite, workload, campaign):
        value.pop("$schema", None)
    _fill(campaign, changes)
    suite |= {"owner": "serving-team", "model": campaign["model"], "toolkit": campaign["environment"]["toolkit"]}
    suite["soc"] = campaign["environment"]["soc"]
    suite["workload"]["path"] = "workload.json"
    suite["parallel"] = {each: campaign["ranks"][each] for each in ("tp", "pp", "dp", "ep")}
    suite["sla"] = []
    suite["kpis"] = _kpis(campaign)
    for stage in workload["stages"]:
        stage |= {"weight_ratio": 1 / len(workload["stages"]), "shapes": stage["shapes"] or []}
    for site in workload["callsites"]:
        if changes.graph == "graph":
            site["graph"] = {"mode": "graph", "capture_sizes_tokens": list(CAPTURED)}
        else:
            site["graph"] = {"mode": "eager"}
    capture = _capture(changes, campaign, workload)
    root = {"suite.json": suite, "campaign.json": campaign, "workload.json": workload, "capture.json": capture}
    root = copy.deepcopy(root)
    for path, value in root.items():
        change = changes.edit.get(path.removesuffix(".json"))
        if change is not None:
            change(value)
    return root


def _fill(campaign: Value, changes: Changes) -> None:
    environment = campaign["environment"]
    soc = {"host": "x86_64-generic", "ascend": "ascend910_9391"}[changes.platform]
    toolkit = {
        "host": {"name": "gcc", "version": "12.2.0", "build": "gcc 12.2.0"},
        "ascend": {"name": "cann", "version": "9.1.0", "build": "V100R001C25SPC005B220"},
    }[changes.platform]
    environment["soc"]["name"] = soc
    environment |= {"toolkit": toolkit, "python": "3.11.7"}
    environment["frameworks"] = [
        {"name": each["name"], "revision": f"{number}.0.0"} for number, each in enumerate(environment["frameworks"])
    ]
    environment["libraries"] = [{"name": "libops.so", "digest": digest(b"libops")}]
    environment["variables"] = [{"name": each["name"], "value": "1"} for each in environment.get("variables", ())]
    for each in ("host", "ascend"):
        if each in environment:
            environment[each] = _machine(each)
    wanted = {
        "backend": _route(changes),
        "soc": soc,
        "toolkit": toolkit,
        "op": "rms_norm",
        "shape": [SIZE, 4096],
        "dtype": DTYPE[changes.platform],
        "graph": changes.graph,
    }
    campaign["capabilities"] = [campaign["capabilities"][0] | wanted]
    campaign["model"] |= {"config_digest": digest(b"config"), "weights_digest": digest(b"weights")}
    ranks = [{"rank": rank, "npu": rank, "die": 0} for rank in range(changes.tp)]
    campaign["ranks"] |= {"tp": changes.tp, "devices": ranks}
    campaign["baseline"]["incumbent_digest"] = digest(b"incumbent")
    campaign["workload"]["path"], campaign["capture"]["path"] = "workload.json", "capture.json"
    campaign["opportunity"] |= {"target_ratio": 1.02, "evaluation_s": 60, "leg_s": 20}
    campaign["noise"] = {"noise_limit_ratio": 0.01, "idle_before_ms": 0}
    campaign["acceptance"] = _acceptance(changes)
    keys = {role: signer(role).public.pin() for role in ROLES}
    campaign["trust"] = {"mode": "signed", "keys": keys} if changes.signed else {"mode": "unsigned", "keys": None}


def _acceptance(changes: Changes) -> Value:
    def rule(name: str, gate: str, metric: str, unit: str = "ns", better: str = "lower", **more: Any) -> Value:
        return {
            "id": name,
            "gate": gate,
            "metric": metric,
            "unit": unit,
            "better": better,
            "statistic": "median",
            **more,
        }

    suites = [{"name": "gsm8k", "n": 1319, "metric": "exact_match_ratio", "baseline": 0.87, "margin_ratio": 0.01}]
    accuracy = [suite | {"seeds": [1]} for suite in suites] if changes.platform == "ascend" else []
    return {
        "confidence": 0.95,
        "gains": [
            rule("op-latency", "operator", "latency", threshold_ratio=0.05),
            rule("model-latency", "model", "weighted_latency", threshold_ratio=0.03),
            rule("tpot", "serving", "tpot", threshold_ratio=0.02),
        ],
        "guards": [
            rule("ttft-p90", "serving", "ttft", margin_ratio=0.02) | {"statistic": "quantile", "quantile": 0.9},
            rule("goodput", "serving", "goodput", "req_per_1000s", "higher", margin_ratio=0.02),
        ],
        "row_margin_ratio": 0.02,
        "error_factor": 2.0,
        "accuracy": accuracy,
        "pairs": {**PAIRS, "blocks": 1},
    }


def _kpis(campaign: Value) -> list[Value]:
    acceptance = campaign["acceptance"]
    return [
        {
            "id": rule["id"], "scope": rule["gate"], "primary": "threshold_ratio" in rule,
            **{each: rule[each] for each in ("metric", "unit", "better", "statistic", "quantile") if each in rule},
        }
        for rule in [*acceptance["gains"], *acceptance["guards"]]
    ]  # fmt: skip


def _machine(platform: str) -> Value:
    if platform == "host":
        return {
            "architecture": "x86_64", "cpu_model": "generic", "cpu_features_digest": digest(b"features"), "cores": 2,
            "libc": "glibc 2.36", "compiler_digest": digest(b"compiler"),
            "toolkit_tree_digest": digest(b"tree"),
        }  # fmt: skip
    return {
        "driver": "25.5.1", "firmware": "7.8.0.6.201", "image_digest": digest(b"image"), "torch": "2.10.0",
        "torch_npu": "2.10.0.post4", "toolkit_tree_digest": digest(b"tree"),
    }  # fmt: skip


def _capture(changes: Changes, campaign: Value, workload: Value) -> Value:
    site = workload["callsites"][0]["id"]
    kernels = [
        captures.kernel(
            changes.share * part, site, name="RmsNorm", tokens=tokens, graph=changes.graph, jitter=0.02, core_type=core
        )
        for part, tokens, core in ((0.4, 1, "cpu"), (0.6, 8, "cpu"))
    ]
    return captures.capture(
        *kernels,
        id=campaign["capture"]["id"],
        title="Baseline",
        platform=changes.platform,
        tool={"name": "profiler", "version": "1"},
        sources=[{"name": "op_summary.csv", "digest": digest(b"csv")}],
        health={"recompiles": 0, "jit_compiles": 0, "custom_operators": True},
    )


def deciding(decision: Value) -> tuple[str, int, str]:
    """Verdict, row and reason code of a Decision; its deciding reason stands first and is of the lowest row."""
    first = decision["reasons"][0]
    assert first["row"] == decision["row"] == min(reason["row"] for reason in decision["reasons"])
    return decision["verdict"], decision["row"], first["code"]


def fired(decision: Value) -> set[tuple[int, str, str | None, str | None]]:
    """Every rule that fired: row, code, gate, check."""
    return {(reason["row"], reason["code"], reason.get("gate"), reason.get("check")) for reason in decision["reasons"]}


def outcome(decision: Value, gate: str, check: str) -> str:
    """The outcome of one check, as judged."""
    found = [each["outcome"] for each in decision["checks"] if (each["gate"], each["check"]) == (gate, check)]
    assert len(found) == 1, found
    return str(found[0])


def acceptance(**changes: Any) -> Callable[[Value], None]:
    """An edit of the Campaign's acceptance: a rule by its id (dashes as underscores), or a field."""

    def edit(campaign: Value) -> None:
        rules = {rule["id"]: rule for group in ("gains", "guards") for rule in campaign["acceptance"][group]}
        for name, change in changes.items():
            rule = rules.get(name.replace("_", "-"))
            if rule is None:
                campaign["acceptance"][name] = change
            else:
                rule.update(change)

    return edit
