"""A schema with every type that is not nested, and rows of it: extreme values, NaN, zeros of both signs, nulls."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

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
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema

ROWS = 120
LEAST, MOST = -(2**63), 2**63 - 1
SMALL = float(struct.unpack("f", struct.pack("f", 0.1))[0])
VALUES: dict[IcebergType, list[Any]] = {
    BooleanType(): [True, False],
    IntegerType(): [0, 1, -7, -(2**31), 2**31 - 1],
    LongType(): [0, 1, -7, LEAST, MOST],
    FloatType(): [0.0, -0.0, SMALL, math.nan, math.inf, -math.inf],
    DoubleType(): [0.0, -0.0, 0.1, math.nan, math.inf, -math.inf, 5e-324],
    DecimalType(9, 2): [Decimal("1.25"), Decimal("-9999999.99"), Decimal("0.00")],
    DecimalType(18, 0): [Decimal(7), Decimal("-999999999999999999")],
    DecimalType(38, 5): [Decimal("1.25000"), Decimal("9" * 33 + ".99999"), Decimal("-" + "9" * 33 + ".99999")],
    DateType(): [0, -719162, 2932896, 18000],
    TimeType(): [0, 1, 86_399_999_999],
    TimestampType(): [0, -1, 253_402_300_799_999_999, -62_135_596_800_000_000],
    TimestamptzType(): [0, -1, 253_402_300_799_999_999],
    TimestampNanoType(): [0, -1, MOST, LEAST + 1],
    TimestamptzNanoType(): [0, -1, MOST],
    StringType(): ["", "a", "ab", "a text of more than twelve bytes", "zürich", "\U0001f600", "\uffff"],
    BinaryType(): [b"", b"\0", b"\xff", b"a text of more than twelve bytes"],
    FixedType(3): [b"\0\0\0", b"abc", b"\xff\xff\xff"],
    UUIDType(): [UUID(int=0), UUID(int=1), UUID(int=2**128 - 1)],
}
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    *(NestedField(index, f"c {index}", kind) for index, kind in enumerate(VALUES, start=2)),
)


def exact(rows: pa.Table) -> list[Any]:
    """Values of columns in a form that tells NaN and zeros of both signs apart."""
    return [
        repr((column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())
        for column in (each.combine_chunks() for each in rows.columns)
    ]


def some_rows(draw: random.Random, count: int = ROWS, nulls: float = 0.2) -> list[tuple[Any, ...]]:
    """Rows of the schema."""
    return [
        (key, *(None if draw.random() < nulls else draw.choice(values) for values in VALUES.values()))
        for key in range(count)
    ]
