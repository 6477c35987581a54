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
from akf.contracts.canonical import canonical_bytes, digest
from akf.contracts.loader import Document, parse
from akf.contracts.problems import ConflictError, IntegrityError, InvalidError, PreconditionError
from akf.frameworks import host_reference
from akf.routes.host_cpp import launcher_source
from akf.routes.launch_spec import LaunchSpec, LaunchSpecError, check_against, parse_spec
from akf.store import layout
from akf.store.publish import StagedFolder
from akf.store.run import Run, ref, signer_for
from akf.store.untrusted import TreeFile, read_tree

BUILDS_HERE = ("host_cpp",)


def build(run_path: Path, candidate: str, keys: Path) -> dict[str, Any]:
    """Build one Candidate; returns the Build.

    Raises:
        PreconditionError: there is no such Candidate.
        InvalidError: its launch spec is invalid or disagrees with the Task's ABI.
        BlockedError: the route's compiler is missing.
        ConflictError: it was built already.
    """
    run = Run.open(run_path)
    with run.locked():
        relative = f"attempts/{candidate}/build.json"
        run.need_candidate(candidate)
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
    spec, text = _launch(
        sources, claim["launch"], task.value, f"attempts/{candidate.value['id']}/source/{claim['launch']}"
    )
    perturbed = _perturbed(task.value, claim["route"])
    _, wrong_text = _launch(perturbed, "launch.json", task.value, "the Task's perturbed kernel")
    if wrong_text != text:
        message = (
            "the launch spec differs from that of the Task's perturbed kernel, which must be callable in its place"
        )
        raise InvalidError.of("AKF-M045", message, expected=wrong_text, found=text)
    identity = host_reference.compiler()
    with tempfile.TemporaryDirectory(prefix="akf-build-") as scratch:
        work = Path(scratch)
        first = compile_object(sources, work / "first", "candidate/kernel.so", "candidate")
        second = compile_object(sources, work / "second", "candidate/kernel.so", "candidate")
        launcher = [TreeFile("launcher.cpp", launcher_source(spec).encode(), False)]
        products = [
            first,
            compile_object(launcher, work / "launcher", "launcher/launcher.so", "launcher"),
            compile_object(perturbed, work / "perturbed", "perturbed/kernel.so", "perturbed"),
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


def _launch(
    files: Sequence[TreeFile], path: str, task: dict[str, Any], shown: str
) -> tuple[LaunchSpec, dict[str, Any]]:
    """The launch spec in the folder, parsed and compared with the Task's ABI; and as the Build records it."""
    data = next((file.data for file in files if file.path == path), None)
    if data is None:
        raise InvalidError.of("AKF-M041", f"{shown} is missing", file=shown)
    value = parse(data, shown).value
    abi = {
        "operands": [
            {**operand, "shape": [size["sym"] if isinstance(size, dict) else size for size in operand["shape"]]}
            for operand in task["abi"]["operands"]
        ],
        "symbols": [dimension["sym"] for dimension in task["domain"]],
        "attributes": [attribute["name"] for attribute in task["abi"].get("attributes", ())],
    }
    try:
        spec = parse_spec(value)
        check_against(spec, abi)
    except LaunchSpecError as error:
        raise InvalidError.of("AKF-M043", f"launch spec: {error.message}", file=shown, pointer=error.pointer) from error
    canonical_bytes(value)
    return spec, value


def _perturbed(task: dict[str, Any], route: str) -> list[TreeFile]:
    kernel = next((each for each in task["perturbed"] if each["route"] == route), None)
    if kernel is None or kernel["files"] is None:
        message = f"the Task has no perturbed kernel for route {route}, so a hit could never be proved"
        raise PreconditionError.of("AKF-P111", message)
    return [TreeFile(each["path"], each["text"].encode(), False) for each in kernel["files"]]
