"""A step in which a route's Python front end runs, and the files that it needs.

Invariants:
- The front end is a program of the route's own folder, run by the environment's interpreter: no user's packages, hashes
  without a seed, bytecode in the build's own folder.
- It finds `akf.routes.source_module`, and `triton_module` beside it, and nothing else of AKF.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from akf.routes.route import Step
from akf.routes.sandbox import Limits

SHARED = tuple(Path(__file__).with_name(name) for name in ("source_module.py", "triton_module.py"))
_FLAGS = ("-s", "-P", "-B", "-X", "pycache_prefix={work}/tmp", "in/frontend.py")


def front_end(words: tuple[str, ...], makes: tuple[str, ...], limits: Limits) -> Step:
    """The step: the front end with these arguments, which leaves these files."""
    return Step("python", (*_FLAGS, *words), makes, (), limits, {"PYTHONHASHSEED": "0", "PYTHONPATH": "{work}/in"})


def front_end_files(program: Path, request: Mapping[str, object]) -> dict[str, bytes]:
    """What lies in `in/` for it: the program, its request, and what front ends share."""
    return {
        "frontend.py": program.read_bytes(),
        "request.json": json.dumps(request, sort_keys=True).encode(),
        "akf/__init__.py": b"",
        "akf/routes/__init__.py": b"",
        **{f"akf/routes/{path.name}": path.read_bytes() for path in SHARED},
    }
