"""Tables of profilers: what is read, exactly, and what is refused, with its line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akf.contracts.problems import InvalidError
from akf.traffic.reader import Reader
from akf.traffic.rows import fast, slow
from akf.traffic.tables import Column, Header, Table, read_header

TABLE = Table(
    "a list of kernels",
    (
        Column("name", ("Name", "Op Name"), needed=True, filled=True),
        Column("start_ns", ("Start Time(us)", "Task Start Time(us)"), "moment", needed=True, filled=True),
        Column("duration_ns", ("Duration(us)",), "span", needed=True, filled=True),
        Column("blocks", ("Block Dim", "Block Num"), "whole"),
        Column("shapes", ("Input Shapes",)),
    ),
    lambda name: Column(name.removesuffix("_time(us)"), (name,), "pipe") if name.endswith("_time(us)") else None,
)
HEAD = "Name,Start Time(us),Duration(us),Block Num,Input Shapes,aiv_vec_time(us),Wait Time(us)"
ROW = 'Relu,1736408883704643.212\t,53.741,32,"""32,3;""",1.5,0'


def read(folder: Path, data: str | bytes, piece: int = 1 << 20) -> tuple[pl.DataFrame, Reader]:
    path = folder / "kernels.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    reader = Reader(path, "rank0/kernels.csv", TABLE, piece=piece)
    return pl.concat(list(reader)), reader


def refused(folder: Path, data: str | bytes, piece: int = 1 << 20) -> list[tuple[str, int | None]]:
    with pytest.raises(InvalidError) as error:
        read(folder, data, piece)
    assert all(problem.file == "rank0/kernels.csv" for problem in error.value.problems)
    return [(problem.code, problem.line) for problem in error.value.problems]


class TestTaken:
    def test_times_are_exact_and_cells_unquoted(self, tmp_path: Path) -> None:
        frame, reader = read(tmp_path, f"{HEAD}\n{ROW}\n")
        assert frame.to_dicts() == [
            {
                "name": "Relu",
                "start_ns": 1736408883704643212,
                "duration_ns": 53741,
                "blocks": 32,
                "shapes": '"32,3;"',
                "aiv_vec": 1500,
                "line": 2,
            }
        ]
        assert reader.header.extra == ("aiv_vec",)
        assert reader.header.unread == ("Wait Time(us)",)
        assert reader.digest == "sha256:" + hashlib.sha256((tmp_path / "kernels.csv").read_bytes()).hexdigest()

    def test_columns_stand_anywhere_under_either_name(self, tmp_path: Path) -> None:
        frame, _ = read(tmp_path, "Block Dim,Duration(us),Op Name,Task Start Time(us)\n8,2,Relu,1695115378710248\n")
        assert frame.row(0) == (8, 2000, "Relu", 1695115378710248000, None, 2)

    @pytest.mark.parametrize("missing", ["N/A", "NA", ""])
    def test_three_spellings_of_missing_are_no_zero(self, tmp_path: Path, missing: str) -> None:
        frame, _ = read(tmp_path, f"{HEAD}\nRelu,1,2,{missing},{missing},{missing},0\n")
        assert frame.row(0)[3:6] == (None, None, None)

    @pytest.mark.parametrize(
        ("text", "time_ns"),
        [("26.060", 26060), ("734.370000", 734370), ("0", 0), ("0.0005", 0), ("0.0015", 2), ("0.00050001", 1)],
    )
    def test_decimal_widths_vary(self, tmp_path: Path, text: str, time_ns: int) -> None:
        frame, _ = read(tmp_path, f"{HEAD}\nRelu,1,{text},1,,{text},0\n")
        assert (frame["duration_ns"][0], frame["aiv_vec"][0]) == (time_ns, time_ns)

    def test_a_pipe_may_be_computed_in_floating_point(self, tmp_path: Path) -> None:
        frame, _ = read(tmp_path, f"{HEAD}\nRelu,1,2,1,,1e-05,0\nRelu,1,2,1,,1.5e+1,0\n")
        assert frame["aiv_vec"].to_list() == [0, 15000]

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("last", [True, False])
    def test_ends_of_lines(self, tmp_path: Path, end: str, last: bool) -> None:
        text = end.join([HEAD, ROW, ROW]) + (end if last else "")
        assert read(tmp_path, text)[0]["line"].to_list() == [2, 3]

    def test_a_comma_at_the_end_of_every_line(self, tmp_path: Path) -> None:
        assert read(tmp_path, f"{HEAD},\n{ROW},\n")[0].width == 7

    @pytest.mark.parametrize("piece", [64, 200, 1000])
    def test_pieces_do_not_show(self, tmp_path: Path, piece: int) -> None:
        rows = [ROW.replace("Relu", f"op{number}") for number in range(50)]
        text = "\n".join([HEAD, *rows]) + "\n"
        frame, reader = read(tmp_path, text, piece)
        whole, other = read(tmp_path, text)
        assert frame.equals(whole)
        assert reader.digest == other.digest
        assert frame["line"].to_list() == list(range(2, 52))


class TestRefused:
    """Each of these has been seen, or is what a damaged copy looks like."""

    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            ("", [("AKF-F119", None)]),
            (f"{HEAD}\n", [("AKF-F119", 1)]),
            (HEAD, [("AKF-F119", 1)]),
            (f"\ufeff{HEAD}\n{ROW}\n", [("AKF-F118", 1)]),
            (f"{HEAD}\n{ROW}\n{ROW},7\n", [("AKF-F113", 3)]),
            (f"{HEAD}\n{ROW}\n{ROW[:-2]}\n", [("AKF-F113", 3)]),
            (f"{HEAD}\n{ROW}\n\n{ROW}\n", [("AKF-F113", 3)]),
            (f"{HEAD}\n{ROW}\n{ROW},\n", [("AKF-F113", 3)]),
            (f"{HEAD},\n{ROW},\n{ROW},1\n", [("AKF-F113", 3)]),
            (f"{HEAD}\nRelu,1.69512E+15,2,1,,1,0\n", [("AKF-F114", 2)]),
            (f"{HEAD}\nRelu,1,2e-3,1,,1,0\n", [("AKF-F114", 2)]),
            (f"{HEAD}\nRelu,abc,2,1,,1,0\n", [("AKF-F115", 2)]),
            (f"{HEAD}\nRelu,1,-2,1,,1,0\n", [("AKF-F115", 2)]),
            (f"{HEAD}\nRelu,1,2,1,,-1,0\n", [("AKF-F115", 2)]),
            (f"{HEAD}\nRelu,1,2,1.5,,1,0\n", [("AKF-F115", 2)]),
            (f"{HEAD}\nRelu,1,9999999999999.9,1,,1,0\n", [("AKF-F115", 2)]),
            (f"{HEAD}\nN/A,1,,1,,1,0\n", [("AKF-F116", 2), ("AKF-F116", 2)]),
            (f'{HEAD}\nRelu,1,2,1,"a,1,0\n{ROW}\n', [("AKF-F117", 2)]),
            (f'{HEAD}\nRelu,1,2,1,"a"b,1,0\n', [("AKF-F117", 2)]),
            (f'{HEAD}\nRelu,1,2,1,"a\nb",1,0\n', [("AKF-F117", 2), ("AKF-F113", 3)]),
            (f"{HEAD}\n{ROW}\nRe\0lu,1,2,1,,1,0\n", [("AKF-F118", 3)]),
            (f"{HEAD}\n{ROW}\nRelu,1,2,1,,1,0\n".encode() + b"\xff,1,2,1,,1,0\n", [("AKF-F118", 4)]),
            ("Name,Name,Start Time(us),Duration(us)\na,a,1,2\n", [("AKF-F112", 1)]),
            ("Name,Op Name,Start Time(us),Duration(us)\na,a,1,2\n", [("AKF-F112", 1)]),
            ("Name,x,x,Start Time(us),Duration(us)\na,,,1,2\n", [("AKF-F112", 1)]),
            ("Nam,Start Time(us)\na,1\n", [("AKF-F111", 1), ("AKF-F111", 1)]),
            (f"{HEAD}\n{'x' * 2**20},1,2,1,,1,0\n", [("AKF-F120", 2)]),
            ("," * 600 + "\n", [("AKF-F111", 1)]),
        ],
    )
    def test_one_problem_each(self, tmp_path: Path, data: str | bytes, expected: list[tuple[str, int]]) -> None:
        assert refused(tmp_path, data) == expected

    def test_all_problems_of_a_file_up_to_a_number(self, tmp_path: Path) -> None:
        found = refused(tmp_path, "\n".join([HEAD, *["Relu,x,y,1,,1,0", ROW] * 4]), 100)
        assert found == [("AKF-F115", line) for line in (2, 2, 4, 4, 6, 6, 8, 8)]
        found = refused(tmp_path, "\n".join([HEAD, *["x"] * 100]))
        assert found == [("AKF-F121", None), *(("AKF-F113", line) for line in range(2, 22))]

    def test_a_hint_names_the_near_column(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidError) as error:
            read(tmp_path, "Name,Start Time (us),Duration(us)\na,1,2\n")
        assert error.value.problems[0].hint == 'did you mean "Start Time (us)"?'

    def test_a_line_without_end_is_not_read_to_its_end(self, tmp_path: Path) -> None:
        assert refused(tmp_path, "x" * 2**22, 2**16) == [("AKF-F120", 1)]


CELLS = st.one_of(
    st.sampled_from(['"""1,2;"""', '""', '"a', 'a"', 'a"b', '"a"b', "N/A", "NA", "", "1", "1.5\t", '"1.5\t"', "1e5"]),
    st.sampled_from(["1736408883704643.212\t", "-1", ".5", "1.", "+3", " 4", "1_0", "0x1", "inf", "nan", "1,2", "\r"]),
    st.decimals(0, 10**16, places=4).map(lambda number: format(number, "f")),
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=4),
)


@given(st.lists(st.lists(CELLS, min_size=6, max_size=8), min_size=1, max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_the_fast_way_says_what_the_slow_way_says(rows: list[list[str]], end: str) -> None:
    header, _ = read_header(HEAD.encode(), TABLE, "kernels.csv")
    assert isinstance(header, Header)
    data = "".join(",".join(row) + end for row in rows).encode()
    quick = fast(data, data.count(b"\n"), 2, header)
    if quick is not None:
        sure, problems = slow(data, 2, header, "kernels.csv", 21)
        assert not problems
        assert sure is not None
        assert quick.equals(sure)


@given(st.lists(st.decimals(0, 10**12, places=6), min_size=1), st.sampled_from(["", "\t"]))
def test_every_time_is_its_nanoseconds(times: list[object], tab: str) -> None:
    header, _ = read_header(b"Name,Start Time(us),Duration(us)", TABLE, "kernels.csv")
    assert isinstance(header, Header)
    data = "".join(f"a,{time:f}{tab},{time:f}\n" for time in times).encode()
    frame = fast(data, data.count(b"\n"), 2, header)
    sure, _ = slow(data, 2, header, "kernels.csv", 21)
    assert frame is not None
    assert sure is not None
    assert frame.equals(sure)
