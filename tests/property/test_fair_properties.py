"""Fair shares for any tenants, lengths and naps."""

from hypothesis import given, settings
from hypothesis import strategies as st

from akf.fair import FairShare, Turn, weight

MS = 1_000_000
TENANTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-20, 19), min_size=1)


@settings(max_examples=40, deadline=None)
@given(
    nices=TENANTS,
    lengths=st.lists(st.integers(0, 50 * MS), min_size=1, max_size=20),
    naps=st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=40),
    turns=st.integers(1, 100),
)
def test_nobody_waits_longer_than_the_period_times_the_tenants_and_the_longest_turn(
    nices: dict[str, int], lengths: list[int], naps: list[tuple[int, bool]], turns: int
) -> None:
    share, now, longest, period = FairShare(), 0, 0, 0
    names = sorted(nices)
    since: dict[str, int] = {}
    for name in names:
        share.wake(name, nices[name])
        since[name] = 0
    for index in range(turns):
        if naps and index % 3 == 0:
            number, wakes = naps[index // 3 % len(naps)]
            name = names[number % len(names)]
            if wakes:
                share.wake(name, nices[name])
                since.setdefault(name, now)
            else:
                share.sleep(name)
                since.pop(name, None)
        turn = share.take()
        if turn is None:
            assert not since
            continue
        length = lengths[index % len(lengths)]
        longest = max(longest, length)
        share.settle(turn, length)
        period = max(period, share.period_ns())
        waited = now - since[turn.tenant]
        now += length
        since[turn.tenant] = now
        assert waited <= period * len(names) + longest


@settings(max_examples=20, deadline=None)
@given(nices=TENANTS, lengths=st.lists(st.integers(1, 5 * MS), min_size=1, max_size=10), workers=st.integers(1, 6))
def test_busy_tenants_are_apart_by_no_more_than_their_turns_in_flight(
    nices: dict[str, int], lengths: list[int], workers: int
) -> None:
    share = FairShare()
    for name, nice in sorted(nices.items()):
        share.wake(name, nice)
    running: list[Turn] = []
    for index in range(200):
        if len(running) == workers:
            share.settle(running.pop(0), lengths[index % len(lengths)])
        turn = share.take()
        assert turn is not None
        running.append(turn)
    for turn in running:
        share.settle(turn, lengths[0])
    # Of n turns in flight each takes at most 6 ms in advance; all that at the least weight is the widest gap.
    runtimes = [share.runtime_ns(name) for name in nices]
    lightest = min(weight(nice) for nice in nices.values())
    assert max(runtimes) - min(runtimes) <= (workers + 1) * 6 * MS * 1024 // lightest + 1


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["wake", "sleep", "take", "settle"]), st.sampled_from("abc"), st.integers(-20, 19)),
        max_size=80,
    )
)
def test_the_same_calls_give_the_same_turns(steps: list[tuple[str, str, int]]) -> None:
    def played() -> list[object]:
        share, running, seen = FairShare(), list[Turn](), list[object]()
        for what, name, number in steps:
            if what == "wake":
                share.wake(name, number)
            elif what == "sleep":
                share.sleep(name)
            elif what == "take":
                turn = share.take()
                seen.append(turn)
                running += [] if turn is None else [turn]
            elif running:
                share.settle(running.pop(0), abs(number) * MS)
        return seen

    assert played() == played()
