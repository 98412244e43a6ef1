"""Iceberg's ALTER TABLE statements as they are read, and what is no such statement."""

from __future__ import annotations

import pytest

from hms_iceberg.errors import SqlParseError
from hms_iceberg.spark.sql.statement_parser import parse_statement
from hms_iceberg.spark.sql.statements import (
    AddPartitionFieldStatement,
    AnyStatement,
    DropIdentifierFieldsStatement,
    DropPartitionFieldStatement,
    DropRefStatement,
    PutRefStatement,
    ReplacePartitionFieldStatement,
    SetIdentifierFieldsStatement,
    SetWriteOrderStatement,
    SortTerm,
    TransformOf,
)

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000


def order(*terms: SortTerm, mode: str | None = None) -> SetWriteOrderStatement:
    return SetWriteOrderStatement(terms, mode)


def asc(column: str, transform: str = "identity", nulls_last: bool = False) -> SortTerm:
    return SortTerm(TransformOf(column, transform), False, nulls_last)


def desc(column: str, transform: str = "identity", nulls_last: bool = True) -> SortTerm:
    return SortTerm(TransformOf(column, transform), True, nulls_last)


@pytest.mark.parametrize(
    ("clause", "statement"),
    [
        ("ADD PARTITION FIELD s", AddPartitionFieldStatement(TransformOf("s"))),
        (
            "add partition field bucket(16, id) as shard",
            AddPartitionFieldStatement(TransformOf("id", "bucket[16]"), "shard"),
        ),
        ("add partition field TRUNCATE(a.b, 4)", AddPartitionFieldStatement(TransformOf("a.b", "truncate[4]"))),
        ("add partition field years(ts)", AddPartitionFieldStatement(TransformOf("ts", "year"))),
        ("add partition field date(ts)", AddPartitionFieldStatement(TransformOf("ts", "day"))),
        ("add partition field date_hour(ts)", AddPartitionFieldStatement(TransformOf("ts", "hour"))),
        ("add partition field identity(ts)", AddPartitionFieldStatement(TransformOf("ts"))),
        ("drop partition field month(`a b`)", DropPartitionFieldStatement(TransformOf("a b", "month"))),
        ("drop partition field shard", DropPartitionFieldStatement(TransformOf("shard"))),
        (
            "replace partition field days(ts) with hours(ts) as h",
            ReplacePartitionFieldStatement(TransformOf("ts", "day"), TransformOf("ts", "hour"), "h"),
        ),
        ("set identifier fields id, a.b, `c``d`", SetIdentifierFieldsStatement(("id", "a.b", "c`d"))),
        ("drop identifier fields id", DropIdentifierFieldsStatement(("id",))),
        ("write ordered by id", order(asc("id"), mode="range")),
        ("write ordered by (id desc, days(ts) nulls last)", order(desc("id"), asc("ts", "day", True), mode="range")),
        (
            "write ordered by bucket(4, id) asc nulls first, s desc nulls first",
            order(asc("id", "bucket[4]"), desc("s", nulls_last=False), mode="range"),
        ),
        ("write locally ordered by id", order(asc("id"))),
        ("write unordered", order(mode="none")),
        ("write distributed by partition", order(mode="hash")),
        ("write distributed by partition locally ordered by id", order(asc("id"), mode="hash")),
        ("write ordered by id distributed by partition", order(asc("id"), mode="hash")),
        ("write distributed by partition unordered", order(mode="hash")),
        ("create branch dev", PutRefStatement("dev", True, True)),
        ("create branch if not exists `a-b`", PutRefStatement("a-b", True, True, if_not_exists=True)),
        ("create or replace branch 2024_q1", PutRefStatement("2024_q1", True, True, True)),
        ("replace branch b retain 2 days", PutRefStatement("b", True, False, True, max_ref_age_ms=2 * DAY)),
        (
            "create branch b as of version 9223372036854775807 retain 10 hours with snapshot retention 3 snapshots",
            PutRefStatement("b", True, True, False, False, 2**63 - 1, 10 * HOUR, 3),
        ),
        (
            "create branch b with snapshot retention 5 minutes",
            PutRefStatement("b", True, True, max_snapshot_age_ms=5 * MINUTE),
        ),
        (
            "create branch b with snapshot retention 2 snapshots 30 minutes",
            PutRefStatement("b", True, True, min_snapshots_to_keep=2, max_snapshot_age_ms=30 * MINUTE),
        ),
        (
            "create tag t as of version 1L retain 365 days",
            PutRefStatement("t", False, True, False, False, 1, 365 * DAY),
        ),
        ("create or replace tag t", PutRefStatement("t", False, True, True)),
        ("replace tag t as of version -5", PutRefStatement("t", False, False, True, snapshot_id=-5)),
        ("create branch branch", PutRefStatement("branch", True, True)),
        ("drop branch b", DropRefStatement("b", True)),
        ("drop tag if exists t", DropRefStatement("t", False, True)),
    ],
)
def test_every_form_of_every_statement_is_read(clause: str, statement: AnyStatement) -> None:
    parsed = parse_statement(f"alter table db.t {clause}")
    assert parsed is not None
    assert (parsed.table, parsed.statement) == (("db", "t"), statement)


def test_comments_case_lines_quotes_and_a_semicolon_are_no_matter() -> None:
    text = (
        "-- first\nAlter /* a /* nested */ -- one */ TABLE\n\t`my cat`.db.`t``1`\r\n create BRANCH `x;y` -- last\n ; "
    )
    parsed = parse_statement(text)
    assert parsed is not None
    assert parsed.table == ("my cat", "db", "t`1")
    assert parsed.statement == PutRefStatement("x;y", True, True)
    assert parsed.command == "ALTER TABLE ... CREATE BRANCH"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "selec 1",
        "alter table",
        "alter table t",
        "alter table t add column x",
        "alter table t add partition (p = 1)",
        "alter table t drop column branch",
        "alter table t set tblproperties ('create branch' = 'x')",
        "alter view v create branch b",
        "create branch b",
        "select 'alter table t create branch b",
        "alter table 'alter table t create branch b'",
    ],
)
def test_what_does_not_begin_as_a_statement_of_iceberg_is_left_to_spark(text: str) -> None:
    assert parse_statement(text) is None


@pytest.mark.parametrize(
    ("text", "problem", "line", "position"),
    [
        ("alter table t create branch", "expected the name of the branch, found the end", 1, 28),
        ("alter table t create branch a-b", "expected the end of the statement, found '-'", 1, 30),
        ("alter table t create branch 12", "is written in back quotes", 1, 29),
        ("alter table t create branch b as of version x", "expected the id of a snapshot, found 'x'", 1, 45),
        ("alter table t create branch b retain 3 weeks", "expected DAYS, HOURS or MINUTES, found 'weeks'", 1, 40),
        ("alter table t create branch b with snapshot retention 3", "SNAPSHOTS, DAYS, HOURS or MINUTES", 1, 56),
        ("alter table t create tag b with snapshot retention 3 days", "expected the end of the statement", 1, 28),
        ("alter table t create or replace tag if not exists b", "expected the end of the statement", 1, 40),
        ("alter table t\n  add partition field weeks(ts)", "the transform weeks is not supported", 2, 23),
        ("alter table t add partition field bucket(0, id)", "a number from 1 to", 1, 42),
        ("alter table t add partition field bucket(id)", "expected ,, found ')'", 1, 44),
        ("alter table t add partition field s s", "expected the end of the statement", 1, 37),
        ("alter table t replace partition field s", "expected WITH, found the end", 1, 40),
        ("alter table t write", "expected ORDERED BY", 1, 20),
        ("alter table t write order by x", "expected ORDERED BY", 1, 21),
        ("alter table t write ordered by x nulls", "expected FIRST, found the end", 1, 39),
        ("alter table t write unordered unordered", "a second clause of the order", 1, 31),
        (
            "alter table t write distributed by partition distributed by partition",
            "a second clause DISTRIBUTED BY",
            1,
            46,
        ),
        ("alter table t drop tag t; drop tag u", "expected the end of the statement", 1, 27),
        ("alter table t create tag t as of version 9223372036854775808", "beyond the range of 64 bits", 1, 42),
    ],
)
def test_errors_point_at_the_place(text: str, problem: str, line: int, position: int) -> None:
    with pytest.raises(SqlParseError) as caught:
        parse_statement(text)
    error = caught.value
    assert problem in error.problem
    assert (error.line, error.position) == (line, position)
    shown = str(error).splitlines()
    assert shown[2].index("^") - 2 == error.position - 1
    assert shown[1][2:] == text.splitlines()[line - 1]
