"""Two different trees never share a digest, and what is the same has the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.contracts.canonical import digest
from akf.contracts.tree import tree_digest
from akf.routes.tools import tree

# Few letters, so that different trees come near each other: separators, framing, escapes, bytes that are no text.
NAMES = st.text(st.sampled_from('ab/.,:"[]{}\\\n\0é\udcff'), min_size=1, max_size=5)
CONTENTS = st.sampled_from([b"", b"a", b"b", b"ab"])
TREES = st.dictionaries(NAMES, st.tuples(st.booleans(), CONTENTS), max_size=4)
OPTIONS = st.none() | st.dictionaries(
    st.sampled_from(["flag", "soc", "files", "options"]),
    st.sampled_from(["", "a", "b", ["a"], ["a", "b"], None]),
    max_size=3,
)


def _digest(files: dict[str, tuple[bool, bytes]], options: dict[str, object] | None) -> str:
    return tree_digest(((path, executable, digest(data)) for path, (executable, data) in files.items()), options)


@given(TREES, TREES, OPTIONS, OPTIONS)
def test_a_digest_belongs_to_one_tree_with_one_set_of_options(
    one: dict[str, tuple[bool, bytes]],
    other: dict[str, tuple[bool, bytes]],
    options: dict[str, object] | None,
    others: dict[str, object] | None,
) -> None:
    same = one == other and options == others
    assert (_digest(one, options) == _digest(other, others)) == same


@given(TREES, st.randoms(use_true_random=False))
def test_the_order_of_files_leaves_no_trace(files: dict[str, tuple[bool, bytes]], random: object) -> None:
    items = list(files.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert _digest(dict(items), None) == _digest(files, None)


@given(TREES.filter(bool), st.data())
def test_one_change_anywhere_is_another_digest(files: dict[str, tuple[bool, bytes]], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(files)))
    executable, content = files[name]
    changed = [
        {**files, name: (not executable, content)},
        {**files, name: (executable, content + b"x")},
        {key: value for key, value in files.items() if key != name},
        {(f"{name}x" if key == name else key): value for key, value in files.items()},
    ]
    before = _digest(files, {})
    assert all(_digest(each, {}) != before for each in changed if each != files)
    assert _digest(files, {"flag": "-O2"}) != before
    assert _digest(files, None) != before


def test_two_files_of_one_name_are_no_tree() -> None:
    with pytest.raises(ValueError, match="same path"):
        tree_digest([("a", False, digest(b"1")), ("a", False, digest(b"2"))])


def test_names_are_bytes_on_disk_too(tmp_path: Path) -> None:
    (tmp_path / "\udcff").write_bytes(b"x")
    first = tree_digest(tree(tmp_path))
    (tmp_path / "\udcff").rename(tmp_path / "\udcfe")
    assert tree_digest(tree(tmp_path)) != first
