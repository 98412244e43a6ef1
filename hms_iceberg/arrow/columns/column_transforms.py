"""Partition transforms over whole Arrow columns, equal value for value to ``spec.transforms.partition_transforms``.

Columns are plain (a uuid is 16 bytes) and of the source column's Arrow type; results are of the Arrow type of the
transform's result. Source: Iceberg specification, "Partition Transforms".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_schema import integer_type, to_arrow_type
from hms_iceberg.arrow.columns.murmur3 import hash_binary_array, hash_bytes, hash_longs
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    StringType,
    UUIDType,
)
from hms_iceberg.spec.transforms.partition_transforms import (
    ARROW_TRANSFORM,
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

_HOUR_MICROS = 3_600_000_000
_DAY_MICROS = 24 * _HOUR_MICROS


def arrow_transform(
    transform: Transform, kind: IcebergType, column: pa.Array | pa.ChunkedArray
) -> pa.Array | pa.ChunkedArray:
    """`transform_array` of a column that may be chunked, or of another Arrow type that can be cast."""
    plain = column.cast(to_arrow_type(kind, False, False))
    if isinstance(plain, pa.ChunkedArray):
        result = to_arrow_type(transform.result_type(kind), False, False)
        return pa.chunked_array([transform_array(transform, kind, chunk) for chunk in plain.chunks], result)
    return transform_array(transform, kind, plain)


def transform_array(transform: Transform, kind: IcebergType, array: pa.Array) -> pa.Array:
    if isinstance(transform, VoidTransform):
        return pa.nulls(len(array), to_arrow_type(transform.result_type(kind), False, False))
    if isinstance(transform, IdentityTransform):
        return array
    apply = _APPLY.get(type(transform))
    if apply is None or not transform.can_transform(kind):
        raise UnsupportedError(
            f"Cannot partition by {transform} of a column of type {kind}: this version cannot compute it, and files "
            f"with wrong partition values would be lost to queries. Write with a newer version."
        )
    return apply(transform, kind, array)


def _integers(array: pa.Array, kind: IcebergType) -> Any:
    """The stored values of a column as int64; at nulls the number is arbitrary."""
    width = integer_type(kind)
    plain = array.view(width)
    data = np.frombuffer(plain.buffers()[1], np.int32 if width == pa.int32() else np.int64)
    return data[plain.offset : plain.offset + len(plain)].astype(np.int64)


def _with_nulls(values: Any, like: pa.Array, kind: pa.DataType) -> pa.Array:
    """A numpy array as an Arrow array that is null if ``like`` is."""
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    if pa.types.is_date32(kind):
        return pa.array(values.astype(np.int32), pa.int32(), mask=mask).view(kind)
    return pa.array(values.astype(kind.to_pandas_dtype()), kind, mask=mask)


# ------------------------------------------------------------------------------------------------ decimals


def _unscaled(array: pa.Array) -> Any:
    """Unscaled values of a decimal128 column: int64 if they fit, Python integers otherwise."""
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = words[:, 0], words[:, 1]
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if bool(np.all(high == (low >> np.int64(63)))):
        return low
    return (high.astype(object) << 64) + low.view(np.uint64).astype(object)


def _hash_unscaled(unscaled: Any) -> Any:
    """Hashes of unscaled values as the fewest big-endian two's complement bytes that hold them."""
    if unscaled.dtype == object:
        texts = [int(v).to_bytes(_byte_length(int(v)), "big", signed=True) for v in unscaled]
        return hash_binary_array(pa.array(texts, pa.binary()))
    count = len(unscaled)
    data = np.ascontiguousarray(unscaled.astype(">i8")).view(np.uint8)
    folded = np.where(unscaled < 0, ~unscaled, unscaled)
    lengths = np.ones(count, np.int64)
    for size in range(1, 8):
        lengths += folded >> np.int64(8 * size - 1) != 0
    starts = np.arange(count, dtype=np.int64) * 8 + 8 - lengths
    return hash_bytes(data if count else np.zeros(1, np.uint8), starts, lengths)


def _byte_length(value: int) -> int:
    return ((value if value >= 0 else ~value).bit_length() // 8) + 1


# ---------------------------------------------------------------------------------------------- transforms


def _bucket(transform: BucketTransform, kind: IcebergType, array: pa.Array) -> pa.Array:
    if isinstance(kind, NANO_TIMESTAMPS):
        hashes = hash_longs(_integers(array, kind) // 1000)
    elif integer_type(kind) is not None:
        hashes = hash_longs(_integers(array, kind))
    elif isinstance(kind, DecimalType):
        hashes = _hash_unscaled(_unscaled(array))
    elif isinstance(kind, (StringType, BinaryType, FixedType, UUIDType)):
        hashes = hash_binary_array(array)
    else:
        raise UnsupportedError(f"Cannot compute {transform} of type {kind}: the specification defines no hash for it.")
    buckets = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(transform.num_buckets)
    return _with_nulls(buckets, array, pa.int32())


def _truncate(transform: TruncateTransform, kind: IcebergType, array: pa.Array) -> pa.Array:
    width = transform.width
    if isinstance(kind, StringType):
        return pc.utf8_slice_codeunits(array, 0, width)
    if isinstance(kind, BinaryType):
        return pc.binary_slice(array, 0, width)
    if isinstance(kind, DecimalType):
        unscaled = _unscaled(array)
        return _decimal_array(unscaled - unscaled % width, array, kind)
    values = _integers(array, kind)
    if isinstance(kind, IntegerType):  # wraps at the lower end, as 32-bit arithmetic does
        return _with_nulls((values - values % width).astype(np.int64).astype(np.int32), array, pa.int32())
    with np.errstate(over="ignore"):
        return _with_nulls(values - values % width, array, pa.int64())


def _decimal_array(unscaled: Any, like: pa.Array, kind: DecimalType) -> pa.Array:
    if unscaled.dtype == object:
        data = b"".join(int(value).to_bytes(16, "little", signed=True) for value in unscaled)
    else:
        words = np.empty((len(unscaled), 2), np.int64)
        words[:, 0] = unscaled
        words[:, 1] = unscaled >> np.int64(63)
        data = words.tobytes()
    validity = pc.invert(like.is_null()).buffers()[1] if like.null_count else None
    target = pa.decimal128(kind.precision, kind.scale)
    return pa.Array.from_buffers(target, len(like), [validity, pa.py_buffer(data)])


def _micros(array: pa.Array, kind: IcebergType) -> Any:
    values = _integers(array, kind)
    return values // 1000 if isinstance(kind, NANO_TIMESTAMPS) else values


def _days(array: pa.Array, kind: IcebergType) -> Any:
    return _integers(array, kind) if isinstance(kind, DateType) else _micros(array, kind) // _DAY_MICROS


def _year(_transform: Transform, kind: IcebergType, array: pa.Array) -> pa.Array:
    years = _days(array, kind).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)
    return _with_nulls(years, array, pa.int32())


def _month(_transform: Transform, kind: IcebergType, array: pa.Array) -> pa.Array:
    months = _days(array, kind).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return _with_nulls(months, array, pa.int32())


def _day(transform: Transform, kind: IcebergType, array: pa.Array) -> pa.Array:
    return _with_nulls(_days(array, kind), array, to_arrow_type(transform.result_type(kind), False))


def _hour(_transform: Transform, kind: IcebergType, array: pa.Array) -> pa.Array:
    return _with_nulls(_micros(array, kind) // _HOUR_MICROS, array, pa.int32())


_APPLY: dict[type[Transform], Callable[..., pa.Array]] = {
    BucketTransform: _bucket,
    TruncateTransform: _truncate,
    YearTransform: _year,
    MonthTransform: _month,
    DayTransform: _day,
    HourTransform: _hour,
}


ARROW_TRANSFORM.set(arrow_transform)
