"""Counts of variants, and bounds of their shredded fields, from the footers of Parquet files.

A field has bounds if all its values in the file are of one type and have a column of their own: what is left beside it
is null or a variant's null. Fields within arrays have none, nor have floats of which a file that is written here holds
NaN; those of others' files may hold NaN beside their bounds.

Source: Apache Iceberg specification, "Bounds for Variant"; Apache Parquet, "Variant Shredding".
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hms_iceberg.arrow.columns.arrow_types import is_bytes, is_text
from hms_iceberg.arrow.columns.legacy_calendar import Rule
from hms_iceberg.arrow.columns.nested import struct_children
from hms_iceberg.arrow.columns.projection import FileLeaf, file_leaves
from hms_iceberg.arrow.metrics.file_footer import ChunkStatistics, FileFooter
from hms_iceberg.spec.data_types import BinaryType, IcebergType, StringType
from hms_iceberg.spec.values.single_values import truncate_lower, truncate_upper
from hms_iceberg.spec.variant.bounds import bounds_object
from hms_iceberg.spec.variant.layout import NULL_VALUE, Kind, binary_bytes, string_bytes
from hms_iceberg.spec.variant.paths import normalized_path

_TYPED = "typed_value"
_INTEGERS = {8: Kind.INT8, 16: Kind.INT16, 32: Kind.INT32, 64: Kind.INT64}
_TIMES = {
    ("us", True): Kind.TIMESTAMPTZ,
    ("us", False): Kind.TIMESTAMP,
    ("ns", True): Kind.TIMESTAMPTZ_NS,
    ("ns", False): Kind.TIMESTAMP_NS,
}


def variant_bounds(
    footer: FileFooter,
    groups: Sequence[int],
    leaves: Sequence[FileLeaf],
    width: int | None,
    rules: Mapping[int, Rule],
    nan_leaves: Collection[int],
) -> tuple[bytes | None, bytes | None]:
    """The lower and the upper bound of a column of variants, cut to `width`; None without one."""
    places = {leaf.below: leaf for leaf in leaves}
    lower: dict[str, bytes] = {}
    upper: dict[str, bytes] = {}
    for leaf in leaves:
        names = _names(leaf)
        if names is None or leaf.index in nan_leaves:
            continue
        rest = places.get((*leaf.below[:-1], "value"))
        if rest is not None and not all(_is_null(footer.statistics(group, rest.index)) for group in groups):
            continue
        statistics = [footer.statistics(group, leaf.index) for group in groups]
        found = _extremes(statistics, leaf.type, rules.get(leaf.index))
        if found is None:
            continue
        path, family = normalized_path(names), _family(leaf.type)
        for side, value, cut in ((lower, found[0], truncate_lower), (upper, found[1], truncate_upper)):
            kept = value if width is None or family is None else cut(family, value, width)
            if kept is not None:
                side[path] = _value(kept, leaf.type)
    return bounds_object(lower) if lower else None, bounds_object(upper) if upper else None


def _names(leaf: FileLeaf) -> list[str] | None:
    """The fields that lead to a column of shredded values; None for what is no such column, or lies in an array."""
    below = leaf.below
    if leaf.repeated or len(below) % 2 == 0 or any(each != _TYPED for each in below[::2]):
        return None
    return list(below[1::2])


def _is_null(chunk: ChunkStatistics) -> bool:
    """Whether all values of a chunk are null, or a variant's null."""
    return chunk.is_null or (chunk.extremes is not None and set(map(bytes, chunk.extremes)) == {NULL_VALUE})


def _extremes(statistics: Sequence[ChunkStatistics], kind: pa.DataType, rule: Rule | None) -> tuple[Any, Any] | None:
    """The least and the greatest value of some chunks; None if it is not known, or of a type that variants lack."""
    if not _is_known(kind):
        return None
    lows, highs = [], []
    for chunk in statistics:
        if chunk.extremes is None:
            if chunk.is_null:
                continue
            return None
        if rule is not None and rule.changes(kind, chunk.extremes[0]):
            return None
        low, high = (_stored(each, kind) for each in chunk.extremes)
        if low is None or high is None:
            return None
        lows.append(low)
        highs.append(high)
    if not lows:
        return None
    return min(lows), max(highs)


def _is_known(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(kind):
        return (kind.unit, kind.tz is not None) in _TIMES
    if types.is_decimal(kind):
        return kind.precision <= 38 and kind.scale >= 0
    return bool(
        types.is_signed_integer(kind)
        or kind in (pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.time64("us"))
        or is_text(kind)
        or is_bytes(kind)
        or (types.is_fixed_size_binary(kind) and kind.byte_width == 16)
    )


def _stored(raw: Any, kind: pa.DataType) -> Any:
    """A raw value of a footer as a number, text or bytes; None for bytes that are no text."""
    if is_text(kind):
        try:
            return raw if isinstance(raw, str) else bytes(raw).decode()
        except UnicodeDecodeError:
            return None
    if pa.types.is_decimal(kind):
        return raw if isinstance(raw, int) else int.from_bytes(bytes(raw), "big", signed=True)
    return bytes(raw) if is_bytes(kind) or pa.types.is_fixed_size_binary(kind) else raw


def _family(kind: pa.DataType) -> IcebergType | None:
    """The type whose bounds are cut as those of a column are."""
    if is_text(kind):
        return StringType()
    return BinaryType() if is_bytes(kind) else None


def _value(value: Any, kind: pa.DataType) -> bytes:
    types = pa.types
    if is_text(kind):
        return string_bytes(value.encode())
    if is_bytes(kind):
        return binary_bytes(value)
    if types.is_boolean(kind):
        return (Kind.TRUE if value else Kind.FALSE).header
    if types.is_fixed_size_binary(kind):
        return Kind.UUID.header + value
    if types.is_floating(kind):
        single = kind == pa.float32()
        return (Kind.FLOAT if single else Kind.DOUBLE).header + struct.pack("<f" if single else "<d", value)
    if types.is_decimal(kind):
        sizes = ((9, Kind.DECIMAL4, 4), (18, Kind.DECIMAL8, 8), (38, Kind.DECIMAL16, 16))
        form, size = next((form, size) for most, form, size in sizes if kind.precision <= most)
        return form.header + bytes((kind.scale,)) + value.to_bytes(size, "little", signed=True)
    if types.is_integer(kind):
        form = _INTEGERS[kind.bit_width]
    elif types.is_timestamp(kind):
        form = _TIMES[kind.unit, kind.tz is not None]
    else:
        form = Kind.DATE if types.is_date(kind) else Kind.TIME
    return form.header + value.to_bytes(kind.bit_width // 8, "little", signed=True)


def leaves_with_nan(batch: pa.RecordBatch) -> set[int]:
    """The places of the leaves of a batch, lists and maps left out, that have a NaN among shredded values."""
    found = set[int]()
    leaves = file_leaves(batch.schema)
    places = {leaf.path: leaf.index for leaf in leaves if not leaf.repeated and _TYPED in leaf.path}
    if any(pa.types.is_floating(leaves[index].type) for index in places.values()):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            _find_nan(column, (name,), places, found)
    return found


def _find_nan(array: pa.Array, path: tuple[str, ...], places: Mapping[tuple[str, ...], int], found: set[int]) -> None:
    if pa.types.is_struct(array.type):
        for field, child in zip(array.type, struct_children(array), strict=True):
            _find_nan(child, (*path, field.name), places, found)
    elif path in places and pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
        found.add(places[path])
