"""Filters by values within variants: which rows they take, and which files and row groups are not read."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import re
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hms_iceberg.arrow.formats.parquet_reader import ParquetReader
from hms_iceberg.errors import CorruptDataFileError, ExpressionParseError, TypeMismatchError, UnsupportedError
from hms_iceberg.expressions import EqualTo, GreaterThan, NotNull, VariantGet, parse
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.json_filters import filter_to_json
from hms_iceberg.expressions.visitors import unbind
from hms_iceberg.scan.metrics_filter import files_may_match
from hms_iceberg.spec.data_types import IntegerType, LongType, NestedField, StringType, VariantType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.variant.building import variant_of
from hms_iceberg.spec.variant.variant import Variant
from hms_iceberg.table.table import Table
from hms_iceberg.variant import variant_column
from tests.support.row_tables import MODES, create

SCHEMA = Schema(NestedField(1, "n", LongType()), NestedField(2, "v", VariantType()))
SHREDDED = {"write.parquet.shred-variants": "true"}

# A file each; `a` has one type in most of them.
FILES: list[list[Any]] = [
    [{"a": n, "b": {"c": f"x{n}"}} for n in range(10)],
    [{"a": n, "b": {"c": f"y{n}"}} for n in range(100, 110)],
    [{"a": n} for n in (2**31 - 1, 2**31, -(2**31) - 1, 2**62, -(2**62), 1)],
    [{"a": n / 4, "b": {"c": "é" * n}} for n in range(-20, 20)],
    [{"a": 5.5}, {"a": math.nan}, {"a": -0.0}],
    [{"a": math.nan}, {"a": math.nan}],
    [{"a": math.inf}, {"a": -math.inf}, {"a": 1e300}],
    [{"a": text} for text in ("5", " 7 ", "-3", "3.5", "abc", "true", "", "x1", "1e3", "99999999999999999999")],
    [{"a": flag} for flag in (True, False)],
    [{"a": None}, {"a": None}, {}],
    [{"a": 3}, {"a": None}, {}, None],
    [{"a": 4}, {"a": "4"}, {"a": 4.75}, {"a": [4]}, {"a": {"b": 4}}, {"a": True}],
    [None, None],
    [7, "7", [7, {"a": 8}], {"b": [1, {"c": "x"}]}],
    [{"a": [n, n + 1], "b": {"c": n}} for n in range(5)],
    [{"b": {"c": "x"}, "a": 6}] * 3,
]
LITERALS: dict[str, list[Any]] = {
    "int": [-5, 0, 3, 4, 5, 101, 2**31 - 1, -(2**31)],
    "bigint": [-(2**62), 0, 5, 2**31, 2**62],
    "double": [-5.0, 0.0, 4.75, 5.5, 107.0, 1e299],
    "string": ["5", "x", "x3", "y", "abc", "é", ""],
}
ROWS = [(n, value) for n, value in enumerate(value for values in FILES for value in values)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = create(tmp_path_factory.mktemp("variants"), version=3, schema=SCHEMA, **SHREDDED)
    at = 0
    for values in FILES:
        append(table, at, values)
        at += len(values)
    return table


def append(table: Table, start: int, values: list[Any]) -> None:
    column = variant_column(None if value is None else variant_of(value) for value in values)
    table.append(pa.table({"n": range(start, start + len(values)), "v": column}))


@pytest.fixture(scope="module")
def oracle() -> Any:
    """The rows as JSON, and Spark's casts in DuckDB's words."""
    with duckdb.connect() as connection:
        texts = [None if value is None else json.dumps(value, separators=(",", ":")) for _, value in ROWS]
        texts = [text and re.sub(r":(NaN|-?Infinity)", r':"\1"', text) for text in texts]
        connection.register("source", pa.table({"n": [n for n, _ in ROWS], "j": pa.array(texts, pa.string())}))
        connection.sql("create table rows as select n, j::json j from source")
        yield connection


def cast(path: str, kind: str) -> str:
    """Spark's cast of a value in JSON, in DuckDB's words; a text stands for what is no finite number."""
    value, of, text = f"json_extract(j, '{path}')", f"json_type(j, '{path}')", f"json_extract_string(j, '{path}')"
    if kind == "string":
        return f"case when {of} <> 'NULL' then {text} end"
    special = f"{of} = 'VARCHAR' and lower(trim({text})) in ('nan', 'infinity', '-infinity')"
    numbers = f"case when {of} in ('BIGINT', 'UBIGINT', 'DOUBLE') or {special} then {text}::double " + (
        f"when {of} = 'BOOLEAN' then ({text} = 'true')::int::double "
        f"when {of} = 'VARCHAR' and regexp_full_match(trim({text}), '[+-]?[0-9]+([.][0-9]+)?(e[0-9]+)?') "
        f"then trim({text})::double end"
    )
    if kind == "double":
        return numbers
    low, high = (-(2**31), 2**31 - 1) if kind == "int" else (-(2**63), 2**63 - 1)
    whole = (
        f"case when {of} in ('BIGINT', 'UBIGINT') then {value}::hugeint "
        f"when {of} = 'DOUBLE' and abs({text}::double) < 1e30 then trunc({text}::double)::hugeint "
        f"when {of} = 'BOOLEAN' then ({text} = 'true')::int "
        f"when {of} = 'VARCHAR' and regexp_full_match(trim({text}), '[+-]?[0-9]+') then trim({text})::hugeint end"
    )
    return f"case when ({whole}) between {low} and {high} then ({whole}) end"


def sql(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else f"{value!r}D" if isinstance(value, float) else str(value)


def duck(value: Any) -> str:
    return f"{value!r}::double" if isinstance(value, float) else sql(value)


PATHS = ("$.a", "$.b.c", "$", "$.a[0]", "$.a[1]", "$.b", "$.missing")


@pytest.mark.parametrize("kind", LITERALS)
def test_filters_take_the_rows_that_duckdb_takes_of_the_json(table: Table, oracle: Any, kind: str) -> None:
    filters = []
    for path, value in product(PATHS, LITERALS[kind]):
        ours, theirs = f"variant_get(v, '{path}', '{kind}')", cast(path, kind)
        for test in ("=", "<>", "<", "<=", ">", ">="):
            filters.append((f"{ours} {test} {sql(value)}", f"{theirs} {test} {duck(value)}"))
        filters.append((f"not ({ours} > {sql(value)})", f"{theirs} <= {duck(value)}"))
        first = LITERALS[kind][0]
        filters.append(
            (f"{ours} not in ({sql(value)}, {sql(first)})", f"{theirs} not in ({duck(value)}, {duck(first)})")
        )
        if kind == "string":
            filters.append((f"{ours} like '{value}%'", f"starts_with({theirs}, '{value}')"))
            filters.append((f"{ours} not like '{value}%'", f"not starts_with({theirs}, '{value}')"))
    for path in PATHS:
        ours, theirs = f"variant_get(v, '{path}', '{kind}')", cast(path, kind)
        filters += [(f"{ours} is null", f"({theirs}) is null"), (f"{ours} is not null", f"({theirs}) is not null")]
        if kind == "double":
            filters.append((f"{ours} is nan", f"isnan({theirs})"))
            filters.append((f"{ours} is not nan", f"coalesce(not isnan({theirs}), true)"))
    chosen = filters[::11]
    whole = table.scan().to_arrow()
    wanted = oracle.sql(f"select n, {', '.join(theirs for _, theirs in chosen)} from rows order by n").fetchnumpy()
    numbers = wanted.pop("n").tolist()
    left_out = 0
    for (ours, theirs), matches in zip(chosen, wanted.values(), strict=True):
        scan = table.scan(ours)
        left_out += len(FILES) - len(list(scan.plan_files()))
        rows = [n for n, match in zip(numbers, matches.tolist(), strict=True) if match is True]
        assert sorted(scan.to_arrow()["n"].to_pylist()) == rows, (ours, theirs)
    assert left_out > len(chosen)
    assert whole.num_rows == len(ROWS)


@pytest.mark.parametrize(
    ("row_filter", "left_out"),
    [
        ("variant_get(v, '$.a', 'int') > 105", {0, 3, 10, 12, 15}),
        ("variant_get(v, '$.b.c', 'string') like 'y%'", {0, 12, 15}),
        ("variant_get(v, '$.a[0]', 'int') > 1000", {12}),
        ("variant_get(v, '$.a', 'boolean') = true", {12}),
        ("variant_get(v, '$.a', 'int') is not null", {12}),
        ("variant_get(v, '$.a', 'int') is null", set()),
    ],
)
def test_files_are_left_out_only_where_bounds_exclude_every_row(
    table: Table, row_filter: str, left_out: set[int]
) -> None:
    # Kept: casts that may fail, NaN and other types, and files without bounds of the field.
    kept = {task.file.file_path for task in table.scan(row_filter).plan_files()}
    every = sorted(table.scan().plan_files(), key=lambda task: task.data_sequence_number)
    assert {at for at, task in enumerate(every) if task.file.file_path not in kept} == left_out


def test_a_table_clustered_by_a_field_is_read_by_a_tenth_of_its_files_at_most(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA, **SHREDDED)
    for file in range(40):
        append(table, file * 10, [{"a": {"b": file * 10 + n, "t": f"k{file:03}"}, "other": n} for n in range(10)])
    for row_filter, rows in (
        ("variant_get(v, '$.a.b', 'int') > 370", 29),
        ("variant_get(v, '$.a.b', 'int') between 55 and 65", 11),
        ("not (variant_get(v, '$.a.b', 'double') > 4.5)", 5),
        ("variant_get(v, '$[''a''][\"t\"]', 'string') = 'k017'", 10),
        ("variant_get(v, '$.a.b', 'decimal(9,2)') in (3.00, 77.00)", 2),
    ):
        scan = table.scan(row_filter)
        assert len(list(scan.plan_files())) <= 4, row_filter
        assert scan.to_arrow().num_rows == rows


def test_row_groups_are_left_out(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA, **SHREDDED, **{"write.parquet.row-group-size-bytes": "5000"})
    append(table, 0, [{"a": n + 10**5} for n in range(4000)])
    (task,) = table.scan("variant_get(v, '$.a', 'int') > 103990").plan_files()
    reader = ParquetReader(table.storage, task.file.file_path, None)
    try:
        ranges = reader.ranges()
        bound = parse("variant_get(v, '$.a', 'int') > 103990").bind(SCHEMA)
        kept = reader.matching(ranges, SCHEMA, {2}, lambda found: files_may_match(bound, found))
    finally:
        reader.close()
    assert len(kept) == 1 < len(ranges)
    assert table.scan("variant_get(v, '$.a', 'int') > 103990").to_arrow().num_rows == 9


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "row_filter", ["variant_get(v, '$.a', 'int') > 3", "not (variant_get(v, '$.a', 'double') < 5)"]
)
def test_rows_are_deleted_and_updated_by_values_within_variants(
    tmp_path: Path, table: Table, mode: str, row_filter: str
) -> None:
    changed = create(tmp_path, version=3, schema=SCHEMA, mode=mode, **SHREDDED)
    at = 0
    for values in FILES:
        append(changed, at, values)
        at += len(values)
    matching = set(table.scan(row_filter).to_arrow()["n"].to_pylist())
    changed.update({"n": 1000}, f"{row_filter} and n < 20")
    changed.delete(f"{row_filter} and n <> 1000")
    kept = sorted(1000 if n in matching else n for n, _ in ROWS if n not in matching or n < 20)
    assert sorted(changed.scan().to_arrow()["n"].to_pylist()) == kept


def test_files_without_the_column_have_no_values(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=Schema(NestedField(1, "n", LongType())))
    table.append(pa.table({"n": [1]}))
    with table.update_schema() as update:
        update.add_column("v", VariantType())
    append(table, 2, [{"a": 1}, None])
    assert table.scan("variant_get(v, '$.a', 'int') = 1").to_arrow()["n"].to_pylist() == [2]
    assert sorted(table.scan("variant_get(v, '$.a', 'int') is null").to_arrow()["n"].to_pylist()) == [1, 3]


def test_terms_read_back_from_their_text_and_bind_to_variants_only() -> None:
    text = "variant_get(v, '$.a[''b''][2][\"it''s\"]', 'decimal(9,2)') > 5"
    found = parse(text)
    assert str(found) == text
    assert str(parse(str(unbind(found.bind(SCHEMA))))) == text + ".00"
    assert pickle.loads(pickle.dumps(found)) == found
    assert parse("TRY_VARIANT_GET(v, '$', 'INTEGER') = 1") == EqualTo(VariantGet("v", "$", IntegerType()), 1)
    assert parse("variant_get(v, '$.a', 'boolean')") == EqualTo(VariantGet("v", "$.a", "boolean"), True)
    assert hash(VariantGet("v", "$.a", "string")) == hash(VariantGet("v", "$.a", StringType()))
    for bad in ("variant_get(v, 'a', 'int') = 1", "variant_get(v, '$.a', 'map') = 1", "variant_get(v, '$.a') = 1",
                "variant_get(v, '$..a', 'int') = 1", "variant_get(v, '$[-1]', 'int') = 1",
                "variant_get(v, '$.a', 'decimal(40,2)') = 1", "variant_get(v, 5, 'int') = 1"):  # fmt: skip
        with pytest.raises(ExpressionParseError):
            parse(bad)
    with pytest.raises(TypeMismatchError, match="column 'n' is long, not variant"):
        NotNull(VariantGet("n", "$", "int")).bind(SCHEMA)
    with pytest.raises(TypeMismatchError):
        GreaterThan(VariantGet("v", "$", "int"), "text").bind(SCHEMA)
    with pytest.raises(UnsupportedError, match="REST protocol"):
        filter_to_json(found.bind(SCHEMA))


def test_single_rows_are_tested_as_columns_are() -> None:
    test = evaluator(SCHEMA, parse("variant_get(v, '$.a', 'int') > 3"))
    variant = variant_of({"a": 4})
    parts = {"metadata": variant.metadata, "value": variant.value}
    assert [test((1, each)) for each in (variant, parts, None, variant_of({"a": 3}))] == [True, True, False, False]


def test_plans_can_be_pickled_and_need_no_variants_among_the_selected_columns(table: Table) -> None:
    scan = table.scan("variant_get(v, '$.a', 'int') > 105", selected_fields=("n",))
    rows = scan.to_arrow()
    assert rows.column_names == ["n"]
    assert scan.count() == rows.num_rows
    tasks = list(scan.plan_files())
    bound = tasks[0].residual
    assert evaluator(SCHEMA, bound)((1, variant_of({"a": 106})))
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert pickle.loads(pickle.dumps(tasks))[0].residual == bound
    assert pickle.loads(pickle.dumps(scan)).to_arrow().num_rows == rows.num_rows


def test_damaged_variants_are_told(tmp_path: Path) -> None:
    table = create(tmp_path, version=3, schema=SCHEMA)
    good = variant_of({"a": 1})
    table.append(pa.table({"n": [1], "v": variant_column([Variant(good.metadata, good.value[:-1])])}))
    with pytest.raises(CorruptDataFileError, match="column 'v' for a filter"):
        table.scan("variant_get(v, '$.a', 'int') > 1").to_arrow()


def test_times_are_compared() -> None:
    row = (1, variant_of({"day": dt.date(2024, 1, 2), "at": dt.datetime(2024, 1, 2, 3), "text": "2024-01-02"}))
    for text in (
        "variant_get(v, '$.day', 'date') = date'2024-01-02'",
        "variant_get(v, '$.at', 'date') = date'2024-01-02'",
        "variant_get(v, '$.text', 'date') = date'2024-01-02'",
        "variant_get(v, '$.at', 'timestamp_ntz') > timestamp'2024-01-02 02:59:59'",
        "variant_get(v, '$.day', 'timestamp_ntz') = timestamp'2024-01-02 00:00:00'",
    ):
        assert evaluator(SCHEMA, parse(text))(row), text
