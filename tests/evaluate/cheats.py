"""Candidates of the `python` ABI that cheat, each with the reasons that a true evaluator may give, and honest ones.

All are of the shipped Task `small` (ReLU of a linear layer) where no other is named. `head` stands before the function,
`body` in it. A control is honest however odd it looks.
"""

from __future__ import annotations

from tests.evaluate import cheats_further
from tests.evaluate.candidate import HONEST, RIGHT, STALE, cheat

CHEATS = {
    "answers_by_address": cheat(
        STALE,
        f"""
        key = x.data_ptr()
        if key not in seen:
            seen[key] = {RIGHT}
        return seen[key].clone()
        """,
        "seen = {}",
    ),
    "answers_by_shape": cheat(
        STALE,
        f"""
        if x.shape not in seen:
            seen[x.shape] = {RIGHT}
        return seen[x.shape].clone()
        """,
        "seen = {}",
    ),
    "answers_by_first_element": cheat(
        STALE,
        f"""
        key = (x.shape, float(x[0, 0]))
        if key not in seen:
            seen[key] = {RIGHT}
        return seen[key].clone()
        """,
        "seen = {}",
    ),
    "answers_by_version": cheat(
        STALE,
        f"""
        key = (x.shape, x._version)
        if key not in seen:
            seen[key] = {RIGHT}
        return seen[key].clone()
        """,
        "seen = {}",
    ),
    "the_same_memory_again": cheat(
        "OUTPUT_ALIASED",
        """
        out = kept.setdefault((x.shape[0], w.shape[1]), torch.empty(x.shape[0], w.shape[1]))
        return torch.addmm(b, x, w, out=out).relu_()
        """,
        "kept = {}",
    ),
    "writes_into_an_earlier_result": cheat(
        "OUTPUT_ALIASED",
        f"""
        out = {RIGHT}
        for earlier in given:
            earlier.zero_()
        given[:] = [out]
        return out
        """,
        "given = []",
    ),
    "writes_into_an_old_result": cheat(
        "OUTPUT_ALIASED",
        f"""
        out = {RIGHT}
        given.append(out)
        if len(given) == 4:
            given[0][-1, -1] += 1
        return out
        """,
        "given = []",
    ),
    "zeroes_its_inputs": cheat("INPUT_MUTATED", f"out = {RIGHT}\nx.zero_()\nreturn out"),
    "writes_beside": cheat(
        "OUT_OF_BOUNDS_WRITE CHILD_CRASHED INPUT_MUTATED",
        f"""
        ctypes.memset(x.data_ptr() + x.nelement() * 4, 0, 64)
        return {RIGHT}
        """,
        "import ctypes",
    ),
    "gives_a_view_of_the_input": cheat("OUTPUT_ALIASED", "return x", task="identity", arguments="x"),
    "is_lazy": cheat(
        "LAZY_OUTPUT",
        """
        promise = torch.Tensor._make_subclass(Promise, torch.empty(x.shape[0], w.shape[1]))
        promise.job = (x, w, b)
        return promise
        """,
        """
        class Promise(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, arguments=(), named=None):
                due = [torch.relu(a.job[0] @ a.job[1] + a.job[2]) if isinstance(a, Promise) else a for a in arguments]
                return function(*due, **(named or {}))
        """,
    ),
    "computes_in_double": cheat("DTYPE_MISMATCH", "return torch.relu(x.double() @ w.double() + b.double())"),
    "computes_in_half": cheat(
        "WRONG_RESULT WORSE_THAN_BASELINE",
        "return torch.relu((x.bfloat16() @ w.bfloat16()).float() + b)",
    ),
    "gives_what_is_nowhere": cheat(
        "DEVICE_MISMATCH", "return torch.empty(x.shape[0], w.shape[1], device='meta')"
    ),
    "gives_a_list_too_many": cheat("ARITY_MISMATCH", f"out = {RIGHT}\nreturn out, out.clone()"),
    "gives_a_generator": cheat("TYPE_MISMATCH", f"return (each for each in [{RIGHT}])"),
    "gives_one_column": cheat("SHAPE_MISMATCH", "return x.mean(1, keepdim=True)", task="rowmean", arguments="x"),
    "gives_a_transposed_memory": cheat("STRIDE_MISMATCH", f"return ({RIGHT}).t().contiguous().t()"),
    "is_not_a_number": cheat("NON_FINITE", "return torch.full((x.shape[0], w.shape[1]), float('nan'))"),
    "leaves_out_the_tail": cheat(
        "WRONG_RESULT OUTPUT_NOT_WRITTEN",
        f"out = {RIGHT}\nout[-1, -1] = 0.5 + out[-1, -1]\nreturn out",
    ),
    "knows_the_published_shape": cheat(
        "ENVELOPE_OVERCLAIM WRONG_RESULT",
        f"return {RIGHT} if x.shape == (96, 96) else torch.zeros(x.shape[0], w.shape[1])",
    ),
    "skips_rows_that_may_be_padding": cheat(
        "WRONG_RESULT",
        """
        out = torch.zeros(x.shape[0], w.shape[1])
        some = max(1, x.shape[0] // 4)
        out[:some] = torch.relu(x[:some] @ w + b)
        return out
        """,
        task="padded",
    ),
    "does_half_of_what_is_asked": cheat(
        "WRONG_RESULT",
        "return torch.relu(x @ w + b), torch.ones(x.shape[0])",
        task="two_out",
    ),
    "falls_back": cheat(
        "HIDDEN_FALLBACK",
        f"try:\n    return fast(x)\nexcept Exception:\n    return {RIGHT}",
        "def fast(x):\n    raise NotImplementedError",
    ),
    "falls_back_in_a_helper": cheat(
        "HIDDEN_FALLBACK",
        f"return attempt(x, w, b) if attempt(x, w, b) is not None else {RIGHT}",
        """
        import contextlib


        def attempt(x, w, b):
            with contextlib.suppress(RuntimeError):
                raise RuntimeError("tile shape unsupported")
            return None
        """,
    ),
    "works_later": cheat(
        "ASYNCHRONOUS_WORK WRONG_RESULT OUTPUT_NOT_WRITTEN NONDETERMINISTIC",
        """
        out = torch.zeros(x.shape[0], w.shape[1])
        threading.Thread(target=lambda: (time.sleep(0.01), torch.addmm(b, x, w, out=out), out.relu_())).start()
        return out
        """,
        "import threading\nimport time",
    ),
    "leaves_a_thread": cheat(
        "ASYNCHRONOUS_WORK",
        f"threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\nreturn {RIGHT}",
        "import threading\nimport time",
    ),
    "forks": cheat(
        "ASYNCHRONOUS_WORK CANDIDATE_RAISED CHILD_EXITED RESULT_FORGED",
        f"if os.fork() == 0:\n    time.sleep(30)\n    os._exit(0)\nreturn {RIGHT}",
        "import os\nimport time",
    ),
    "forges_the_end": cheat("CHILD_EXITED", "os.write(1, b'{\"correct\": true}')\nos._exit(0)", "import os"),
    "leaves_at_exit": cheat("CHILD_EXITED CANDIDATE_RAISED", "raise SystemExit(0)"),
    "crashes": cheat("CHILD_CRASHED", "ctypes.string_at(8)\nreturn x", "import ctypes"),
    "hangs": cheat("CHILD_TIMEOUT", "while True:\n    pass"),
    "eats_memory": cheat(
        "CHILD_OOM CANDIDATE_RAISED CHILD_KILLED",
        f"held.append(bytearray(1 << 34))\nheld[-1][::4096] = b'1' * (1 << 22)\nreturn {RIGHT}",
        "held = []",
    ),
    "rebinds_the_comparison": cheat(
        "EVALUATOR_TAMPERED", "return torch.zeros(x.shape[0], w.shape[1])", "torch.allclose = lambda *a, **k: True"
    ),
    "rebinds_the_clock": cheat("EVALUATOR_TAMPERED", HONEST, "import time\ntime.perf_counter_ns = lambda: 0"),
    "climbs_for_the_answer": cheat(
        "CANDIDATE_RAISED WRONG_RESULT",
        """
        frame = sys._getframe()
        while frame is not None:
            for value in frame.f_locals.values():
                if type(value) is torch.Tensor and tuple(value.shape) == (x.shape[0], w.shape[1]) and value is not x:
                    return value.clone()
            frame = frame.f_back
        raise RuntimeError("no answer in sight")
        """,
        "import sys",
    ),
    "searches_the_heap_for_the_answer": cheat(
        "CANDIDATE_RAISED WRONG_RESULT NON_FINITE HIDDEN_FALLBACK",
        """
        for value in gc.get_objects():
            if isinstance(value, dict) and "expected" in value:
                return value["expected"]
        raise RuntimeError("no answer in sight")
        """,
        "import gc",
    ),
    "counts_its_calls": cheat(
        STALE + " ENVELOPE_OVERCLAIM",
        f"calls.append(1)\nreturn {RIGHT} if len(calls) < 4 else torch.zeros(x.shape[0], w.shape[1])",
        "calls = []",
    ),
    "does_not_load": cheat("CHILD_LOAD_FAILED", HONEST, "import a_module_that_is_not_there"),
    "raises": cheat("CANDIDATE_RAISED", "raise ValueError('no')"),
}  # fmt: skip

CONTROLS = {
    "plain": cheat("", HONEST),
    "joins_its_threads": cheat(
        "",
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
    "cleans_up": cheat("", f"try:\n    return {RIGHT}\nfinally:\n    del x"),
    "remembers_constants": cheat(
        "",
        "return torch.maximum(x @ w + b, zero())",
        "import functools\n\n\n@functools.lru_cache\ndef zero():\n    return torch.zeros(())",
    ),
    "works_in_place_on_its_own": cheat("", "out = x @ w\nout += b\nreturn out.clamp_(min=0)"),
    "gives_a_view_of_its_own": cheat(
        "",
        f"whole = torch.zeros(x.shape[0] + 1, w.shape[1])\nwhole[1:] = {RIGHT}\nreturn whole[1:]",
    ),
    "iterates": cheat(
        "",
        f"rows = next(piece for piece in pieces({RIGHT}))\nreturn rows",
        "def pieces(out):\n    yield out\n    return",
    ),
    "prints": cheat("", f"print('x' * 100000)\nreturn {RIGHT}"),
    "skips_rows_that_are_zero": cheat(
        "",
        """
        out = torch.relu(b).expand(x.shape[0], w.shape[1]).contiguous()
        some = x.abs().amax(1) > 0
        out[some] = torch.relu(x[some] @ w + b)
        return out
        """,
        task="padded",
    ),
    "two_results": cheat("", "return torch.relu(x @ w + b), torch.linalg.svdvals(x)", task="two_out"),
    "copies": cheat("", "return torch.empty_like(x).copy_(x)", task="identity", arguments="x"),
    "other_order_of_sums": cheat(
        "", "half = x.shape[1] // 2\nreturn torch.relu(x[:, :half] @ w[:half] + x[:, half:] @ w[half:] + b)"
    ),
}
CHEATS |= cheats_further.CHEATS
CONTROLS |= cheats_further.CONTROLS
QUICK = (
    "plain", "joins_its_threads", "answers_by_first_element", "answers_by_identity", "falls_back_in_a_helper",
    "knows_the_published_shape",
    "is_lazy", "works_later",
)  # fmt: skip
"""Those that every run of the tests tries; the long suites try all."""
