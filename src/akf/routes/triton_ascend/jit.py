"""Runs under the environment's own interpreter, inside the sandbox: what triton-ascend's own launch compiles.

Of AKF it imports `triton_module` only. The package's own code decides everything: its binder sees the arguments as at a
launch, its `compile` makes the key and fills the cache. Only the device is missing, and it is asked for its name alone:
a driver that answers with the SoC of the request stands in its place.

- `keys REQUEST` writes `out/keys.json`: for every call, the key of its entry in the cache.
- `compile REQUEST` writes `out/kernel.ttir.mlir` of one call, and `out/kernel.key.json`.
- `freeze REQUEST` compiles one call whole and copies the entry of the cache to `out/cache.*`, but for the file that
  names where it lies: that follows from the place where it is served.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from akf.routes.triton_module import constants_of, triton_kernel

OUT = Path("out")
GROUP = "__grp__"


class _Asked(Exception):  # noqa: N818 - what was asked for is known; it is no error
    """The package came to the place that was asked about."""


class _Tensor:
    """A tensor as a launch looks at one: its element type, and an address that is aligned."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def data_ptr(self) -> int:
        """Where an allocator would put it."""
        return 0


class _Device:
    """Answers as the SoC does."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """Nothing runs on it."""
        return device

    def get_current_target(self) -> Any:
        """The SoC that is compiled for."""
        return self._target

    def get_arch(self) -> str:
        """The same by name."""
        return str(self._target.arch)


class _Kernel:
    """A kernel of the source, and the package's own way to it."""

    def __init__(self, request: dict[str, Any]) -> None:
        from triton.backends.compiler import GPUTarget  # noqa: PLC0415
        from triton.compiler.compiler import make_backend  # noqa: PLC0415
        from triton.runtime.driver import driver  # noqa: PLC0415
        from triton.runtime.jit import JITFunction  # noqa: PLC0415

        self.target = GPUTarget("npu", request["target"], 0)
        device = _Device(self.target)
        driver.set_active(device)
        self.backend = make_backend(self.target)
        # The stages of A2 and A3 ask the device for its name, whatever they are asked to compile for.
        type(self.backend).add_stages.__globals__["NPUUtils"] = lambda: device
        self.request = request
        found = triton_kernel(request)
        if not isinstance(found, JITFunction):
            sys.exit(f"error: {request['source']} holds no plain @triton.jit function {request['kernel']!r}")
        self.found: Any = found

    def asked(self, call: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What a launch with these arguments hands to the package's `compile`: the source, and its options."""
        names, constants = self.found.arg_names, constants_of(self.found, call["constexprs"])
        unknown = sorted(call["arguments"].keys() - set(names))
        if unknown:
            sys.exit(f"error: {self.request['kernel']} has no parameter {unknown[0]!r}")
        values = [self._argument(name, call, constants) for name in names]
        seen: list[Any] = []

        def instead(source: Any, target: Any, options: dict[str, Any]) -> None:
            seen.extend((source, options))
            raise _Asked(target)

        self.found.create_binder(self.backend)
        self.found.compile = instead
        with contextlib.suppress(_Asked):
            self.found.run(*values, grid=(1,), warmup=True, **self.request["options"])
        source, options = seen
        for name, wanted in self.request["types"].items():
            if source.signature.get(name, wanted) != wanted:
                message = f"argument {name!r} is {wanted} in the launch spec, and the compiler takes it as"
                sys.exit(f"error: {message} {source.signature[name]} at {call['arguments'].get(name)}")
        return source, options

    def key(self, source: Any, options: dict[str, Any]) -> str:
        """The name of the entry in the cache."""
        from triton.compiler import compiler  # noqa: PLC0415
        from triton.runtime import cache  # noqa: PLC0415

        seen: list[str] = []

        def instead(key: str) -> None:
            seen.append(key)
            raise _Asked

        real, compiler.get_cache_manager = compiler.get_cache_manager, instead
        try:
            with contextlib.suppress(_Asked):
                compiler.compile(source, target=self.target, options=options)
        finally:
            compiler.get_cache_manager = real
        return Path(cache.get_cache_manager(seen[0]).cache_dir).name

    def _argument(self, name: str, call: dict[str, Any], constants: dict[str, Any]) -> Any:
        kind = self.request["types"].get(name)
        if name in constants:
            return constants[name]
        if kind is not None and kind.startswith("*"):
            return _Tensor({v: k for k, v in _names()}[kind[1:]])
        if name in call["arguments"]:
            text = call["arguments"][name]
            return int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)
        message = f"parameter {name!r} of {self.request['kernel']} is neither an argument of the launch spec nor a"
        return sys.exit(f"error: {message} constexpr; give it a value in specialisations.json")


def keys(request: dict[str, Any]) -> None:
    """The entries that these calls ask for."""
    kernel = _Kernel(request)
    found = []
    for call in request["calls"]:
        source, options = kernel.asked(call)
        found.append(kernel.key(source, options))
    (OUT / "keys.json").write_text(json.dumps(found), encoding="utf-8")


def compile_call(request: dict[str, Any]) -> None:
    """The Triton IR of one call."""
    from triton._C.libtriton import ir  # noqa: PLC0415

    kernel = _Kernel(request)
    source, given = kernel.asked(request)
    options = kernel.backend.parse_options(given)
    context = ir.context()
    ir.load_dialects(context)
    kernel.backend.load_dialects(context)
    codegen, modules = kernel.backend.get_codegen_implementation(), kernel.backend.get_module_map()
    made = source.make_ir(options, codegen, modules, context)
    stages: dict[str, Any] = {}
    kernel.backend.add_stages(stages, options)
    made = stages["ttir"](made, {"target": kernel.target, **options.__dict__})
    (OUT / "kernel.ttir.mlir").write_text(str(made), encoding="utf-8")
    facts = {
        "key": kernel.key(source, given),
        "signature": source.signature,
        "constants": {name: str(value) for name, value in source.constants.items()},
        "properties": {name: sorted(numbers) for name, numbers in source.attrs.arg_properties.items()},
    }
    (OUT / "kernel.key.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def freeze(request: dict[str, Any]) -> None:
    """The whole entry of one call."""
    from triton.compiler import compiler  # noqa: PLC0415
    from triton.runtime import cache  # noqa: PLC0415

    kernel = _Kernel(request)
    source, options = kernel.asked(request)
    made = compiler.compile(source, target=kernel.target, options=options)
    for file in sorted(Path(cache.get_cache_manager(made.hash).cache_dir).iterdir()):
        if file.is_file() and not file.name.startswith(GROUP):
            shutil.copyfile(file, OUT / f"cache.{file.name}")


def _names() -> Iterator[tuple[str, str]]:
    from triton.runtime.jit import type_canonicalisation_dict as short  # noqa: PLC0415

    return ((long, short[long]) for long in short if long != short[long] and "8_" not in long)


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    {"keys": keys, "compile": compile_call, "freeze": freeze}[sys.argv[1]](asked)
