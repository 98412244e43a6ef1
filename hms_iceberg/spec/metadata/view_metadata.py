"""View metadata: the versions of a view, their text in one or more dialects, and what changes them.

Source: Iceberg view specification, "View Metadata".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from hms_iceberg.errors import ConfigurationError, CorruptMetadataError, InvalidInputError, UnsupportedError
from hms_iceberg.spec.json_model import JsonModel, JsonObject, set_json_form, shown
from hms_iceberg.spec.metadata.metadata_json import read_metadata_file
from hms_iceberg.spec.read_limit import DEFAULT_LIMIT, ReadLimit
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.spec.schema_json import schema_from_json, schema_to_json
from hms_iceberg.spec.table_properties import VIEW_DROP_DIALECT, VIEW_VERSIONS_MAX

FORMAT_VERSION = 1


@dataclass(frozen=True)
class SQLViewRepresentation:
    """A view's query in one dialect of SQL.

    Attributes:
        sql: a SELECT statement.
        dialect: whose SQL it is: `spark`, `trino`, `hive` ...
    """

    sql: str
    dialect: str


@dataclass(frozen=True)
class UnknownViewRepresentation:
    """A representation of a view that this version of the specification does not know; it is kept as it is.

    Attributes:
        members: its members as parsed JSON, `type` among them.
    """

    members: Mapping[str, Any]


ViewRepresentation = SQLViewRepresentation | UnknownViewRepresentation


@dataclass(frozen=True)
class ViewVersion:
    """A version of a view; it never changes.

    Attributes:
        version_id: its number; given by the view, whatever it is here, when the version is added to one.
        schema_id: the schema of the view's columns; given by the view as well.
        timestamp_ms: when it was made, in milliseconds since the epoch.
        summary: what is known of who made it (`engine-name`, `engine-version`).
        representations: the query, once a dialect.
        default_namespace: where tables are that the query names without a namespace.
        default_catalog: where namespaces are that it names without a catalog; None for the view's own.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    summary: Mapping[str, str]
    representations: tuple[ViewRepresentation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None

    @classmethod
    def of_sql(
        cls, queries: Mapping[str, str], default_namespace: tuple[str, ...] = (), default_catalog: str | None = None
    ) -> ViewVersion:
        """A new version out of queries by their dialects, such as `{"spark": "select 1 as one"}`.

        Args:
            queries: the query in each dialect.
            default_namespace: the namespace of unqualified names.
            default_catalog: the catalog of unqualified names; None for that of the view.
        """
        return cls(
            version_id=1,
            schema_id=0,
            timestamp_ms=time.time_ns() // 1_000_000,
            summary={"engine-name": "hms_iceberg"},
            representations=tuple(SQLViewRepresentation(sql, dialect) for dialect, sql in queries.items()),
            default_namespace=default_namespace,
            default_catalog=default_catalog,
        )

    def sql_for(self, dialect: str) -> SQLViewRepresentation | None:
        """The query in a dialect, in whatever case it is named; None if there is none."""
        return next((each for each in self._queries() if each.dialect.lower() == dialect.lower()), None)

    @property
    def dialects(self) -> list[str]:
        """The dialects of the version's queries, in lower case."""
        return [each.dialect.lower() for each in self._queries()]

    def _queries(self) -> list[SQLViewRepresentation]:
        return [each for each in self.representations if isinstance(each, SQLViewRepresentation)]

    def behaves_like(self, other: ViewVersion) -> bool:
        """Whether both versions differ in number and time only."""
        return replace(self, version_id=0, timestamp_ms=0) == replace(other, version_id=0, timestamp_ms=0)


@dataclass(frozen=True)
class ViewHistoryEntry:
    """A time since when a version was the current one."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True)
class ViewMetadata(JsonModel):
    """The metadata of a view, under the specification's names."""

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.view_metadata"
    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewHistoryEntry, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def current_version(self) -> ViewVersion:
        """The version that the view is now."""
        version = self.version(self.current_version_id)
        assert version is not None
        return version

    def version(self, version_id: int) -> ViewVersion | None:
        """A version by its number; None if there is none (any more)."""
        return next((each for each in self.versions if each.version_id == version_id), None)

    def schema(self) -> Schema:
        """The columns of the current version."""
        schema_id = self.current_version().schema_id
        return next(each for each in self.schemas if each.schema_id == schema_id)


def check_view_metadata(metadata: ViewMetadata) -> None:
    versions = [version.version_id for version in metadata.versions]
    schemas = [schema.schema_id for schema in metadata.schemas]
    if metadata.current_version_id not in versions:
        raise CorruptMetadataError(f"the current version {metadata.current_version_id} is not among {versions}")
    if len(set(versions)) < len(versions) or len(set(schemas)) < len(schemas):
        raise CorruptMetadataError(f"a number occurs twice among the versions {versions} or the schemas {schemas}")
    for version in metadata.versions:
        if version.schema_id not in schemas:
            raise CorruptMetadataError(f"version {version.version_id} has the unknown schema {version.schema_id}")
        if len(set(version.dialects)) < len(version.dialects):
            raise CorruptMetadataError(
                f"version {version.version_id} has more than one query in a dialect: {version.dialects}"
            )


# ------------------------------------------------------------------------------------------------- changes


def new_view_metadata(
    schema: Schema,
    version: ViewVersion,
    location: str,
    properties: Mapping[str, str],
    *,
    keep_ids: bool = False,
) -> ViewMetadata:
    _check_new_version(version)
    first = replace(version, version_id=1, schema_id=0)
    return ViewMetadata(
        view_uuid=str(uuid.uuid4()),
        location=location.rstrip("/"),
        schemas=(_numbered(schema if keep_ids else assign_fresh_ids(schema), 0),),
        current_version_id=1,
        versions=(first,),
        version_log=(ViewHistoryEntry(first.timestamp_ms, 1),),
        properties=dict(properties),
    )


def replace_version(metadata: ViewMetadata, schema: Schema, version: ViewVersion) -> ViewMetadata:
    """The view with another query, an earlier version if it behaves alike; the oldest beyond
    `version.history.num-entries` go. No dialect gets lost unless `replace.drop-dialect.allowed` is true."""
    _check_new_version(version)
    with_schema, schema_id = add_view_schema(metadata, assign_fresh_ids(schema))
    added, number = add_view_version(with_schema, replace(version, schema_id=schema_id))
    is_known = metadata.version(number) is not None
    return set_current_version(added, number, None if is_known else version.timestamp_ms)


def add_view_schema(metadata: ViewMetadata, schema: Schema) -> tuple[ViewMetadata, int]:
    """The view with one more schema, unless it has it already, and the schema's id."""
    known = [each for each in metadata.schemas if _numbered(each, 0) == _numbered(schema, 0)]
    if known:
        return metadata, known[0].schema_id
    schema_id = 1 + max(each.schema_id for each in metadata.schemas)
    return replace(metadata, schemas=(*metadata.schemas, _numbered(schema, schema_id))), schema_id


def add_view_version(metadata: ViewMetadata, version: ViewVersion) -> tuple[ViewMetadata, int]:
    """The view with one more version, unless one that it has behaves like it, and that version's number."""
    _check_new_version(version)
    same = next((each for each in metadata.versions if each.behaves_like(version)), None)
    if same is not None:
        return metadata, same.version_id
    number = 1 + max(each.version_id for each in metadata.versions)
    return replace(metadata, versions=(*metadata.versions, replace(version, version_id=number))), number


def set_current_version(metadata: ViewMetadata, version_id: int, at_ms: int | None = None) -> ViewMetadata:
    """The view with an earlier or just added version as the current one; a dialect must not get lost."""
    version = metadata.version(version_id)
    if version is None:
        known = [each.version_id for each in metadata.versions]
        raise InvalidInputError(f"The view at {metadata.location} has no version {version_id}; it has {known}.")
    if version_id == metadata.current_version_id:
        return metadata
    return _moved(metadata, version, time.time_ns() // 1_000_000 if at_ms is None else at_ms)


def set_view_properties(
    metadata: ViewMetadata, updates: Mapping[str, str], removals: Collection[str] = ()
) -> ViewMetadata:
    kept = {key: value for key, value in metadata.properties.items() if key not in removals}
    return replace(metadata, properties={**kept, **updates})


def _numbered(schema: Schema, schema_id: int) -> Schema:
    return Schema(*schema.fields, schema_id=schema_id, identifier_field_ids=schema.identifier_field_ids)


def _check_new_version(version: ViewVersion) -> None:
    if not version.dialects or not all(each.sql.strip() for each in version._queries()):
        raise InvalidInputError(
            "A view needs a query, and none may be empty: ViewVersion.of_sql({'spark': 'select …'})."
        )
    if len(set(version.dialects)) < len(version.dialects):
        raise InvalidInputError(f"A view has one query a dialect, got two: {', '.join(version.dialects)}.")


def _moved(metadata: ViewMetadata, version: ViewVersion, timestamp_ms: int) -> ViewMetadata:
    lost = set(metadata.current_version().dialects) - set(version.dialects)
    if lost and not VIEW_DROP_DIALECT.of(metadata.properties):
        raise InvalidInputError(
            f"The new version has no query in {', '.join(sorted(lost))}, so that its engine would lose the view at "
            f"{metadata.location}. Give one, or set the view's property {VIEW_DROP_DIALECT.name} to true."
        )
    kept_number = VIEW_VERSIONS_MAX.of(metadata.properties)
    if kept_number < 1:
        raise ConfigurationError(f"View property {VIEW_VERSIONS_MAX.name!r}: expected 1 or more, got {kept_number}.")
    newest = sorted((each.version_id for each in metadata.versions if each != version), reverse=True)
    kept = {version.version_id, *newest[: kept_number - 1]}
    log = (*metadata.version_log, ViewHistoryEntry(timestamp_ms, version.version_id))
    # A log with a gap would tell a wrong version for the time between.
    gaps = [number for number, entry in enumerate(log) if entry.version_id not in kept]
    return replace(
        metadata,
        current_version_id=version.version_id,
        versions=tuple(each for each in metadata.versions if each.version_id in kept),
        version_log=log[gaps[-1] + 1 if gaps else 0 :],
    )


# ------------------------------------------------------------------------------------------------------- as JSON


def view_metadata_to_json(metadata: ViewMetadata) -> bytes:
    """The content of a metadata file, uncompressed; metadata that contradicts itself is never written."""
    check_view_metadata(metadata)
    data = view_metadata_to_dict(metadata)
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")


def view_metadata_to_dict(metadata: ViewMetadata) -> dict[str, Any]:
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


def view_metadata_from_json(data: bytes, location: str | None = None, limit: ReadLimit = DEFAULT_LIMIT) -> ViewMetadata:
    """The view metadata in a metadata file, gzip told by its content."""
    return read_metadata_file(data, "view metadata", location, view_metadata_from_dict, limit)


def view_metadata_from_dict(data: Any) -> ViewMetadata:
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
        version_log=tuple(
            ViewHistoryEntry(each.milliseconds("timestamp-ms"), each.integer("version-id")) for each in log
        ),
        properties=read.text_map_or_none("properties") or {},
    )


def view_version_from_json(data: Any) -> ViewVersion:
    return _version(JsonObject(data, "a version"))


def _version(read: JsonObject) -> ViewVersion:
    namespace = read.sequence("default-namespace")
    if not all(isinstance(level, str) for level in namespace):
        raise CorruptMetadataError(f"'default-namespace' of {read.what} is {shown(namespace)}, expected texts")
    return ViewVersion(
        version_id=read.integer("version-id"),
        schema_id=read.integer("schema-id"),
        timestamp_ms=read.milliseconds("timestamp-ms"),
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
