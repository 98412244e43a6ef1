"""Writing one Avro data file: records from Arrow batches, metrics counted on the way.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (Avro); Iceberg documentation,
"Configuration" (``write.avro.compression-codec``).
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import fastavro
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_stored
from hms_iceberg.arrow.columns.nested import list_parts, list_values, map_entries, struct_children
from hms_iceberg.arrow.formats.avro.avro_blocks import avro_schema
from hms_iceberg.arrow.formats.file_layout import HELD_BYTES, ContentOutput, FileLayout, MeasuredWriter
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.errors import ConfigurationError, TypeMismatchError, UnsupportedError
from hms_iceberg.spec.data_types import DecimalType, IcebergType, ListType, MapType, StringType, StructType, UUIDType
from hms_iceberg.spec.manifests.avro_container import (
    BLOCK_BYTES,
    SYNC_SIZE,
    codec_name,
    compress,
    encode_long,
    parsed_schema,
    write_header,
)
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.table_properties import AVRO_CODEC
from hms_iceberg.spec.values.decimals import decimal_bytes
from hms_iceberg.storage import Storage

_ROWS_AT_ONCE = 10_000


class AvroContentWriter(MeasuredWriter):
    file_format = "AVRO"

    def __init__(
        self,
        storage: Storage,
        location: str,
        layout: FileLayout,
        properties: Mapping[str, str],
        modes: Mapping[int, MetricsMode],
        key: FileKey | None = None,
    ) -> None:
        super().__init__(storage, location, layout, modes, key)
        self._codec = avro_codec(properties)
        described = avro_schema(layout.schema)
        # Values are encoded here, so that the encoder needs no logical types, which would change or refuse some.
        self._encoder = parsed_schema(json.dumps(_without_logical_types(described)).encode())
        self._names = [field["name"] for field in described["fields"]]
        self._sync = os.urandom(SYNC_SIZE)
        self._block, self._records = io.BytesIO(), 0
        self._output = ContentOutput(storage, location, key)
        header = {"iceberg.schema": json.dumps(schema_to_json(layout.schema))}
        self._output.stream.write(write_header(json.dumps(described).encode(), self._codec, header, self._sync))

    @property
    def size(self) -> int:
        return self._output.size + self._block.tell()

    @property
    def held(self) -> int:
        return HELD_BYTES + self._block.tell()

    def write_row_group(self, batches: list[pa.RecordBatch]) -> None:
        for batch in batches:
            laid_out = self._measured(batch)
            for start in range(0, laid_out.num_rows, _ROWS_AT_ONCE):
                self._write(laid_out.slice(start, _ROWS_AT_ONCE))

    def _write(self, batch: pa.RecordBatch) -> None:
        columns = [
            _values(column, field.field_type)
            for column, field in zip(batch.columns, self._layout.schema.fields, strict=True)
        ]
        names, encoder = self._names, self._encoder
        for row in zip(*columns, strict=True):
            fastavro.schemaless_writer(self._block, encoder, dict(zip(names, row, strict=True)))
            self._records += 1
            if self._block.tell() >= BLOCK_BYTES:
                self._end_block()

    def _end_block(self) -> None:
        packed = compress(self._block.getvalue(), self._codec)
        self._output.stream.write(encode_long(self._records) + encode_long(len(packed)) + packed + self._sync)
        self._block, self._records = io.BytesIO(), 0

    def _finish(self) -> None:
        if self._records:
            self._end_block()


def avro_codec(properties: Mapping[str, str]) -> str:
    """Avro's name of the codec that the table's properties ask for."""
    name = AVRO_CODEC.of(properties)
    try:
        return codec_name(name)
    except UnsupportedError as error:
        raise ConfigurationError(f"Table property {AVRO_CODEC.name} is {name!r}: {error}") from error


def _values(array: pa.Array, kind: IcebergType) -> list[Any]:
    """One column's values in the form that the Avro encoder takes."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(kind, StructType):
        return _records(array, kind)
    if isinstance(kind, (ListType, MapType)):
        return _collections(array, kind)
    if isinstance(kind, UUIDType):
        plain: list[Any] = array.to_pylist()
        return plain
    values = to_stored(array, kind)
    if isinstance(kind, DecimalType):
        size, scale = decimal_bytes(kind.precision), kind.scale
        return [
            None if value is None else _unscaled(value, scale).to_bytes(size, "big", signed=True) for value in values
        ]
    return values


def _unscaled(value: Any, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def _records(array: pa.Array, kind: StructType) -> list[Any]:
    children = [
        _values(child, field.field_type) for child, field in zip(struct_children(array), kind.fields, strict=True)
    ]
    from_names = [field.name for field in kind.fields]
    rows = [dict(zip(from_names, row, strict=True)) for row in zip(*children, strict=True)]
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _collections(array: pa.Array, kind: ListType | MapType) -> list[Any]:
    offsets, start, length = list_parts(array)
    bounds = offsets.to_pylist()
    entries: list[Any]
    if isinstance(kind, ListType):
        entries = _values(list_values(array, start, length), kind.element_type)
    else:
        keys, items = map_entries(array, start, length)
        pairs = zip(_values(keys, kind.key_type), _values(items, kind.value_type), strict=True)
        plain = isinstance(kind.key_type, StringType)
        entries = list(pairs) if plain else [{"key": key, "value": value} for key, value in pairs]
    rows: list[Any] = [entries[bounds[row] : bounds[row + 1]] for row in range(len(bounds) - 1)]
    if isinstance(kind, MapType) and isinstance(kind.key_type, StringType):
        rows = [_unique(row) for row in rows]
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(key for key, following in pairwise(keys) if key == following)
        raise TypeMismatchError(
            f"Cannot write a map that has the key {twice!r} twice: Avro's maps have each key once. Make the keys "
            "unique, or write Parquet or ORC (write.format.default)."
        )
    return found


def _without_logical_types(described: Any) -> Any:
    if isinstance(described, dict):
        return {key: _without_logical_types(value) for key, value in described.items() if key != "logicalType"}
    return [_without_logical_types(each) for each in described] if isinstance(described, list) else described
