"""The 32-bit hash of bucket transforms. Source: Iceberg specification, Appendix B."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import mmh3

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    NANO_TIMESTAMPS,
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
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.values import datetimes
from hms_iceberg.spec.values.binary_values import decimal_to_bytes


def _hash_long(value: int) -> int:
    return int(mmh3.hash(struct.pack("<q", value)))


def _hash_double(value: float) -> int:
    canonical = math.nan if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    bits = 0x7FF8000000000000 if math.isnan(canonical) else struct.unpack("<q", struct.pack("<d", canonical))[0]
    return _hash_long(bits)


def hash_function(source_type: IcebergType) -> Callable[[Any], int]:
    """The signed 32-bit Murmur3 hash of stored values of a type (Appendix B), also if bucket does not allow it.

    Raises:
        TypeMismatchError: the specification defines no hash for the type.
    """
    if isinstance(source_type, DecimalType):
        scale = source_type.scale
        return lambda value: int(mmh3.hash(decimal_to_bytes(value, scale)))
    if isinstance(source_type, (IntegerType, LongType, DateType, TimeType, BooleanType, *MICRO_TIMESTAMPS)):
        return lambda value: _hash_long(int(value))
    if isinstance(source_type, NANO_TIMESTAMPS):
        return lambda value: _hash_long(value // datetimes.NANOS_PER_MICRO)
    if isinstance(source_type, (FloatType, DoubleType)):
        return _hash_double
    if isinstance(source_type, StringType):
        return lambda value: int(mmh3.hash(value.encode("utf-8")))
    if isinstance(source_type, UUIDType):
        return lambda value: int(mmh3.hash(value.bytes))
    if isinstance(source_type, (FixedType, BinaryType)):
        return lambda value: int(mmh3.hash(bytes(value)))
    raise TypeMismatchError(f"Values of type {source_type} cannot be hashed into buckets")
