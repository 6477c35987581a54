"""`akf runtime graph`: what a graph does before it runs, and its picture."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.support.cli import inside

from akf.runtime import Graph, Loop, Node
from akf.runtime.draw import columns, svg

REPAIR = Path(__file__).parents[2] / "examples/runtime/repair.json"


def test_it_says_what_can_run_at_once_and_what_must_be_there(tmp_path: Path) -> None:
    answer = inside("runtime", "graph", REPAIR, "--out", tmp_path / "x.svg")
    document = answer.document
    assert answer.status == 0
    assert [step["nodes"] for step in document["steps"]] == [["design"], ["code"], ["verify"], ["profile"]]
    assert document["roles"] == ["coder", "designer", "profiler", "verifier"]
    assert document["loops"] == [{"loop": "repair", "nodes": ["code", "verify"], "max_rounds": 4}]
    picture = ET.fromstring((tmp_path / "x.svg").read_text())  # noqa: S314 - our own
    words = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"design", "code", "verify", "profile ?", "repair: at most 4 rounds"} <= set(words)


def test_the_same_graph_gives_the_same_bytes_and_an_old_picture_stays(tmp_path: Path) -> None:
    assert inside("runtime", "graph", REPAIR, "--out", tmp_path / "one.svg").status == 0
    assert inside("runtime", "graph", REPAIR, "--out", tmp_path / "two.svg").status == 0
    before = (tmp_path / "one.svg").read_bytes()
    assert before == (tmp_path / "two.svg").read_bytes()
    assert inside("runtime", "graph", REPAIR, "--out", tmp_path / "one.svg").status == 5
    assert (tmp_path / "one.svg").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "code"), [('{"nodes": [{"id": "a"}]}', "AKF-F701"), ("[]", "AKF-S012"), ("", "AKF-S001")]
)
def test_what_is_no_graph_is_refused_and_not_drawn(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    answer = inside("runtime", "graph", tmp_path / "bad.json", "--out", tmp_path / "x.svg")
    assert answer.status == 1
    assert [problem["code"] for problem in answer.document["problems"]] == [code]
    assert not (tmp_path / "x.svg").exists()


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = (
        '{"nodes": [{"id": "a", "action": "do", "needs": ["b"], "tries": 2},'
        ' {"id": "b", "action": "do", "needs": ["a"]}, {"id": "b", "action": "do"},'
        ' {"action": "do", "attempts": 0}, 7, {"id": "c", "action": "do", "needs": ["cc"]}],'
        ' "loops": [{"id": "l", "nodes": ["c", "x"], "until": {"node": "a", "equals": 1}}], "loop": []}'
    )
    (tmp_path / "bad.json").write_text(text)
    answer = inside("runtime", "graph", tmp_path / "bad.json")
    said = [(problem["code"], problem["pointer"]) for problem in answer.document["problems"]]
    assert sorted(said) == [
        ("AKF-F701", "/loop"),
        ("AKF-F701", "/loops/0"),
        ("AKF-F701", "/nodes/0/tries"),
        ("AKF-F701", "/nodes/3"),
        ("AKF-F701", "/nodes/3/attempts"),
        ("AKF-F701", "/nodes/4"),
        ("AKF-F702", "/loops/0/nodes"),
        ("AKF-F702", "/nodes/2/id"),
        ("AKF-F702", "/nodes/5"),
        ("AKF-F703", "/nodes/0/needs"),
        ("AKF-F704", "/loops/0/until"),
    ]


def test_text_of_a_graph_is_text_of_the_picture() -> None:
    until = {"node": "a", "equals": "</title><script>alert(1)</script>\u202e"}
    graph = Graph((Node("a", "do", when={"not": until}),), (Loop("l", ("a",), until, 2),))
    picture = svg(graph)
    assert b"<script>" not in picture
    assert "\u202e".encode() not in picture
    ET.fromstring(picture.decode())  # noqa: S314 - our own


def test_a_node_stands_behind_all_that_it_needs() -> None:
    nodes = (
        Node("d", "do", needs=("b", "c")),
        Node("c", "do", needs=("b",)),
        Node("b", "do", needs=("a",)),
        Node("a", "do"),
    )
    assert columns(Graph(nodes)) == {"a": 0, "b": 1, "c": 2, "d": 3}
    chain = tuple(Node(f"n{i}", "do", needs=(f"n{i + 1}",) if i < 4999 else ()) for i in range(5000))
    assert columns(Graph(chain))["n0"] == 4999
