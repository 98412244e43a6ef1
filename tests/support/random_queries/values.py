"""Values of columns, among them the awkward ones, and how SQL spells them and their types."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

INT, LONG, FLOAT, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()
DECIMAL, STRING, BOOLEAN, BINARY = pa.decimal128(12, 3), pa.string(), pa.bool_(), pa.binary()
DATE, INSTANT, TIME = pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")
SCALARS = (INT, LONG, FLOAT, DOUBLE, DECIMAL, STRING, BOOLEAN, BINARY, DATE, INSTANT, TIME)
STRUCT = pa.struct([("a", INT), ("b", STRING), ("c", pa.struct([("x", DOUBLE), ("y", pa.list_(INT))]))])
ARRAY = pa.list_(pa.struct([("x", INT), ("y", STRING)]))
MAP = pa.map_(STRING, pa.struct([("u", INT), ("v", pa.list_(pa.struct([("w", DATE), ("z", STRING)])))]))
NESTED = (STRUCT, ARRAY, MAP)

_TIMES = [
    dt.datetime(2020, 2, 29, 12, 34, 56, 789000), dt.datetime(2020, 2, 29, 13), dt.datetime(2020, 3, 1),
    dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 58, 999999), dt.datetime(1969, 12, 31, 23),
    dt.datetime(2024, 12, 31, 23, 59, 59, 999999), dt.datetime(1910, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 3, 10, 7, 30),
]  # fmt: skip
_INTEGERS = [1, 0, 2, 3, 5, 7, 10, -1, -5, 100]
_FLOATS = [0.0, 1.5, -0.0, -1.5, 2.25, 100.0, math.nan, math.inf, -math.inf, 3.0, 0.5]
_DECIMALS = ["0", "1.5", "-1.5", "2.25", "99999.99", "-99999.999", "0.001", "7", "999999999.999"]
_VALUES: dict[pa.DataType, list[Any]] = {
    INT: [*_INTEGERS, 2**31 - 1, -(2**31)],
    LONG: [*_INTEGERS, 2**63 - 1, -(2**63), 2**31],
    FLOAT: _FLOATS,
    DOUBLE: _FLOATS,
    DECIMAL: [Decimal(text) for text in _DECIMALS],
    STRING: ["a", "", "A", "b", "ab", "abc", "abcdefghijklmnopqrst", "abcdefghijklmnopqrsz", "Ω", "zz", "null", " x",
             "a/b", "a=b", "%", "😀", "😀a", "é", "1", "-5", "2020-02-29", "it's", "\\", "\uffff"],
    BOOLEAN: [True, False],
    BINARY: [b"abc", b"", b"\0", b"\xff", b"\x01\xff", b"\xff" * 20],
    DATE: [dt.date(2020, 2, 29), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2020, 3, 1),
           dt.date(2024, 12, 31), dt.date(1900, 1, 1), dt.date(9999, 12, 31), dt.date(1600, 1, 1)],
    INSTANT: [each.replace(tzinfo=dt.timezone.utc) for each in _TIMES],
    TIME: _TIMES,
}  # fmt: skip


def values_of(kind: pa.DataType) -> Sequence[Any]:
    """Values of a simple type, extreme ones among them."""
    if pa.types.is_decimal(kind):
        return _VALUES[DECIMAL]
    return _VALUES[kind]


def value(choose: random.Random, kind: pa.DataType, pool: Sequence[Any] = (), nulls: float = 0.15) -> Any:
    """A value of a type, or null.

    Args:
        choose: by which it is drawn.
        kind: the type.
        pool: the values of a simple type to draw from; all by default.
        nulls: the share of nulls.
    """
    if choose.random() < nulls:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value(choose, field.type) for field in kind}
    if pa.types.is_list(kind):
        return [value(choose, kind.value_type) for _ in range(choose.choice([0, 1, 1, 2, 3]))]
    if pa.types.is_map(kind):
        keys = choose.sample(["k0", "k1", "k2", ""], choose.choice([0, 1, 2]))
        return [(key, value(choose, kind.item_type)) for key in keys]
    return choose.choice(pool or values_of(kind))


def is_simple(kind: pa.DataType) -> bool:
    """Whether values of it can be compared and grouped."""
    return not pa.types.is_nested(kind)


def is_float(kind: pa.DataType) -> bool:
    """Whether it has two zeros, which are equal."""
    return bool(pa.types.is_floating(kind))


def sql_type(kind: pa.DataType) -> str:
    """A type in Spark's words."""
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {sql_type(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{sql_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{sql_type(kind.key_type)}, {sql_type(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    names = ("int", "bigint", "float", "double", "", "string", "boolean", "binary", "date", "timestamp")
    return dict(zip(SCALARS, (*names, "timestamp_ntz"), strict=True))[kind]


def literal(given: Any, kind: pa.DataType) -> str:
    """A value in Spark's words."""
    if given is None:
        return f"cast(null as {sql_type(kind)})"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int):
        return f"{given}L" if kind == LONG else str(given)
    if isinstance(given, (float, Decimal)):
        return f"cast('{given}' as {sql_type(kind)})"
    if isinstance(given, bytes):
        return f"X'{given.hex()}'"
    if isinstance(given, dt.datetime):
        naive = given.replace(tzinfo=None).isoformat(" ")
        return f"timestamp'{naive} UTC'" if kind == INSTANT else f"timestamp_ntz'{naive}'"
    if isinstance(given, dt.date):
        return f"date'{given.isoformat()}'"
    text = str(given).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
