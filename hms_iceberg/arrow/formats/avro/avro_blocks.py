"""Avro data files: their schema, and their blocks, which are fetched one by one to bound the memory.

Source: Avro specification, "Object Container Files"; Iceberg specification, "Appendix A: Format-specific Requirements"
(Avro): types, `field-id`, `element-id`, `key-id` and `value-id`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.formats.parquet_reader import RowRange
from hms_iceberg.arrow.storage.arrow_storage import open_for_arrow
from hms_iceberg.errors import CorruptFileError, UnsupportedError
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, NestedField, StringType, StructType
from hms_iceberg.spec.manifests.avro_container import (
    SYNC_SIZE,
    AvroBlock,
    AvroContainer,
    decode_long,
    decompress,
    read_container,
)
from hms_iceberg.spec.manifests.manifest_schema import avro_primitive
from hms_iceberg.spec.read_limit import most_bytes
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage


def avro_schema(schema: Schema) -> dict[str, Any]:
    """The schema of Avro files, as JSON objects; Avro must allow the columns' names (`FileLayout.schema`)."""
    return _record("table", schema.fields, set())


def _record(name: str, fields: tuple[NestedField, ...], named: set[str]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(field, named) for field in fields]}


def _field(field: NestedField, named: set[str]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": field.name, "field-id": field.field_id}
    if field.doc:
        described["doc"] = field.doc
    described["type"] = _optional(_type(field.field_type, field.field_id, named), field.optional)
    if field.optional:
        described["default"] = None
    return described


def _optional(kind: Any, optional: bool) -> Any:
    return ["null", kind] if optional else kind


def _type(kind: IcebergType, field_id: int, named: set[str]) -> Any:
    if isinstance(kind, StructType):
        return _record(f"r{field_id}", kind.fields, named)
    if isinstance(kind, ListType):
        element = _optional(_type(kind.element_type, kind.element_id, named), not kind.element_required)
        return {"type": "array", "items": element, "element-id": kind.element_id}
    if isinstance(kind, MapType):
        return _map(kind, named)
    found = avro_primitive(kind, named)
    if found is None:
        raise UnsupportedError(f"Cannot write Avro files: values of type {kind} have no form in them.")
    return found


def _map(kind: MapType, named: set[str]) -> dict[str, Any]:
    # A named type is described where it comes first: in the key, which stands before the value.
    key = {"name": "key", "field-id": kind.key_id, "type": _type(kind.key_type, kind.key_id, named)}
    value = _optional(_type(kind.value_type, kind.value_id, named), not kind.value_required)
    if isinstance(kind.key_type, StringType):
        return {"type": "map", "values": value, "key-id": kind.key_id, "value-id": kind.value_id}
    described = {"name": "value", "field-id": kind.value_id, "type": value}
    record = {"type": "record", "name": f"k{kind.key_id}_v{kind.value_id}", "fields": [key, described]}
    return {"type": "array", "items": record, "logicalType": "map"}


# How much of the file is read to find the end of its header: this much at first, and at most.
_HEADER_BYTES = 64 * 1024
_MOST_HEADER_BYTES = 32 * 1024 * 1024
# A block begins with two numbers of at most ten bytes each.
_HEAD_BYTES = 20
# Blocks that are read together.
_RANGE_BYTES = 16 * 1024 * 1024
# What one request of a remote store fetches; a local file is read to the byte.
_REMOTE_BYTES = 8 * 1024 * 1024


class AvroBlocks:
    """An open Avro file as runs of blocks of about `_RANGE_BYTES`."""

    def __init__(self, storage: Storage, location: str, key_metadata: bytes | None = None) -> None:
        self._location = location
        self._file = open_for_arrow(storage, location, key_metadata)
        try:
            self._size = self._file.size()
            self._ahead = 0 if isinstance(self._file, pa.OSFile) else _REMOTE_BYTES
            self._fetched, self._fetched_from = b"", 0
            self.container = self._header()
            self._runs = self._found()
        except BaseException:
            self.close()
            raise
        self.ranges = []
        start = 0
        for index, run in enumerate(self._runs):
            rows = sum(block.records for block in run)
            self.ranges.append(RowRange(index, start, rows, run[-1].last - run[0].first, run[0].first))
            start += rows

    def blocks(self, rows: RowRange) -> Sequence[AvroBlock]:
        return self._runs[rows.index]

    def content(self, block: AvroBlock) -> bytes:
        compressed = self._bytes(block.start, block.end - block.start)
        return decompress(compressed, self.container.codec, self._location, most_bytes(len(compressed)))

    def close(self) -> None:
        with contextlib.suppress(OSError, pa.ArrowException):
            self._file.close()

    def _header(self) -> AvroContainer:
        length = _HEADER_BYTES
        while True:
            try:
                return read_container(self._bytes(0, length), self._location)
            except CorruptFileError:
                if length >= min(self._size, _MOST_HEADER_BYTES):
                    raise
            length *= 8

    def _found(self) -> list[list[AvroBlock]]:
        runs: list[list[AvroBlock]] = []
        first = self.container.body_offset
        head = self._bytes(first, _HEAD_BYTES)
        while first < self._size:
            try:
                records, at = decode_long(head, 0)
                length, at = decode_long(head, at)
            except IndexError as error:
                raise CorruptFileError(f"it is cut off in the head of the Avro block at byte {first}") from error
            end = first + at + length
            after = self._bytes(end, SYNC_SIZE + _HEAD_BYTES) if length >= 0 else b""
            if records < 0 or after[:SYNC_SIZE] != self.container.sync:
                raise CorruptFileError(
                    f"the Avro block at byte {first} is cut off or damaged (its sync marker is missing)"
                )
            if not runs or first - runs[-1][0].first >= _RANGE_BYTES:
                runs.append([])
            runs[-1].append(AvroBlock(records, first + at, end, first, end + SYNC_SIZE))
            first, head = end + SYNC_SIZE, after[SYNC_SIZE:]
        return runs

    def _bytes(self, start: int, length: int) -> bytes:
        """Bytes of the file; fewer where it ends."""
        length = max(0, min(length, self._size - start))
        if length >= self._ahead:
            return bytes(self._file.read_at(length, start))
        if start < self._fetched_from or start + length > self._fetched_from + len(self._fetched):
            self._fetched, self._fetched_from = bytes(self._file.read_at(self._ahead, start)), start
        at = start - self._fetched_from
        return self._fetched[at : at + length]
