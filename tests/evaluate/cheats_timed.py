"""Candidates that are right as long as nobody times them, or that work around the clock; and honest ones beside them.

They look at what calls them, as hostile modules may. Each is tried with the clock.
"""

from __future__ import annotations

from tests.evaluate.candidate import HONEST, RIGHT, cheat

WHOLE = """
import sys


def whole(me, first, count, order):
    parts = [torch.stack([each[place] for each in me._inputs[first:first + count]]) for place in range(3)]
    out = torch.relu(torch.baddbmm(parts[2][:, None, :], parts[0], parts[1]))
    for slot in order(range(count)):
        me._outputs[first + slot][0].copy_(out[slot])
"""


def _batch(order: str) -> str:
    """The first call of a batch does the work of all, and lets no later result be taken."""
    return f"""
    seen = sys._getframe(1).f_locals
    me = seen.get("self")
    if me is None or seen.get("count", 1) < 2:
        return {RIGHT}
    if seen["slot"] > seen["first"]:
        return None
    whole(me, seen["first"], seen["count"], {order})
    if "_deliver" not in me.__dict__:
        real = me._deliver
        me._deliver = lambda result, into: None if result is None else real(result, into)
    return {RIGHT}
    """


CHEATS = {
    "does_a_batch_at_once": cheat("RESULT_REPLAY", _batch("list"), WHOLE),
    "does_a_batch_backwards": cheat("RESULT_REPLAY", _batch("reversed"), WHOLE),
    "does_a_batch_from_the_middle": cheat(
        "RESULT_REPLAY",
        _batch("lambda slots: sorted(slots, key=lambda slot: (slot != len(slots) // 8, -slot))"),
        WHOLE,
    ),
    "leaves_out_every_third_of_a_batch": cheat(
        "WRONG_RESULT",
        f"""
        seen = sys._getframe(1).f_locals
        left_out = seen.get("count", 1) > 1 and seen["slot"] % 3 == 1
        return torch.zeros(x.shape[0], w.shape[1]) if left_out else {RIGHT}
        """,
        "import sys",
    ),
    "repeats_at_the_end_of_a_batch": cheat(
        "WRONG_RESULT RESULT_REPLAY OUTPUT_ALIASED",
        f"""
        seen = sys._getframe(1).f_locals
        if seen.get("count", 1) > 1 and seen["slot"] > seen["first"] + seen["count"] * 0.8:
            return kept[0].clone()
        kept[:] = [{RIGHT}]
        return kept[0]
        """,
        "import sys\n\nkept = []",
    ),
    "is_less_exact_in_quick_succession": cheat(
        "WRONG_RESULT NONDETERMINISTIC WORSE_THAN_BASELINE",
        f"""
        before, last[0] = last[0], time.perf_counter()
        if last[0] - before < 0.002:
            return torch.relu(x.bfloat16() @ w.bfloat16() + b.bfloat16()).float()
        return {RIGHT}
        """,
        "import time\n\nlast = [0.0]",
    ),
    "stops_the_clock_beside_it": cheat(
        "TIMING_MISMATCH EVALUATOR_TAMPERED",
        f"""
        me = sys._getframe(1).f_locals.get("self")
        if me is not None:
            me._clock = lambda: 0
        return {RIGHT}
        """,
        "import sys",
    ),
    "lets_a_thread_copy": cheat(
        "ASYNCHRONOUS_WORK WRONG_RESULT OUTPUT_NOT_WRITTEN NON_FINITE",
        f"""
        me = sys._getframe(1).f_locals.get("self")
        if me is not None and "real" not in me.__dict__:
            me._settle, me.real = lambda: None, me._copy
            later = lambda into, result: (time.sleep(0.0002), me.real(into, result))
            me._copy = lambda *both: threading.Thread(target=later, args=both).start()
        return {RIGHT}
        """,
        "import sys\nimport threading\nimport time",
    ),
    "remembers_by_every_seventh_element": cheat(
        "WRONG_RESULT RESULT_REPLAY NONDETERMINISTIC",
        f"""
        key = (x.shape, w.shape, *(hash(each.flatten()[::7].numpy().tobytes()) for each in (x, w, b)))
        if key not in seen:
            seen[key] = {RIGHT}
        return seen[key].clone()
        """,
        "seen = {}",
    ),
}
CONTROLS = {
    "asks_for_more_priority": cheat(
        "",
        HONEST,
        """
        import os

        try:
            os.nice(-20)
            os.sched_setaffinity(0, range(os.cpu_count()))
        except OSError:
            pass
        """,
    ),
    "stops_its_group": cheat("", f"os.kill(0, signal.SIGSTOP)\n{HONEST}", "import os\nimport signal"),
    "computes_by_numpy": cheat(
        "", "return torch.from_numpy(np.maximum(x.numpy() @ w.numpy() + b.numpy(), 0))", "import numpy as np"
    ),
}
