"""`build`: a Candidate's frozen sources become objects, by the Builder's hand and in its words.

Invariants:
- Sources come from the attempt's folder and are checked against the Candidate's digests before a compiler sees them.
- The launch spec agrees with the Task's ABI, operand by operand.
- Candidate, launcher and the Task's deliberately wrong kernel are compiled with the same flags and environment.
- The candidate is compiled twice, in two folders; whether the bytes agree is recorded, not assumed.
- A candidate that does not compile is a Build with outcome `failed`: it stays as evidence, and no gate takes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akf.build.objects import Product, compile_object, failed_reasons, tools
from akf.contracts.canonical import digest
from akf.contracts.loader import Document, parse
from akf.contracts.problems import ConflictError, IntegrityError, InvalidError, PreconditionError
from akf.frameworks import host_reference
from akf.routes.host_cpp import launcher_source
from akf.routes.launch_check import checked_launch, perturbed
from akf.store import layout
from akf.store.publish import StagedFolder
from akf.store.run import Run, ref, signer_for
from akf.store.untrusted import TreeFile, read_tree

BUILDS_HERE = ("host_cpp",)


def build(run_path: Path, candidate: str, keys: Path) -> dict[str, Any]:
    """Build one Candidate; returns the Build.

    Raises:
        PreconditionError: there is no such Candidate, or it is decided.
        InvalidError: its launch spec is invalid or disagrees with the Task's ABI.
        BlockedError: the route's compiler is missing.
        ConflictError: it was built already.
    """
    run = Run.open(run_path)
    with run.locked():
        relative = f"attempts/{candidate}/build.json"
        run.need_candidate(candidate)
        run.need_open(candidate)
        if (run.path / relative).exists():
            raise ConflictError.of("AKF-C104", f"{candidate!r} was built already", file=str(run.path / relative))
        document = run.load(f"attempts/{candidate}/candidate.json")
        task_id = next(parent["id"] for parent in document.value["parents"] if parent["kind"] == "Task")
        task = run.load(f"tasks/{task_id}.json")
        signer = signer_for(run, "builder", keys)
        sources = _sources(run, candidate, document.value)
        value, files = _build(run, document, task, sources)
        with StagedFolder(layout.build_outputs(run.path, candidate), orphan_of=run.path / relative) as stage:
            for path, data in sorted(files.items()):
                stage.write(path, data)
        run.record(relative, value, signer)
    return value


def _sources(run: Run, candidate: str, value: dict[str, Any]) -> list[TreeFile]:
    try:
        files = read_tree(layout.source(run.path, candidate), f"attempts/{candidate}/source")
    except InvalidError as error:  # it was valid when it was frozen
        raise IntegrityError(error.problems) from None
    named = {each["path"]: each["digest"] for each in value["sources"]}
    if {file.path: digest(file.data) for file in files} != named:
        message = f"the source files of {candidate!r} are not the ones that it names"
        raise IntegrityError.of("AKF-I217", message, file=f"attempts/{candidate}/source")
    return files


def _build(
    run: Run, candidate: Document, task: Document, sources: Sequence[TreeFile]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    claim = candidate.value["claim"]
    if claim["route"] not in BUILDS_HERE:
        raise PreconditionError.of(
            "AKF-P110", f"this version builds {', '.join(BUILDS_HERE)} only, not {claim['route']}"
        )
    shown = f"attempts/{candidate.value['id']}/source/{claim['launch']}"
    spec, text = checked_launch(sources, claim["launch"], task.value, claim["route"], shown)
    identity = host_reference.compiler()
    with tempfile.TemporaryDirectory(prefix="akf-build-") as scratch:
        work = Path(scratch)
        first = compile_object(sources, work / "first", "candidate/kernel.so", "candidate", spec.symbol)
        second = compile_object(sources, work / "second", "candidate/kernel.so", "candidate", spec.symbol)
        launcher = [TreeFile("launcher.cpp", launcher_source(spec).encode(), False)]
        products = [
            first,
            compile_object(launcher, work / "launcher", "launcher/launcher.so", "launcher"),
            compile_object(
                perturbed(task.value, claim["route"]),
                work / "perturbed",
                "perturbed/kernel.so",
                "perturbed",
                spec.symbol,
            ),
        ]
    return _record(run, candidate, task, text, products, second, identity)


def _record(
    run: Run,
    candidate: Document,
    task: Document,
    launch: dict[str, Any],
    products: Sequence[Product],
    second: Product,
    identity: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    first = products[0]
    run_data = run.read("run.json")
    files = {path: data for product in products for path, data in product.files.items()}
    value: dict[str, Any] = {
        "kind": "Build",
        "schema_version": 1,
        "id": candidate.value["id"],
        "parents": [
            ref(parse(run_data, "run.json").value, run_data),
            ref(task.value, task.source),
            ref(candidate.value, candidate.source),
        ],
        "outcome": "built" if all(product.built for product in products) else "failed",
        "reasons": failed_reasons(products),
        "route": candidate.value["claim"]["route"],
        "soc": host_reference.soc_name(identity),
        "toolkit": host_reference.toolkit(identity),
        "stage": "shared_object" if first.built else "source",
        "tools": tools(identity),
        "commands": [product.command for product in products],
        "variables": [{"name": name, "value": item} for name, item in sorted(first.variables.items())],
        "isolation": "userns" if all(product.isolation == "userns" for product in products) else "none",
        "outputs": [output for product in products for output in product.outputs],
        "launch": launch,
    }
    if first.built and second.built:
        value["reproduction"] = {
            "reproducible": first.object_digest == second.object_digest,
            "first": first.object_digest,
            "second": second.object_digest,
            "address_randomisation": True,
        }
    return value, files
