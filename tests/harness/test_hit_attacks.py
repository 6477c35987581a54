"""Candidates that let something else do their work: each must fail, and an honest one beside it must not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.harness import kernels
from tests.harness.builder import Task, run_harness

AffineTask = Callable[..., Task]
LOADER = """
    extern void* dlopen_(const char*, int) asm("dlopen");
    extern void* dlsym_(void*, const char*) asm("dlsym");
    extern int dlclose_(void*) asm("dlclose");
    using Function = void (*)(const float*, float*, std::int64_t);
"""
LIBRARY = "libgomp.so.1"

kernels.BODIES |= {
    "calls_the_next_symbol": LOADER
    + 'if (void* it = dlsym_(reinterpret_cast<void*>(-1L), "affine")) reinterpret_cast<Function>(it)(x, out, n);',
    "opens_a_library": LOADER + f'honest(x, out, n); if (!dlopen_("{LIBRARY}", 2)) out[0] = 7.0f;',
    "is_its_own_library": LOADER
    + """
        static Function copy = nullptr;
        if (!copy) {
            // the name is that of the sealed file that the candidate itself stands in
            const int from = open("/proc/self/exe", O_RDONLY);
            const int file = memfd_create("object", 0);
            char buffer[4096];
            for (ssize_t got; from >= 0 && (got = read(from, buffer, sizeof buffer)) > 0;)
                if (write(file, buffer, got) < 0) break;
            mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
            copy = affine;
        }
        honest(x, out, n);
    """,
    "makes_code": """
        static void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        (void)code;
        honest(x, out, n);
    """,
    "rounds": "for (std::int64_t i = 0; i < n; ++i) out[i] = std::floor(0.0f) + 2.0f * x[i] + 1.0f;",
}


def proof(task: Task, out: Path) -> tuple[str, list[str]]:
    _, report = run_harness("check", task.request(), out)
    assert {name: report["checks"][name]["outcome"] for name in ("correctness", "isfinite")} == dict.fromkeys(
        ("correctness", "isfinite"), "pass"
    )
    found = report["checks"]["hit_proof"]
    assert {reason["code"] for reason in found["reasons"]} <= {"HIT_NOT_PROVED"}
    return found["outcome"], [reason["detail"] for reason in found["reasons"]]


def test_a_right_answer_with_another_librarys_help_is_no_hit(affine: AffineTask, out: Path) -> None:
    outcome, details = proof(affine("opens_a_library"), out)
    assert outcome == "fail"
    assert any(LIBRARY in detail for detail in details)


def test_a_memory_file_under_the_name_of_the_sealed_one_is_no_hit(affine: AffineTask, out: Path) -> None:
    outcome, details = proof(affine("is_its_own_library"), out)
    assert outcome == "fail"
    assert details == ["positive control: its process can execute a memory file, which is not its Build's"]


def test_code_that_it_makes_itself_is_no_hit(affine: AffineTask, out: Path) -> None:
    outcome, details = proof(affine("makes_code"), out)
    assert (outcome, details) == ("fail", ["positive control: its process can execute memory that holds no file"])


def test_the_baselines_function_is_out_of_reach(affine: AffineTask, out: Path) -> None:
    """Who looks for the next function of the same name finds none, and writes nothing."""
    _, report = run_harness("check", affine("calls_the_next_symbol").request(), out)
    assert report["checks"]["correctness"]["outcome"] == "fail"
    assert "OUTPUT_NOT_WRITTEN" in {reason["code"] for reason in report["checks"]["correctness"]["reasons"]}


def test_the_baselines_file_is_out_of_reach(affine: AffineTask, out: Path) -> None:
    path = affine("honest").artifacts["baseline"]["path"]
    kernels.BODIES["opens_the_baseline"] = (
        LOADER
        + f"""
        void* it = dlopen_("{path}", 2);
        if (it) reinterpret_cast<Function>(dlsym_(it, "affine"))(x, out, n);
    """
    )
    _, report = run_harness("check", affine("opens_the_baseline").request(), out)
    outcomes = {name: report["checks"][name]["outcome"] for name in ("correctness", "hit_proof")}
    assert "fail" in outcomes.values()
    assert outcomes["correctness"] == "fail" or report["facts"]["isolation"] == "none"


@pytest.mark.parametrize("name", ["honest", "rounds"])
def test_honest_kernels_are_hits(affine: AffineTask, out: Path, name: str) -> None:
    assert proof(affine(name), out) == ("pass", [])


def test_a_wrong_twin_that_changes_nothing_is_no_hit(affine: AffineTask, out: Path) -> None:
    outcome, details = proof(affine("honest", perturbed="rounds"), out)
    assert outcome == "fail"
    assert {detail.partition(":")[0] for detail in details} == {"perturbation control"}
    assert len(details) == 2


def test_the_same_bytes_in_two_processes_are_told_apart(affine: AffineTask, out: Path) -> None:
    """Of the baseline's very bytes, each process has a sealed file of its own."""
    task = affine("honest")
    assert task.artifacts["candidate"]["digest"] == task.artifacts["baseline"]["digest"]
    assert proof(task, out) == ("pass", [])
