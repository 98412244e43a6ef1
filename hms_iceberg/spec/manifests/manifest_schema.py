"""Avro schemas of manifests and manifest lists, for each format version and partition type.

Names and field ids are the specification's; optional fields are unions with null, maps with integer keys are arrays
of key/value records with logical type ``map``. Schemas are built and parsed once per partition type.

Source: Iceberg specification, "Manifests", "Manifest Lists" and Appendix A "Avro".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import GeographyType, GeometryType, IcebergType, NestedField, StructType
from hms_iceberg.spec.manifests.avro_container import parsed_schema
from hms_iceberg.spec.values.single_values import forms_of

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema in the two forms that writing needs: text for the header, parsed for the records."""

    text: bytes
    parsed: Any


def avro_name(name: str) -> str:
    """A field's name made valid for Avro as Apache Iceberg does: `my x` becomes `my_x20x`, a leading digit gets `_`."""
    out: list[str] = []
    for index, character in enumerate(name):
        if character == "_" or (character.isalpha() and ord(character) < 0x80):
            out.append(character)
        elif character.isdigit() and ord(character) < 0x80:
            out.append(character if index else f"_{character}")
        else:
            units = character.encode("utf-16-be")
            out.extend(f"_x{int.from_bytes(units[i : i + 2], 'big'):X}" for i in range(0, len(units), 2))
    return "".join(out)


def partition_record(partition_type: StructType) -> dict[str, Any]:
    named: set[str] = set()
    fields = []
    used: set[str] = set()
    for field in partition_type.fields:
        name = avro_name(field.name)
        while name in used:
            name += "_"
        used.add(name)
        avro_type = _avro_type(field, named)
        described: dict[str, Any] = {
            "name": name,
            "type": avro_type if avro_type == "null" else ["null", avro_type],
            "default": None,
            "field-id": field.field_id,
        }
        if name != field.name:
            described["iceberg-field-name"] = field.name
        fields.append(described)
    return {"type": "record", "name": "r102", "fields": fields}


@lru_cache(maxsize=256)
def entry_schema(partition_type: StructType, format_version: int) -> AvroSchema:
    _check_version(format_version)
    fields = [_field(0, "status", "int"), _optional(1, "snapshot_id", "long")]
    if format_version >= 2:
        fields += [_optional(3, "sequence_number", "long"), _optional(4, "file_sequence_number", "long")]
    fields.append(
        _field(
            2,
            "data_file",
            {"type": "record", "name": "r2", "fields": _data_file_fields(partition_type, format_version)},
        )
    )
    return _schema({"type": "record", "name": "manifest_entry", "fields": fields})


@lru_cache(maxsize=8)
def manifest_list_schema(format_version: int) -> AvroSchema:
    _check_version(format_version)
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _field(509, "contains_null", "boolean"),
            _optional(518, "contains_nan", "boolean"),
            _optional(510, "lower_bound", "bytes"),
            _optional(511, "upper_bound", "bytes"),
        ],
    }
    partitions = _optional(507, "partitions", {"type": "array", "items": summary, "element-id": 508})
    fields = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
    ]
    if format_version == 1:
        fields += [
            _field(503, "added_snapshot_id", "long"),
            *(_optional(field_id, name, "int") for field_id, name in _FILE_COUNTS),
            partitions,
            *(_optional(field_id, name, "long") for field_id, name in _ROW_COUNTS),
            _optional(519, "key_metadata", "bytes"),
        ]
    else:
        fields += [
            _field(517, "content", "int"),
            _field(515, "sequence_number", "long"),
            _field(516, "min_sequence_number", "long"),
            _field(503, "added_snapshot_id", "long"),
            *(_field(field_id, name, "int") for field_id, name in _FILE_COUNTS),
            *(_field(field_id, name, "long") for field_id, name in _ROW_COUNTS),
            partitions,
            _optional(519, "key_metadata", "bytes"),
        ]
    if format_version >= 3:
        fields.append(_optional(520, "first_row_id", "long"))
    return _schema({"type": "record", "name": "manifest_file", "fields": fields})


_FILE_COUNTS = ((504, "added_files_count"), (505, "existing_files_count"), (506, "deleted_files_count"))
_ROW_COUNTS = ((512, "added_rows_count"), (513, "existing_rows_count"), (514, "deleted_rows_count"))


def _data_file_fields(partition_type: StructType, format_version: int) -> list[dict[str, Any]]:
    fields = [_field(134, "content", "int")] if format_version >= 2 else []
    fields += [
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", partition_record(partition_type)),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
    ]
    if format_version == 1:
        fields.append(_field(105, "block_size_in_bytes", "long"))
    fields += [
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(137, "nan_value_counts", _map(138, 139, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _map(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
    ]
    if format_version >= 2:
        fields.append(_optional(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}))
    fields.append(_optional(140, "sort_order_id", "int"))
    if format_version >= 3:
        fields.append(_optional(142, "first_row_id", "long"))
    if format_version >= 2:
        fields.append(_optional(143, "referenced_data_file", "string"))
    if format_version >= 3:
        fields += [_optional(144, "content_offset", "long"), _optional(145, "content_size_in_bytes", "long")]
    return fields


def _field(field_id: int, name: str, avro_type: Any) -> dict[str, Any]:
    return {"name": name, "type": avro_type, "field-id": field_id}


def _optional(field_id: int, name: str, avro_type: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", avro_type], "default": None, "field-id": field_id}


def _map(key_id: int, value_id: int, value_type: str) -> dict[str, Any]:
    record = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_field(key_id, "key", "int"), _field(value_id, "value", value_type)],
    }
    return {"type": "array", "items": record, "logicalType": "map"}


def _avro_type(field: NestedField, named: set[str]) -> Any:
    """The Avro type of a partition field; a named type is defined once and then referred to by its name."""
    found = avro_primitive(field.field_type, named)
    if found is None or isinstance(field.field_type, (GeometryType, GeographyType)):
        raise UnsupportedError(
            f"Cannot write partition field {field.name!r}: values of type {field.field_type} cannot be partition values"
        )
    return found


def _check_version(format_version: int) -> None:
    if format_version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedError(
            f"Cannot write manifests of format version {format_version}: supported are "
            f"{', '.join(map(str, SUPPORTED_FORMAT_VERSIONS))}"
        )


def _schema(described: dict[str, Any]) -> AvroSchema:
    text = json.dumps(described, separators=(",", ":")).encode("utf-8")
    return AvroSchema(text, parsed_schema(text))


def avro_primitive(kind: IcebergType, named: set[str]) -> Any | None:
    """The Avro type of a primitive type, None if there is none; `named` are names that the schema has so far."""
    avro = forms_of(kind).avro
    described = avro(kind) if callable(avro) else avro
    name = described.get("name") if isinstance(described, dict) else None
    if name is None:
        return described
    if name in named:
        return name
    named.add(name)
    return dict(described)
