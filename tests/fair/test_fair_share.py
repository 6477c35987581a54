"""Shares by weight: the kernel's table, the smallest virtual runtime, sleepers, newcomers."""

import itertools

import pytest

from akf.contracts.problems import UsageError
from akf.fair import LATENCY_NS, NICE_RANGE, WEIGHTS, FairQueue, FairShare, weight

MS = 1_000_000


def serve(share: FairShare, turns: int, length_ns: dict[str, int]) -> dict[str, int]:
    """What each tenant used in so many turns on one worker."""
    used: dict[str, int] = {}
    for _ in range(turns):
        turn = share.take()
        assert turn is not None
        share.settle(turn, length_ns[turn.tenant])
        used[turn.tenant] = used.get(turn.tenant, 0) + length_ns[turn.tenant]
    return used


class TestWeights:
    def test_nice_zero_weighs_1024_and_the_ends_are_the_kernel_s(self) -> None:
        assert [weight(nice) for nice in (-20, -10, -1, 0, 1, 10, 19)] == [88761, 9548, 1277, 1024, 820, 110, 15]

    def test_a_step_is_a_factor_of_about_one_and_a_quarter(self) -> None:
        assert len(WEIGHTS) == len(NICE_RANGE) == 40
        assert all(1.15 < a / b < 1.35 for a, b in itertools.pairwise(WEIGHTS))

    @pytest.mark.parametrize("nice", [-21, 20, True, 1.0, "0"])
    def test_what_is_no_nice_value_is_refused(self, nice: object) -> None:
        with pytest.raises(UsageError) as refused:
            weight(nice)  # type: ignore[arg-type]
        assert refused.value.problems[0].code == "AKF-U700"


class TestShares:
    @pytest.mark.parametrize(("one", "other"), [(0, 0), (0, 5), (-5, 5), (-20, -19), (3, 4)])
    def test_two_busy_tenants_get_their_weights_within_two_percent_over_10_000_nodes(
        self, one: int, other: int
    ) -> None:
        share = FairShare()
        share.wake("one", one)
        share.wake("other", other)
        used = serve(share, 10_000, {"one": 3 * MS, "other": 3 * MS})
        total = sum(used.values())
        assert used["one"] / total == pytest.approx(weight(one) / (weight(one) + weight(other)), rel=0.02)
        assert used["other"] / total == pytest.approx(weight(other) / (weight(one) + weight(other)), rel=0.02)

    def test_long_nodes_count_as_the_time_that_they_take(self) -> None:
        share = FairShare()
        share.wake("long")
        share.wake("short")
        used = serve(share, 10_000, {"long": 40 * MS, "short": 1 * MS})
        assert used["long"] / used["short"] == pytest.approx(1, rel=0.02)

    def test_on_several_workers_the_shares_are_the_same(self) -> None:
        share = FairShare()
        share.wake("one", 0)
        share.wake("other", 5)
        running, used = [], {"one": 0, "other": 0}
        for _ in range(10_000):
            turn = share.take()
            assert turn is not None
            running.append(turn)
            if len(running) == 4:
                done = running.pop(0)
                share.settle(done, 2 * MS)
                used[done.tenant] += 2 * MS
        assert used["one"] / used["other"] == pytest.approx(1024 / 335, rel=0.02)

    def test_the_first_turns_of_one_tenant_do_not_take_every_worker(self) -> None:
        share = FairShare()
        share.wake("one")
        share.wake("other")
        taken = [share.take() for _ in range(4)]
        assert sorted(turn.tenant for turn in taken if turn) == ["one", "one", "other", "other"]

    def test_a_new_nice_value_counts_from_then_on(self) -> None:
        share = FairShare()
        share.wake("one")
        share.wake("other")
        serve(share, 1_000, {"one": MS, "other": MS})
        share.wake("one", -5)
        used = serve(share, 10_000, {"one": MS, "other": MS})
        assert used["one"] / used["other"] == pytest.approx(3121 / 1024, rel=0.02)


class TestSleep:
    def test_a_sleeper_comes_back_at_the_minimum_less_one_period(self) -> None:
        share = FairShare()
        share.wake("busy")
        share.wake("sleeper")
        share.sleep("sleeper")
        serve(share, 1_000, {"busy": MS})
        before = share.runtime_ns("busy")
        share.wake("sleeper")
        # Both weigh the same: while one period passes, each has half of it.
        assert before - share.runtime_ns("sleeper") == pytest.approx(LATENCY_NS // 2, abs=2)

    def test_sleep_is_not_saved_up(self) -> None:
        share = FairShare()
        share.wake("busy")
        share.wake("sleeper")
        share.sleep("sleeper")
        serve(share, 20_000, {"busy": MS})
        share.wake("sleeper")
        used = serve(share, 1_000, {"busy": MS, "sleeper": MS})
        assert used["sleeper"] - used["busy"] <= LATENCY_NS + MS

    def test_a_nap_wins_nothing(self) -> None:
        share = FairShare()
        share.wake("napper")
        share.wake("busy")
        used = {"napper": 0, "busy": 0}
        for _ in range(10_000):
            turn = share.take()
            assert turn is not None
            used[turn.tenant] += MS
            if turn.tenant == "napper":
                share.sleep("napper")
            share.settle(turn, MS)
            share.wake("napper")
        assert used["napper"] / used["busy"] == pytest.approx(1, rel=0.02)

    def test_newcomers_without_end_starve_nobody(self) -> None:
        share = FairShare()
        share.wake("old", 19)
        served = 0
        for index in range(2_000):
            share.wake(f"new-{index}", -20)
            turn = share.take()
            assert turn is not None
            share.settle(turn, 10 * MS)
            if turn.tenant == "old":
                served += 1
            else:
                share.sleep(turn.tenant)
                share.forget(turn.tenant)
        assert served > 0

    def test_tenants_that_come_once_are_not_all_kept(self) -> None:
        share, most = FairShare(), 0
        share.wake("stays")
        for index in range(5_000):
            share.wake(f"once-{index}", index % 7)
            turn = share.take()
            assert turn is not None
            share.settle(turn, MS)
            share.sleep(f"once-{index}")
            most = max(most, len(share))
        assert most < 1_000

    def test_who_is_ahead_is_remembered(self) -> None:
        share = FairShare()
        for name in ("ahead", "other"):
            share.wake(name)
        turn = share.take()
        assert turn is not None
        share.settle(turn, 1_000 * MS)
        before = share.runtime_ns(turn.tenant)
        share.sleep(turn.tenant)
        for index in range(1_000):
            share.wake(f"new-{index}")
            share.sleep(f"new-{index}")
        share.wake(turn.tenant)
        assert share.runtime_ns(turn.tenant) == before


class TestQueue:
    def test_first_in_first_out_within_a_tenant_and_in_turn_between_them(self) -> None:
        queue: FairQueue[str] = FairQueue()
        for name in ("a1", "a2", "a3", "b1", "b2"):
            queue.push(name[0], name)
        served = []
        while (popped := queue.pop()) is not None:
            served.append(popped[1])
            queue.settle(popped[0], LATENCY_NS // 2)  # what a newcomer is behind
        assert served == ["a1", "b1", "a2", "b2", "a3"]
        assert len(queue) == 0

    def test_what_is_discarded_is_not_served_and_not_charged(self) -> None:
        queue: FairQueue[str] = FairQueue()
        queue.push("a", "first")
        queue.push("a", "second")
        assert queue.discard("a", "first")
        assert not queue.discard("a", "first")
        popped = queue.pop()
        assert popped is not None
        assert popped[1] == "second"
        assert queue.pop() is None

    def test_a_turn_is_settled_once(self) -> None:
        queue: FairQueue[str] = FairQueue()
        queue.push("a", "only")
        popped = queue.pop()
        assert popped is not None
        queue.settle(popped[0], MS)
        with pytest.raises(ValueError, match="settled already"):
            queue.settle(popped[0], MS)
