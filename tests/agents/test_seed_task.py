"""The seed's `Task`: its arguments, its deprecation, and what it refuses."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

from akf.agents import KernelTask, Task
from akf.contracts.problems import BlockedError, UsageError

SEED: dict[str, Any] = {
    "op_name": "relu", "task_desc": "...", "task_id": "test_task_001", "dsl": "triton_ascend", "backend": "ascend",
    "arch": "ascend910b4", "config": {}, "framework": "torch", "workflow": "coder_only_workflow",
}  # fmt: skip


def test_the_alias_is_the_seed_s_name() -> None:
    assert Task is KernelTask


def test_the_seed_s_arguments_are_taken_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = Task(**SEED)
    assert task.fields["arch"] == "ascend910b4"


def test_device_pool_works_and_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="device_pool is deprecated"):
        task = Task(**SEED, device_pool=object())
    assert task.fields == Task(**SEED).fields


@pytest.mark.parametrize("change", [{"workflow": "coder_onyl_workflow"}, {"config": {"job_type": "nonsense"}}])
def test_unknown_names_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="AKF-U721"):
        Task(**{**SEED, **change})


def test_where_nothing_can_try_it_the_environment_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AKF_SERVER_URL", raising=False)
    with pytest.raises(BlockedError, match="AKF-E721"):
        asyncio.run(Task(**SEED).run())


def test_without_a_model_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AKF_SERVER_URL", raising=False)
    done = asyncio.run(Task(**{**SEED, "op_name": "softmax", "dsl": "cpp", "backend": "cpu", "arch": "x86_64"}).run())
    assert (done.op_name, done.success, done.result["error"]) == ("softmax", False, "no coder configured")
