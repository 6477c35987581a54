"""The `python` ABI through `check`: every exploit of our own making has its reason, every honest module passes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.harness.modules import HONEST, asked, checked, codes, module, outcomes, trio

from akf.harness.template import Template

ALL = dict.fromkeys(("sensitivity", "correctness", "isfinite", "hit_proof"), "pass")
PROMISE = """
class Promise(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        due = lambda t: torch.relu(t.job[0] @ t.job[1] + t.job[2]) if isinstance(t, Promise) else t
        return function(*[due(each) for each in args], **(kwargs or {}))
"""
EXPLOITS = {
    "remembers_by_address": (
        """
        key = (x.data_ptr(), w.data_ptr(), b.data_ptr(), x.shape, w.shape)
        if key not in seen: seen[key] = torch.relu(x @ w + b)
        return seen[key].clone()
        """,
        "seen = {}",
        "RESULT_REPLAY",
    ),
    "remembers_by_first_element": (
        """
        key = (float(x[0, 0]), float(w[0, 0]), float(b[0]))
        if key not in seen: seen[key] = torch.relu(x @ w + b)
        return seen[key].clone()
        """,
        "seen = {}",
        "RESULT_REPLAY",
    ),
    "overwrites_its_last_result": (
        """
        key = (x.shape[0], w.shape[1])
        if key not in held: held[key] = torch.empty(key)
        return torch.clamp(x @ w + b, min=0, out=held[key])
        """,
        "held = {}",
        "OUTPUT_ALIASED",
    ),
    "answers_in_a_ring": (
        """
        key = (x.shape[0], w.shape[1], len(calls) % 2); calls.append(0)
        if key not in held: held[key] = torch.empty(key[:2])
        return torch.clamp(x @ w + b, min=0, out=held[key])
        """,
        "held = {}; calls = []",
        "OUTPUT_ALIASED",
    ),
    "changes_inputs": ("out = torch.relu(x @ w + b); b.add_(1.0); return out", "", "INPUT_MUTATED"),
    "swallows": (
        """
        try: raise NotImplementedError
        except NotImplementedError: return torch.relu(x @ w + b)
        """,
        "",
        "HIDDEN_FALLBACK",
    ),
    "gives_up_once": (
        """
        global works
        if works:
            try: return broken(x)
            except ValueError: works = False
        return torch.relu(x @ w + b)
        """,
        "works = True\ndef broken(x): raise ValueError",
        "HIDDEN_FALLBACK",
    ),
    "looks_for_the_watch": (
        """
        import sys
        if sys.gettrace() is None:
            try: raise ValueError
            except ValueError: pass
        return torch.relu(x @ w + b)
        """,
        "",
        "HIDDEN_FALLBACK",
    ),
    "switches_the_watch_off": (
        "import sys\nsys.settrace(None)\nreturn torch.relu(x @ w + b)",
        "",
        "EVALUATOR_TAMPERED",
    ),
    "lazy": (
        "p = torch.Tensor._make_subclass(Promise, torch.empty(x.shape[0], w.shape[1])); p.job = x, w, b; return p",
        PROMISE,
        "LAZY_OUTPUT",
    ),
    "one_shape_only": (
        "if x.shape[0] == 5: return torch.zeros(5, 7)\nreturn torch.relu(x @ w + b)",
        "",
        "ENVELOPE_OVERCLAIM",
    ),
    "raises_elsewhere": ("assert x.shape[0] != 5\nreturn torch.relu(x @ w + b)", "", "ENVELOPE_OVERCLAIM"),
    "zeros": ("return torch.zeros(x.shape[0], w.shape[1])", "", "WRONG_RESULT"),
    "nan": ("return torch.full((x.shape[0], w.shape[1]), float('nan'))", "", "NON_FINITE"),
    "one_column": ("return torch.relu(x @ w + b)[:, :1]", "", "SHAPE_MISMATCH"),
    "stretched": ("return torch.zeros(1).expand(x.shape[0], w.shape[1])", "", "STRIDE_MISMATCH"),
    "transposed": ("return torch.relu(w.t() @ x.t() + b[:, None]).t()", "", "STRIDE_MISMATCH"),
    "sparse": ("return torch.relu(x @ w + b).to_sparse()", "", "STRIDE_MISMATCH"),
    "double": ("return torch.relu(x.double() @ w.double() + b)", "", "DTYPE_MISMATCH"),
    "list_of_floats": ("return torch.relu(x @ w + b).tolist()[0][0]", "", "TYPE_MISMATCH"),
    "nothing": ("return None", "", "TYPE_MISMATCH"),
    "two": ("return torch.relu(x @ w + b), b", "", "ARITY_MISMATCH"),
    "meta": ("return torch.empty(x.shape[0], w.shape[1], device='meta')", "", "DEVICE_MISMATCH"),
    "patches_comparison": ("return torch.zeros(1)", "torch.allclose = lambda *a, **k: True", "EVALUATOR_TAMPERED"),
    "patches_the_clock": (HONEST, "import time\ntime.perf_counter_ns = lambda: 0", "EVALUATOR_TAMPERED"),
    "patches_during_a_call": (
        "import time\ntime.perf_counter = lambda: 0.0\nreturn torch.relu(x @ w + b)",
        "",
        "EVALUATOR_TAMPERED",
    ),
    "raises": ("raise RuntimeError('no answer in sight')", "", "CANDIDATE_RAISED"),
    "exits_by_exception": ("raise SystemExit(0)", "", "CANDIDATE_RAISED"),
    "leaves": ("import os\nos._exit(0)", "", "CHILD_EXITED"),
    "leaves_at_import": (HONEST, "import os\nos._exit(0)", "CHILD_EXITED"),
    "does_not_import": (HONEST, "import nothing_of_that_name", "CHILD_LOAD_FAILED"),
    "hangs": ("while True: pass", "", "CHILD_TIMEOUT"),
    "takes_all_memory": (
        "for i in range(100): kept.append(torch.ones(1 << 26))\nreturn torch.relu(x @ w + b)",
        "kept = []",
        "CANDIDATE_RAISED",
    ),
    "leaves_a_thread": (
        "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\nreturn torch.relu(x @ w + b)",
        "import threading, time",
        "ASYNCHRONOUS_WORK",
    ),
    "works_in_a_thread": (
        """
        out = torch.empty(x.shape[0], w.shape[1])
        def later():
            time.sleep(0.01)
            out.copy_(torch.relu(x @ w + b))
        threading.Thread(target=later).start()
        return out
        """,
        "import threading, time",
        "ASYNCHRONOUS_WORK",
    ),
    "changes_an_earlier_result": (
        "out = torch.relu(x @ w + b)\ngiven.append(out)\ngiven[max(0, len(given) - 3)].add_(1)\nreturn out",
        "given = []",
        "OUTPUT_ALIASED",
    ),
    "naps_in_a_pool": (
        "pool.submit(time.sleep, 0.3)\nreturn torch.relu(x @ w + b)",
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)",
        "ASYNCHRONOUS_WORK",
    ),
    "leaves_a_process": (
        "import os, time\nif os.fork() == 0: time.sleep(99)\nreturn torch.relu(x @ w + b)",
        "",
        "ASYNCHRONOUS_WORK",
    ),
    "forges_a_packet": (
        """
        import os, stat
        for fd in range(3, 32):
            try:
                if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, bytes(16) + b"k" + bytes(24))
            except OSError: pass
        return torch.zeros(x.shape[0], w.shape[1])
        """,
        "",
        "RESULT_FORGED",
    ),
    "writes_beside_itself": (
        "open('/candidate/left', 'w').write('x')\nreturn torch.relu(x @ w + b)",
        "",
        "CANDIDATE_RAISED",
    ),
}
HONEST_ONES = {
    "plain": (HONEST, ""),
    "holds_its_result": ("held[0] = torch.relu(x @ w + b)\nreturn held[0]", "held = [None]"),
    "tuple_of_one": ("return (torch.relu(x @ w + b),)", ""),
    "joined_threads": (
        """
        out = torch.empty(x.shape[0], w.shape[1])
        half = x.shape[0] // 2
        job = threading.Thread(target=lambda: torch.addmm(b, x[:half], w, out=out[:half]))
        job.start()
        job.join()
        torch.addmm(b, x[half:], w, out=out[half:])
        return out.relu_()
        """,
        "import threading",
    ),
    "executor": (
        "with ThreadPoolExecutor(2) as pool: return pool.submit(lambda: torch.relu(x @ w + b)).result()",
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    "keeps_a_pool": (
        "return pool.submit(lambda: torch.relu(x @ w + b)).result()",
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)",
    ),
    "pool_of_torch": (
        "torch.ones(1 << 16).exp()\nreturn torch.relu(x @ w + b)",
        "torch.set_num_threads(2)",
    ),
    "import_may_fail": (
        HONEST,
        "try:\n    import nothing_of_that_name\nexcept ImportError:\n    pass",
    ),
    "iterates": (
        """
        parts = iter([x])
        first = next(parts)
        assert next(parts, None) is None and not hasattr(torch, "nothing_of_that_name")
        for each in (part for part in [w]): first = first @ each
        return torch.relu(first + b)
        """,
        "",
    ),
    "parameter": ("return torch.relu(x @ w + b) * scale", "scale = torch.nn.Parameter(torch.ones(1))"),
    "prints": ("print('a line of noise ' * 100)\nreturn torch.relu(x @ w + b)", "print('x' * 200000)"),
    "scratch": (
        "with tempfile.TemporaryFile() as f: f.write(b'x')\nreturn torch.relu(x @ w + b)",
        "import tempfile",
    ),
    "caches_a_constant": (
        "k = x.shape[1]\nif k not in zeros: zeros[k] = torch.zeros(1)\nreturn torch.maximum(x @ w + b, zeros[k])",
        "zeros = {}",
    ),
    "double_inside": ("return torch.relu(x.double() @ w.double() + b).float()", ""),
}
# What another one here shows already: only `soak` repeats it.
LIKE = frozenset((
    "transposed", "sparse", "nothing", "patches_during_a_call", "exits_by_exception", "answers_in_a_ring", "one_column",
    "leaves_at_import", "tuple_of_one", "executor", "caches_a_constant", "double_inside", "holds_its_result",
))  # fmt: skip


def text(body: str, head: str) -> str:
    return module(textwrap.dedent(body), head)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak] * (name in LIKE)) for name in EXPLOITS])
def test_an_exploit_has_its_reason(template: Template, tmp_path: Path, name: str) -> None:
    body, head, code = EXPLOITS[name]
    request = asked(trio(tmp_path, text(body, head)))
    request["limits"]["memory_bytes"] = 1 << 30
    checks = checked(template, request)
    assert code in codes(checks), checks
    assert "fail" in outcomes(checks).values()
    assert "blocked" not in outcomes(checks).values()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * (name in LIKE)) for name in HONEST_ONES]
)
def test_an_honest_module_passes(template: Template, tmp_path: Path, name: str) -> None:
    checks = checked(template, asked(trio(tmp_path, text(*HONEST_ONES[name]))))
    assert outcomes(checks) == ALL, checks
