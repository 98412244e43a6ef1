"""Batches of a Parquet file whose variants have columns of their own.

Variants at the top level are shredded; those in structs, lists and maps are written as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import child_fields
from hms_iceberg.arrow.columns.variant_shredding import shredded, shredded_type

_LISTS = ("use_dictionary", "write_statistics")
_PARTS = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]


def with_shredded_variants(
    schema: pa.Schema, options: Mapping[str, Any], batches: Sequence[pa.RecordBatch], rows: int
) -> tuple[pa.Schema, Mapping[str, Any]]:
    """The schema of a file whose variants are shredded as its first rows suggest, and the options of its writer.

    The options of a variant's value count for its other columns too; `rows` of the batches are looked at.
    """
    if not batches:
        return schema, options
    fields = list(schema)
    changed = dict(options)
    for place, field in enumerate(schema):
        if not is_variant(field.type):
            continue
        column = pa.concat_batches(batches).column(place).slice(0, rows)
        kind = shredded_type(column)
        if kind is None:
            continue
        fields[place] = field.with_type(kind)
        for name in _LISTS:
            listed = changed.get(name)
            if isinstance(listed, list) and f"{field.name}.value" in listed:
                changed[name] = [*listed, *_paths(kind.field("typed_value"), field.name)]
    return pa.schema(fields), changed


def shredded_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch whose variants are shredded as a schema says."""
    columns = [
        column if column.type == field.type else shredded(column, field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_variant(kind: pa.DataType) -> bool:
    """Whether a column of a file's layout holds variants; no struct of a table has fields without ids."""
    fields = child_fields(kind)
    return pa.types.is_struct(kind) and fields == _PARTS and not any(field.metadata for field in fields)


def _paths(field: pa.Field, prefix: str) -> Iterator[str]:
    """The dotted paths of the Parquet columns of a field."""
    path = f"{prefix}.{field.name}"
    children = child_fields(field.type)
    if not children:
        yield path
    for child in children:
        yield from _paths(child, f"{path}.list" if pa.types.is_list(field.type) else path)
