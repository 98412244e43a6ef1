"""Manifests and manifest lists in Avro, both ways.

Writing follows the layout of the table's format version exactly; reading accepts every version, matches fields by
their ids, fills in what is missing and applies inheritance: of the snapshot id, of both sequence numbers, and of
row ids.

Source: Iceberg specification, "Manifests", "Manifest Lists", "Sequence Number Inheritance", "First Row ID Inheritance".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, InvalidInputError
from hms_iceberg.spec.data_types import DecimalType, StructType, UUIDType
from hms_iceberg.spec.manifests.avro_container import DEFAULT_CODEC, read_container, read_records, write_container
from hms_iceberg.spec.manifests.manifest_layout import EntryLayout, entry_layout
from hms_iceberg.spec.manifests.manifest_list_avro import (
    PartitionSummary,
    check_entries,
)
from hms_iceberg.spec.manifests.manifest_schema import entry_schema
from hms_iceberg.spec.manifests.manifest_values import (
    MANIFEST_ENTRIES,
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec, spec_fields_to_json
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.values.decimals import decimal_bytes

# Required in v1 and without a meaning since; the value that readers of v1 expect.
_V1_BLOCK_SIZE = 64 * 1024 * 1024
_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def encode_manifest(
    entries: Iterable[ManifestEntry],
    schema: Schema,
    spec: PartitionSpec,
    content: ManifestContent,
    format_version: int,
    snapshot_id: int,
    manifest_path: str = "",
    codec: str = DEFAULT_CODEC,
) -> tuple[bytes, ManifestFile]:
    """Writes a manifest to memory, and its row for the manifest list. ADDED entries without sequence numbers, and so
    perhaps the row's minimum, inherit the commit's, so that the manifest survives a retry unchanged."""
    if format_version == 1 and content is not ManifestContent.DATA:
        raise InvalidInputError("Cannot write a manifest of delete files for a v1 table: upgrade the table to v2 first")
    partition_type = spec.partition_type(schema)
    encoder = _EntryEncoder(spec, partition_type, content, format_version, snapshot_id)
    avro = entry_schema(partition_type, format_version)
    metadata = manifest_metadata(schema, spec, content, format_version)
    data = write_container(avro.parsed, avro.text, map(encoder.encode, entries), codec, metadata)
    return data, encoder.manifest_file(manifest_path, len(data), snapshot_id)


def encode_entries(
    entries: Iterable[ManifestEntry], schema: Schema, spec: PartitionSpec, content: ManifestContent, format_version: int
) -> bytes:
    """A manifest (v2 or v3) whose entries inherit what they do not say from the manifest list, the snapshot id too."""
    partition_type = spec.partition_type(schema)
    encoder = _EntryEncoder(spec, partition_type, content, format_version, None)
    avro = entry_schema(partition_type, format_version)
    metadata = manifest_metadata(schema, spec, content, format_version)
    return write_container(avro.parsed, avro.text, map(encoder.encode, entries), DEFAULT_CODEC, metadata)


def decode_manifest(data: bytes, manifest: ManifestFile, *, checked: bool = True) -> list[ManifestEntry]:
    """Reads all entries of a manifest, removed ones included, with inherited ids and numbers (None where it is not
    committed yet); `checked` entries must be what `manifest` says."""
    entries = list(iterate_manifest(data, manifest))
    if checked:
        check_entries(manifest, entries)
    return entries


def iterate_manifest(data: bytes, manifest: ManifestFile, *, metrics: bool = True) -> Iterator[ManifestEntry]:
    """The entries of a manifest one by one, unchecked; `metrics` are most of a file's size in memory."""
    what = f"manifest {manifest.manifest_path}"
    try:
        container = read_container(data, what)
        layout = entry_layout(container.schema_json, what)
        inherit = _Inheritance(manifest)
        for record in read_records(container, layout.parsed, what, manifest.entries_count):
            yield inherit.apply(_decode_entry(record, layout, manifest, metrics))
    except CorruptManifestError:
        raise
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptManifestError(f"Cannot read {what}: an entry is damaged ({error})") from error


# ------------------------------------------------------------------------------------------------ writing


class _EntryEncoder:
    """Turns entries into Avro records and gathers what the manifest list says of them."""

    def __init__(
        self,
        spec: PartitionSpec,
        partition_type: StructType,
        content: ManifestContent,
        format_version: int,
        snapshot_id: int | None,
    ) -> None:
        self._spec_id = spec.spec_id
        self._content = content
        self._version = format_version
        self._snapshot_id = snapshot_id
        self._partition = _partition_encoder(partition_type, format_version)
        self._summary = PartitionSummary(partition_type)
        self._files = [0, 0, 0]
        self._rows = [0, 0, 0]
        self._min_sequence_number: int | None = None

    def encode(self, entry: ManifestEntry) -> dict[str, Any]:
        data_file = entry.data_file
        self._check(entry)
        self._files[entry.status] += 1
        self._rows[entry.status] += data_file.record_count
        self._summary.add(data_file.partition)
        sequence_number = entry.sequence_number
        if entry.is_live and sequence_number is not None:
            known = self._min_sequence_number
            self._min_sequence_number = sequence_number if known is None else min(known, sequence_number)
        record: dict[str, Any] = {
            "status": int(entry.status),
            "snapshot_id": self._snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
            "data_file": self._data_file(data_file),
        }
        if self._version >= 2:
            record["sequence_number"] = sequence_number
            record["file_sequence_number"] = entry.file_sequence_number
        return record

    def manifest_file(self, manifest_path: str, length: int, snapshot_id: int) -> ManifestFile:
        return ManifestFile(
            manifest_path=manifest_path,
            manifest_length=length,
            partition_spec_id=self._spec_id,
            added_snapshot_id=snapshot_id,
            content=self._content,
            sequence_number=None,
            min_sequence_number=self._min_sequence_number,
            added_files_count=self._files[ManifestEntryStatus.ADDED],
            existing_files_count=self._files[ManifestEntryStatus.EXISTING],
            deleted_files_count=self._files[ManifestEntryStatus.DELETED],
            added_rows_count=self._rows[ManifestEntryStatus.ADDED],
            existing_rows_count=self._rows[ManifestEntryStatus.EXISTING],
            deleted_rows_count=self._rows[ManifestEntryStatus.DELETED],
            partitions=self._summary.summaries(),
        )

    def _check(self, entry: ManifestEntry) -> None:
        data_file = entry.data_file
        if data_file.is_data is not (self._content is ManifestContent.DATA):
            raise InvalidInputError(
                f"Cannot write {data_file.content.name} file {data_file.file_path} to a manifest of "
                f"{self._content.label}: data files and delete files have manifests of their own"
            )
        if data_file.spec_id != self._spec_id:
            raise InvalidInputError(
                f"Cannot write file {data_file.file_path} of partition spec {data_file.spec_id} to a manifest of "
                f"spec {self._spec_id}: each spec has manifests of its own"
            )
        if self._version >= 2 and entry.status is not ManifestEntryStatus.ADDED and entry.sequence_number is None:
            raise InvalidInputError(
                f"Cannot write file {data_file.file_path} with status {entry.status.name}: only added files may "
                "leave their sequence number to the commit"
            )

    def _data_file(self, data_file: DataFile) -> dict[str, Any]:
        content = data_file.content
        is_position_deletes = content is DataFileContent.POSITION_DELETES
        return {
            "content": int(content),
            "file_path": data_file.file_path,
            "file_format": data_file.file_format.upper(),
            "partition": self._partition.encode(data_file),
            "record_count": data_file.record_count,
            "file_size_in_bytes": data_file.file_size_in_bytes,
            "block_size_in_bytes": _V1_BLOCK_SIZE,
            "column_sizes": _encode_map(data_file.column_sizes),
            "value_counts": _encode_map(data_file.value_counts),
            "null_value_counts": _encode_map(data_file.null_value_counts),
            "nan_value_counts": _encode_map(data_file.nan_value_counts),
            "lower_bounds": _encode_map(data_file.lower_bounds),
            "upper_bounds": _encode_map(data_file.upper_bounds),
            "key_metadata": data_file.key_metadata,
            "split_offsets": _encode_list(data_file.split_offsets),
            "equality_ids": _encode_list(data_file.equality_ids),
            "sort_order_id": data_file.sort_order_id,
            "first_row_id": data_file.first_row_id if content is DataFileContent.DATA else None,
            "referenced_data_file": data_file.referenced_data_file if is_position_deletes else None,
            "content_offset": data_file.content_offset if is_position_deletes else None,
            "content_size_in_bytes": data_file.content_size_in_bytes if is_position_deletes else None,
        }


_DECIMAL_LIMIT = 10**38


class _PartitionEncoder:
    """Turns partition tuples into Avro records: by Avro's field names, decimals and UUIDs as bytes."""

    def __init__(self, partition_type: StructType, names: Sequence[str]) -> None:
        self._fields = []
        for field, name in zip(partition_type.fields, names, strict=True):
            field_type = field.field_type
            size = decimal_bytes(field_type.precision) if isinstance(field_type, DecimalType) else 0
            self._fields.append((name, size, isinstance(field_type, UUIDType)))

    def encode(self, data_file: DataFile) -> dict[str, Any]:
        """The Avro record of a partition; refuses a decimal of 39 digits, as truncating the least of 38 gives."""
        partition = data_file.partition
        if len(partition) != len(self._fields):
            raise InvalidInputError(
                f"Cannot write file {data_file.file_path}: its partition has {len(partition)} values, its partition "
                f"spec {len(self._fields)} fields"
            )
        record: dict[str, Any] = {}
        for (name, decimal_size, is_uuid), value in zip(self._fields, partition, strict=True):
            if value is not None:
                if decimal_size:
                    unscaled = _unscaled(value)
                    if abs(unscaled) >= _DECIMAL_LIMIT:
                        raise InvalidInputError(
                            f"Cannot write file {data_file.file_path}: its partition value {value} of field {name!r} "
                            "has more than 38 digits, which no reader can hold. Partition by another transform."
                        )
                    value = unscaled.to_bytes(decimal_size, "big", signed=True)
                elif is_uuid:
                    value = value.bytes
            record[name] = value
        return record


def _unscaled(value: Any) -> int:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    return -number if sign else number


@lru_cache(maxsize=256)
def _partition_encoder(partition_type: StructType, format_version: int) -> _PartitionEncoder:
    layout = entry_layout(entry_schema(partition_type, format_version).text)
    return _PartitionEncoder(partition_type, [field.name for field in layout.partition])


def manifest_metadata(
    schema: Schema, spec: PartitionSpec, content: ManifestContent, format_version: int
) -> dict[str, str]:
    """Entries of a manifest's header besides its Avro schema."""
    return _manifest_metadata(schema, schema.schema_id, spec, content, format_version)


@lru_cache(maxsize=128)
def _manifest_metadata(
    schema: Schema, schema_id: int, spec: PartitionSpec, content: ManifestContent, format_version: int
) -> dict[str, str]:
    metadata = {
        "schema": json.dumps(schema_to_json(schema), separators=(",", ":")),
        "schema-id": str(schema_id),  # its own argument, since schemas are equal whatever their ids
        "partition-spec": json.dumps(spec_fields_to_json(spec), separators=(",", ":")),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version >= 2:
        metadata["content"] = content.label
    return metadata


def _encode_map(values: Mapping[int, Any] | None) -> tuple[str, list[dict[str, Any]]] | None:
    # The tuple tells fastavro the branch of the union, which it would else find by validating every element.
    if values is None:
        return None
    return "array", [{"key": key, "value": value} for key, value in values.items()]


def _encode_list(values: Sequence[int] | None) -> tuple[str, list[int]] | None:
    return None if values is None else ("array", list(values))


# ------------------------------------------------------------------------------------------------ reading


_METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


class _Inheritance:
    """Fills in what entries leave to the manifest list, in the manifest's order."""

    def __init__(self, manifest: ManifestFile) -> None:
        self._manifest = manifest
        self._next_row_id = manifest.first_row_id

    def apply(self, entry: ManifestEntry) -> ManifestEntry:
        manifest = self._manifest
        return ManifestEntry(
            entry.status,
            manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
            self._sequence_number(entry, entry.sequence_number),
            self._sequence_number(entry, entry.file_sequence_number),
            self._with_row_id(entry),
        )

    def _sequence_number(self, entry: ManifestEntry, own: int | None) -> int | None:
        inherited = self._manifest.sequence_number
        if own is not None or inherited is None:
            return own
        if inherited == 0 or entry.status is ManifestEntryStatus.ADDED:
            return inherited
        raise CorruptManifestError(
            f"Cannot read manifest {self._manifest.manifest_path}: the entry of {entry.data_file.file_path} has status "
            f"{entry.status.name} and no sequence number; only added files inherit one"
        )

    def _with_row_id(self, entry: ManifestEntry) -> DataFile:
        data_file = entry.data_file
        if self._next_row_id is None:
            # Nothing is assigned before the first snapshot of format v3; what a file says of itself does not count.
            committed = self._manifest.sequence_number is not None
            return (
                replace(data_file, first_row_id=None) if committed and data_file.first_row_id is not None else data_file
            )
        if not entry.is_live or data_file.first_row_id is not None:
            return data_file
        data_file = replace(data_file, first_row_id=self._next_row_id)
        self._next_row_id += data_file.record_count
        return data_file


def _decode_entry(
    record: Mapping[str, Any], layout: EntryLayout, manifest: ManifestFile, metrics: bool
) -> ManifestEntry:
    entry = layout.entry_values(record)
    values = layout.data_file_values(record)
    for name in _METRICS:
        pairs = values.get(name)
        if pairs is not None:
            values[name] = {pair["key"]: pair["value"] for pair in pairs} if metrics else None
    for name in ("split_offsets", "equality_ids"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    content = values.pop("content", None)
    data_file = DataFile(
        content=DataFileContent(content or 0),
        spec_id=manifest.partition_spec_id,
        partition=layout.partition_values(record),
        file_format=values.pop("file_format").upper(),
        **values,
    )
    return ManifestEntry(
        ManifestEntryStatus(entry["status"]),
        entry.get("snapshot_id"),
        entry.get("sequence_number"),
        entry.get("file_sequence_number"),
        data_file,
    )


MANIFEST_ENTRIES.set(decode_manifest)
