"""Spark's conditions as predicates: as strong as can be, never stronger than Spark's."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue
from hms_iceberg.spark.reading.conditions import row_filter
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimeType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "price", DecimalType(9, 2)),
    NestedField(4, "weight", DoubleType()),
    NestedField(5, "key", UUIDType()),
    NestedField(6, "raw", FixedType(2)),
    NestedField(7, "noon", TimeType()),
    NestedField(8, "ok", BooleanType()),
    NestedField(9, "place", StructType(NestedField(10, "zip", IntegerType()))),
    NestedField(11, "place.zip", IntegerType()),
    NestedField(12, "blob", BinaryType()),
)


def on(op: str, column: str | list[str], value: Any = None, **more: Any) -> dict[str, Any]:
    path = [column] if isinstance(column, str) else column
    return {"op": op, "column": path, "value": value, **more}


def both(*children: dict[str, Any]) -> dict[str, Any]:
    return {"op": "and", "children": list(children)}


def either(*children: dict[str, Any]) -> dict[str, Any]:
    return {"op": "or", "children": list(children)}


def negated(child: dict[str, Any]) -> dict[str, Any]:
    return {"op": "not", "children": [child]}


UNKNOWN = {"op": "unknown"}


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (on("eq", "id", 5), "id = 5"),
        (on("lt", "id", 5), "id < 5"),
        (negated(on("lt", "id", 5)), "id >= 5"),
        (on("starts-with", "name", "a%"), "name like 'a\\%%'"),
        (negated(on("starts-with", "name", "a")), "name not like 'a%'"),
        (on("is-null", "name"), "name is null"),
        (negated(on("is-null", "name")), "name is not null"),
        (on("not-null", "name"), "name is not null"),
        (negated(on("not-null", "name")), "name is null"),
        (on("is-nan", "weight"), "weight is nan"),
        (on("eq-null-safe", "id", 5), "id = 5"),
        (on("eq-null-safe", "id"), "id is null"),
        (negated(on("eq-null-safe", "id")), "id is not null"),
        (negated(on("eq-null-safe", "id", 5)), "id != 5 or id is null"),
        (on("in", "id", values=[1, 2, None]), "id in (1, 2)"),
        (negated(on("in", "id", values=[1, 2])), "id not in (1, 2)"),
        (both(on("gt", "id", 1), on("lt", "id", 3)), "id > 1 and id < 3"),
        (negated(both(on("gt", "id", 1), on("lt", "id", 3))), "id <= 1 or id >= 3"),
        (both(on("gt", "id", 1), UNKNOWN), "id > 1"),
        (negated(either(on("gt", "id", 1), UNKNOWN)), "id <= 1"),
        (on("eq", "ok", True), "ok = true"),
        (on("eq", "id", 2, transform="bucket[4]"), "bucket(4, id) = 2"),
        (negated(on("in", "id", values=[0, 2], transform="bucket[4]")), "bucket(4, id) not in (0, 2)"),
        (on("lt", "price", "1.20", transform="truncate[10]"), "truncate(10, price) < 1.20"),
    ],
)
def test_a_condition_has_its_counterpart(condition: dict[str, Any], text: str) -> None:
    assert str(row_filter(condition, SCHEMA)[0]) == text


@pytest.mark.parametrize(
    "condition",
    [
        UNKNOWN,
        negated(UNKNOWN),
        either(on("gt", "id", 1), UNKNOWN),
        negated(both(on("gt", "id", 1), UNKNOWN)),
        on("eq", "_file", "x"),
        on("eq", "key", "not a uuid"),
        on("eq", "key", "F79C3E09-677C-4BBD-A479-3F349CB785E7"),
        on("starts-with", "key", "f7"),
        on("eq", "raw", "00112233"),
        on("eq", "noon", 1),
        on("eq", ["place", "zip"], 5),
        on("eq", ["nowhere", "zip"], 5),
        on("eq", "key", 2, transform="bucket[4]"),  # Spark hashes the text of a UUID
        on("eq", "ok", 2, transform="bucket[4]"),
        on("eq", "id", 2, transform="bucket[0]"),
    ],
)
def test_what_cannot_be_said_keeps_every_file(condition: dict[str, Any]) -> None:
    found, exact = row_filter(condition, SCHEMA)
    assert (isinstance(found, AlwaysTrue) and not exact) or str(found).startswith("raw")


@pytest.mark.parametrize(
    "condition",
    [
        on("eq", "id"),
        negated(on("eq", "id")),
        on("lt", "id"),
        on("in", "id", values=[None]),
        negated(on("in", "id", values=[1, None])),
        {"op": "false"},
        negated({"op": "true"}),
    ],
)
def test_a_comparison_with_null_keeps_nothing(condition: dict[str, Any]) -> None:
    assert isinstance(row_filter(condition, SCHEMA)[0], AlwaysFalse)


@pytest.mark.parametrize("value", ["NaN", 1.5])
@pytest.mark.parametrize("op", ["eq", "eq-null-safe", "lt", "lt-eq", "gt", "gt-eq", "in"])
@pytest.mark.parametrize("no", [False, True])
def test_nan_is_to_spark_greater_than_all_others_and_equal_to_itself(op: str, value: Any, no: bool) -> None:
    def key_of(number: float) -> tuple[bool, float]:
        return (True, 0.0) if math.isnan(number) else (False, number)

    order = key_of(float(value))
    spark: dict[str, Callable[[Any], bool]] = {
        "eq": lambda key: key == order,
        "eq-null-safe": lambda key: key == order,
        "lt": lambda key: key < order,
        "lt-eq": lambda key: key <= order,
        "gt": lambda key: key > order,
        "gt-eq": lambda key: key >= order,
        "in": lambda key: key in (order, (False, 7.0)),
    }
    condition = on(op, "weight", values=[value, 7.0]) if op == "in" else on(op, "weight", value)
    found, exact = row_filter(negated(condition) if no else condition, SCHEMA)
    matches = evaluator(SCHEMA, found)
    assert exact
    for weight in (1.0, 1.5, 2.0, 7.0, float("nan")):
        assert matches({"weight": weight}) is (spark[op](key_of(weight)) is not no), weight


@pytest.mark.parametrize(
    ("column", "sent", "stored"),
    [
        ("price", "12.50", Decimal("12.50")),
        ("weight", 0.1, 0.1),
        ("key", "f79c3e09-677c-4bbd-a479-3f349cb785e7", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
        ("raw", "00ff", b"\x00\xff"),
        ("blob", "", b""),
        ("noon", 43_200_000_000_000, 43_200_000_000),
    ],
)
def test_values_arrive_in_stored_form(column: str, sent: Any, stored: Any) -> None:
    found, _ = row_filter(on("eq", column, sent), SCHEMA)
    value = found.literal.value  # type: ignore[attr-defined]
    assert str(value) == stored if stored == "nan" else value == stored


def test_no_condition_is_always_true() -> None:
    assert isinstance(row_filter(None, SCHEMA)[0], AlwaysTrue)


def test_the_predicates_bind() -> None:
    condition = both(on("eq", "price", "1.25"), negated(on("in", "name", values=["a", "b"])))
    assert bind(Schema(*SCHEMA.fields[:4]), row_filter(condition, SCHEMA)[0]) is not None


def test_values_within_variants_leave_out_files_and_are_tested_by_spark() -> None:
    schema = Schema(NestedField(1, "v", VariantType()))
    value = {"path": "$.a", "type": "int", "raises": False}
    found, is_exact = row_filter(on("gt", "v", 5, variant=value), schema)
    assert (str(found), is_exact) == ("variant_get(v, '$.a', 'int') > 5", False)
    assert bind(schema, found) is not None
    found, _ = row_filter(negated(on("gt", "v", 5, variant={**value, "raises": True})), schema)
    assert str(found) == "variant_get(v, '$.a', 'int') <= 5 or variant_get(v, '$.a', 'double') is nan"
    for unknown in ({**value, "path": "a"}, {**value, "type": "tinyint"}):
        assert row_filter(on("gt", "v", 5, variant=unknown), schema) == (AlwaysTrue(), False)


def test_nanoseconds_are_compared_as_the_session_shows_them() -> None:
    schema = Schema(NestedField(1, "at", TimestampNanoType()))
    for choice, value in (("micros", 5), ("bigint", 5000)):
        for sent in (on("eq", "at", value), {**on("in", "at"), "values": [value, None]}):
            found, is_exact = row_filter(sent, schema, choice)
            test = evaluator(schema.as_struct(), bind(schema, found, True))
            assert [test([each]) for each in (4999, 5000, 5001, None)] == [False, True, False, False]
            assert is_exact
    assert row_filter(on("eq", "at", 5), schema) == (AlwaysTrue(), False)
