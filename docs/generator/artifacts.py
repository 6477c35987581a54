"""`artifacts/*.md`: one page per kind, from its schema and its two examples."""

from __future__ import annotations

from pathlib import Path

from akf.contracts import schemas
from akf.store import layout
from akf.trust.roles import OWNERS

from .fields import field_table
from .markdown import page, plain, table, written

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "artifacts"

UNSIGNED = {"CandidateManifest": "an agent", "TrustRoot": "the user, with `akf keys init`"}
"""Kinds that no role owns, and who writes them."""

ABOUT = {
    "Adapter": "The boundary of a framework or a tool: what it is called with, what it returns, which facts it proves.",
    "Build": "Source to binary: route, tools, commands, environment, outputs by digest, launch spec.",
    "Campaign": "One arm, frozen: environment, capability tuples, baseline, acceptance, noise policy, budget, keys.",
    "Candidate": "What the supervisor makes of an agent's folder: the claim, and every source file by digest.",
    "CandidateManifest": "`candidate.json` as an agent writes it: one hypothesis about one Task.",
    "Capture": "Where time goes by callsite and shape, from profiler files or, on the host, from a measured baseline.",
    "Decision": "The verdict over one attempt, with every rule that fired and every parent by digest.",
    "Deployment": "A release that was put in place somewhere.",
    "Gate": "Evidence of one layer: identity, checks, and raw samples by digest.",
    "KnowledgeEntry": "A validated lesson, with the envelope it holds in and its evidence.",
    "LaneResult": "Figures of one arm in one comparison lane.",
    "OptimizationSuite": "The goal over all arms: model, platform, lanes, public workload, KPIs, service level.",
    "Plan": "What a gate will measure, written into the ledger before the first launch.",
    "Portability": "The verdict over the required arms of a Suite, per lane.",
    "ReleaseRecord": "What is released: identity, facts per arm, envelope, owner, licence, rollback, cleanup.",
    "Revocation": "A statement that evidence or a release no longer counts.",
    "RollbackPlan": "How a release is taken back.",
    "Run": "The snapshot of Suite, Campaign, Workload and Capture that everything below it names as its parent.",
    "ServingBenchmark": "What a benchmark client measured: requests, tokens, latencies, each in one meaning.",
    "Task": "What may be tried: operator, ABI, support domain, measured rows, reference, budget.",
    "Toolchain": "The identity of the tools of one route.",
    "Triage": "What a hotspot is worth, and which type of Task it calls for.",
    "TrustRoot": "The public key of each role, from outside a run.",
    "Workload": "What the service is asked to do: stages, callsites, shapes, weights.",
}


def slug(kind: str) -> str:
    """`CandidateManifest` -> `candidate-manifest`."""
    return schemas.kinds()[kind].name.removesuffix(".schema.json")


def index() -> str:
    """`artifacts/README.md`: every kind, its owner and its place."""
    rows = [
        (f"[{kind}]({slug(kind)}.md)", OWNERS.get(kind) or UNSIGNED[kind], _place(kind), ABOUT[kind])
        for kind in sorted(schemas.kinds())
    ]
    return page([
        "# Artifacts", "",
        written("the schemas in `schemas/`"), "",
        "One page per kind. What all kinds have in common is in [contracts](../contracts.md). A kind that has no place",
        "in a run is in version 1 so that other tools can rely on it.", "",
        *table(("kind", "written and signed by", "place in a run", "what it is"), rows),
    ])  # fmt: skip


def artifact(kind: str) -> str:
    """`artifacts/<kind>.md`."""
    schema, name = schemas.schema(kind), slug(kind)
    owner = OWNERS.get(kind)
    says = f"Written and signed by the {owner}." if owner else f"Written by {UNSIGNED[kind]}, without a signature."
    place = _place(kind)
    file = f"schemas/{name}.schema.json"
    lines = [
        f"# {kind}", "", written(f"`{file}`"), "", ABOUT[kind], "",
        f"{says} " + (f"In a run it is {place}." if place != "-" else "It does not stand in a run folder."), "",
        f"Schema: [`{file}`](../../{file}), `{schema['$id']}`. A field that is not listed here is refused.", "",
        "## Fields", "", *field_table(schema), "",
    ]  # fmt: skip
    for inner, definition in sorted(schema.get("$defs", {}).items()):
        if "properties" in definition:
            about = plain(definition.get("description", "").split("\n\n", 1)[0])
            lines += [f"### {inner}", "", *([about, ""] if about else []), *field_table(definition), ""]
    for variant, text in (("minimal", "Only what is required."), ("full", "Every field once.")):
        example = EXAMPLES / f"{name}.{variant}.json"
        link = f"examples/artifacts/{example.name}"
        body = example.read_text(encoding="utf-8").rstrip("\n")
        lines += [
            f"## {variant.capitalize()} example", "", f"{text} File: [`docs/{link}`](../{link}).", "",
            f"```json valid={kind}", body, "```", "",
        ]  # fmt: skip
    return page(lines)


def _place(kind: str) -> str:
    places = [f"`{slot.template}`" for slot in layout.ARTIFACTS if slot.kind == kind]
    places += ["`inbox/<name>/candidate.json`"] if kind == "CandidateManifest" else []
    return ", ".join(places) or "-"
