"""The operator gate whose harness a worker runs: the same gate, and a dead worker is never the candidate's fault."""

import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import ray_cluster, runs
from tests.support.runs import Ready
from tests.support.worker_service import Service, eventually, service

from akf.build import build
from akf.candidates import submit
from akf.cli.commands.elsewhere import at_worker
from akf.contracts.problems import AkfError, BlockedError, ConflictError, PreconditionError
from akf.evaluate import evaluate
from akf.fabric.elsewhere import Elsewhere, elsewhere, packed
from akf.fabric.interface import LeasingWorker
from akf.fabric.local import LocalWorker
from akf.fabric.remote import RemoteWorker
from akf.lease import FileLeases

Value = dict[str, Any]
FUSED, WRONG = "rmsnorm-fused", "rmsnorm-wrong"
HARNESS = """
import json, sys
request = json.load(open(sys.argv[2]))
kernel = open(request["artifacts"]["candidate"]["path"]).read()
json.dump({"command": sys.argv[1], "kernel": kernel}, open(sys.argv[3] + "/report.json", "w"))
"""


def code(error: AkfError) -> str:
    return error.problems[0].code


def harness(folder: Path, text: str = HARNESS) -> Path:
    with zipfile.ZipFile(folder / "harness.pyz", "w") as archive:
        archive.writestr("__main__.py", text)
    return folder / "harness.pyz"


def request(folder: Path) -> Value:
    (folder / "kernel.so").write_text("a kernel", encoding="ascii")
    return {"kind": "HarnessRequest", "artifacts": {"candidate": {"path": str(folder / "kernel.so"), "digest": "d"}}}


@contextmanager
def local(folder: Path) -> Iterator[Elsewhere]:
    async def opened() -> LeasingWorker:
        return LocalWorker("cpu", "x86_64", [0], folder / "worker")

    with elsewhere(opened, FileLeases(folder / "leases")) as there:
        yield there


@contextmanager
def at(running: Service) -> Iterator[Elsewhere]:
    async def opened() -> LeasingWorker:
        return RemoteWorker(running.url)

    with elsewhere(opened) as there:
        yield there


@contextmanager
def remote(folder: Path) -> Iterator[Elsewhere]:
    with service(folder / "service") as running, at(running) as there:
        yield there


WAYS: dict[str, Callable[[Path], AbstractContextManager[Elsewhere]]] = {"local": local, "remote": remote}


def test_a_package_has_the_same_bytes_and_no_path_of_this_machine(tmp_path: Path) -> None:
    asked = request(tmp_path)
    first, again = (packed(harness(tmp_path), "check", asked) for _ in range(2))
    assert first == again
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert tar.getnames() == [
            "command", "harness.pyz", "objects/candidate/path/kernel.so", "request", "verify_akf_gate.py",
        ]  # fmt: skip
        stored = tar.extractfile("request")
        assert stored is not None
        assert str(tmp_path) not in stored.read().decode()
    assert asked == request(tmp_path)


@pytest.mark.parametrize("way", WAYS)
class TestWorkers:
    def test_a_command_runs_under_the_lease_that_is_shown(self, way: str, tmp_path: Path) -> None:
        program, asked = harness(tmp_path), request(tmp_path)
        with WAYS[way](tmp_path) as there:
            first = there.acquire(["host"], "akf evaluate run a")
            there.check(first)
            status, _, files = there.run(program, "check", asked, 30)
            assert (status, json.loads(files["report.json"])) == (0, {"command": "check", "kernel": "a kernel"})
            assert there._leased is not None
            there._wait(there._worker.give_back(there._leased[1]))
            with pytest.raises(ConflictError) as lost:
                there.run(program, "check", asked, 30)
            assert code(lost.value) == "AKF-C502"
            with pytest.raises(ConflictError):
                there.check(first)
            there.release(first)
            second = there.acquire(["host"], "akf evaluate run a")
            assert second.token > first.token
            assert there.release(second)
            with pytest.raises(PreconditionError):
                there.acquire(["npu-0-die-0", "npu-0-die-1"], "akf evaluate run a")

    def test_what_the_machine_does_is_no_answer(self, way: str, tmp_path: Path) -> None:
        with WAYS[way](tmp_path) as there:
            there.acquire(["host"], "akf evaluate run a")
            late = harness(tmp_path, "import time; time.sleep(60)")
            with pytest.raises(BlockedError) as slow:
                there.run(late, "check", request(tmp_path), -4)
            assert code(slow.value) == "AKF-E508"
            status, said, _ = there.run(harness(tmp_path, "raise SystemExit('no')"), "check", request(tmp_path), 30)
            assert (status, said.strip()) == (1, "no")


def test_another_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with local(tmp_path) as there:
        there.acquire(["host"], "akf evaluate run a")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(997)))
        with pytest.raises(BlockedError) as caught:
            there.run(harness(tmp_path), "check", request(tmp_path), 30)
    assert code(caught.value) == "AKF-E507"


def load(run: Path, relative: str) -> Value:
    found: Value = json.loads((run / "attempts" / relative).read_bytes())
    return found


def shape(run: Path, name: str) -> Value:
    """Of a gate and its plan: all but what is measured, drawn or calibrated."""
    plan, gate = load(run, f"{name}/plan/operator.json"), load(run, f"{name}/gates/operator.json")
    outcomes = {check["name"]: check["outcome"] for check in gate["checks"]}
    compared = [each for each in outcomes if each in {"sensitivity", "correctness", "isfinite", "hit_proof"}]
    measurements = [
        {key: value for key, value in each.items() if key not in {"rows", "round_trip_ns"}}
        | {"rows": [(row["id"], row["weight"]) for row in each["rows"]]}
        for each in plan["measurements"]
    ]
    return {
        "identity": gate["identity"],
        "isolation": gate["isolation"],
        "harness": (plan["harness_digest"], gate["harness_digest"]),
        "plan": (sorted(plan), measurements, plan["cases"]),
        "checks": [(check["name"], check["category"], sorted(check)) for check in gate["checks"]][: len(compared)],
        "outcomes": {each: outcomes[each] for each in compared},
        "all": outcomes if outcomes["correctness"] == "fail" else sorted(outcomes),
        "environment": [
            (check["name"], check["outcome"]) for check in load(run, f"{name}/gates/environment.json")["checks"]
        ],
    }


def made(ready: Ready, folder: Path, name: str) -> Path:
    """A run with one built attempt."""
    run = runs.opened(ready, folder)
    submit(run, runs.submission(run / "inbox" / name, name), ready.keys)
    build(run, name, ready.keys)
    return run


@contextmanager
def in_ray(run: Path) -> Iterator[Elsewhere]:
    host = {"akf_host": 1.0, f"akf_soc_{os.uname().machine}": 1.0}
    with ray_cluster.cluster(head=host) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", found.address)
        with at_worker("ray", run, FileLeases(run.parent / "leases")) as there:
            yield there


@pytest.mark.soak
@pytest.mark.usefixtures("compiler")
@pytest.mark.filterwarnings("ignore")
class TestGate:
    @pytest.mark.parametrize("name", [WRONG, FUSED])
    def test_the_same_gate_in_process_and_through_every_worker(self, name: str, ready: Ready, tmp_path: Path) -> None:
        pytest.importorskip("ray", reason="python -m pip install 'ray>=2.40,<3'")
        pytest.importorskip("numpy", reason=runs.NUMPY)
        template = made(ready, tmp_path / "template", name)
        found = {}
        for way in ("process", "local", "remote", "ray"):
            run = runs.clone(template, tmp_path / way / "run")
            with runs.secrets_in(tmp_path / way / "state"):
                if way == "process":
                    runs.patiently(lambda run=run: evaluate(run, name, "operator", ready.keys))  # type: ignore[misc]
                else:
                    opened = in_ray(run) if way == "ray" else WAYS[way](tmp_path / way)
                    with opened as there:
                        runs.patiently(
                            lambda run=run, there=there: evaluate(  # type: ignore[misc]
                                run, name, "operator", ready.keys, leases=there, elsewhere=there.run
                            )
                        )
            found[way] = shape(run, name)
        for way, value in found.items():
            assert value == found["process"], way

    def test_a_worker_that_dies_leaves_the_gate_to_be_resumed(self, ready: Ready, tmp_path: Path) -> None:
        pytest.importorskip("numpy", reason=runs.NUMPY)
        run = made(ready, tmp_path / "made", WRONG)
        with runs.secrets_in(tmp_path / "state"):
            evaluate(run, WRONG, "environment", ready.keys)
            with service(tmp_path / "service") as running, at(running) as there:
                plan = run / "attempts" / WRONG / "plan" / "operator.json"

                def killing() -> None:
                    eventually(plan.exists, "the gate is planned", 120)
                    eventually(lambda: bool(running.gauge("akf_worker_devices", '{state="running"}')), "it runs", 60)
                    running.kill()

                killer = threading.Thread(target=killing)
                killer.start()
                with pytest.raises(BlockedError) as dead:
                    evaluate(run, WRONG, "operator", ready.keys, leases=there, elsewhere=there.run)
                killer.join()
            assert code(dead.value) == "AKF-E602"
            assert not (run / "attempts" / WRONG / "gates" / "operator.json").exists()
            committed = json.loads(plan.read_bytes())["secret_digest"]
            gate = runs.patiently(lambda: evaluate(run, WRONG, "operator", ready.keys))
        assert (gate["resumes"] >= 1, gate["status"]) == (True, "fail")
        assert load(run, f"{WRONG}/plan/operator.json")["secret_digest"] == committed
