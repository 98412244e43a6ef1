"""Table metadata of format versions 1 to 3, and a preview of 4, as JSON, and the file that holds it.

Source: Iceberg specification, "Table Metadata", "Paths in Metadata", "Path Resolution".
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hms_iceberg.errors import CorruptMetadataError, IcebergError, InvalidInputError, UnsupportedError
from hms_iceberg.spec.json_model import JsonObject, set_json_form
from hms_iceberg.spec.metadata.table_metadata import (
    PREVIEWED_FORMAT_VERSION,
    SUPPORTED_FORMAT_VERSIONS,
    TableMetadata,
    check_metadata,
)
from hms_iceberg.spec.partitions.partition_specs import (
    PARTITION_FIELD_ID_START,
    PartitionSpec,
    spec_fields_to_json,
    spec_from_fields_json,
    spec_from_json,
    spec_to_json,
)
from hms_iceberg.spec.read_limit import DEFAULT_LIMIT, ReadLimit
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from hms_iceberg.spec.snapshots_and_refs import (
    INITIAL_SEQUENCE_NUMBER,
    MAIN_BRANCH,
    SnapshotRef,
    encryption_key_from_json,
    encryption_key_to_json,
    metadata_log_from_json,
    metadata_log_to_json,
    partition_statistics_from_json,
    partition_statistics_to_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_from_json,
    snapshot_log_to_json,
    snapshot_to_json,
    statistics_from_json,
    statistics_to_json,
    with_keys,
)
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder, sort_order_from_json, sort_order_to_json

NO_SNAPSHOT = -1
"""What v1 and v2 files hold as `current-snapshot-id` of a table without data."""


# ---------------------------------------------------------------------------------------------- writing


def metadata_to_json(metadata: TableMetadata) -> bytes:
    """The content of a metadata file, uncompressed; metadata that breaks the specification is never written."""
    check_metadata(metadata)
    text = json.dumps(metadata_to_dict(metadata), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"Cannot write the metadata of the table at {metadata.location}: a name, property or comment holds half a "
            f"character ({error.object[error.start : error.end]!r}); remove it"
        ) from error


def metadata_to_dict(metadata: TableMetadata) -> dict[str, Any]:
    version = metadata.format_version
    data: dict[str, Any] = {"format-version": version}
    if metadata.table_uuid is not None:
        data["table-uuid"] = metadata.table_uuid
    data["location"] = metadata.location
    if version > 1:
        data["last-sequence-number"] = metadata.last_sequence_number
    data["last-updated-ms"] = metadata.last_updated_ms
    data["last-column-id"] = metadata.last_column_id
    if version == 1:
        data["schema"] = schema_to_json(metadata.schema())
    data["current-schema-id"] = metadata.current_schema_id
    data["schemas"] = [schema_to_json(schema) for schema in metadata.schemas]
    if version == 1:
        data["partition-spec"] = spec_fields_to_json(metadata.spec())
    data["default-spec-id"] = metadata.default_spec_id
    data["partition-specs"] = [spec_to_json(spec) for spec in metadata.partition_specs]
    data["last-partition-id"] = metadata.last_partition_id
    data["default-sort-order-id"] = metadata.default_sort_order_id
    data["sort-orders"] = [sort_order_to_json(order) for order in metadata.sort_orders]
    data["properties"] = metadata.properties
    absent = None if version > 2 else NO_SNAPSHOT  # older readers of v1 and v2 insist on a number
    data["current-snapshot-id"] = absent if metadata.current_snapshot_id is None else metadata.current_snapshot_id
    if version > 2:
        data["next-row-id"] = metadata.next_row_id
    if metadata.encryption_keys:
        data["encryption-keys"] = [encryption_key_to_json(key) for key in metadata.encryption_keys]
    data["refs"] = {name: ref_to_json(ref) for name, ref in metadata.refs.items()}
    data["snapshots"] = [snapshot_to_json(each) for each in metadata.snapshots]
    data["statistics"] = [statistics_to_json(file) for file in metadata.statistics]
    data["partition-statistics"] = [partition_statistics_to_json(file) for file in metadata.partition_statistics]
    data["snapshot-log"] = [snapshot_log_to_json(entry) for entry in metadata.snapshot_log]
    data["metadata-log"] = [metadata_log_to_json(entry) for entry in metadata.metadata_log]
    return data


# ---------------------------------------------------------------------------------------------- reading


def metadata_from_json(
    data: bytes, location: str | None = None, *, preview: bool = False, limit: ReadLimit = DEFAULT_LIMIT
) -> TableMetadata:
    """The table metadata in a metadata file, gzip told by its content; `preview` reads format version 4 as far as its
    draft is settled."""
    return read_metadata_file(
        data, "table metadata", location, lambda parsed: _metadata(parsed, location, preview=preview), limit
    )


def metadata_from_dict(data: Any) -> TableMetadata:
    return _metadata(data, None, preview=False)


def _metadata(data: Any, metadata_file: str | None, *, preview: bool) -> TableMetadata:
    read = JsonObject(data, "the metadata")
    version = read.integer("format-version")
    if version == PREVIEWED_FORMAT_VERSION and preview:
        location = table_location(read.text_or_none("location"), metadata_file)
        read = JsonObject(with_absolute_locations(data, location), "the metadata")
    elif version not in SUPPORTED_FORMAT_VERSIONS:
        advice = ". Set the catalog property preview.format-v4 to true to read it as far as its draft is settled"
        raise UnsupportedError(
            f"the table has format version {version}; this version of hms_iceberg reads and writes "
            f"{SUPPORTED_FORMAT_VERSIONS[0]} to {SUPPORTED_FORMAT_VERSIONS[-1]}"
            f"{advice if version == PREVIEWED_FORMAT_VERSION else ''}"
        )
    else:
        location = _without_trailing_slash(read.text("location"))
    schemas, current_schema_id = _schemas(read, version)
    specs, default_spec_id = _specs(read, version)
    orders, default_order_id = _sort_orders(read, version)
    current_snapshot_id = read.integer_or_none("current-snapshot-id")
    if current_snapshot_id == NO_SNAPSHOT:
        current_snapshot_id = None
    keys = tuple(map(encryption_key_from_json, read.sequence_or_empty("encryption-keys")))
    metadata = TableMetadata(
        format_version=version,
        table_uuid=read.text_or_none("table-uuid"),
        location=location,
        last_updated_ms=read.milliseconds("last-updated-ms"),
        last_column_id=max(read.integer("last-column-id"), *(schema.highest_field_id for schema in schemas)),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_last_partition_id(read, version, specs),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties=read.text_map_or_none("properties") or {},
        last_sequence_number=read.integer("last-sequence-number") if version > 1 else INITIAL_SEQUENCE_NUMBER,
        current_snapshot_id=current_snapshot_id,
        snapshots=tuple(with_keys(snapshot_from_json(each), keys) for each in read.sequence_or_empty("snapshots")),
        snapshot_log=tuple(map(snapshot_log_from_json, read.sequence_or_empty("snapshot-log"))),
        metadata_log=tuple(map(metadata_log_from_json, read.sequence_or_empty("metadata-log"))),
        refs=_refs(read, current_snapshot_id),
        statistics=tuple(map(statistics_from_json, read.sequence_or_empty("statistics"))),
        partition_statistics=tuple(map(partition_statistics_from_json, read.sequence_or_empty("partition-statistics"))),
        next_row_id=read.integer("next-row-id") if version > 2 else None,
        encryption_keys=keys,
    )
    check_metadata(metadata, preview=preview)
    return metadata


def _without_trailing_slash(location: str) -> str:
    return location if location.endswith("://") else location.rstrip("/") or location


def _required_list(read: JsonObject, key: str, version: int) -> bool:
    """True if the list is there; it must be, from v2 on."""
    if read.has(key):
        return True
    if version > 1:
        read.sequence(key)
    return False


def _schemas(read: JsonObject, version: int) -> tuple[tuple[Schema, ...], int]:
    if _required_list(read, "schemas", version):
        schemas = tuple(map(schema_from_json, read.sequence("schemas")))
        if not schemas:
            raise CorruptMetadataError("'schemas' is empty, expected at least one schema")
        return schemas, read.integer("current-schema-id")
    if not read.has("schema"):
        raise CorruptMetadataError("the metadata has neither 'schemas' nor 'schema'")
    schema = schema_from_json(read.data["schema"])
    return (schema,), schema.schema_id


def _specs(read: JsonObject, version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    if _required_list(read, "partition-specs", version):
        return tuple(map(spec_from_json, read.sequence("partition-specs"))), read.integer("default-spec-id")
    return (spec_from_fields_json(read.sequence("partition-spec")),), 0


def _last_partition_id(read: JsonObject, version: int, specs: tuple[PartitionSpec, ...]) -> int:
    highest = max((spec.last_assigned_field_id for spec in specs), default=PARTITION_FIELD_ID_START - 1)
    if version == 1 and not read.has("last-partition-id"):
        return highest
    return max(read.integer("last-partition-id"), highest)


def _sort_orders(read: JsonObject, version: int) -> tuple[tuple[SortOrder, ...], int]:
    if _required_list(read, "sort-orders", version):
        orders = tuple(map(sort_order_from_json, read.sequence("sort-orders")))
        default = read.integer("default-sort-order-id")
        # Id 0 always stands for the unsorted order, whether or not it is listed.
        listed = default != UNSORTED.order_id or any(order.order_id == default for order in orders)
        return orders if listed else (*orders, UNSORTED), default
    return (UNSORTED,), UNSORTED.order_id


def _refs(read: JsonObject, current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    refs: dict[str, SnapshotRef] = {}
    if read.has("refs"):
        members = JsonObject(read.data["refs"], "'refs'").data
        refs = {name: ref_from_json(ref, name) for name, ref in members.items()}
    if current_snapshot_id is not None and MAIN_BRANCH not in refs:
        refs[MAIN_BRANCH] = SnapshotRef(current_snapshot_id)
    return refs


set_json_form(TableMetadata, metadata_to_dict, metadata_from_dict)


# ---------------------------------------------------------------------------------------------- the file


T = TypeVar("T")

_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 16 * 1024


def compress(data: bytes) -> bytes:
    """Compresses a metadata file as `write.metadata.compression-codec` = gzip asks."""
    return gzip.compress(data, mtime=0)


def read_metadata_file(
    data: bytes, what: str, location: str | None, parse: Callable[[Any], T], limit: ReadLimit = DEFAULT_LIMIT
) -> T:
    """Applies `parse` to the JSON of a metadata file, gzip-compressed or not; errors name the file."""
    name = f"{what} {location}" if location else what
    try:
        content = uncompressed(bytes(data), limit)
        limit.check_json(content, "its content")
        return parse(json.loads(content.decode("utf-8")))
    except UnsupportedError as error:
        raise UnsupportedError(f"Cannot read {name}: {error}") from error
    except IcebergError as error:
        raise CorruptMetadataError(f"Cannot read {name}: {error}") from error
    except (ValueError, zlib.error, RecursionError) as error:
        raise CorruptMetadataError(
            f"Cannot read {name}: it is not a JSON file as Iceberg writes it ({type(error).__name__}: {error})"
        ) from error


def uncompressed(data: bytes, limit: ReadLimit = DEFAULT_LIMIT) -> bytes:
    """The content of a metadata file, which may be gzip-compressed; a damaged one raises zlib.error."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    parts: list[bytes] = []
    left, position = limit.inflated(len(data)), 0
    while position < len(data):
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not member.eof and position < len(data):
            piece = data[position : position + _PIECE_BYTES]  # a file may be of very many small members
            parts.append(member.decompress(piece, left + 1))
            position += len(piece) - len(member.unused_data)
            left -= len(parts[-1])
            if left < 0:
                raise limit.refused("its content")
        if not member.eof:
            raise CorruptMetadataError("its gzip content is cut off")
    return b"".join(parts)


def metadata_file_location(location: str) -> str:
    """Refuses an empty location."""
    if not location.strip():
        raise InvalidInputError(
            f"Not the location of a metadata file: {location!r}. Expected one such as "
            "'s3://bucket/table/metadata/00003-….metadata.json'."
        )
    return location


_NAMED_BY_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}[^/]*$", re.IGNORECASE)


def is_never_reused(location: str) -> bool:
    """Whether a metadata file's name holds a UUID, so that it need not be read twice; `v1.metadata.json` may be another
    table's tomorrow."""
    return _NAMED_BY_UUID.search(location) is not None


# ---------------------------------------------------------------------------------------------- relative locations


FIRST_RELATIVE_VERSION = 4
"""The first format version with relative locations."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOCATIONS = {
    "snapshots": "manifest-list",
    "metadata-log": "metadata-file",
    "statistics": "statistics-path",
    "partition-statistics": "statistics-path",
}


def is_relative(path: str) -> bool:
    """Whether a path in metadata of version 4 lacks a URI scheme."""
    return _SCHEME.match(path) is None


def resolved(path: str, base: str) -> str:
    """The location that a path in metadata of version 4 stands for; a separator at the end of `base` is kept, and
    another one follows it."""
    return f"{base}/{path}" if is_relative(path) else path


def table_location(location: str | None, metadata_file: str | None) -> str:
    """The location of a table of version 4: what its metadata say, or the folder that holds the folder `metadata`."""
    if location is not None:
        if is_relative(location):
            raise CorruptMetadataError(f"the location {location!r} of a table of format version 4 has no scheme")
        return location
    folder, _, name = (metadata_file or "").rpartition("/")[0].rpartition("/")
    if name != "metadata" or not folder:
        raise CorruptMetadataError(
            "the metadata do not say the table's location, and their file is in no folder 'metadata' that would tell "
            "it. Have the writer store the location in the metadata"
        )
    return folder


def with_absolute_locations(data: Mapping[str, Any], base: str) -> dict[str, Any]:
    """The JSON of metadata of version 4 with every location absolute; the parser refuses malformed parts."""
    made = {**data, "location": base}
    for key, name in _LOCATIONS.items():
        if isinstance(items := data.get(key), list):
            made[key] = [_absolute(each, name, base) for each in items]
    return made


def _absolute(item: Any, name: str, base: str) -> Any:
    if isinstance(item, dict) and isinstance(path := item.get(name), str):
        return {**item, name: resolved(path, base)}
    return item
