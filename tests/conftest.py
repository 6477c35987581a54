"""Shared by all tests: nothing that is needed may be missing where that is promised, and runs to work on.

Fixtures that end in `_run` give each test a copy of its own; what they are copied from is made once a session.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.support import evidence, runs, soak

from akf.contracts.problems import BlockedError
from akf.lease import VARIABLE

NOTHING_MISSING = "AKF_NOTHING_MISSING"

settings.register_profile("akf", deadline=None)  # no test is timed: machines are shared
settings.load_profile("akf")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be missing, a skip is a failure."""
    del item, call
    report = yield
    _promise(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """As above, for a file that skips itself."""
    del collector
    report = yield
    _promise(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the long tests, those of the named slice."""
    items[:] = [
        item
        for item in items
        if item.get_closest_marker("soak") is None
        or not isinstance(item, pytest.Function)
        or soak.taken(item.nodeid, item.module)
    ]


def _promise(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome == "skipped" and os.environ.get(NOTHING_MISSING) and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, although {NOTHING_MISSING} promises everything: {report.longrepr}"


@pytest.fixture(scope="session", autouse=True)
def _own_leases(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A worker's tests take turns; other workers, and this machine's users, have their own leases."""
    os.environ[VARIABLE] = str(tmp_path_factory.mktemp("leases"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> runs.Shared:
    """Things that are made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    return runs.Shared(base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keys and secrets of this test's own; the user's are out of reach."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("AKF_KEYS", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AKF_STATE", str(home / "state"))
    return home


@pytest.fixture(scope="session")
def ready(shared: runs.Shared) -> runs.Ready:
    """A ready Suite for this machine; read it, do not change it."""
    folder = shared.make("ready", lambda folder: runs.ready(folder, runs.quick))
    return runs.Ready(folder / "suite", folder / "keys")


@pytest.fixture
def my_ready(ready: runs.Ready, tmp_path: Path) -> runs.Ready:
    """A ready Suite of the test's own."""
    return runs.Ready(runs.clone(ready.folder, tmp_path / "my-suite"), ready.keys)


@pytest.fixture
def open_run(shared: runs.Shared, ready: runs.Ready, tmp_path: Path) -> Path:
    """A run with an open Task."""
    folder = shared.make("opened", lambda folder: runs.opened(ready, folder))
    return runs.clone(folder / "run", tmp_path / "run")


@pytest.fixture(scope="session")
def whole(shared: runs.Shared) -> Path:
    """A run with one attempt, all six gates and no Decision, under `run`, with its `keys`; made without a compiler."""

    def make(folder: Path) -> None:
        runs.on_disk(evidence.evidence(), folder / "run")
        runs.evidence_keys(folder / "keys")

    return shared.make("whole", make)


@pytest.fixture
def whole_run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return runs.clone(whole / "run", tmp_path / "run")


@pytest.fixture(scope="session")
def whole_keys(whole: Path) -> Path:
    """Its keys."""
    return whole / "keys"


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skip where there is none."""
    if shutil.which("g++") is None:
        pytest.skip(runs.COMPILER)


@pytest.fixture(scope="session")
def measured(shared: runs.Shared, ready: runs.Ready, compiler: None) -> Path:
    """The folder of a run that was built and measured here, and of its secrets: `run` and `state`."""
    del compiler
    pytest.importorskip("numpy", reason=runs.NUMPY)
    try:
        return shared.make("measured", lambda folder: runs.measured(ready, folder))
    except BlockedError as error:
        pytest.skip(f"this machine cannot be timed now: {error}")


@pytest.fixture
def measured_run(measured: Path, tmp_path: Path, state: Path) -> Path:
    """A copy of it, with its secrets in place."""
    runs.clone(measured / "state", state / "state")
    return runs.clone(measured / "run", tmp_path / "run")
