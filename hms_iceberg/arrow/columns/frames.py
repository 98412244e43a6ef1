"""Frames of stored values as Arrow tables of an Iceberg schema, and Arrow tables as pandas takes them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.columns.geoarrow import ShapeType
from hms_iceberg.arrow.columns.nested import conform
from hms_iceberg.lazy import pl
from hms_iceberg.spec.schema import Schema


def frame_to_arrow(frame: pl.DataFrame, schema: Schema) -> pa.Table:
    """A frame as an Arrow table. The frame holds stored values: dates and timestamps as integers, UUIDs as bytes, maps
    as lists of structs of `key` and `value`."""
    target = to_arrow(schema, field_ids=False, extensions=False)
    source = frame.select(target.names).to_arrow()
    columns = [
        _convert(column.combine_chunks(), field.type) for column, field in zip(source.columns, target, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=target)


def for_pandas(table: pa.Table) -> pa.Table:
    """A table that pyarrow can give to pandas: shapes, and uuids and fixed bytes inside nested columns, as bytes."""
    return _conformed(
        table, lambda kind, nested: pa.binary() if (nested and _is_fixed(kind)) or isinstance(kind, ShapeType) else kind
    )


def for_duckdb(table: pa.Table) -> pa.Table:
    """A table that DuckDB takes: geographies, whose edges it has no type for, become plain bytes."""
    return _conformed(
        table, lambda kind, _: pa.binary() if isinstance(kind, ShapeType) and kind.edges is not None else kind
    )


def to_polars(table: pa.Table) -> pl.DataFrame:
    """The rows as a polars frame; uuids and shapes are bytes, as polars knows no extension types in nested columns."""
    frame = pl.from_arrow(
        _conformed(table, lambda kind, _: pa.binary() if _is_fixed(kind) or isinstance(kind, ShapeType) else kind)
    )
    assert isinstance(frame, pl.DataFrame)
    return frame


def empty_frame(schema: Schema) -> pl.DataFrame:
    """A frame without rows, in the types that polars has for a table's columns."""
    return to_polars(to_arrow(schema, extensions=False).empty_table())


def _is_fixed(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType) or bool(pa.types.is_fixed_size_binary(kind))


def _conformed(table: pa.Table, leaf: Callable[[pa.DataType, bool], pa.DataType]) -> pa.Table:
    """The rows with other types of values, which `leaf` gives for a type and whether it is nested."""
    fields = [field.with_type(_type(field.type, leaf, False)) for field in table.schema]
    columns = [
        column
        if column.type == field.type
        else pa.chunked_array([conform(chunk, field.type) for chunk in column.chunks], field.type)
        for column, field in zip(table.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, table.schema.metadata))


def _type(kind: pa.DataType, leaf: Callable[[pa.DataType, bool], pa.DataType], nested: bool) -> pa.DataType:
    def within(field: pa.Field) -> pa.Field:
        return field.with_type(_type(field.type, leaf, True))

    if pa.types.is_struct(kind):
        return pa.struct([within(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(within(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(within(kind.key_field), within(kind.item_field))
    return leaf(kind, nested)


def _convert(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_struct(kind):
        children = [_convert(_child(array, field.name), field.type) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        offsets = _offsets(array)
        keys, items = (_convert(_child(array.values, name), each) for name, each in _pair(kind))
        return pa.MapArray.from_arrays(offsets, keys, items, kind)
    if pa.types.is_list(kind):
        values = _convert(array.values, kind.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=kind)
    return array.cast(kind)


def _pair(kind: pa.MapType) -> tuple[tuple[str, pa.DataType], tuple[str, pa.DataType]]:
    return ("key", kind.key_type), ("value", kind.item_type)


def _child(array: pa.StructArray, name: str) -> pa.Array:
    """A field of a struct, respecting the slice and without the struct's own nulls."""
    return array.field(array.type.get_field_index(name))


def _offsets(array: pa.Array) -> pa.Array:
    """Offsets of a list in 32 bits, null if the list is null."""
    offsets = array.offsets.cast(pa.int32())
    if array.null_count == 0:
        return offsets
    import pyarrow.compute as pc

    is_null = pa.concat_arrays([array.is_null(), pa.array([False])])
    return pc.if_else(is_null, pa.scalar(None, pa.int32()), offsets)
