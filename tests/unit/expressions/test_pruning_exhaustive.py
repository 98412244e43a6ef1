"""Small domains, walked through completely: every value, every test, every way that a writer may count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.literals import Operator, stored_literal
from hms_iceberg.expressions.residuals import inclusive_projection, strict_projection
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import BooleanExpression, predicate
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import to_bytes, truncate_lower, truncate_upper
from tests.support.partitions import stored_partitions
from tests.support.pruning import all_may_match, all_must_match

ORDERED = (Operator.LT, Operator.LT_EQ, Operator.GT, Operator.GT_EQ, Operator.EQ, Operator.NOT_EQ)
PREFIX = (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH)


def every_test(column: str, kind: IcebergType, values: list[Any]) -> Iterator[BooleanExpression]:
    """Every test of a column with these values."""
    literals = [stored_literal(value, kind) for value in values]
    for operation in (Operator.IS_NULL, Operator.NOT_NULL):
        yield predicate(operation, column)
    if isinstance(kind, DoubleType):
        yield predicate(Operator.IS_NAN, column)
        yield predicate(Operator.NOT_NAN, column)
    for operation, value in product((*ORDERED, *(PREFIX if isinstance(kind, StringType) else ())), literals):
        yield predicate(operation, column, value)
    for pair in combinations_with_replacement(literals, 2):
        yield predicate(Operator.IN, column, pair)
        yield predicate(Operator.NOT_IN, column, pair)


def texts(letters: str, longest: int) -> list[str]:
    return ["".join(each) for length in range(longest + 1) for each in product(letters, repeat=length)]


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (IntegerType(), list(range(-6, 7))),
        (StringType(), texts("ab", 3)),
        (BinaryType(), [each.encode() for each in texts("ab", 3)]),
    ],
    ids=str,
)
def test_truncated_values(kind, values, width):
    schema = Schema(NestedField(1, "a", kind))
    spec = PartitionSpec(PartitionField(1, 1000, f"truncate[{width}]", "p"))
    truncate = spec.fields[0].transform.bind(kind)
    blocks: dict[Any, list[Any]] = {}
    for value in [None, *values]:
        blocks.setdefault(truncate(value), []).append(value)
    for test in every_test("a", kind, values):
        matches = evaluator(schema, test)
        keeps = evaluator(spec.partition_type(schema), inclusive_projection(schema, spec)(test))
        is_full = evaluator(spec.partition_type(schema), strict_projection(schema, spec)(test))
        for partition, members in blocks.items():
            answers = [matches((value,)) for value in members]
            assert keeps((partition,)) or not any(answers), (str(test), partition)
            assert all(answers) or not is_full((partition,)), (str(test), partition)


def check_partitions(schema: Schema, spec: PartitionSpec, test: BooleanExpression, rows: list[tuple[Any, ...]]) -> None:
    matches = evaluator(schema, test)
    keeps = evaluator(spec.partition_type(schema), inclusive_projection(schema, spec)(test))
    is_full = evaluator(spec.partition_type(schema), strict_projection(schema, spec)(test))
    for row in rows:
        for partition in stored_partitions(row, spec, schema):
            assert keeps(partition) or not matches(row), (str(test), row, partition)
            assert matches(row) or not is_full(partition), (str(test), row, partition)


@pytest.mark.parametrize("width", [1, 3, 8, 10, 1000, 2**31 - 1])
def test_values_that_were_truncated_as_ints_before_their_column_was_promoted(width: int) -> None:
    schema = Schema(NestedField(1, "a", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, f"truncate[{width}]", "p"))
    lowest = -(2**31)
    wrapped = 2**32 + lowest - lowest % width
    values = [lowest - 1, lowest, lowest + 1, lowest + width, 5, 2**31 - 1, wrapped, wrapped + 1, -(2**63), 2**63 - 1]
    results = [lowest, lowest - lowest % width, 0, wrapped, -(2**63)]
    texts = [f"truncate({width}, a) {sign} {each}" for sign in ("=", "!=", "<", "<=", ">", ">=") for each in results]
    texts += [f"truncate({width}, a) {sign} ({wrapped}, {results[1]})" for sign in ("in", "not in")]
    for test in (*every_test("a", LongType(), values), *map(parse, texts)):
        check_partitions(schema, spec, test, [(value,) for value in [None, *values]])


def moments(kind: IcebergType) -> Iterator[list[int]]:
    """A few moments around each of several beginnings of a period, at or before 1970."""
    for days in (-366, -365, -32, -31, -1, 0):
        if isinstance(kind, DateType):
            yield [days + shift for shift in (-1, 0, 1)]
            continue
        second = 1_000_000_000 if isinstance(kind, TimestampNanoType) else 1_000_000
        for hour in (0, 1):
            start = (days * 24 + hour) * 3600 * second
            yield [start + shift for shift in (-second, -1, 0, 1, second - 1, second)]


TIMES = (DateType(), TimestampType(), TimestamptzType(), TimestampNanoType())
UNITS = [
    (kind, unit) for kind in TIMES for unit in ("year", "month", "day", "hour") if (str(kind), unit) != ("date", "hour")
]


@pytest.mark.parametrize(("kind", "unit"), UNITS, ids=str)
def test_times_before_1970_are_found_in_the_partitions_that_any_writer_stored(kind, unit):
    spec = PartitionSpec(PartitionField(1, 1000, unit, "p"))
    schema = Schema(NestedField(1, "a", kind))
    for near in moments(kind):
        for test in every_test("a", kind, near):
            check_partitions(schema, spec, test, [(value,) for value in near])


@pytest.mark.parametrize("width", [3, 10, 16, 1000])
@pytest.mark.parametrize(("kind", "half"), [(IntegerType(), 2**31), (LongType(), 2**63)], ids=str)
def test_integers_at_the_ends_of_their_range_are_found_in_the_partitions_of_truncate(kind, half, width):
    schema = Schema(NestedField(1, "a", kind))
    spec = PartitionSpec(PartitionField(1, 1000, f"truncate[{width}]", "p"))
    near = [end + shift for end in (-half, -half + width - half % width, 0, half - 4) for shift in range(4)]
    for test in every_test("a", kind, near):
        check_partitions(schema, spec, test, [(value,) for value in near])


def file_of(kind: IcebergType, values: list[Any], rows: int, width: int | None, nans: bool, bounds: bool) -> DataFile:
    """The metrics of a column (id 1) as a writer might leave them."""
    plain = [each for each in values if each is not None and each == each]
    lower, upper = (min(plain), max(plain)) if plain and bounds else (None, None)
    if width is not None and lower is not None:
        lower, upper = truncate_lower(kind, lower, width), truncate_upper(kind, upper, width)
    return DataFile(
        file_path="f",
        file_format="PARQUET",
        record_count=rows,
        file_size_in_bytes=1,
        value_counts={1: len(values)},
        null_value_counts={1: values.count(None)},
        nan_value_counts={1: sum(1 for each in values if each is not None and each != each)} if nans else None,
        lower_bounds=None if lower is None else {1: to_bytes(kind, lower)},
        upper_bounds=None if upper is None else {1: to_bytes(kind, upper)},
    )


def check_files(schema: Schema, tests: Iterable[BooleanExpression], made: list[tuple[DataFile, list[Any]]]) -> None:
    """No test leaves out a file with a row that matches, or takes all of one with a row that does not."""
    files = [file for file, _ in made]
    for test in tests:
        matches = evaluator(schema, test)
        found = zip(made, all_may_match(schema, test, files), all_must_match(schema, test, files), strict=True)
        for (file, rows), may, must in found:
            answers = [matches(row) for row in rows]
            assert may or not any(answers), (str(test), file, rows)
            assert all(answers) or not must, (str(test), file, rows)


@pytest.mark.parametrize("bounds", [True, False])
@pytest.mark.parametrize("nans", [True, False])
def test_metrics_of_floating_point_columns(nans, bounds):
    schema = Schema(NestedField(1, "a", DoubleType()))
    made = [
        (file_of(DoubleType(), list(values), 2, None, nans, bounds), [(value,) for value in values])
        for values in combinations_with_replacement([None, math.nan, -0.0, 1.0, 2.0], 2)
    ]
    check_files(schema, every_test("a", DoubleType(), [0.0, 1.0, math.nan]), made)


@pytest.mark.parametrize("width", [1, 2])
def test_metrics_of_truncated_texts(width):
    schema = Schema(NestedField(1, "a", StringType()))
    made = [
        (file_of(StringType(), list(values), 2, width, False, True), [(value,) for value in values])
        for values in combinations_with_replacement([None, "", "a", "ab", "aba", "b"], 2)
    ]
    check_files(schema, every_test("a", StringType(), ["", "a", "ab", "abb", "b"]), made)


@pytest.mark.parametrize("counts_rows_of_null_structs", [True, False])
@pytest.mark.parametrize("required", [True, False])
def test_metrics_of_fields_in_structs(required, counts_rows_of_null_structs):
    inner = StructType(NestedField(1, "x", IntegerType(), required))
    schema = Schema(NestedField(2, "s", inner))
    domain: list[Any] = [None, (1,), (2,), *([] if required else [(None,)])]
    made = []
    for structs in product(domain, repeat=2):
        values = [None if each is None else each[0] for each in structs]
        if not counts_rows_of_null_structs:
            values = [each[0] for each in structs if each is not None]
        made.append((file_of(IntegerType(), values, 2, None, False, True), [(each,) for each in structs]))
    check_files(schema, every_test("s.x", IntegerType(), [1, 2, 3]), made)
