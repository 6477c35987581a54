"""Graphs: what may be said, what is refused and where, and how nodes, conditions and loops run."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from tests.support.kernels import Does, nodes, running

from akf.contracts.problems import InvalidError
from akf.runtime import Compiler, Context, Outcome


def refused(form: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidError) as error:
        Compiler().compile(form)
    return [(each.code, each.pointer or "", each.message) for each in error.value.problems]


def node(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "action": "do", "needs": list(needs), **more}


async def do(given: dict[str, Any], context: Context) -> Any:
    """Echo, sum, count rounds, or raise: as the input says."""
    what = given["input"]
    if what == "sum":
        return sum(given["inputs"].values())
    if what == "round":
        return context.round
    if what == "raise":
        raise ValueError(given["id"])
    if what == "previous":
        return [context.previous, given["inputs"]]
    await asyncio.sleep(0)
    return what


def ran(form: Any) -> Outcome:
    with running(Does("do", do)) as kernel:
        return kernel.outcome(kernel.submit(form), timeout_s=30)


class TestRefusals:
    def test_a_cycle_is_refused_with_its_path(self) -> None:
        form = nodes(
            node("design"), node("code", "design", "verify"), node("verify", "code"), node("profile", "verify")
        )
        ((code, pointer, message),) = refused(form)
        assert (code, pointer) == ("AKF-F703", "/nodes/1/needs")
        assert message == "nodes wait for each other: code -> verify -> code"

    def test_a_long_cycle_is_named_in_the_order_of_the_work(self) -> None:
        names = [f"n{number}" for number in range(6)]
        form = nodes(*(node(name, names[index - 1]) for index, name in enumerate(names)), node("behind", "n3"))
        ((_, _, message),) = refused(form)
        path = message.removeprefix("nodes wait for each other: ").split(" -> ")
        assert path[0] == path[-1]
        assert len(path) == 7
        assert all(int(b[1]) == (int(a[1]) + 1) % 6 for a, b in itertools.pairwise(path))

    def test_a_node_that_needs_itself(self) -> None:
        assert refused(nodes(node("a", "a")))[0][2] == "nodes wait for each other: a -> a"

    def test_a_reference_and_a_condition_are_needs_too(self) -> None:
        form = nodes(
            {"id": "a", "action": "do", "input": {"deep": [{"$result": "b"}]}},
            {"id": "b", "action": "do", "when": {"not": {"node": "a", "exists": True}}},
        )
        assert refused(form)[0][2] == "nodes wait for each other: a -> b -> a"

    def test_a_way_out_of_a_loop_and_back_is_a_cycle(self) -> None:
        until = {"node": "verify", "exists": True}
        loops = [{"id": "l", "nodes": ["code", "verify"], "until": until, "max_rounds": 2}]
        form = nodes(node("code"), node("outside", "code"), node("verify", "outside"), loops=loops)
        assert refused(form)[0][:2] == ("AKF-F703", "/nodes/0/needs")

    def test_everything_is_said_at_once_with_its_line(self) -> None:
        text = json.dumps(nodes({"id": "a", "action": "do", "timout_ms": 5}, {"id": "b c", "attempts": 0}), indent=1)
        with pytest.raises(InvalidError) as error:
            Compiler().read(text.encode(), "graph.json")
        found = [(each.file, each.line, each.message, each.hint) for each in error.value.problems]
        assert found == [
            ("graph.json", 6, 'there is no field "timout_ms"', "did you mean timeout_ms?"),
            ("graph.json", 8, "the field action is missing", None),
            ("graph.json", 10, "attempts is 0, not a whole number from 1 to 100", None),
            ("graph.json", 9, 'id is "b c", not an id: letters, digits, . _ -', None),
        ]

    @pytest.mark.parametrize(
        ("form", "code"),
        [
            ({}, "AKF-F701"),
            ({"nodes": []}, "AKF-F701"),
            ({"nodes": [1]}, "AKF-F701"),
            (nodes(node("a"), node("a")), "AKF-F702"),
            (nodes(node("a", "b")), "AKF-F702"),
            (nodes(node("a", input={"$result": "b"})), "AKF-F702"),
            (nodes(node("a", input={"$result": 1})), "AKF-F701"),
            (nodes(node("a", when={"node": "a"})), "AKF-F701"),
            (nodes(node("a", when={"node": "b", "equals": 1, "in": []})), "AKF-F701"),
            (nodes(node("a", when={"all": []})), "AKF-F701"),
            (nodes(node("a", join="some")), "AKF-F701"),
            (nodes(node("a", input=object())), "AKF-F701"),
            (nodes(node("a"), loops=[{"id": "l", "nodes": ["a"], "max_rounds": 2}]), "AKF-F701"),
            ('{"nodes": [}', "AKF-S004"),
        ],
    )
    def test_what_is_no_graph(self, form: Any, code: str) -> None:
        assert code in {each[0] for each in refused(form)}

    def test_loops_share_nothing_and_ask_about_themselves(self) -> None:
        until = {"node": "b", "exists": True}
        loops = [
            {"id": "l", "nodes": ["a", "b"], "until": until, "max_rounds": 2},
            {"id": "m", "nodes": ["a"], "until": until, "max_rounds": 2},
        ]
        found = refused(nodes(node("a"), node("b", "a"), loops=loops))
        assert [each[0] for each in found] == ["AKF-F704", "AKF-F704"]
        assert "in two loops, l and m" in found[0][2]

    def test_a_thousand_problems_are_counted_not_listed(self) -> None:
        found = refused(nodes(*(node(f"n{number}", "none") for number in range(1000))))
        assert len(found) == 51
        assert "950 more" in "".join(each[2] for each in found)


class TestRunning:
    def test_a_node_gets_the_results_of_its_needs(self) -> None:
        outcome = ran(nodes(node("a", input=2), node("b", input=3), node("c", "a", "b", input="sum")))
        assert outcome.results == [2, 3, 5]

    def test_references_are_replaced_wherever_they_stand(self) -> None:
        value = {"x": [{"$result": "a", "path": "/list/1"}, {"$result": "a", "path": "/none", "default": "other"}]}
        outcome = ran(nodes(node("a", input={"list": [10, 11]}), node("b", input=value)))
        assert outcome.results[1] == {"x": [11, "other"]}

    def test_a_diamond_joins(self) -> None:
        form = nodes(
            node("a", input=1), node("b", "a", input=2), node("c", "a", input=3), node("d", "b", "c", input="sum")
        )
        assert ran(form).results == [1, 2, 3, 5]

    @pytest.mark.parametrize(
        ("condition", "runs"),
        [
            ({"node": "a", "path": "/n", "equals": 3}, True),
            ({"node": "a", "path": "/n", "equals": 3.0}, True),
            ({"node": "a", "path": "/n", "equals": True}, False),
            ({"node": "a", "path": "/flag", "equals": 1}, False),
            ({"node": "a", "path": "/n", "not_equals": 4}, True),
            ({"node": "a", "path": "/missing", "equals": None}, False),
            ({"node": "a", "path": "/missing", "exists": False}, True),
            ({"node": "a", "path": "/n", "in": [1, 3]}, True),
            ({"node": "a", "path": "/n", "less": 3}, False),
            ({"node": "a", "path": "/n", "at_most": 3}, True),
            ({"node": "a", "path": "/n", "at_least": "3"}, False),
            ({"node": "a", "path": "/list/1", "greater": 1}, True),
            ({"node": "a", "path": "/list/9", "greater": 1}, False),
            ({"all": [{"node": "a", "exists": True}, {"not": {"node": "a", "path": "/n", "equals": 4}}]}, True),
            ({"any": [{"node": "a", "path": "/n", "equals": 4}, {"node": "a", "path": "/a~1b", "equals": 0}]}, True),
        ],
    )
    def test_a_condition_decides_whether_a_node_runs(self, condition: dict[str, Any], runs: bool) -> None:
        first = {"n": 3, "flag": True, "list": [1, 2], "a/b": 0}
        outcome = ran(nodes(node("a", input=first), node("b", when=condition, input=1), node("c", "b", input=1)))
        ended = "finished" if runs else "skipped"
        assert outcome.statuses == {"a": "finished", "b": ended, "c": ended}
        assert outcome.status == "finished"

    def test_a_node_that_joins_any_runs_when_one_of_its_needs_did(self) -> None:
        form = nodes(
            node("good", input=4), node("bad", input="raise"), node("pick", "good", "bad", input="sum", join="any")
        )
        outcome = ran(form)
        assert outcome.results == [4, None, 4]
        assert outcome.statuses["pick"] == "finished"

    def test_and_is_skipped_when_none_did(self) -> None:
        form = nodes(node("one", input="raise"), node("two", input="raise"), node("pick", "one", "two", join="any"))
        assert ran(form).statuses["pick"] == "skipped"


def looped(until: dict[str, Any], *more: dict[str, Any], **options: Any) -> dict[str, Any]:
    """design -> code <-> verify -> profile."""
    loop = {"id": "repair", "nodes": ["code", "verify"], "until": until, "max_rounds": 5, **options}
    forms = [
        node("design", input="plan"),
        node("code", "design", input="round"),
        node("verify", input={"$result": "code"}),
        node("profile", "verify", input="sum"),
    ]
    return nodes(*forms, *more, loops=[loop])


class TestLoops:
    def test_a_loop_runs_until_its_condition_holds_and_then_its_dependants(self) -> None:
        outcome = ran(looped({"node": "verify", "equals": 3}))
        assert outcome.results == ["plan", 3, 3, 3]
        assert outcome.status == "finished"

    def test_a_loop_that_runs_out_of_rounds_fails_the_task_and_skips_what_is_behind(self) -> None:
        outcome = ran(looped({"node": "verify", "equals": 9}))
        assert outcome.status == "failed"
        assert outcome.statuses == {
            "design": "finished", "code": "finished", "verify": "finished", "profile": "skipped",
        }  # fmt: skip
        assert outcome.results[1] == 5

    def test_or_goes_on_where_that_is_wanted(self) -> None:
        outcome = ran(looped({"node": "verify", "equals": 9}, exhausted="go_on"))
        assert (outcome.status, outcome.results[3]) == ("finished", 5)

    def test_a_node_that_fails_ends_its_loop(self) -> None:
        form = looped({"node": "verify", "equals": 9})
        form["nodes"][1]["input"] = "raise"
        outcome = ran(form)
        assert outcome.statuses == {"design": "finished", "code": "failed", "verify": "skipped", "profile": "skipped"}

    def test_what_fails_before_a_loop_skips_it_without_rounds(self) -> None:
        form = looped({"node": "verify", "equals": 9})
        form["nodes"][0]["input"] = "raise"
        assert set(ran(form).statuses.values()) == {"failed", "skipped"}

    def test_a_round_knows_the_results_of_the_one_before(self) -> None:
        form = nodes(
            node("a", input="round"),
            node("b", "a", input="previous"),
            loops=[{"id": "l", "nodes": ["a", "b"], "until": {"node": "a", "equals": 2}, "max_rounds": 5}],
        )
        assert ran(form).results == [2, [{"a": 1, "b": [{}, {"a": 1}]}, {"a": 2}]]

    def test_parallel_children_in_rounds_of_which_some_fail(self) -> None:
        children = [node(f"child{number}", input="raise" if number == 1 else "round") for number in range(3)]
        form = nodes(
            *children,
            node("select", "child0", "child1", "child2", input="sum", join="any"),
            loops=[{
                "id": "evolve", "nodes": ["child0", "child2", "select"], "until": {"node": "select", "at_least": 6},
                "max_rounds": 9,
            }],
        )  # fmt: skip
        outcome = ran(form)
        assert outcome.results == [3, None, 3, 6]


def test_a_wide_and_a_deep_graph_take_time_in_proportion() -> None:
    wide = nodes(node("a", input=0), *(node(f"n{i}", "a", input=1) for i in range(2000)))
    deep = nodes(node("n0", input=0), *(node(f"n{i}", f"n{i - 1}", input=1) for i in range(1, 1000)))
    assert sum(ran(wide).results) == 2000
    assert sum(ran(deep).results) == 999


def test_a_plain_text_is_the_input_of_one_node_for_each_role() -> None:
    graph = Compiler(("read", "write")).compile("some words")
    assert [(each.id, each.action, each.input) for each in graph.nodes] == [
        ("n1", "read", "some words"),
        ("n2", "write", "some words"),
    ]


def test_a_graph_is_what_its_form_says() -> None:
    form = looped({"node": "verify", "equals": 3}, node("x", "design", attempts=2, timeout_ms=5, join="any"))
    graph = Compiler().compile(form)
    assert Compiler().compile(graph.to_json()) == graph
    assert Compiler().compile(json.dumps(form)) == graph
