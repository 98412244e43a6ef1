"""Reading one Avro data file: records to Arrow batches.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (Avro).
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import fastavro
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import FIELD_ID_KEY
from hms_iceberg.arrow.columns.legacy_calendar import (
    Rule,
    has_old_values,
    old_times,
    proleptic_columns,
    text_marks,
    writer_calendar,
)
from hms_iceberg.arrow.columns.projection import file_leaves, identified, leaf_count
from hms_iceberg.arrow.formats.avro.avro_blocks import AvroBlocks
from hms_iceberg.arrow.formats.avro.avro_frames import AvroFrames
from hms_iceberg.arrow.formats.parquet_reader import RowRange, WholeRanges, empty_batches
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.manifests.avro_container import AvroBlock, parsed_schema
from hms_iceberg.spec.values.decimals import decimal_value
from hms_iceberg.storage import Storage

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
# Records are Python objects, far larger than in a column.
_MOST_ROWS = 1 << 16
# Bytes of decompressed blocks that Polars decodes at once.
_PORTION_BYTES = 8 * 1024 * 1024
# Turns a decoded value into what pyarrow.array takes; None if it takes it as it is.
_Convert = Callable[[Any], Any]


class AvroReader(WholeRanges):
    """An open Avro file; `schema` has the field ids that apply, `file_schema` those of the file itself."""

    def __init__(
        self, storage: Storage, location: str, mapping: NameMapping | None, key_metadata: bytes | None = None
    ) -> None:
        self._location = location
        with self._decoding():
            self._blocks = AvroBlocks(storage, location, key_metadata)
        try:
            with self._decoding():
                schema = json.loads(self._blocks.container.schema_json)
                plain = _Types()
                self._fields = [plain.field(field) for field in schema["fields"]]
                self._unknown = plain.unknown
                self._uuids = frozenset(plain.uuids)
                physical = _without_logical_types(schema)
                self._decoder = parsed_schema(json.dumps(physical).encode())
                self._frames = AvroFrames(physical)
                self._names = [field["name"] for field in schema["fields"]]
                self.file_schema = pa.schema([field for field, _ in self._fields])
                self.schema = identified(self.file_schema, mapping)
                self.marks = text_marks(self._blocks.container.metadata)
                self._calendar = writer_calendar(self.marks)
        except BaseException:
            self.close()
            raise

    def ranges(self) -> list[RowRange]:
        return self._blocks.ranges

    def read(
        self, rows: RowRange, leaves: Sequence[int], batch_rows: int, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        if not leaves:
            yield from empty_batches(rows.start, rows.start + rows.rows, batch_rows)
            return
        chosen = top_level(self.schema, leaves)
        for position, batch in self._read(rows, chosen, min(batch_rows, _MOST_ROWS)):
            rules = self._rules(batch.schema) if self._calendar.is_legacy else []
            yield position, proleptic_columns(batch, rules) if any(rules) else batch

    def _read(self, rows: RowRange, chosen: Sequence[int], batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Some top-level columns as the file holds them."""
        position = rows.start
        waiting: list[dict[str, Any]] = []
        for blocks in self._portions(rows, chosen):
            whole = None if waiting else self._whole(blocks, chosen)
            if whole is not None:
                for first in range(0, whole.num_rows, batch_rows):
                    yield position, whole.slice(first, batch_rows)
                    position += min(batch_rows, whole.num_rows - first)
                continue
            for block, raw in blocks:
                waiting.extend(self._records(block, raw))
            while len(waiting) >= batch_rows:
                yield position, self._batch(waiting[:batch_rows], chosen)
                waiting = waiting[batch_rows:]
                position += batch_rows
        if waiting:
            yield position, self._batch(waiting, chosen)

    def _portions(self, rows: RowRange, chosen: Sequence[int]) -> Iterator[list[tuple[AvroBlock, bytes]]]:
        """The decompressed blocks of a range: some at once for Polars, one at a time for fastavro."""
        found: list[tuple[AvroBlock, bytes]] = []
        size = 0
        for block in self._blocks.blocks(rows):
            with self._decoding(f"the Avro block at byte {block.first}"):
                found.append((block, self._blocks.content(block)))
            size += len(found[-1][1])
            if size >= _PORTION_BYTES or not self._is_quick(chosen):
                yield found
                found, size = [], 0
        if found:
            yield found

    def _is_quick(self, chosen: Sequence[int]) -> bool:
        """Whether Polars may decode columns."""
        return all(self._frames.can_read(self._names[index], self._fields[index][0].type) for index in chosen)

    def _whole(self, blocks: Sequence[tuple[AvroBlock, bytes]], chosen: Sequence[int]) -> pa.RecordBatch | None:
        """Some columns of blocks as Polars decodes them; None if fastavro has to."""
        if not self._is_quick(chosen):
            return None
        rows = sum(block.records for block, _ in blocks)
        fields, names = [self._fields[index][0] for index in chosen], [self._names[index] for index in chosen]
        return self._frames.read([raw for _, raw in blocks], rows, fields, names)

    def _records(self, block: AvroBlock, raw: bytes) -> list[dict[str, Any]]:
        with self._decoding(f"the Avro block at byte {block.first}"):
            stream = io.BytesIO(raw)
            decode: Callable[..., Any] = fastavro.schemaless_reader
            records = [decode(stream, self._decoder, None) for _ in range(block.records)]
            if stream.tell() != len(raw):
                raise ValueError(f"{len(raw) - stream.tell():,} bytes are left over")
        return records

    def _batch(self, records: list[dict[str, Any]], chosen: Sequence[int]) -> pa.RecordBatch:
        arrays = []
        for index in chosen:
            field, convert = self._fields[index]
            name = self._names[index]
            values = [record[name] for record in records]
            arrays.append(pa.array(values if convert is None else map(convert, values), field.type, size=len(values)))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self._fields[index][0] for index in chosen]))

    def _rules(self, schema: pa.Schema) -> list[Rule | None]:
        """A rule for each leaf that makes its values proleptic."""
        return [self._calendar.rule(leaf.type) for leaf in file_leaves(schema)]

    def is_uuid(self, path: tuple[str, ...]) -> bool:
        """Whether a column of bytes is marked as UUIDs, without which Java reads bytes, and with which it reads no
        others."""
        return path in self._uuids

    def problems(self) -> list[str]:
        """Types that Java's reader does not know, and days of the Julian calendar; see ``ParquetReader``."""
        unknown = [
            f"holds Avro's type {kind}, which Apache Iceberg in Java does not read, in the column {name!r}"
            for name, kind in self._unknown
        ]
        return unknown + old_times(self.old_columns)

    @cached_property
    def old_columns(self) -> list[str]:
        if not any(self._rules(self.file_schema)):
            return []
        found: set[str] = set()
        for rows in self.ranges():
            for _, batch in self._read(rows, range(len(self._fields)), _MOST_ROWS):
                found |= {
                    field.name
                    for field, column in zip(batch.schema, batch.columns, strict=True)
                    if has_old_values(pa.record_batch([column], [field.name]), self._rules(pa.schema([field])))
                }
        return sorted(found)

    def close(self) -> None:
        self._blocks.close()

    @contextlib.contextmanager
    def _decoding(self, where: str = "") -> Iterator[None]:
        try:
            with decoding(self._location, "Avro", where):
                yield
        except UnsupportedError as error:
            raise UnsupportedError(f"Cannot read {self._location}: {error}") from error


def top_level(schema: pa.Schema, leaves: Sequence[int]) -> list[int]:
    """The top-level columns of a file that hold some of its leaves."""
    chosen = []
    position = 0
    wanted = set(leaves)
    for index, field in enumerate(schema):
        count = leaf_count(field)
        if wanted.intersection(range(position, position + count)):
            chosen.append(index)
        position += count
    return chosen


class _Types:
    """Avro types as Arrow types with field ids, and how their values are converted."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        # Names of fields and the logical types that Java's reader does not know.
        self.unknown: list[tuple[str, str]] = []
        # Paths of the bytes of fixed length that are marked as UUIDs.
        self.uuids: list[tuple[str, ...]] = []

    def field(self, field: dict[str, Any]) -> tuple[pa.Field, _Convert | None]:
        return self._identified(field["name"], field["type"], field.get("field-id"))

    def _identified(self, name: str, schema: Any, field_id: Any) -> tuple[pa.Field, _Convert | None]:
        unknown, uuids = len(self.unknown), len(self.uuids)
        kind, convert, nullable = self._type(schema)
        self.unknown[unknown:] = [(name, logical) for _, logical in self.unknown[unknown:]]
        self.uuids[uuids:] = [(name, *path) for path in self.uuids[uuids:]]
        nullable = nullable or bool(pa.types.is_null(kind))
        metadata = None if field_id is None else {FIELD_ID_KEY: str(field_id).encode()}
        return pa.field(name, kind, nullable, metadata), convert

    def _type(self, schema: Any) -> tuple[pa.DataType, _Convert | None, bool]:
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            if len(branches) != 1:
                raise UnsupportedError("unions of several types are not supported.")
            kind, convert, _ = self._type(branches[0])
            return kind, _or_none(convert), True
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        name = schema["type"]
        if isinstance(name, (dict, list)):
            return self._type(name)
        if "name" in schema:
            self._named.setdefault(schema["name"], schema)
        if name == "record":
            return (*self._record(schema), False)
        if name == "array":
            return (*self._array(schema), False)
        if name == "map":
            value, convert = self._identified("value", schema["values"], schema.get("value-id"))
            key, _ = self._identified("key", "string", schema.get("key-id"))
            return pa.map_(key, value), _pairs_of_dict(convert), False
        return (*self._primitive(name, schema), False)

    def _primitive(self, name: str, schema: dict[str, Any]) -> tuple[pa.DataType, _Convert | None]:
        logical = schema.get("logicalType")
        if str(logical).startswith("local-timestamp-") or (logical == "uuid" and name == "string"):
            self.unknown.append(("", f"{logical} of {name}"))
        if logical == "decimal":
            scale = schema.get("scale", 0)
            return pa.decimal128(schema["precision"], scale), lambda raw: decimal_value(
                int.from_bytes(raw, "big", signed=True), scale
            )
        if name == "fixed":
            if logical == "uuid":
                self.uuids.append(())
            return pa.binary(schema["size"]), None
        known = _LOGICAL.get((name, str(logical))) or _PRIMITIVES.get(name)
        if known is None:
            raise UnsupportedError(f"Avro type {name!r} is not supported.")
        if str(logical).startswith("timestamp-") and schema.get("adjust-to-utc", True):
            known = pa.timestamp(known.unit, "UTC")
        return known, None

    def _record(self, schema: dict[str, Any]) -> tuple[pa.DataType, _Convert | None]:
        fields = [self.field(field) for field in schema["fields"]]
        converts = {field.name: convert for field, convert in fields if convert is not None}
        kind = pa.struct([field for field, _ in fields])
        if not converts:
            return kind, None

        def convert(record: dict[str, Any]) -> dict[str, Any]:
            return {**record, **{name: each(record[name]) for name, each in converts.items()}}

        return kind, convert

    def _array(self, schema: dict[str, Any]) -> tuple[pa.DataType, _Convert | None]:
        if schema.get("logicalType") == "map":  # a map whose keys are not strings
            key, value = (self.field(field) for field in self._entry(schema["items"])["fields"])
            convert_key, convert_value = key[1] or _same, value[1] or _same
            key_name, value_name = key[0].name, value[0].name

            def pairs(entries: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
                return [(convert_key(each[key_name]), convert_value(each[value_name])) for each in entries]

            return pa.map_(key[0].with_name("key").with_nullable(False), value[0].with_name("value")), pairs
        element, convert = self._identified("element", schema["items"], schema.get("element-id"))
        if convert is None:
            return pa.list_(element), None
        return pa.list_(element), lambda values: [convert(value) for value in values]

    def _entry(self, items: Any) -> dict[str, Any]:
        return self._named[items] if isinstance(items, str) else items


def _same(value: Any) -> Any:
    return value


def _or_none(convert: _Convert | None) -> _Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _pairs_of_dict(convert: _Convert | None) -> _Convert:
    if convert is None:
        return lambda value: list(value.items())
    return lambda value: [(key, convert(item)) for key, item in value.items()]


def _without_logical_types(schema: Any) -> Any:
    """Removes logical types from an Avro schema, so that fastavro does not convert values."""
    if isinstance(schema, dict):
        return {
            key: _without_logical_types(value)
            for key, value in schema.items()
            if key not in ("logicalType", "default", "aliases")
        }
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    return schema
