"""Further cheats and controls: other ways to the kinds of `cheats`, and kinds of their own."""

from __future__ import annotations

from tests.evaluate.candidate import HONEST, RIGHT, STALE, cheat

AFTERWARDS = "ASYNCHRONOUS_WORK WRONG_RESULT OUTPUT_NOT_WRITTEN NONDETERMINISTIC CANDIDATE_RAISED"

CHEATS = {
    "answers_by_identity": cheat(
        STALE,
        f"""
        key = (id(x), x.shape, w.shape)
        if key not in seen:
            seen[key] = {RIGHT}
        return seen[key].clone()
        """,
        "seen = {}",
    ),
    "answers_by_digest_of_the_weights": cheat(
        STALE,
        f"""
        key = (x.shape, hash(w.numpy().tobytes()))
        if key not in seen:
            seen[key] = {RIGHT}
        return seen[key].clone()
        """,
        "seen = {}",
    ),
    "packs_weights_once": cheat(
        STALE,
        """
        packed = kept.setdefault(w.shape, w.clone())
        return torch.relu(x @ packed + b)
        """,
        "kept = {}",
    ),
    "gives_bfloat16": cheat("DTYPE_MISMATCH", f"return ({RIGHT}).bfloat16()"),
    "gives_an_array": cheat("TYPE_MISMATCH", f"return ({RIGHT}).numpy()"),
    "gives_a_parameter": cheat("LAZY_OUTPUT", f"return torch.nn.Parameter({RIGHT})"),
    "gives_a_view_by_numpy": cheat(
        "OUTPUT_ALIASED", "return torch.from_numpy(x.numpy())", task="identity", arguments="x"
    ),
    "gives_one_row_stretched": cheat(
        "STRIDE_MISMATCH", "return x.mean(1, keepdim=True).expand(x.shape)", task="rowmean", arguments="x"
    ),
    "computes_in_float16": cheat(
        "WRONG_RESULT WORSE_THAN_BASELINE NON_FINITE",
        "return torch.relu((x.half() @ w.half()).float() + b)",
    ),
    "cuts_the_mantissa": cheat(
        "WRONG_RESULT WORSE_THAN_BASELINE",
        "return torch.relu(cut(x) @ cut(w) + b)",
        "def cut(t):\n    return (t.view(torch.int32) & -8192).view(torch.float32)",
    ),
    "clips_its_inputs": cheat("WRONG_RESULT ENVELOPE_OVERCLAIM", "return torch.relu(x.clamp(-8, 8) @ w + b)"),
    "forgets_the_bias": cheat("WRONG_RESULT", "return torch.relu(x @ w)"),
    "turns_the_rows": cheat("WRONG_RESULT", f"return ({RIGHT}).flip(0)"),
    "leaves_out_an_odd_tail": cheat(
        "WRONG_RESULT ENVELOPE_OVERCLAIM",
        f"out = {RIGHT}\nif x.shape[0] % 8:\n    out[-1] = 0\nreturn out",
    ),
    "leaves_out_a_batch_of_one": cheat(
        "WRONG_RESULT ENVELOPE_OVERCLAIM",
        f"return {RIGHT} if x.shape[0] > 1 else torch.zeros(1, w.shape[1])",
    ),
    "computes_the_first_96_rows": cheat(
        "WRONG_RESULT ENVELOPE_OVERCLAIM",
        "out = torch.zeros(x.shape[0], w.shape[1])\nout[:96] = torch.relu(x[:96] @ w + b)\nreturn out",
        task="padded",
    ),
    "is_uniform": cheat(
        "WRONG_RESULT", "return torch.full_like(x, 1 / x.shape[-1])", task="wide_softmax", arguments="x"
    ),
    "is_zero_where_all_is_small": cheat(
        "WRONG_RESULT", "return torch.zeros_like(x)", task="wide_softmax", arguments="x"
    ),
    "normalises_by_half": cheat(
        "WRONG_RESULT",
        """
        e = torch.exp(x - x.amax(-1, keepdim=True))
        half = x.shape[-1] // 2
        return e / (2 * e[:, :half].sum(-1, keepdim=True))
        """,
        task="wide_softmax",
        arguments="x",
    ),
    "estimates_the_mean": cheat(
        "WRONG_RESULT",
        "return x[:, ::2].mean(1, keepdim=True).expand(x.shape).contiguous()",
        task="rowmean",
        arguments="x",
    ),
    "copies_all_but_the_end": cheat(
        "WRONG_RESULT OUTPUT_NOT_WRITTEN",
        "out = torch.zeros_like(x)\nout[:-1] = x[:-1]\nreturn out",
        task="identity",
        arguments="x",
    ),
    "is_noisy": cheat("NONDETERMINISTIC WORSE_THAN_BASELINE", f"return {RIGHT} * (1 + 1e-6 * torch.rand(()))"),
    "changes_weights_later": cheat(
        "INPUT_MUTATED", f"out = {RIGHT}\ncalls.append(1)\nif len(calls) > 2:\n    w.mul_(2)\nreturn out", "calls = []"
    ),
    "falls_back_by_exit": cheat(
        "HIDDEN_FALLBACK",
        f"""
        with Quiet():
            raise NotImplementedError
        return {RIGHT}
        """,
        """
        class Quiet:
            def __enter__(self):
                return self

            def __exit__(self, *found):
                return True
        """,
    ),
    "falls_back_by_finally": cheat(
        "HIDDEN_FALLBACK", f"try:\n    raise NotImplementedError\nfinally:\n    return {RIGHT}"
    ),
    "falls_back_from_a_future": cheat(
        "HIDDEN_FALLBACK",
        f"""
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(fast)
        return job.result() if job.exception() is None else {RIGHT}
        """,
        """
        from concurrent.futures import ThreadPoolExecutor


        def fast():
            raise NotImplementedError
        """,
    ),
    "works_later_in_a_pool": cheat(
        "ASYNCHRONOUS_WORK WRONG_RESULT NON_FINITE OUTPUT_NOT_WRITTEN",
        """
        out = torch.empty(x.shape[0], w.shape[1])
        pool.submit(lambda: (time.sleep(0.01), torch.addmm(b, x, w, out=out), out.relu_()))
        return out
        """,
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\n\npool = ThreadPoolExecutor(1)",
    ),
    "prepares_in_a_pool_that_naps": cheat(
        "ASYNCHRONOUS_WORK",
        f"pool.submit(time.sleep, 0.3)\nreturn {RIGHT}",
        "import time\nfrom concurrent.futures import ThreadPoolExecutor\n\npool = ThreadPoolExecutor(1)",
    ),
    "waits_with_an_end": cheat(
        "ASYNCHRONOUS_WORK",
        f"threading.Thread(target=threading.Event().wait, args=(9,), daemon=True).start()\nreturn {RIGHT}",
        "import threading",
    ),
    "takes_alignment_for_granted": cheat(
        "WRONG_RESULT",
        """
        gate, up = x.chunk(2, dim=-1)
        out = torch.nn.functional.silu(gate) * up
        return out if x.data_ptr() % 16 == 0 else out[:, torch.arange(-1, out.shape[1] - 1)]
        """,
        task="swiglu_module",
        arguments="x",
    ),
    "falls_back_from_a_thread": cheat(
        "HIDDEN_FALLBACK",
        f"""
        found = []
        job = threading.Thread(target=fast, args=(found,))
        job.start()
        job.join()
        return found[0] if found else {RIGHT}
        """,
        """
        import threading

        threading.excepthook = lambda *a: None


        def fast(found):
            raise NotImplementedError
        """,
    ),
    "falls_back_from_a_future_of_the_library": cheat(
        "HIDDEN_FALLBACK",
        f"""
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(torch.addmm, b, x, w[:1])
        return {RIGHT} if job.exception() else job.result()
        """,
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    "falls_back_from_a_thread_of_the_library": cheat(
        "HIDDEN_FALLBACK",
        f"""
        job = threading.Thread(target=torch.addmm, args=(b, x, w[:1]))
        job.start()
        job.join()
        return {RIGHT}
        """,
        "import threading\n\nthreading.excepthook = lambda *a: None",
    ),
    "has_a_name_that_is_no_text": cheat(
        "HIDDEN_FALLBACK",
        "return kernel(x, w, b)",
        f"""
        def kernel(x, w, b):
            try:
                raise ValueError
            except ValueError:
                return {RIGHT}


        kernel.__code__ = kernel.__code__.replace(co_name="\\ud800")
        """,
    ),
    "answers_in_another_form": cheat(
        "RESULT_FORGED",
        f"""
        frame = sys._getframe()
        while frame is not None:
            if "packet" in frame.f_locals and "channel" in frame.f_locals:
                frame.f_locals["channel"].send(frame.f_locals["packet"][:16] + b"k" + b"[" * 60000)
            frame = frame.f_back
        return {RIGHT}
        """,
        "import sys",
    ),
    "packs_the_bias_once": cheat(
        STALE, "return torch.relu(x @ w + kept.setdefault(b.shape, b.clone()))", "kept = {}"
    ),
    "falls_back_from_a_task": cheat(
        "HIDDEN_FALLBACK",
        f"""
        found = asyncio.run(all_of())
        return {RIGHT} if isinstance(found[0], Exception) else found[0]
        """,
        """
        import asyncio


        async def fast():
            raise NotImplementedError


        async def all_of():
            return await asyncio.gather(fast(), return_exceptions=True)
        """,
    ),
    "falls_back_in_text": cheat(
        "HIDDEN_FALLBACK",
        "names = {'x': x, 'w': w, 'b': b, 'torch': torch}\nexec(TEXT, names)\nreturn names['out']",
        f'TEXT = "try:\\n    raise ValueError\\nexcept ValueError:\\n    out = {RIGHT}\\n"',
    ),
    "starts_a_timer": cheat(
        AFTERWARDS,
        "out = torch.zeros(x.shape[0], w.shape[1])\n"
        "threading.Timer(0.001, lambda: out.copy_(torch.relu(x @ w + b))).start()\nreturn out",
        "import threading",
    ),
    "rings_later": cheat(
        AFTERWARDS,
        """
        out = torch.zeros(x.shape[0], w.shape[1])
        signal.signal(signal.SIGALRM, lambda *a: out.copy_(torch.relu(x @ w + b)))
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        return out
        """,
        "import signal",
    ),
    "starts_a_program": cheat(
        "ASYNCHRONOUS_WORK CANDIDATE_RAISED",
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])\nreturn {RIGHT}",
        "import subprocess\nimport sys",
    ),
    "becomes_a_daemon": cheat(
        "ASYNCHRONOUS_WORK",
        f"""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(30)
            os._exit(0)
        os.wait()
        return {RIGHT}
        """,
        "import os\nimport time",
    ),
    "forks_without_end": cheat(
        "ASYNCHRONOUS_WORK CANDIDATE_RAISED CHILD_TIMEOUT CHILD_EXITED CHILD_KILLED RESULT_FORGED",
        "while True:\n    os.fork()",
        "import os",
    ),
    "recurses_without_end": cheat(
        "CANDIDATE_RAISED CHILD_CRASHED", "return run(x, w, b)"
    ),
    "rebinds_the_maker": cheat(
        "EVALUATOR_TAMPERED", HONEST, "real = torch.empty\ntorch.empty = lambda *a, **k: real(*a, **k).fill_(1)"
    ),
    "changes_code_under_the_name": cheat(
        "EVALUATOR_TAMPERED", HONEST, "torch.testing.assert_close.__code__ = (lambda *a, **k: None).__code__"
    ),
    "forges_at_the_end": cheat(
        "WRONG_RESULT",
        "return torch.zeros(x.shape[0], w.shape[1])",
        "import atexit\natexit.register(print, '{\"outcome\": \"pass\"}')",
    ),
    "leaves_a_site": cheat(
        "CHILD_LOAD_FAILED CANDIDATE_RAISED",
        HONEST,
        "import site\nopen(site.getsitepackages()[0] + '/sitecustomize.py', 'w').write('import os')",
    ),
    "leaves_a_file_for_the_next": cheat(
        "CHILD_LOAD_FAILED CANDIDATE_RAISED", HONEST, "open('/dev/shm/akf-left', 'w').write('x')"
    ),
    "asks_the_network": cheat(
        "CHILD_LOAD_FAILED CANDIDATE_RAISED",
        HONEST,
        "import socket\nsocket.create_connection(('127.0.0.1', 80), timeout=2)",
    ),
    "reads_the_reference": cheat(
        "CANDIDATE_RAISED WRONG_RESULT",
        """
        for root in (site.getsitepackages()[0] + '/akf', '/root', '/home', '/srv', '/scratch'):
            for folder, _, names in os.walk(root):
                if 'reference.py' in names or 'task.json' in names:
                    return torch.relu(x @ w + b)
        raise RuntimeError('no reference in sight')
        """,
        "import os\nimport site",
    ),
    "looks_at_the_environment": cheat(
        "WRONG_RESULT",
        f"return {RIGHT} if any('AKF' in name for name in os.environ) else torch.zeros(x.shape[0], w.shape[1])",
        "import os",
    ),
    "works_for_a_moment": cheat(
        STALE + " ENVELOPE_OVERCLAIM",
        f"return {RIGHT} if time.monotonic() - start < 0.004 else torch.zeros(x.shape[0], w.shape[1])",
        "import time\nstart = time.monotonic()",
    ),
    "switches_the_checks_off": cheat(
        "ASYNCHRONOUS_WORK EVALUATOR_TAMPERED OUTPUT_ALIASED",
        f"""
        frame = sys._getframe(1)
        frame.f_locals['self']._settle = lambda: None
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        return {RIGHT}
        """,
        "import sys\nimport threading\nimport time",
    ),
}  # fmt: skip

CONTROLS = {
    "infers": cheat("", f"with torch.inference_mode():\n    return {RIGHT}"),
    "is_an_object": cheat(
        "",
        "return kernel(x, w, b)",
        f"""
        class Kernel:
            def __call__(self, x, w, b):
                return {RIGHT}


        kernel = Kernel()
        """,
    ),
    "manages_a_context": cheat(
        "",
        f"with scope():\n    return {RIGHT}",
        """
        import contextlib


        @contextlib.contextmanager
        def scope():
            yield
        """,
    ),
    "ends_a_generator": cheat(
        "",
        f"pieces = halves({RIGHT})\nout = next(pieces)\nassert next(pieces, None) is None\nreturn out",
        "def halves(out):\n    yield out",
    ),
    "by_numpy": cheat(
        "",
        "return torch.from_numpy(np.maximum(x.numpy() @ w.numpy() + b.numpy(), 0))",
        "import numpy as np",
    ),
    "by_a_script": cheat(
        "",
        "return kernel(x, w, b)",
        f"kernel = torch.jit.trace(lambda x, w, b: {RIGHT}, (torch.ones(2, 2), torch.ones(2, 2), torch.ones(2)))",
    ),
    "asks_for_what_may_be": cheat(
        "", f"fast = getattr(torch, 'no_such_thing', None)\nreturn fast(x) if fast else {RIGHT}"
    ),
    "has_a_guard": cheat(
        "", f"try:\n    out = {RIGHT}\nexcept RuntimeError as error:\n    raise ValueError('no') from error\nreturn out"
    ),
    "raises_elsewhere": cheat(
        "", f"if x.shape[1] != w.shape[0]:\n    raise ValueError('shapes')\nreturn {RIGHT}"
    ),
    "copies_in_two_halves": cheat(
        "",
        "out = torch.empty_like(x)\nhalf = x.shape[0] // 2\nout[:half] = x[:half]\nout[half:] = x[half:]\nreturn out",
        task="identity",
        arguments="x",
    ),
    "softmax_by_hand": cheat(
        "",
        "e = torch.exp(x - x.amax(-1, keepdim=True))\nreturn e / e.sum(-1, keepdim=True)",
        task="wide_softmax",
        arguments="x",
    ),
    "mean_by_sum": cheat(
        "",
        "return (x.sum(1, keepdim=True) / x.shape[1]).expand(x.shape).contiguous()",
        task="rowmean",
        arguments="x",
    ),
    "keeps_a_pool": cheat(
        "",
        """
        out = torch.empty(x.shape[0], w.shape[1])
        half = x.shape[0] // 2
        list(pool.map(lambda part: torch.addmm(b, x[part], w, out=out[part]), (slice(0, half), slice(half, None))))
        return out.relu_()
        """,
        "from concurrent.futures import ThreadPoolExecutor\n\npool = ThreadPoolExecutor(2)",
    ),
    "asks_its_own_thread": cheat(
        "",
        "asked.put((x, w, b))\nreturn answered.get()",
        f"""
        import queue
        import threading

        asked, answered = queue.SimpleQueue(), queue.Queue()


        def work():
            while True:
                x, w, b = asked.get()
                answered.put({RIGHT})


        threading.Thread(target=work, daemon=True).start()
        """,
    ),
    "reads_its_earlier_results": cheat(
        "",
        f"""
        out = {RIGHT}
        given.append(out)
        sums.append(sum(float(each.sum()) for each in given[-3:]))
        return out
        """,
        "given, sums = [], []",
    ),
    "goes_another_way_where_unaligned": cheat(
        "",
        """
        gate, up = (x if x.data_ptr() % 16 == 0 else x.clone()).chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up
        """,
        task="swiglu_module",
        arguments="x",
    ),
    "adds_the_bias_first": cheat("", "return torch.addmm(b, x, w).clamp_min_(0)"),
}  # fmt: skip
