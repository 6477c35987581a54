"""Builds harness requests from kernels in C++: what the Builder and the evaluator do, in small."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akf.routes.host_cpp import compile_shared, launcher_source
from akf.routes.launch_spec import LaunchSpec, parse_spec, resolve_call, resolve_shape

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}}


def digest_of(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def seed(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()


def built(source: Path, spec: LaunchSpec, out: Path) -> dict[str, str]:
    """Compile one kernel and its launcher; the artifact as the request names it."""
    kernel = out / f"{source.parent.parent.name}-{source.stem}.so"
    result = compile_shared(source.parent, [source.name], kernel)
    assert result, result.stderr
    launcher = out / f"launcher-{spec.symbol}.so"
    if not launcher.exists():
        text = out / "launcher.cpp"
        text.write_text(launcher_source(spec), encoding="utf-8")
        assert compile_shared(out, [text.name], launcher)
    return {
        "path": str(kernel),
        "digest": digest_of(kernel),
        "symbol": spec.symbol,
        "launcher": str(launcher),
        "launcher_digest": digest_of(launcher),
    }


@dataclass
class Task:
    """The parts of a Task that a request needs."""

    reference: str
    spec: LaunchSpec
    artifacts: dict[str, dict[str, str]]
    cases: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def case(
        self,
        name: str,
        symbols: dict[str, int],
        attributes: dict[str, float],
        distributions: dict[str, dict[str, Any]] | None = None,
        *,
        control: bool = True,
        misalign: int = 0,
    ) -> dict[str, Any]:
        call = resolve_call(self.spec, symbols, attributes)
        operands = []
        for arg in self.spec.args:
            if arg.kind != "tensor":
                continue
            operand: dict[str, Any] = {
                "name": arg.name,
                "dtype": arg.dtype,
                "shape": resolve_shape(arg, symbols),
                "access": arg.access,
                "misalign": misalign,
            }
            if arg.access != "out":
                operand["distribution"] = (distributions or {}).get(arg.name, {"kind": "normal", "scale": 1.0})
            operands.append(operand)
        return {
            "id": name,
            "seed": seed(name),
            "attributes": attributes,
            "operands": operands,
            "calls": dict.fromkeys(self.artifacts, call),
            "control": control,
        }

    def request(self, **changes: Any) -> dict[str, Any]:
        value: dict[str, Any] = {
            "kind": "HarnessRequest",
            "schema_version": 1,
            "reference": self.reference,
            "tolerances": TOLERANCE,
            "baseline_factor": 4.0,
            "baseline_floor": 0.1,
            "determinism": "bitwise",
            "repeats": 2,
            "isolation": "auto",
            "limits": {
                "timeout_s": 10,
                "memory_bytes": 1 << 30,
                "cpu_s": 60,
                "log_bytes": 65536,
                "processes": 4096,
                "output_bytes_per_row": 64 << 20,
            },
            "artifacts": self.artifacts,
            "cases": self.cases,
            "rows": self.rows,
            "plan": None,
        }
        value.update(changes)
        return value


def rmsnorm(out: Path, candidate: Path | None = None) -> Task:
    """The example Task with one of its candidates."""
    folder = ROOT / "adapters" / "host_reference" / "src"
    spec = parse_spec(json.loads((folder / "rms_norm.json").read_text(encoding="utf-8")))
    chosen = candidate or ROOT / "examples" / "candidates" / "rmsnorm-fused" / "src" / "kernel.cpp"
    task = Task(
        reference=(ROOT / "examples" / "tasks" / "rmsnorm" / "reference.py").read_text(encoding="utf-8"),
        spec=spec,
        artifacts={
            "baseline": built(folder / "rms_norm.cpp", spec, out),
            "candidate": built(chosen, spec, out),
            "perturbed": built(
                ROOT / "examples" / "tasks" / "rmsnorm" / "perturbed" / "host_cpp" / "kernel.cpp", spec, out
            ),
        },
    )
    eps = {"eps": 1e-6}
    task.cases = [
        *(task.case(f"T{tokens}", {"T": tokens}, eps) for tokens in (1, 4, 8)),
        *(task.case(f"tail-T{tokens}", {"T": tokens}, eps) for tokens in (3, 16)),
        task.case("unaligned", {"T": 5}, eps, misalign=1),
        task.case("eps-large", {"T": 2}, {"eps": 1e-3}),
        task.case("zeros", {"T": 2}, eps, {"x": {"kind": "zeros"}}, control=False),
        task.case("tiny", {"T": 2}, eps, {"x": {"kind": "normal", "scale": 1e-3}}),
        task.case("large", {"T": 2}, eps, {"x": {"kind": "normal", "scale": 1e6}}),
        task.case("mixed", {"T": 2}, eps, {"x": {"kind": "mixed", "scale": 1.0}}),
    ]
    task.rows = [task.case(f"T{tokens}", {"T": tokens}, eps) for tokens in (1, 4, 8)]
    return task


def run_harness(
    command: str, request: dict[str, Any], out: Path, program: list[str] | None = None
) -> tuple[int, dict[str, Any]]:
    """Start the harness as its own process; its exit status and report."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    result = subprocess.run(
        [*(program or [sys.executable, "-m", "akf.harness"]), command, str(path), str(out)],
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=120,
        start_new_session=True,
        capture_output=True,
        text=True,
    )
    report = out / "report.json"
    assert report.exists(), result.stderr
    return result.returncode, json.loads(report.read_text(encoding="utf-8"))
