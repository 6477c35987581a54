"""The page of faults shows the table that its command prints."""

import re
from pathlib import Path

from tests.support.fault_table import FAULTS, ROOT

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def test_the_page_has_every_fault_and_each_passed() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| (\d+) \| (\d+) \| \d+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [(what, holds) for what, holds, _, _ in rows] == [(fault.what, fault.holds) for fault in FAULTS]
    assert all(tests == passed for _, _, tests, passed in rows)


def test_every_test_of_the_table_exists() -> None:
    for fault in FAULTS:
        for test in fault.tests:
            file, _, name = test.partition("::")
            assert f"def {name.rpartition('::')[2]}(" in (ROOT / file).read_text(encoding="utf-8"), test
