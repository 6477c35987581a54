"""The Linalg IR of a kernel to an object of this machine: what Triton's front end and adapter mean, executed.

Invariants:
- What LLVM does not know of the compiler's own dialects, and what only hints at speed, is taken out: an attribute and
  marks of values. Anything else of those dialects stays, and `mlir-opt` refuses it by name.
- Nothing of the machine enters: no `-march=native`, no fast arithmetic. The same IR gives the same object.
- On-chip memory is NaN until it is written, and gone when its program ends (`on_chip.c`).
- This shows what the IR means. Scheduling, synchronisation, layout in on-chip memory and the machine's arithmetic come
  later, in HIVM; programs run one after another.
"""

from __future__ import annotations

import re
from pathlib import Path

from akf.routes.route import Plan, Step
from akf.routes.sandbox import Limits

ON_CHIP = Path(__file__).with_name("on_chip.c")
OBJECT = "kernel.so"
PASSES = (
    "--convert-elementwise-to-linalg",
    "--eliminate-empty-tensors",
    "--empty-tensor-to-alloc-tensor",
    "--one-shot-bufferize=allow-return-allocs-from-loops=true",
    "--convert-linalg-to-affine-loops",
    "--lower-affine",
    "--convert-linalg-to-loops",
    "--convert-scf-to-cf",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-cf-to-llvm",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-arith-to-llvm",
    "--convert-index-to-llvm",
    "--finalize-memref-to-llvm=use-generic-functions=1",
    "--convert-func-to-llvm",
    "--reconcile-unrealized-casts",
)
_HINT = re.compile(r" \{hivm\.unlikely_condition\}")
_MARK = re.compile(r"^[ \t]*annotation\.mark\b[^\n]*\n", re.MULTILINE)
_LIMITS = Limits(wall_s=120.0)


def to_object(linalg: bytes) -> Plan:
    """The commands for one kernel's IR."""
    text = _MARK.sub("", _HINT.sub("", linalg.decode("utf-8", "replace")))
    compiled = ("-O2", "-fPIC", "-shared", "-Wno-override-module", "-Wl,-z,defs", "-x", "ir", "out/kernel.ll")
    translated = ("--mlir-to-llvmir", "out/llvm.mlir")
    steps = (
        Step("mlir-opt", ("in/kernel.mlir", *PASSES, "-o", "out/llvm.mlir"), ("llvm.mlir",), (), _LIMITS),
        Step("mlir-translate", (*translated, "-o", "out/kernel.ll"), ("kernel.ll",), (), _LIMITS),
        Step("clang", (*compiled, "-x", "c", "in/on_chip.c", "-lm", "-o", f"out/{OBJECT}"), (OBJECT,), (), _LIMITS),
    )
    return Plan(steps, {"kernel.mlir": text.encode(), "on_chip.c": ON_CHIP.read_bytes()})
