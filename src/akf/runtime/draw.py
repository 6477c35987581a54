"""A graph as a picture: SVG that is complete by itself.

Invariants:
- Work goes from left to right: a node stands one column behind the last of its needs, and in a column by the places of
  what it needs. The same graph gives the same bytes.
- Text is escaped and made printable; no script, no font, nothing from elsewhere.
- Nothing is said by colour alone: a condition has a question mark and a dashed edge, a loop its name and an arc back.
"""

from __future__ import annotations

import json
from html import escape

from akf.contracts.text import printable
from akf.runtime.graph import Graph, Loop, Node

_WIDTH, _HEIGHT, _RIGHT, _DOWN, _EDGE = 168, 44, 72, 24, 24
_SHOWN = 20
_STYLE = """
svg{font:12px system-ui,sans-serif;color:#1a1a1a;background:#fff}
rect{fill:#f4f6f8;stroke:#57606a}text{fill:currentColor}
.role{opacity:.75}.in-loop rect{stroke:#0550ae;stroke-dasharray:5 3}
path{fill:none;stroke:#57606a}.if{stroke-dasharray:3 3}.back{stroke:#0550ae}
@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}rect{fill:#161b22;stroke:#8b949e}
path{stroke:#8b949e}.in-loop rect,.back{stroke:#79c0ff}}
""".replace("\n", "")
_HEAD = (
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8" fill="none"/></marker></defs>'
)


def columns(graph: Graph) -> dict[str, int]:
    """The column of each node: one behind the last of its needs."""
    nodes = {node.id: node for node in graph.nodes}
    found: dict[str, int] = {}
    waiting = [node.id for node in reversed(graph.nodes)]
    while waiting:
        needs = nodes[waiting[-1]].needs
        missing = [need for need in needs if need not in found]
        if missing:
            waiting += missing
        else:
            found[waiting.pop()] = 1 + max((found[need] for need in needs), default=-1)
    return found


def svg(graph: Graph) -> bytes:
    """The picture."""
    column = columns(graph)
    row = _rows(graph, column)
    loops = {name: loop for loop in graph.loops for name in loop.nodes}
    space = _DOWN * len(graph.loops)
    width = 2 * _EDGE + (max(column.values()) + 1) * (_WIDTH + _RIGHT) - _RIGHT
    height = 2 * _EDGE + (max(row.values()) + 1) * (_HEIGHT + _DOWN) - _DOWN + space
    across, down = _WIDTH + _RIGHT, _HEIGHT + _DOWN
    place = {name: (_EDGE + column[name] * across, _EDGE + space + row[name] * down) for name in column}
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img"><title>{len(graph.nodes)} nodes</title><style>{_STYLE}</style>{_HEAD}'
    )
    parts = [head]
    parts += [_arrow(place[need], place[node.id], node) for node in graph.nodes for need in node.needs]
    parts += [_back(graph, loop, place, index) for index, loop in enumerate(graph.loops)]
    parts += [_box(node, place[node.id], loops.get(node.id)) for node in graph.nodes]
    return ("\n".join([*parts, "</svg>"]) + "\n").encode()


def _rows(graph: Graph, column: dict[str, int]) -> dict[str, int]:
    """The row of each node: in its column by the middle of what it needs, then as in the file."""
    nodes = {node.id: node for node in graph.nodes}
    order = {node.id: index for index, node in enumerate(graph.nodes)}
    by_column: dict[int, list[str]] = {}
    for name in order:
        by_column.setdefault(column[name], []).append(name)
    row: dict[str, int] = {}

    def middle(name: str) -> tuple[float, int]:
        needs = [row[need] for need in nodes[name].needs]
        return (sum(needs) / len(needs) if needs else 0.0, order[name])

    for each in sorted(by_column):
        row |= {name: index for index, name in enumerate(sorted(by_column[each], key=middle))}
    return row


def _arrow(start: tuple[int, int], end: tuple[int, int], node: Node) -> str:
    x, y, to_x, to_y = start[0] + _WIDTH, start[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    half = (to_x - x) // 2
    bend = _HEIGHT if to_x - x > _RIGHT else 0  # over several columns: under the nodes between
    kind = ' class="if"' if node.when is not None or node.join == "any" else ""
    way = f"M{x} {y}C{x + half} {y + bend} {to_x - half} {to_y + bend} {to_x} {to_y}"
    return f'<path{kind} d="{way}" marker-end="url(#end)"/>'


def _back(graph: Graph, loop: Loop, place: dict[str, tuple[int, int]], index: int) -> str:
    """An arc above the nodes, from where a loop's rounds end to where they begin."""
    nodes = {node.id: node for node in graph.nodes}
    inner = {need for name in loop.nodes for need in nodes[name].needs}
    first = min(
        (name for name in loop.nodes if not set(nodes[name].needs) & set(loop.nodes)), key=lambda name: place[name]
    )
    last = max((name for name in loop.nodes if name not in inner), key=lambda name: place[name])
    top = _EDGE + index * _DOWN
    x, to_x = place[last][0] + _WIDTH // 2, place[first][0] + _WIDTH // 2
    way = f"M{x} {place[last][1]}V{top}H{to_x}V{place[first][1]}" if x != to_x else (
        f"M{x + 20} {place[last][1]}V{top}H{x - 20}V{place[first][1]}"
    )  # fmt: skip
    words = f"{loop.id}: at most {loop.max_rounds} rounds"
    title = _text(f"until {json.dumps(loop.until, ensure_ascii=False)}")
    label = f'<text x="{min(x, to_x) + 8}" y="{top - 4}">{_text(words)}<title>{title}</title></text>'
    return f'<path class="back" d="{way}" marker-end="url(#end)"/>{label}'


def _box(node: Node, place: tuple[int, int], loop: Loop | None) -> str:
    x, y = place
    told = [f"{node.id}: {node.action}"]
    if node.when is not None:
        told.append(f"when {json.dumps(node.when, ensure_ascii=False)}")
    if node.join == "any":
        told.append("when any of its needs has finished")
    if node.attempts > 1:
        told.append(f"at most {node.attempts} tries")
    name = _short(node.id) + (" ?" if node.when is not None else "")
    kind = ' class="in-loop"' if loop is not None else ""
    return (
        f"<g{kind}><title>{_text('; '.join(told))}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + 10}" y="{y + 18}">{_text(name)}</text>'
        f'<text class="role" x="{x + 10}" y="{y + 35}">{_text(_short(node.action))}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _text(words: str) -> str:
    return escape(printable(words))
