"""Compiled kernels, shared by the tests of one worker."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness import kernels
from tests.harness.builder import Task, built

from akf.harness.template import Template
from akf.routes.launch_spec import parse_spec

AffineTask = Callable[..., Task]


@pytest.fixture(scope="session")
def affine(tmp_path_factory: pytest.TempPathFactory) -> AffineTask:
    """A Task `out = 2 x + 1` with kernels by name; each is compiled once."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++: apt-get install g++")
    pytest.importorskip("numpy", reason='needs numpy: pip install "ascend-kernel-forge[host]"')
    folder = tmp_path_factory.mktemp("kernels")
    spec = parse_spec(kernels.SPEC)
    done: dict[str, dict[str, str]] = {}

    def artifact(name: str) -> dict[str, str]:
        if name not in done:
            source = folder / name / "src" / f"{name}.cpp"
            source.parent.mkdir(parents=True)
            source.write_text(kernels.source(name), encoding="utf-8")
            done[name] = built(source, spec, folder)
        return done[name]

    def task(candidate: str, *, baseline: str = "honest", perturbed: str = "perturbed") -> Task:
        roles = {"baseline": baseline, "candidate": candidate, "perturbed": perturbed}
        made = Task(kernels.REFERENCE, spec, {role: dict(artifact(name)) for role, name in roles.items()})
        made.cases = [made.case(f"N{size}", {"N": size}, {}) for size in (64, 67, 1024)]
        made.rows = [made.case(f"N{size}", {"N": size}, {}) for size in (64, 1024)]
        return made

    return task


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    """One process with torch imported, from which every python child of this worker is forked."""
    pytest.importorskip("torch", reason='needs torch: pip install "ascend-kernel-forge[torch]"')
    found = Template("cpu", 1)
    yield found
    found.close()
