"""View metadata files: JSON, plain or gzip-compressed. Source: Iceberg view specification, "View Metadata"."""

from __future__ import annotations

import json
from typing import Any

from hms_iceberg.errors import CorruptMetadataError, UnsupportedError
from hms_iceberg.spec.json_model import JsonObject, set_json_form, shown
from hms_iceberg.spec.metadata.metadata_json import read_metadata_file
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from hms_iceberg.spec.views.view_metadata import (
    FORMAT_VERSION,
    SQLViewRepresentation,
    UnknownViewRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
    check_view_metadata,
)


def view_metadata_to_json(metadata: ViewMetadata) -> bytes:
    """The content of a metadata file, uncompressed.

    Raises:
        CorruptMetadataError: the metadata contradicts itself; nothing invalid is ever written.
    """
    check_view_metadata(metadata)
    data = view_metadata_to_dict(metadata)
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")


def view_metadata_to_dict(metadata: ViewMetadata) -> dict[str, Any]:
    """The metadata as JSON-ready Python."""
    return {
        "view-uuid": metadata.view_uuid,
        "format-version": metadata.format_version,
        "location": metadata.location,
        "properties": dict(metadata.properties),
        "schemas": [schema_to_json(schema) for schema in metadata.schemas],
        "current-version-id": metadata.current_version_id,
        "versions": [view_version_to_json(version) for version in metadata.versions],
        "version-log": [
            {"timestamp-ms": entry.timestamp_ms, "version-id": entry.version_id} for entry in metadata.version_log
        ],
    }


def view_metadata_from_json(data: bytes, location: str | None = None) -> ViewMetadata:
    """The view metadata in the content of a metadata file; gzip is told by the content.

    Args:
        data: the content of the file.
        location: where it was read, for messages.

    Raises:
        UnsupportedError: the format version is newer than v1.
        CorruptMetadataError: it is no JSON, something is missing or of the wrong type, or it contradicts itself.
    """
    return read_metadata_file(data, "view metadata", location, view_metadata_from_dict)


def view_metadata_from_dict(data: Any) -> ViewMetadata:
    """The metadata that parsed JSON stands for; raises CorruptMetadataError and UnsupportedError."""
    metadata = _metadata(data)
    check_view_metadata(metadata)
    return metadata


def _metadata(data: Any) -> ViewMetadata:
    read = JsonObject(data, "the metadata")
    version = read.integer("format-version")
    if version != FORMAT_VERSION:
        raise UnsupportedError(
            f"the view has format version {version}; this version of hms_iceberg reads and writes {FORMAT_VERSION}"
        )
    log = [JsonObject(each, "an entry of the version log") for each in read.sequence("version-log")]
    return ViewMetadata(
        view_uuid=read.text("view-uuid"),
        location=read.text("location"),
        schemas=tuple(schema_from_json(each) for each in read.sequence("schemas")),
        current_version_id=read.integer("current-version-id"),
        versions=tuple(_version(JsonObject(each, "a version")) for each in read.sequence("versions")),
        version_log=tuple(ViewHistoryEntry(each.integer("timestamp-ms"), each.integer("version-id")) for each in log),
        properties=read.text_map_or_none("properties") or {},
    )


def view_version_from_json(data: Any) -> ViewVersion:
    """The version that parsed JSON stands for; raises CorruptMetadataError."""
    return _version(JsonObject(data, "a version"))


def _version(read: JsonObject) -> ViewVersion:
    namespace = read.sequence("default-namespace")
    if not all(isinstance(level, str) for level in namespace):
        raise CorruptMetadataError(f"'default-namespace' of {read.what} is {shown(namespace)}, expected texts")
    return ViewVersion(
        version_id=read.integer("version-id"),
        schema_id=read.integer("schema-id"),
        timestamp_ms=read.integer("timestamp-ms"),
        summary=read.text_map_or_none("summary") or {},
        representations=tuple(
            _representation(JsonObject(each, "a representation")) for each in read.sequence("representations")
        ),
        default_namespace=tuple(namespace),
        default_catalog=read.text_or_none("default-catalog"),
    )


def _representation(read: JsonObject) -> ViewRepresentation:
    if read.text("type").lower() == "sql":
        return SQLViewRepresentation(read.text("sql"), read.text("dialect"))
    return UnknownViewRepresentation(dict(read.data))


def view_version_to_json(version: ViewVersion) -> dict[str, Any]:
    """A version as JSON-ready Python."""
    data: dict[str, Any] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
    }
    if version.default_catalog is not None:
        data["default-catalog"] = version.default_catalog
    data["default-namespace"] = list(version.default_namespace)
    data["representations"] = [
        {"type": "sql", "sql": each.sql, "dialect": each.dialect}
        if isinstance(each, SQLViewRepresentation)
        else dict(each.members)
        for each in version.representations
    ]
    return data


set_json_form(ViewMetadata, view_metadata_to_dict, view_metadata_from_dict)
