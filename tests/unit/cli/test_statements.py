"""Texts cut into statements, and rows told in the forms of `hms-iceberg sql`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from hms_iceberg.cli.servers.prompt import split_statements
from hms_iceberg.cli.servers.statement_output import print_rows
from hms_iceberg.spark.shell import Answer


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("select 1", [], "select 1"),
        ("select 1; select 2 ;", ["select 1", "select 2"], ""),
        ("select ';', `a;b`, \"c;\" -- d;\n; /* e; */ x", ["select ';', `a;b`, \"c;\" -- d;"], "/* e; */ x"),
        (";; -- nothing\n;", [], ""),
        ("a; select 'b; c", ["a"], "select 'b; c"),
        ("", [], ""),
    ],
)  # fmt: skip
def test_semicolons_end_statements_but_not_in_strings_names_and_comments(
    text: str, statements: list[str], rest: str
) -> None:
    assert split_statements(text) == (statements, rest)


def answer() -> Answer:
    rows: list[tuple[Any, ...]] = [
        (1, Decimal("1.50"), dt.datetime(2024, 1, 2, 3), float("nan"), b"\x01", {"k": [None]}),
        (2, None, None, None, None, None),
    ]
    return Answer(("a", "a", "at", "f", "b", "m"), iter(rows))


def test_rows_are_told_as_objects_as_csv_and_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_rows(answer(), "json") == 2
    assert capsys.readouterr().out.splitlines()[0] == (
        '{"a": 1, "a_2": "1.50", "at": "2024-01-02 03:00:00", "f": "NaN", "b": "01", "m": {"k": [null]}}'
    )
    assert print_rows(answer(), "csv") == 2
    assert capsys.readouterr().out.splitlines()[1:] == ['1,1.50,2024-01-02 03:00:00,NaN,01,"{""k"": [null]}"', "2,,,,,"]
    assert print_rows(answer(), "text", limit=1) == 1
    told = capsys.readouterr()
    assert told.out.splitlines() == ["a\ta\tat\tf\tb\tm", '1\t1.50\t2024-01-02 03:00:00\tNaN\t01\t{"k": [null]}']
    assert told.err == "Only the first 1 rows are shown.\n"
    assert print_rows(Answer((), iter(())), "text") is None
