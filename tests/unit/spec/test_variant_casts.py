"""Casts of values within variants, as Spark's documentation and code have them, and what bounds tell of them."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pytest

from hms_iceberg.expressions import VariantGet
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.expressions.literals import Operator, stored_literal
from hms_iceberg.expressions.tree import BooleanExpression, predicate
from hms_iceberg.spec.data_types import IcebergType, NestedField, StringType, VariantType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.variant.bounds import bounds_object, field_bounds
from hms_iceberg.spec.variant.building import variant_of
from hms_iceberg.spec.variant.layout import Kind
from hms_iceberg.spec.variant.paths import normalized_path, parse_path
from hms_iceberg.spec.variant.variant import Variant
from tests.support.pruning import all_may_match, all_must_match

SCHEMA = Schema(NestedField(1, "v", VariantType()))
UTC = dt.timezone.utc
SINGLE = Variant(b"\x01\x00\x00", Kind.FLOAT.header + b"\xcd\xcc\xcc\x3d")  # 0.1 in 32 bits


def taken(value: Any, kind: str) -> Any:
    variant = value if isinstance(value, Variant) else variant_of(value)
    return bound("$", kind).read(variant.metadata, variant.value)


def bound(path: str, kind: str) -> Any:
    test = predicate(Operator.NOT_NULL, VariantGet("v", path, kind)).bind(SCHEMA)
    return test.term  # type: ignore[attr-defined]


CASTS: list[tuple[Any, str, Any]] = [
    (1.9, "int", 1), (-1.9, "int", -1), (2147483647.5, "int", 2**31 - 1), (2147483648.0, "int", None),
    (-2147483648.9, "int", -(2**31)), (math.nan, "int", None), (math.inf, "bigint", None),
    (2.0**63, "bigint", 2**63 - 1), (9.3e18, "bigint", None), (2**31, "int", None), (2**31, "bigint", 2**31),
    (Decimal("2147483647.9"), "int", 2**31 - 1), (Decimal("-0.5"), "int", 0), (True, "int", 1), (False, "double", 0.0),
    (" 12 ", "int", 12), ("+12", "int", 12), ("12.5", "int", None), ("1e3", "int", None), ("", "int", None),
    ("2147483648", "int", None), ("1e3", "double", 1000.0), ("1d", "double", 1.0), ("5.", "double", 5.0),
    (".5", "float", 0.5), ("NaN", "double", math.nan), ("-INF", "double", -math.inf), ("0x10", "double", None),
    ("٣", "decimal(5,0)", Decimal(3)), ("1_000", "int", None), ("1_000", "double", None), ("٣", "int", None),
    (0.1, "float", 0.10000000149011612), (1e300, "float", math.inf), (SINGLE, "double", 0.10000000149011612),
    (2**62 + 2**37 + 1, "float", float(2**62)), (12345.675, "decimal(10,2)", Decimal("12345.68")),
    (-0.5, "decimal(5,0)", Decimal("-1")), (123456, "decimal(5,0)", None), ("1e3", "decimal(5,1)", Decimal("1000.0")),
    (math.nan, "decimal(5,0)", None), ("0.005", "decimal(10,2)", Decimal("0.01")), (10**30, "decimal(38,18)", None),
    (0, "boolean", False), (0.1, "boolean", True), ("T", "boolean", True), (" No ", "boolean", False),
    ("2", "boolean", None), (5, "string", "5"), (True, "string", "true"), (100.0, "string", "100.0"),
    (1e7, "string", "1.0E7"), (1e-7, "string", "1.0E-7"), (0.001, "string", "0.001"),
    (123456.789, "string", "123456.789"),
    (-0.0, "string", "-0.0"), (-math.inf, "string", "-Infinity"), (SINGLE, "string", "0.1"),
    (Decimal("1.50"), "string", "1.5"), (Decimal("1E-10"), "string", "0.0000000001"), (b"abc", "string", "abc"),
    ({"a": [1]}, "string", '{"a":[1]}'), ([1, "x"], "string", '[1,"x"]'), ({"a": 1}, "int", None), ([1], "int", None),
    (dt.date(2024, 1, 2), "string", "2024-01-02"), (dt.date(2024, 1, 2), "date", 19724), (5, "date", None),
    (dt.datetime(2024, 1, 2, 3, 4, 5, 120000), "string", "2024-01-02 03:04:05.12"),
    (dt.datetime(2024, 1, 2, tzinfo=UTC), "date", 19724), (dt.datetime(1969, 12, 31, 23), "date", -1),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 5, UTC), "bigint", -1), (dt.datetime(1970, 1, 1, 1), "bigint", None),
    ("2024-01-02T03:04:05+02:00", "timestamp_ntz", 1_704_164_645_000_000),
    (dt.date(1970, 1, 2), "timestamp", 86_400_000_000), (2, "timestamp", 2_000_000), (2, "timestamp_ntz", None),
    (2**62, "timestamp", None), (True, "timestamp", None), (dt.date(1970, 1, 2), "bigint", None),
    ("2024-1-2", "date", 19724), ("2024", "date", 19723), ("2024-02-30", "date", None), ("x", "date", None),
    ("1970-01-01 00:00:01", "timestamp", 1_000_000), ("1970-01-01T02:00:00+02:00", "timestamp", 0),
    ("abc", "binary", b"abc"), (b"\xff", "binary", b"\xff"), (5, "binary", None), (None, "string", None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "wanted"), CASTS)
def test_values_are_cast_as_spark_casts_them(value: Any, kind: str, wanted: Any) -> None:
    found = taken(value, kind)
    assert type(found) is type(wanted)
    assert found == wanted or (found != found and wanted != wanted)
    if isinstance(wanted, float) and wanted == 0:
        assert math.copysign(1, found) == math.copysign(1, wanted)


VALUES: list[list[Any]] = [
    [0, 1, -1, 3, 127, 128, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53, 2**53 + 1, 2**62, -(2**62), 2**63 - 1],
    [Decimal(each) for each in ("0", "0.5", "-0.5", "1.49", "1.5", "99999.99", "2147483647.9", "2147483648", "1e20")],
    [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1e10, 1e300, -1e300, math.inf, -math.inf, 2147483647.5, 9.3e18, 0.1, 1e-40],
    ["", "a", "ab", "b", "é", "1", "10", "9", " 1", "true", "NaN", "zzz"],
    [True, False],
    [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 1, 2)],
    [dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2)],
    [b"", b"a", b"\xff"],
]
KINDS = ("boolean", "int", "bigint", "float", "double", "decimal(7,1)", "string", "date", "timestamp", "timestamp_ntz",
         "binary")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_never_leave_out_a_row_that_matches(kind: str) -> None:
    chosen = random.Random(kind)
    told = left_out = 0
    for values in VALUES:
        made: list[tuple[DataFile, list[Any]]] = []
        for _ in range(4):
            some = chosen.sample(values, chosen.randint(1, min(4, len(values))))
            low, high = (bounds_object({"$['a']": variant_of(each).value}) for each in (min(some), max(some)))
            rows = [variant_of({"a": each}) for each in some]
            rows += [variant_of({"a": math.nan})] if isinstance(some[0], float) else []
            file = DataFile(
                file_path="f", record_count=len(rows), value_counts={1: len(rows)}, null_value_counts={1: 0},
                lower_bounds={1: low}, upper_bounds={1: high}, file_size_in_bytes=1, file_format="PARQUET",
            )  # fmt: skip
            made.append((file, rows))
        files = [file for file, _ in made]
        for test in every_test(kind, chosen.sample(values, 2) + some[:1]):
            matches = evaluator(SCHEMA, test)
            found = zip(made, all_may_match(SCHEMA, test, files), all_must_match(SCHEMA, test, files), strict=True)
            for (_, rows), may, must in found:
                assert may or not any(matches((each,)) for each in rows), (rows, test)
                assert not must, (rows, test)
                told += 1
                left_out += not may
    assert left_out > told / 40 or kind == "timestamp"


def every_test(kind: str, values: list[Any]) -> list[BooleanExpression]:
    term = VariantGet("v", "$.a", kind)
    found = [predicate(operation, term) for operation in (Operator.IS_NULL, Operator.NOT_NULL)]
    for value in values:
        stored = taken(value, kind)
        if stored is None or stored != stored:
            continue
        literal = stored_literal(stored, kind_of(kind))
        for operation in (Operator.EQ, Operator.NOT_EQ, Operator.LT, Operator.LT_EQ, Operator.GT, Operator.GT_EQ):
            found += [predicate(operation, term, literal), ~predicate(operation, term, literal)]
        found.append(predicate(Operator.NOT_IN, term, [literal, literal]))
        if isinstance(literal.type, StringType):
            found += [predicate(each, term, literal) for each in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH)]
    return found


def kind_of(kind: str) -> IcebergType:
    return VariantGet("v", "$", kind).type


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$", ()), ("$.a.b", ("a", "b")), ("$['a'][\"b\"]", ("a", "b")), ("$[0]", (0,)), ("$.a[1].x", ("a", 1, "x")),
        ("$['d.e']", ("d.e",)), ("$.s p", ("s p",)), ("$[\"it's\"]", ("it's",)), ("$.it's", ("it's",)),
    ],
)  # fmt: skip
def test_paths_are_read(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", "a", "$.", "$..a", "$[", "$['a'", "$[-1]", "$.a[*]", "$[99999999999]"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no path into a variant"):
        parse_path(text)


def test_normalized_paths_are_those_of_rfc_9535() -> None:
    names = ["a", "user.name", "it's", "\\", "\b\t\n\f\r", "\x0b", "ü😀", '"']
    assert normalized_path(names) == "$['a']['user.name']['it\\'s']['\\\\']['\\b\\t\\n\\f\\r']['\\u000b']['ü😀']['\"']"
    bound = bounds_object({normalized_path(["b"]): b"\x00", "$": b"\x04"})
    assert field_bounds(bound) == {"$": b"\x04", "$['b']": b"\x00"}
