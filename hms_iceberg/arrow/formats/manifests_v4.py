"""Manifests and manifest lists of format version 4 in the form of version 3, which everything here reads.

Version 4 is a draft. What is settled: paths may be relative to the table's location, manifests may be Parquet files
(Apache Iceberg 1.12 writes them so), and metrics may be typed fields of a struct instead of maps. Whatever else a
manifest has is refused by its field ids, since it may change which rows there are.

Source: Iceberg specification, "Paths in Metadata", "Content Stats", "Data File Fields".
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_schema import to_stored
from hms_iceberg.errors import CorruptFileError, CorruptManifestError, IcebergError, UnsupportedError
from hms_iceberg.spec.data_types import GeographyType, GeometryType, IcebergType, PrimitiveType, VariantType
from hms_iceberg.spec.manifests.avro_container import (
    MAGIC,
    AvroContainer,
    parsed_schema,
    read_container,
    read_records,
    write_container,
)
from hms_iceberg.spec.manifests.manifest_avro import encode_entries
from hms_iceberg.spec.manifests.manifest_layout import (
    DATA_FILE_FIELDS,
    ENTRY_FIELDS,
    entry_layout,
    manifest_list_layout,
)
from hms_iceberg.spec.manifests.manifest_values import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from hms_iceberg.spec.metadata.metadata_json import FIRST_RELATIVE_VERSION, is_relative, resolved
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec, spec_from_fields_json
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.spec.values.single_values import point_to_bytes, to_bytes
from hms_iceberg.storage import PREVIEWED_MANIFEST

_PARQUET = b"PAR1"
_FORM = 3
_FIELD_ID = b"PARQUET:field_id"
_DATA_FILE, _PARTITION, _STATS = 2, 102, 146
# Deprecated or without a meaning for readers.
_IGNORED = {105, 106, 107, 111, 141}
_MAPS = {108, 109, 110, 137, 125, 128}
# Statistics of the field with the id n have the ids from 10,000 + 200 n; these are offsets from there.
_FIRST_STATS, _STATS_RANGE = 10_000, 200
_LOWER, _UPPER, _VALUES, _NULLS, _NANS = 1, 2, 4, 5, 6
_CORNERS = {_LOWER: (10, 11, 12, 13), _UPPER: (14, 15, 16, 17)}


def as_version_3(data: bytes, location: str, base: str) -> bytes:
    """A manifest or manifest list of version 4 as an Avro file of version 3 with absolute paths; anything else as it
    is."""
    try:
        if data[:4] == MAGIC:
            return _avro(data, location, base)
        if data[:4] == _PARQUET:
            return _parquet(data, location, base)
    except (UnsupportedError, CorruptManifestError):
        raise
    except (IcebergError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise CorruptManifestError(f"Cannot read manifest {location}: {error}") from error
    return data


# ---------------------------------------------------------------------------------------------- Avro


def _avro(data: bytes, location: str, base: str) -> bytes:
    container = read_container(data, location)
    if int(container.text("format-version") or 1) < FIRST_RELATIVE_VERSION:
        return data
    records = list(read_records(container, parsed_schema(container.schema_json), location))
    paths = list(_paths(container, records, location))
    if not any(is_relative(holder[name]) for holder, name in paths):
        return data
    for holder, name in paths:
        holder[name] = resolved(holder[name], base)
    metadata = {key: value.decode("utf-8") for key, value in container.metadata.items() if not key.startswith("avro.")}
    parsed = parsed_schema(container.schema_json)
    return write_container(parsed, container.schema_json, records, container.codec, metadata)


def _paths(container: AvroContainer, records: list[Any], location: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The records that hold a path, each with the path's name in it."""
    if container.text("partition-spec") is None:
        name = manifest_list_layout(container.schema_json, f"manifest list {location}").fields["manifest_path"]
        yield from ((record, name) for record in records)
        return
    layout = entry_layout(container.schema_json, f"manifest {location}")
    for record in records:
        file = record[layout.entry["data_file"]]
        yield file, layout.data_file["file_path"]
        referenced = layout.data_file.get("referenced_data_file")
        if referenced is not None and file[referenced] is not None:
            yield file, referenced


# ---------------------------------------------------------------------------------------------- Parquet


def _parquet(data: bytes, location: str, base: str) -> bytes:
    file = pq.ParquetFile(io.BytesIO(data))
    header = {key.decode(): value.decode("utf-8") for key, value in (file.metadata.metadata or {}).items()}
    if "partition-spec" not in header:
        return data
    version = int(header["format-version"])
    schema = schema_from_json(json.loads(header["schema"]))
    spec = spec_from_fields_json(json.loads(header["partition-spec"]), int(header["partition-spec-id"]))
    content = {each.label: each for each in ManifestContent}[header["content"]]
    entries = _Entries(file.read(), location, base if version >= FIRST_RELATIVE_VERSION else None, schema, spec)
    return encode_entries(entries.read(), schema, spec, content, _FORM)


def _by_id(column: pa.ChunkedArray | pa.Array | pa.Table, what: str) -> dict[int, pa.Array]:
    """The children of a table or a struct by their field ids; a child is null where its parent is."""
    if isinstance(column, pa.Table):
        fields, children = list(column.schema), [each.combine_chunks() for each in column.columns]
    else:
        fields, children = list(column.type), column.flatten()
    found = {}
    for field, child in zip(fields, children, strict=True):
        field_id = (field.metadata or {}).get(_FIELD_ID)
        if field_id is None:
            raise CorruptFileError(f"column {field.name!r} of {what} has no field id")
        found[int(field_id)] = child.combine_chunks() if isinstance(child, pa.ChunkedArray) else child
    return found


class _Entries:
    def __init__(self, table: pa.Table, location: str, base: str | None, schema: Schema, spec: PartitionSpec) -> None:
        self._location = location
        self._base = base
        self._schema = schema
        self._spec = spec
        self._entry = _by_id(table, "the manifest")
        self._refuse_others(self._entry, set(ENTRY_FIELDS))
        if _DATA_FILE not in self._entry:
            raise UnsupportedError(
                f"Cannot read manifest {location}: it is of the metadata tree of version 4 that is not settled"
            )
        self._file = _by_id(self._entry.pop(_DATA_FILE), "data_file")
        self._refuse_others(self._file, {*DATA_FILE_FIELDS, _STATS, *_IGNORED})

    def _refuse_others(self, found: Mapping[int, Any], known: set[int]) -> None:
        others = sorted(set(found) - known)
        if others:
            raise UnsupportedError(
                f"Cannot read manifest {self._location}: it has fields of version 4 that are not settled "
                f"(ids {', '.join(map(str, others))})"
            )

    def read(self) -> Iterator[ManifestEntry]:
        entry = {ENTRY_FIELDS[number]: column.to_pylist() for number, column in self._entry.items()}
        count = len(entry["status"])
        absent: list[Any] = [None] * count
        statuses = entry["status"]
        snapshot_ids = entry.get("snapshot_id", absent)
        sequences, file_sequences = (entry.get(name, absent) for name in ("sequence_number", "file_sequence_number"))
        for number, file in enumerate(self._files(count)):
            status = ManifestEntryStatus(statuses[number])
            yield ManifestEntry(status, snapshot_ids[number], sequences[number], file_sequences[number], file)

    def _files(self, count: int) -> Iterator[DataFile]:
        plain = {
            DATA_FILE_FIELDS[number]: column.to_pylist()
            for number, column in self._file.items()
            if number not in (_PARTITION, _STATS, *_IGNORED)
        }
        partitions = self._partitions(count)
        metrics = self._metrics(count)
        for number in range(count):
            values = {name: column[number] for name, column in plain.items()}
            values["content"] = DataFileContent(values.get("content") or 0)
            values["file_format"] = values["file_format"].upper()
            for field_id in _MAPS & set(self._file):
                name = DATA_FILE_FIELDS[field_id]
                values[name] = None if values[name] is None else dict(values[name])
            # Files that are older than the table's typed metrics keep theirs in maps.
            values.update(metrics[number])
            for name in ("file_path", "referenced_data_file"):
                if self._base is not None and values.get(name) is not None:
                    values[name] = resolved(values[name], self._base)
            yield DataFile(spec_id=self._spec.spec_id, partition=partitions[number], **values)

    def _partitions(self, count: int) -> list[tuple[Any, ...]]:
        """The partitions; a spec without fields has no column of them, since Parquet has no empty structs."""
        kinds = self._spec.partition_type(self._schema).fields
        if not kinds:
            return [()] * count
        found = _by_id(self._file[_PARTITION], "partition")
        return list(zip(*(to_stored(found[kind.field_id], kind.field_type) for kind in kinds), strict=True))

    def _metrics(self, count: int) -> list[dict[str, dict[int, Any]]]:
        """The maps of metrics of each file, for those that the typed statistics say something of."""
        made: list[dict[str, dict[int, Any]]] = [{} for _ in range(count)]
        for first, column in self._stats().items():
            field_id = (first - _FIRST_STATS) // _STATS_RANGE
            if not self._schema.has_field(field_id):
                continue
            kind = self._schema.find_field(field_id).field_type
            found = {number - first: child for number, child in _by_id(column, "content_stats").items()}
            for offset, name in (
                (_LOWER, "lower_bounds"),
                (_UPPER, "upper_bounds"),
                (_VALUES, "value_counts"),
                (_NULLS, "null_value_counts"),
                (_NANS, "nan_value_counts"),
            ):
                if offset not in found:
                    continue
                is_bound = offset in _CORNERS
                values = self._bounds(found[offset], kind, first, offset) if is_bound else found[offset].to_pylist()
                for number, value in enumerate(values):
                    if value is not None:
                        made[number].setdefault(name, {})[field_id] = value
        return made

    def _stats(self) -> dict[int, pa.Array]:
        """The structs of statistics by the first of their ids, without columns that only metadata have."""
        column = self._file.get(_STATS)
        found = {} if column is None else _by_id(column, "content_stats")
        return {first: each for first, each in found.items() if first >= _FIRST_STATS}

    def _bounds(self, column: pa.Array, kind: IcebergType, first: int, offset: int) -> list[bytes | None]:
        if isinstance(kind, GeometryType | GeographyType):
            found = _by_id(column, "a bound")
            x, y, z, m = (
                found[first + each].to_pylist() if first + each in found else [None] * len(column)
                for each in _CORNERS[offset]
            )
            return [None if corner[0] is None else point_to_bytes(*corner) for corner in zip(x, y, z, m, strict=True)]
        if isinstance(kind, VariantType):
            pairs = zip(column.field("metadata").to_pylist(), column.field("value").to_pylist(), strict=True)
            return [None if metadata is None else metadata + value for metadata, value in pairs]
        if not isinstance(kind, PrimitiveType):
            return [None] * len(column)
        return [None if value is None else to_bytes(kind, value) for value in to_stored(column, kind)]


PREVIEWED_MANIFEST.set(as_version_3)
