"""The program in a package: runs reference and candidate on the leased device, and compares or times them.

It is never imported by AKF. It runs under a worker's own interpreter (Python 3.9 and newer) with torch or numpy.

Invariants:
- The device is chosen before the framework is imported.
- Both see the same inputs, made anew from the same seed. The candidate's are made before its source is loaded, in a
  process of its own, and its results come back as plain tensors.
- What this machine lacks is written down as such: it says nothing about the candidate.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RESULT = "check_result.json"
SEED = 20240
INPUTS, OUTPUTS = "check_inputs.bin", "check_outputs.bin"
TOLERANCES = {"float64": 1e-6, "float32": 1e-3, "float16": 4e-3, "bfloat16": 3e-2}
"""By data type: how far a value may be off, relative to one plus its size."""
BLOCKS = 10
"""The runs are timed in so many parts: how far these differ is the least that a time is uncertain by."""
LACKING = 75


def verify(settings: dict[str, Any]) -> int:
    """Compare the candidate with the reference; the exit status says whether it holds."""
    place(settings)
    try:
        tool = framework(settings)
    except Exception as error:  # noqa: BLE001 - no such module, no such device, no driver
        return conclude("infra_error", f"this machine cannot run it: {type(error).__name__}: {error}", LACKING)
    try:
        reference = load(settings["reference"])
        numbers = range(len(inputs_of(reference)))
        wanted = [listed(ran(tool, reference, "Model", fresh(tool, reference, case), case)) for case in numbers]
        tool.save([fresh(tool, reference, case) for case in numbers], INPUTS)
    except Exception as error:  # noqa: BLE001 - whatever a reference does
        return conclude("reference_failed", f"the reference does not run: {type(error).__name__}: {error}", 1)
    script = "import json, sys, check_program; sys.exit(check_program.candidate(json.loads(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", script, json.dumps(settings)], check=False)
    if done.returncode or not Path(OUTPUTS).exists():
        return conclude("candidate_failed", f"the candidate ended with status {done.returncode}", 1)
    try:
        found = tool.load(OUTPUTS)
        problem = compared(tool, wanted, found)
    except Exception as error:  # noqa: BLE001 - whatever a candidate left
        problem = f"its results cannot be read: {type(error).__name__}: {error}"
    return conclude("candidate_failed", problem, 1) if problem else conclude("ok", "all results agree", 0)


def candidate(settings: dict[str, Any]) -> int:
    """The candidate's own process: its results for every case."""
    place(settings)
    tool = framework(settings)
    cases = tool.load(INPUTS)
    reference = load(settings["reference"])
    module = load(settings["candidate"])
    results = []
    for case, inputs in enumerate(cases):
        tool.seed(SEED + case)
        results.append(listed(ran(tool, module, "ModelNew", inputs, case, init=reference.get_init_inputs)))
    tool.save(results, OUTPUTS)
    return 0


def profile_base(settings: dict[str, Any]) -> int:
    """Time the reference."""
    return timed(settings, settings["reference"], "Model", "base_profile_result.json")


def profile_generation(settings: dict[str, Any]) -> int:
    """Time the candidate."""
    return timed(settings, settings["candidate"], "ModelNew", "generation_profile_result.json")


def timed(settings: dict[str, Any], source: str, name: str, target: str) -> int:
    """The mean time of a call, as the wire's result file."""
    place(settings)
    tool = framework(settings)
    reference = load(settings["reference"])
    inputs = tool.moved(fresh(tool, reference, 0))
    module = load(source)
    tool.seed(SEED)
    model = tool.model(getattr(module, name)(*reference.get_init_inputs()))
    for _ in range(settings["warmup_times"]):
        model(*inputs)
    tool.wait()
    runs, blocks, spent_ns = settings["run_times"], [], 0
    for block in range(min(BLOCKS, runs)):
        calls = len(range(block, runs, BLOCKS))
        start = time.perf_counter_ns()
        for _ in range(calls):
            model(*inputs)
        tool.wait()
        taken_ns = time.perf_counter_ns() - start
        spent_ns += taken_ns
        blocks.append(taken_ns / 1e3 / calls)
    spent_us = spent_ns / 1e3 / runs
    result = {"avg_time_us": spent_us, "execution_time_us": spent_us, "run_times": runs, "block_times_us": blocks}
    Path(target).write_text(json.dumps(result), encoding="utf-8")
    print(f"PROFILE_RESULT: {spent_us}")
    return 0


def place(settings: dict[str, Any]) -> None:
    """Choose the device, before anything looks at it."""
    if settings["backend"] == "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = str(settings["device"])
    elif settings["backend"] == "ascend":
        os.environ["DEVICE_ID"] = str(settings["device"])


def conclude(outcome: str, detail: str, status: int) -> int:
    """Say what came out, for people and for programs."""
    Path(RESULT).write_text(json.dumps({"outcome": outcome, "detail": detail[:2000]}), encoding="utf-8")
    print(f"{outcome}: {detail}", file=sys.stderr)
    return status


def load(name: str) -> Any:
    """A source file of the package as a module."""
    spec = importlib.util.spec_from_file_location(name[:-3].replace("-", "_"), Path(name).resolve())
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def inputs_of(reference: Any) -> list[Any]:
    """The cases: one, or as many as the reference lists."""
    many = getattr(reference, "get_inputs_dyn_list", None)
    return many() if many is not None else [reference.get_inputs()]


def fresh(tool: Any, reference: Any, case: int) -> list[Any]:
    """The inputs of a case, made anew."""
    tool.seed(SEED + case)
    return list(inputs_of(reference)[case])


def ran(tool: Any, module: Any, name: str, inputs: list[Any], case: int, init: Any = None) -> Any:
    """What a model of a module answers."""
    tool.seed(SEED + case)
    model = tool.model(getattr(module, name)(*(init or module.get_init_inputs)()))
    result = model(*tool.moved(inputs))
    tool.wait()
    return result


def listed(result: Any) -> list[Any]:
    """One result or several, as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def compared(tool: Any, wanted: list[Any], found: Any) -> str:
    """What is wrong with the results; nothing when all agree."""
    if not isinstance(found, list) or len(found) != len(wanted):
        return f"results of {len(found) if isinstance(found, list) else 0} cases instead of {len(wanted)}"
    for case, ours in enumerate(wanted):
        theirs = found[case]
        if len(ours) != len(theirs):
            return f"case {case}: {len(theirs)} results instead of {len(ours)}"
        for index, one in enumerate(ours):
            problem = tool.differ(one, theirs[index])
            if problem:
                return f"case {case}, result {index}: {problem}"
    return ""


def worst(numpy: Any, one: Any, other: Any, kind: str) -> str:
    """Where two arrays of one shape differ by more than their type allows."""
    if kind in TOLERANCES:
        one, other = one.astype("float64"), other.astype("float64")
        same = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
        with numpy.errstate(invalid="ignore"):
            near = numpy.abs(one - other) <= TOLERANCES[kind] * (1 + numpy.abs(one))
        wrong = ~(same | near)
    else:
        wrong = one != other
    count = int(wrong.sum())
    if not count:
        return ""
    at = tuple(int(each) for each in numpy.argwhere(wrong)[0])
    return f"{count} of {wrong.size} values are wrong; at {at} it is {other[at]} instead of {one[at]}"


def framework(settings: dict[str, Any]) -> Any:
    """The framework of the reference, by what is needed of it here."""
    return _Torch(settings["backend"], settings["device"]) if settings["framework"] == "torch" else _Numpy()


class _Numpy:
    def __init__(self) -> None:
        self.numpy: Any = importlib.import_module("numpy")

    def seed(self, value: int) -> None:
        random.seed(value)
        self.numpy.random.seed(value)

    def model(self, model: Any) -> Any:
        return model if callable(model) else model.forward

    def moved(self, inputs: list[Any]) -> list[Any]:
        return inputs

    def wait(self) -> None:
        pass

    def save(self, lists: list[list[Any]], path: str) -> None:
        arrays: dict[str, Any] = {}
        shape = []
        for case, values in enumerate(lists):
            shape.append(len(values))
            for index, value in enumerate(values):
                arrays[f"{case}_{index}"] = self.numpy.asarray(value)
        with Path(path).open("wb") as file:
            arrays["shape"] = self.numpy.asarray(shape)
            self.numpy.savez(file, **arrays)

    def load(self, path: str) -> Any:
        with self.numpy.load(path, allow_pickle=False) as file:
            counts = [int(count) for count in file["shape"]]
            return [[file[f"{case}_{index}"] for index in range(count)] for case, count in enumerate(counts)]

    def differ(self, one: Any, other: Any) -> str:
        one = self.numpy.asarray(one)
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{other.dtype} of shape {other.shape} instead of {one.dtype} of shape {one.shape}"
        return worst(self.numpy, one, other, str(one.dtype))


class _Torch:
    def __init__(self, backend: str, device: int) -> None:
        torch: Any = importlib.import_module("torch")
        self.torch = torch
        self.device = torch.device("cpu")
        if backend == "cuda":
            torch.cuda.set_device(0)
            self.device = torch.device("cuda:0")
        elif backend == "ascend":
            importlib.import_module("torch_npu")
            torch.npu.set_device(device)
            self.device = torch.device(f"npu:{device}")
        torch.set_grad_enabled(False)

    def seed(self, value: int) -> None:
        random.seed(value)
        self.torch.manual_seed(value)

    def model(self, model: Any) -> Any:
        if isinstance(model, self.torch.nn.Module):
            return model.to(self.device).eval()
        return model

    def moved(self, inputs: list[Any]) -> list[Any]:
        return [each.to(self.device) if isinstance(each, self.torch.Tensor) else each for each in inputs]

    def wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        elif self.device.type == "npu":
            self.torch.npu.synchronize()

    def save(self, lists: list[list[Any]], path: str) -> None:
        tensor = self.torch.Tensor
        plain = [[each.detach().cpu() if isinstance(each, tensor) else each for each in values] for values in lists]
        self.torch.save(plain, path)

    def load(self, path: str) -> Any:
        return self.torch.load(path, weights_only=True)

    def differ(self, one: Any, other: Any) -> str:
        if not isinstance(one, self.torch.Tensor):
            return "" if one == other else f"{other!r} instead of {one!r}"
        if not isinstance(other, self.torch.Tensor):
            return f"{type(other).__name__} instead of a tensor"
        one = one.detach().cpu()
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{other.dtype} of shape {tuple(other.shape)} instead of {one.dtype} of shape {tuple(one.shape)}"
        kind = str(one.dtype).rpartition(".")[2]
        close = TOLERANCES.get(kind)
        if close is None:
            count = int((one != other).sum())
            return f"{count} of {one.numel()} values are wrong" if count else ""
        one, other = one.double(), other.double()
        near = (one - other).abs() <= close * (1 + one.abs())
        wrong = ~(near | (one == other) | (one.isnan() & other.isnan()))
        count = int(wrong.sum())
        if not count:
            return ""
        at = tuple(int(each) for each in wrong.nonzero()[0])
        return (
            f"{count} of {wrong.numel()} values are wrong; at {at} it is {other[at].item()} instead of {one[at].item()}"
        )
