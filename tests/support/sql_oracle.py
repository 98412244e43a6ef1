"""Rows as DuckDB knows them: an oracle that shares no code with this package, with SQL's three-valued logic.

Values are plain: dates, times and timestamps are the integers that Iceberg stores (days, microseconds, nanoseconds), a
float is a double, and numbers are held in types that are wider than the column, so that literals beyond a column's
limits have their place. What is settled where SQL leaves a choice is the same here and there: NaN equals itself and is
greater than every other number, -0.0 equals 0.0, text and bytes compare by code points and unsigned bytes.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa

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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400_000_000
# What pyarrow can write to ORC: nanoseconds since 1970 in 64 bits.
ORC_MICROS = 9_223_372_036_854_775


@dataclass(frozen=True, repr=False)
class Kind:
    """One type of column.

    Args:
        iceberg: the type in the table.
        arrow: the type of rows that are written.
        sql: the type of the oracle's column.
        values: what columns hold, and literals.
        beyond: further literals, which no value of the type equals.
    """

    iceberg: IcebergType
    arrow: pa.DataType
    sql: str
    values: tuple[Any, ...]
    beyond: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return str(self.iceberg)

    @property
    def is_floating(self) -> bool:
        return pa.types.is_floating(self.arrow)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Values as they are written."""
        if pa.types.is_temporal(self.arrow):
            return pa.array(values, _integers(self.arrow)).view(self.arrow)
        if isinstance(self.iceberg, UUIDType):
            return pa.array([None if value is None else value.bytes for value in values], self.arrow)
        return pa.array(values, self.arrow)

    def read(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Values as they were read."""
        if isinstance(array, pa.ChunkedArray):
            return [value for chunk in array.chunks for value in self.read(chunk)]
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
        if pa.types.is_temporal(array.type):
            return array.view(_integers(array.type)).to_pylist()
        found = array.to_pylist()
        if isinstance(self.iceberg, UUIDType):
            return [None if value is None else UUID(bytes=value) for value in found]
        return found

    def text(self, value: Any) -> str:
        """A literal as filters are written."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return f"{value!r}D" if math.isfinite(value) else f"double('{value!r}')"
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        if isinstance(value, UUID):
            return f"'{value}'"
        if pa.types.is_temporal(self.arrow):
            return self._time(value)
        return str(value)

    def _time(self, value: int) -> str:
        """Python's text of a time; beyond its years, and beyond a day's end, an integer: days or microseconds."""
        kind = self.arrow
        if pa.types.is_date(kind):
            return f"'{dt.date.fromordinal(719163 + value)}'" if -719162 <= value <= 2932896 else str(value)
        if pa.types.is_time(kind):
            return f"'{(EPOCH + dt.timedelta(microseconds=value)).time()}'" if 0 <= value < DAY else str(value)
        micros, rest = divmod(value, 1000) if kind.unit == "ns" else (value, 0)
        if not -719162 * DAY <= micros < 2932897 * DAY:
            assert not rest
            return str(micros)
        text = (EPOCH + dt.timedelta(microseconds=micros)).isoformat(" ", "microseconds")
        return f"'{text}{f'{rest:03}' if kind.unit == 'ns' else ''}{'+00:00' if kind.tz else ''}'"

    def literal(self, value: Any) -> str:
        """A literal as the oracle is asked."""
        if value is None:
            return f"NULL::{self.sql}"
        if isinstance(value, bytes):
            escaped = "".join(f"\\x{each:02X}" for each in value)
            return f"'{escaped}'::BLOB"
        if isinstance(value, list):
            value = str(value).replace("None", "NULL")
        return f"{_quoted(str(value))}::{self.sql}"


def _integers(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


_INT, _LONG = 2**31, 2**63
_SMALL = (-10, -1, 0, 1, 2, 9, 10)
_BETWEEN = (Decimal("2.5"), Decimal("-0.5"))
_MICROS = (-_LONG, -719162 * DAY, -1_999_500, -1_500_000, -1, 0, 1, 999_999, 18262 * DAY, _LONG - 1)
_NANOS = (-_LONG, -1_000_000_001, -1001, -1, 0, 1, 999, 1000, 10**18, _LONG - 1)
_FLOATS = (-math.inf, -1.5, -0.0, 0.0, 0.5, 1.0, 2.0, math.inf, math.nan)
_MAX_FLOAT, _MAX_DOUBLE = 3.4028234663852886e38, 1.7976931348623157e308
_TEXTS = ("", "a", "ab", "abc", "abd", "b", "é", "😀", "\U0010ffff", "50%", "_", "it's", "a" * 20)
_BYTES = (b"", b"\x00", b"\x00\x00", b"a", b"ab", b"abc", b"\xff", b"\xff\xff", b"\xff" * 17)
_UUIDS = tuple(UUID(int=each) for each in (0, 1, 2**127 - 1, 2**127, 2**128 - 1))

KINDS = (
    Kind(BooleanType(), pa.bool_(), "BOOLEAN", (False, True)),
    Kind(
        IntegerType(),
        pa.int32(),
        "DECIMAL(38, 4)",
        (*_SMALL, -_INT, 1 - _INT, _INT - 2, _INT - 1),
        (-3_000_000_000, 3_000_000_000, -_INT - 1, _INT, _LONG, 10**20, Decimal("9999999.99"), *_BETWEEN),
    ),
    Kind(
        LongType(),
        pa.int64(),
        "DECIMAL(38, 4)",
        (*_SMALL, -_LONG, 1 - _LONG, _LONG - 2, _LONG - 1),
        (-_LONG - 1, _LONG, 10**20, -(10**20), *_BETWEEN),
    ),
    Kind(FloatType(), pa.float32(), "DOUBLE", (*_FLOATS, -_MAX_FLOAT, _MAX_FLOAT), (-1e300, 1e300)),
    Kind(DoubleType(), pa.float64(), "DOUBLE", (*_FLOATS, -_MAX_DOUBLE, _MAX_DOUBLE, 5e-324, 0.1)),
    Kind(
        DecimalType(9, 2),
        pa.decimal128(9, 2),
        "DECIMAL(38, 4)",
        tuple(map(Decimal, ("-9999999.99", "-0.01", "0.00", "0.01", "1.50", "9.00", "9999999.99"))),
        tuple(map(Decimal, ("-10000000", "10000000", "99999999999.99", "0.005", "1.505"))),
    ),
    Kind(
        DecimalType(38, 0),
        pa.decimal128(38, 0),
        "HUGEINT",
        tuple(map(Decimal, (1 - 10**38, -1, 0, 1, 10**20, 10**38 - 1))),
        (10**38, -(10**38), 10**38 + 5),
    ),
    Kind(
        DateType(),
        pa.date32(),
        "HUGEINT",
        (-_INT, -719162, -1, 0, 1, 31, 18262, 2932896, _INT - 1),
        (-_INT - 1, _INT, 10**18),
    ),
    Kind(TimeType(), pa.time64("us"), "HUGEINT", (0, 1, DAY // 2, DAY - 1), (-1, DAY, 10**18)),
    Kind(TimestampType(), pa.timestamp("us"), "HUGEINT", _MICROS, (-_LONG - 1, _LONG)),
    Kind(TimestamptzType(), pa.timestamp("us", "UTC"), "HUGEINT", _MICROS, (-_LONG - 1, _LONG)),
    Kind(TimestampNanoType(), pa.timestamp("ns"), "HUGEINT", _NANOS, (-_LONG * 1000, _LONG // 4 * 1000)),
    Kind(TimestamptzNanoType(), pa.timestamp("ns", "UTC"), "HUGEINT", _NANOS, (-_LONG * 1000, _LONG // 4 * 1000)),
    Kind(StringType(), pa.string(), "VARCHAR", _TEXTS),
    Kind(UUIDType(), pa.binary(16), "UUID", _UUIDS),
    Kind(BinaryType(), pa.binary(), "BLOB", _BYTES),
    Kind(FixedType(3), pa.binary(3), "BLOB", (b"\x00\x00\x00", b"abc", b"ab\x00", b"\xff\xff\xff"), _BYTES),
    Kind(FixedType(20), pa.binary(20), "BLOB", (bytes(20), b"a" * 20, b"a" * 16 + b"bcde", b"\xff" * 20), _BYTES),
)
NUMBER = Kind(LongType(), pa.int64(), "BIGINT", ())
PRESENT = Kind(BooleanType(), pa.bool_(), "BOOLEAN", (True,))
ITEMS = Kind(IntegerType(), pa.list_(pa.int32()), "INTEGER[]", ([], [1], [1, None]))

Row = tuple[Any, ...]
"""The number `n`, `a` and `b`, whether the struct `s` is there (True or None), its field `c`, the list `l`."""
NAMES = ("n", "a", "b", "s", "c", "l")


def comparable(row: Iterable[Any]) -> str:
    """A row in a form that equals itself where there is a NaN, and knows no scale of decimals.

    The sign of a zero is left out: DuckDB does not make 0.0 a -0.0 where it updates.
    """
    return repr([_comparable(each) for each in row])


def _comparable(value: Any) -> Any:
    if type(value) in (int, Decimal):
        return Fraction(value)
    return value + 0.0 if isinstance(value, float) else value


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """The one database of a process: to open one takes longer than all statements of an example."""
    return duckdb.connect(":memory:", config={"threads": 1})


class SqlRows:
    """The rows of a table in DuckDB; there is one such table at a time.

    Args:
        kinds: of the columns `n`, `a`, `b`, `s`, `c` and `l`.
    """

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        self._connection = _database()
        columns = ", ".join(f"{name} {kind.sql}" for name, kind in zip(NAMES, kinds, strict=True))
        self.run(f"CREATE OR REPLACE TEMP TABLE t ({columns})")
        self.run(f"CREATE OR REPLACE TEMP TABLE given ({columns})")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """The answer to a statement."""
        return self._connection.execute(statement).fetchall()

    def number(self, query: str) -> int:
        """The one number that a query answers."""
        ((found,),) = self.run(query)
        return int(found)

    def insert(self, rows: Sequence[Row], table: str = "t") -> None:
        """Adds rows."""
        tuples = ", ".join(f"({', '.join(self._literals(row))})" for row in rows)
        if rows:
            self.run(f"INSERT INTO {table} VALUES {tuples}")

    def _literals(self, row: Row) -> list[str]:
        return [kind.literal(value) for kind, value in zip(self.kinds, row, strict=True)]

    def give(self, rows: Sequence[Row]) -> None:
        """Makes these the rows of the table `given`."""
        self.run("DELETE FROM given")
        self.insert(rows, "given")

    def numbers(self, where: str) -> list[int]:
        """The numbers of the rows that match, ascending."""
        return [number for (number,) in self.run(f"SELECT n FROM t WHERE {where} ORDER BY n")]

    def rows(self) -> list[str]:
        """All rows, comparable."""
        return sorted(comparable(row) for row in self.run("SELECT * FROM t"))
