"""The positions of fields in manifests and manifest lists of any writer.

Fields are found by their ids; their names and order in the file do not matter, and optional ones may be missing.
A layout is made once per distinct schema text.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError
from hms_iceberg.spec.manifests.avro_container import parsed_schema

ENTRY_FIELDS = {0: "status", 1: "snapshot_id", 3: "sequence_number", 4: "file_sequence_number", 2: "data_file"}
DATA_FILE_FIELDS = {
    134: "content",
    100: "file_path",
    101: "file_format",
    102: "partition",
    103: "record_count",
    104: "file_size_in_bytes",
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
MANIFEST_FILE_FIELDS = {
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    517: "content",
    515: "sequence_number",
    516: "min_sequence_number",
    503: "added_snapshot_id",
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    507: "partitions",
    519: "key_metadata",
    520: "first_row_id",
}
SUMMARY_FIELDS = {509: "contains_null", 518: "contains_nan", 510: "lower_bound", 511: "upper_bound"}

# What a schema that is JSON, and not what it should be, is found out by.
MALFORMED = (KeyError, TypeError, AttributeError, ValueError, IndexError, RecursionError)
_REQUIRED = {"status", "data_file", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes"}
_REQUIRED_IN_LIST = {"manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id"}


@dataclass(frozen=True, slots=True)
class PartitionFieldLayout:
    """One field of the partition record: its name in the file, and the Avro type behind its union."""

    field_id: int
    name: str
    avro_type: Any
    convert: Callable[[Any], Any] | None

    def stored(self, value: Any) -> Any:
        """The stored value of one that was read without logical types."""
        return value if value is None or self.convert is None else self.convert(value)


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """The names of manifest entries' fields in a file; `parsed` is its fastavro schema without logical types, so that
    values come out as they are stored, and `bare` is that as JSON."""

    parsed: Any
    bare: dict[str, Any]
    entry: Mapping[str, str]
    data_file: Mapping[str, str]
    partition: tuple[PartitionFieldLayout, ...]

    def entry_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The entry's own fields by the specification's names."""
        return {name: record[key] for name, key in self.entry.items() if name != "data_file"}

    def data_file_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The data file's fields by the specification's names, without the partition."""
        data_file = record[self.entry["data_file"]]
        return {name: data_file[key] for name, key in self.data_file.items() if name != "partition"}

    def partition_values(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        partition = record[self.entry["data_file"]][self.data_file["partition"]]
        return tuple(field.stored(partition[field.name]) for field in self.partition)


@dataclass(frozen=True, slots=True)
class ManifestListLayout:
    """The names under which a file holds the fields of a manifest list."""

    parsed: Any
    fields: Mapping[str, str]
    summaries: Mapping[str, str]

    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The row's fields by the specification's names."""
        return {name: record[key] for name, key in self.fields.items()}

    def summary(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A partition summary's fields by the specification's names."""
        return {name: record[key] for name, key in self.summaries.items()}


def entry_layout(schema_json: bytes, what: str = "a manifest") -> EntryLayout:
    with _reading(what):
        return _entry_layout(schema_json)


def manifest_list_layout(schema_json: bytes, what: str = "a manifest list") -> ManifestListLayout:
    with _reading(what):
        return _manifest_list_layout(schema_json)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except CorruptFileError as error:
        raise CorruptManifestError(f"Cannot read {what}: {error}") from error
    except MALFORMED as error:
        raise CorruptManifestError(f"Cannot read {what}: its Avro schema is damaged ({error!r})") from error


@lru_cache(maxsize=512)
def _entry_layout(schema_json: bytes) -> EntryLayout:
    schema = _record(_load(schema_json), "a manifest entry")
    entry = _names(schema, ENTRY_FIELDS)
    _require({"status", "data_file"}, entry)
    data_file_record = _record(_type_of(schema, entry.get("data_file")), "field data_file")
    data_file = _names(data_file_record, DATA_FILE_FIELDS)
    _require(_REQUIRED, {*entry, *data_file})
    partition_record = _record(_type_of(data_file_record, data_file["partition"]), "field partition")
    named: dict[str, Any] = {}
    partition = tuple(
        PartitionFieldLayout(field.get("field-id", -1), field["name"], avro_type, _converter(avro_type))
        for field in partition_record["fields"]
        for avro_type in [_resolve(_not_null(field["type"]), named)]
    )
    bare = _without_logical_types(schema)
    return EntryLayout(parsed_schema(json.dumps(bare).encode("utf-8")), bare, entry, data_file, partition)


@lru_cache(maxsize=64)
def _manifest_list_layout(schema_json: bytes) -> ManifestListLayout:
    schema = _record(_load(schema_json), "a manifest list")
    fields = _names(schema, MANIFEST_FILE_FIELDS)
    _require(_REQUIRED_IN_LIST, fields)
    summaries: dict[str, str] = {}
    if "partitions" in fields:
        array = _type_of(schema, fields["partitions"])
        summaries = _names(_record(_not_null(array["items"]), "field partitions"), SUMMARY_FIELDS)
    bare = json.dumps(_without_logical_types(schema)).encode("utf-8")
    return ManifestListLayout(parsed_schema(bare), fields, summaries)


def _load(schema_json: bytes) -> Any:
    try:
        return json.loads(schema_json)
    except ValueError as error:
        raise CorruptFileError(f"its Avro schema is not JSON ({error})") from error


def _record(avro_type: Any, what: str) -> dict[str, Any]:
    if not isinstance(avro_type, dict) or avro_type.get("type") != "record":
        raise CorruptFileError(f"its Avro schema has no record for {what}, but {avro_type!r}")
    return avro_type


def _names(record: Mapping[str, Any], fields: Mapping[int, str]) -> dict[str, str]:
    """The specification's names of a record's fields, each with its name in the file."""
    found: dict[str, str] = {}
    by_name = set(fields.values())
    for field in record["fields"]:
        name = fields.get(field.get("field-id"))
        if name is None and "field-id" not in field and field["name"] in by_name:
            name = field["name"]
        if name is not None:
            found[name] = field["name"]
    return found


def _require(required: set[str], found: Any) -> None:
    missing = sorted(required.difference(found))
    if missing:
        raise CorruptFileError(f"its Avro schema lacks {', '.join(missing)}")


def _type_of(record: Mapping[str, Any], name: str | None) -> Any:
    for field in record["fields"]:
        if field["name"] == name:
            return _not_null(field["type"])
    return None


def _not_null(avro_type: Any) -> Any:
    if isinstance(avro_type, list):
        return next((branch for branch in avro_type if branch != "null"), "null")
    return avro_type


def _resolve(avro_type: Any, named: dict[str, Any]) -> Any:
    """A partition field's type, with the name of a type defined before replaced by its definition."""
    if isinstance(avro_type, dict) and "name" in avro_type:
        named[avro_type["name"]] = avro_type
    if isinstance(avro_type, str):
        return named.get(avro_type, avro_type)
    return avro_type


def _converter(avro_type: Any) -> Callable[[Any], Any] | None:
    """The function from a value that was read without logical types to the stored value, None if they are equal."""
    if not isinstance(avro_type, dict):
        return None
    logical = avro_type.get("logicalType")
    if logical == "decimal":
        context = Context(prec=40)
        scale = -int(avro_type.get("scale", 0))
        return lambda data: Decimal(int.from_bytes(data, "big", signed=True)).scaleb(scale, context)
    if logical == "uuid":
        return lambda value: uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(value)
    return None


def _without_logical_types(avro_type: Any) -> Any:
    if isinstance(avro_type, list):
        return [_without_logical_types(branch) for branch in avro_type]
    if isinstance(avro_type, dict):
        return {key: _without_logical_types(value) for key, value in avro_type.items() if key != "logicalType"}
    return avro_type
