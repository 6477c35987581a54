"""Inside the sandbox: what every front end that runs a source's Python does first.

It imports the standard library only and lies beside a front end as `in/akf/routes/source_module.py`, which
`akf.routes.frontends` sees to. A source that cannot be used ends the process with a line that says why.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def kernel_of(source: str, name: str, kind: str) -> Any:
    """Run a source and take what it calls `name`.

    Args:
        source: path of the Python file.
        name: name of its kernel.
        kind: what the kernel is, for the message when there is none.
    """
    spec = importlib.util.spec_from_file_location("akf_kernel", source)
    if spec is None or spec.loader is None:
        sys.exit(f"error: {source} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules["akf_kernel"] = module
    spec.loader.exec_module(module)
    kernel = getattr(module, name, None)
    if kernel is None:
        sys.exit(f"error: {source} holds no {kind} {name!r}")
    return kernel


def values_of(names: Iterable[str], symbols: Mapping[str, str]) -> list[int | float]:
    """The numbers of a kernel's further parameters, by name."""
    wanted = list(names)
    absent = [name for name in wanted if name not in symbols]
    if absent:
        sys.exit(f"error: parameter {absent[0]!r} has no value; give it with --option symbol.{absent[0]}=VALUE")
    return [_number(symbols[name]) for name in wanted]


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
