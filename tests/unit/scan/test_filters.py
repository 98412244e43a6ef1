"""Filters on whole columns beside a row-by-row evaluation: pruning never loses a row."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.literals import Operator, stored_literal
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import And, BooleanExpression, Not, Or, predicate
from hms_iceberg.scan.manifests import metric_columns
from hms_iceberg.scan.manifests.metric_columns import map_values
from hms_iceberg.scan.partition_columns import bound_dtype, comparable, decode_bounds
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    BucketTransform,
    IdentityTransform,
    TruncateTransform,
    YearTransform,
)
from hms_iceberg.spec.values.single_values import to_bytes, truncate_lower, truncate_upper
from tests.support.pruning import may_match
from tests.support.snapshots import LOCATION, ManifestTable

small = st.integers(-3, 3)
FLOATS = st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.0, 2.5, math.inf, math.nan])
TEXTS = st.text(st.sampled_from("aé\U0001f600\U0010ffffz"), max_size=4)
COLUMNS: list[tuple[str, IcebergType, st.SearchStrategy[Any]]] = [
    ("b", BooleanType(), st.booleans()),
    ("i", IntegerType(), small | st.sampled_from([-(2**31), 2**31 - 1])),
    ("l", LongType(), small | st.sampled_from([-(2**63), 2**63 - 1])),
    ("f", FloatType(), FLOATS),
    ("d", DoubleType(), FLOATS),
    ("dec", DecimalType(38, 2), st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2))),
    ("day", DateType(), small),
    ("t", TimeType(), st.integers(0, 5)),
    ("ts", TimestampType(), small),
    ("tz", TimestamptzType(), small),
    ("ns", TimestampNanoType(), small),
    ("s", StringType(), TEXTS),
    ("u", UUIDType(), st.sampled_from([uuid.UUID(int=n) for n in (0, 1, 2**127 - 1, 2**127, 2**128 - 1)])),
    ("x", FixedType(2), st.sampled_from([b"\x00\x00", b"\x00\xff", b"\xff\x00", b"\xff\xff"])),
    ("y", BinaryType(), st.binary(max_size=3)),
]
SCHEMA = Schema(*(NestedField(n, name, kind) for n, (name, kind, _) in enumerate(COLUMNS, 1)))
ROWS = st.tuples(*(st.none() | values for _, _, values in COLUMNS))
COMPARISONS = [Operator.LT, Operator.LT_EQ, Operator.GT, Operator.GT_EQ, Operator.EQ, Operator.NOT_EQ]


@st.composite
def column_tests(draw: st.DrawFn) -> BooleanExpression:
    name, kind, values = draw(st.sampled_from(COLUMNS))
    literals = values.filter(lambda value: value == value).map(lambda value: stored_literal(value, kind))
    operations = [*COMPARISONS, Operator.IN, Operator.NOT_IN, Operator.IS_NULL, Operator.NOT_NULL]
    if isinstance(kind, StringType):
        operations += [Operator.STARTS_WITH, Operator.NOT_STARTS_WITH] * 3
    if isinstance(kind, FloatType | DoubleType):
        operations += [Operator.IS_NAN, Operator.NOT_NAN]
    operation = draw(st.sampled_from(operations))
    if operation in (Operator.IN, Operator.NOT_IN):
        return predicate(operation, name, draw(st.lists(literals, min_size=1, max_size=4)))
    if operation in COMPARISONS or "like" in operation.value:
        return predicate(operation, name, draw(literals))
    return predicate(operation, name)


EXPRESSIONS = st.recursive(
    column_tests(),
    lambda inner: st.builds(And, inner, inner) | st.builds(Or, inner, inner) | st.builds(Not, inner),
    max_leaves=5,
)


def file_of(name: str, rows: Sequence[tuple[Any, ...]], width: int | None, **more: Any) -> DataFile:
    """A file with the metrics of its rows; bounds of text and binary are cut off at ``width``."""
    nulls, nans, lower, upper = {}, {}, {}, {}
    for field, values in zip(SCHEMA.fields, zip(*rows, strict=True), strict=True):
        kind = field.field_type
        known = [value for value in values if value is not None]
        numbers = [value for value in known if value == value]
        nulls[field.field_id] = len(rows) - len(known)
        if isinstance(kind, FloatType | DoubleType):
            nans[field.field_id] = len(known) - len(numbers)
        if numbers:
            low, high = min(numbers, key=_order), max(numbers, key=_order)
            if width is not None and isinstance(kind, StringType | BinaryType):
                low, high = truncate_lower(kind, low, width), truncate_upper(kind, high, width)
            lower[field.field_id] = to_bytes(kind, low)
            if high is not None:
                upper[field.field_id] = to_bytes(kind, high)
    counts = dict.fromkeys(range(1, len(COLUMNS) + 1), len(rows))
    return DataFile(
        file_path=f"{LOCATION}/data/{name}",
        file_format="PARQUET",
        record_count=len(rows),
        file_size_in_bytes=1,
        value_counts=counts,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lower,
        upper_bounds=upper,
        **more,
    )


def _order(value: Any) -> Any:
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    contents=st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=4),
    width=st.none() | st.integers(1, 3),
    expression=EXPRESSIONS,
)
def test_no_file_with_a_matching_row_is_pruned(
    contents: list[list[tuple[Any, ...]]], width: int | None, expression: BooleanExpression
) -> None:
    files = [file_of(str(number), rows, width) for number, rows in enumerate(contents)]
    table = ManifestTable(SCHEMA)
    table.commit(*files)
    planned = table.planned(expression)
    matches = evaluator(SCHEMA, expression)
    for number, rows in enumerate(contents):
        if any(matches(row) for row in rows):
            assert str(number) in planned
    assert planned == [str(number) for number, file in enumerate(files) if may_match(SCHEMA, expression, file)]


PARTITIONED = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "i"),
    PartitionField(5, 1001, IdentityTransform(), "d"),
    PartitionField(12, 1002, TruncateTransform(1), "s_trunc"),
    PartitionField(7, 1003, YearTransform(), "day_year"),
    PartitionField(3, 1004, BucketTransform(2), "l_bucket"),
    PartitionField(6, 1005, TruncateTransform(100), "dec_trunc"),
    PartitionField(13, 1006, IdentityTransform(), "u"),
    PartitionField(1, 1007, IdentityTransform(), "b"),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROWS, min_size=1, max_size=5), expression=EXPRESSIONS, apart=st.booleans())
def test_no_partition_with_a_matching_row_is_pruned(
    rows: list[tuple[Any, ...]], expression: BooleanExpression, apart: bool
) -> None:
    table = ManifestTable(SCHEMA, PARTITIONED)
    functions = [field.transform.bind(SCHEMA.find_field(field.source_id).field_type) for field in PARTITIONED.fields]
    files = []
    for number, row in enumerate(rows):
        partition = tuple(
            function(row[field.source_id - 1]) for function, field in zip(functions, PARTITIONED.fields, strict=True)
        )
        files.append(
            DataFile(
                file_path=str(number), file_format="PARQUET", record_count=1, file_size_in_bytes=1, partition=partition
            )
        )
    table.commit(*files, apart=apart)
    plan = table.plan(expression)
    planned = {task.file.file_path: task for task in plan.tasks()}
    matches = evaluator(SCHEMA, expression)
    for number, row in enumerate(rows):
        if matches(row):
            assert str(number) in planned
            assert evaluator(SCHEMA, planned[str(number)].residual)(row)


@pytest.mark.parametrize("kind", [kind for _, kind, _ in COLUMNS], ids=str)
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_decoded_bounds_compare_as_the_values_do(kind: IcebergType, data: st.DataObject) -> None:
    values = next(values for _, each, values in COLUMNS if each == kind)
    if isinstance(kind, DecimalType):
        values |= st.integers(-(10**38) + 1, 10**38 - 1).map(
            lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -2))
        )
    one, other = data.draw(values), data.draw(values)
    decoded = decode_bounds(pl.Series([to_bytes(kind, one)], dtype=pl.Binary), kind)
    assert decoded.dtype == bound_dtype(kind)
    if one != one:
        assert decoded.is_null().all()
    elif other == other:
        literal = pl.Series([comparable(kind, other)], dtype=bound_dtype(kind))
        assert (decoded < literal)[0] == (one < other)
        assert (decoded == literal)[0] == (one == other)


def test_bounds_from_before_a_promotion_are_widened() -> None:
    def decoded(data: bytes, kind: IcebergType) -> Any:
        return decode_bounds(pl.Series([data], dtype=pl.Binary), kind)[0]

    assert decoded(struct.pack("<i", -5), LongType()) == -5
    assert decoded(struct.pack("<f", 0.5), DoubleType()) == 0.5
    assert decoded(struct.pack("<i", -1), TimestampType()) == -86_400_000_000
    assert decoded(struct.pack("<i", 1), TimestampNanoType()) == 86_400_000_000_000


@pytest.mark.parametrize("kind", [IntegerType(), LongType(), DoubleType(), BooleanType(), DecimalType(9, 2)], ids=str)
def test_bytes_that_are_no_bound_of_the_type_say_nothing(kind: IcebergType) -> None:
    stored = pl.Series([b"", b"\x00" * 17, None], dtype=pl.Binary)
    assert decode_bounds(stored, kind).is_null().all()


def test_values_of_a_map_are_found_where_they_are_and_null_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [
        [{"key": 1, "value": 10}, {"key": 2, "value": 20}],
        None,
        [],
        [{"key": 2, "value": 21}],
        [{"key": 3, "value": 30}, {"key": 2, "value": 22}],
    ]
    maps = pl.Series(pairs, dtype=pl.List(pl.Struct({"key": pl.Int32, "value": pl.Int64})))
    found = map_values(maps, [2, 9, 1])
    assert [each.to_list() for each in found] == [[20, None, None, 21, 22], [None] * 5, [10, None, None, None, None]]
    monkeypatch.setattr(metric_columns, "_PLACES_AT_ONCE", 5)
    assert [each.to_list() for each in map_values(maps, [2, 9, 1])] == [each.to_list() for each in found]
    assert map_values(maps[:1], [2])[0].to_list() == [20]
    assert map_values(maps[:0], [2])[0].to_list() == []


def test_tests_of_transforms_and_unknown_metrics_leave_every_file() -> None:
    table = ManifestTable(SCHEMA)
    table.commit(DataFile(file_path="a", file_format="AVRO", record_count=1, file_size_in_bytes=1))
    for text in ("bucket(4, l) = 1", "i = 1", "d > 1", "s like 'a%'", "s is null", "d is nan", "u is not null"):
        assert table.planned(text) == ["a"], text


def test_a_file_without_rows_matches_nothing_and_an_unknown_number_of_rows_anything() -> None:
    table = ManifestTable(SCHEMA)
    files = [DataFile(file_path=str(n), file_format="AVRO", record_count=n, file_size_in_bytes=1) for n in (-1, 0, 1)]
    table.commit(*files)
    assert table.planned("i = 1") == ["-1", "1"]
    assert table.planned() == ["-1", "0", "1"]


def test_nulls_of_a_field_in_an_optional_struct_count_only_where_every_row_was_counted() -> None:
    schema = Schema(NestedField(1, "st", StructType(NestedField(2, "a", IntegerType()))))
    table = ManifestTable(schema)
    base: dict[str, Any] = {"file_format": "ORC", "record_count": 5, "file_size_in_bytes": 1}
    table.commit(
        DataFile(file_path="some", value_counts={2: 4}, null_value_counts={2: 0}, **base),
        DataFile(file_path="all", value_counts={2: 5}, null_value_counts={2: 0}, **base),
    )
    assert table.planned("st.a is null") == ["some"]


def test_bounds_of_uuids_from_several_row_groups_are_not_used() -> None:
    schema = Schema(NestedField(1, "u", UUIDType()))
    bound = {1: uuid.UUID(int=5).bytes}
    base: dict[str, Any] = {"file_format": "PARQUET", "record_count": 5, "file_size_in_bytes": 1}
    table = ManifestTable(schema)
    table.commit(
        DataFile(file_path="one", split_offsets=(4,), lower_bounds=bound, upper_bounds=bound, **base),
        DataFile(file_path="two", split_offsets=(4, 8), lower_bounds=bound, upper_bounds=bound, **base),
    )
    assert table.planned("u = '00000000-0000-0000-0000-000000000009'") == ["two"]


def test_summaries_of_uuids_that_java_ordered_as_signed_numbers_are_not_used() -> None:
    from dataclasses import replace

    schema = Schema(NestedField(1, "u", UUIDType()))
    table = ManifestTable(schema, PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "u")))
    values = [uuid.UUID(int=1), uuid.UUID(int=2**127), uuid.UUID(int=2**128 - 1)]
    base: dict[str, Any] = {"file_format": "PARQUET", "record_count": 5, "file_size_in_bytes": 1}
    table.commit(*(DataFile(file_path=str(value), partition=(value,), **base) for value in values))
    (manifest,) = table.manifests
    assert manifest.partitions is not None
    signed = replace(manifest.partitions[0], lower_bound=values[1].bytes, upper_bound=values[0].bytes)
    table.commit_manifests([replace(manifest, partitions=(signed,))], 1_000_001)
    assert table.planned(f"u = '{values[2]}'") == [str(values[2])]


def test_a_filter_is_parsed_bound_and_printed() -> None:
    assert str(bind(SCHEMA, parse("i > 1 and not s like 'a%'"))) == "i > 1 and s not like 'a%'"
