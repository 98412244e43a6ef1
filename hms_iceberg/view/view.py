"""A view as its user holds it. The names are PyIceberg's, and Iceberg's own for what PyIceberg cannot do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from hms_iceberg.metastore import Identifier, ViewMetadataVersion, ViewMetastore
from hms_iceberg.spec.json_model import text_properties
from hms_iceberg.spec.metadata.view_metadata import (
    SQLViewRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
    replace_version,
    set_current_version,
    set_view_properties,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage
from hms_iceberg.view.commit import change_view, read_view

if TYPE_CHECKING:
    import pyarrow as pa


class View:
    """A view, as it was when it was loaded, refreshed or last changed through this object."""

    def __init__(
        self, identifier: Identifier, version: ViewMetadataVersion, metastore: ViewMetastore, storage: Storage
    ) -> None:
        self.identifier = identifier
        self._loaded = version
        self._metastore = metastore
        self._storage = storage

    def __repr__(self) -> str:
        return f"View({'.'.join(self.identifier)!r}, version={self.metadata.current_version_id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and (self.identifier, self.metadata) == (other.identifier, other.metadata)

    __hash__ = None  # type: ignore[assignment]

    # ------------------------------------------------------------------------------------------- what it is

    @property
    def metadata(self) -> ViewMetadata:
        """The view's metadata."""
        return self._loaded.metadata

    @property
    def metadata_location(self) -> str:
        """Location of the view's metadata file."""
        return self._loaded.location

    def name(self) -> Identifier:
        """The view's name with its namespace."""
        return self.identifier

    def uuid(self) -> UUID:
        """The view's UUID, which it keeps when it is renamed or replaced."""
        return UUID(self.metadata.view_uuid)

    def location(self) -> str:
        """The folder of the view's metadata."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The columns of the current version."""
        return self.metadata.schema()

    def schemas(self) -> dict[int, Schema]:
        """The columns of all versions, by schema id."""
        return {schema.schema_id: schema for schema in self.metadata.schemas}

    @property
    def properties(self) -> dict[str, str]:
        """The view's properties, `comment` among them."""
        return dict(self.metadata.properties)

    def current_version(self) -> ViewVersion:
        """The current version of the view."""
        return self.metadata.current_version()

    @property
    def versions(self) -> list[ViewVersion]:
        """The versions that are kept, the oldest first."""
        return list(self.metadata.versions)

    def version(self, version_id: int) -> ViewVersion | None:
        """A version by its number; None if there is none (any more)."""
        return self.metadata.version(version_id)

    def history(self) -> list[ViewHistoryEntry]:
        """The versions that were current, with their times."""
        return list(self.metadata.version_log)

    def sql_for(self, dialect: str) -> SQLViewRepresentation | None:
        """The query in a dialect; None if the current version has none in it."""
        return self.current_version().sql_for(dialect)

    def refresh(self) -> View:
        """Loads the newest metadata into this object, which is returned.

        Raises:
            NoSuchViewError: it was dropped or renamed.
        """
        self._loaded = read_view(self._metastore.load(self.identifier).metadata_location, self._storage)
        return self

    # ---------------------------------------------------------------------------------------------- changes

    def replace(self, view_version: ViewVersion, schema: Schema | pa.Schema | None = None) -> View:
        """Gives the view a new query; the earlier one stays as a version.

        Args:
            view_version: such as `ViewVersion.of_sql({"spark": "select …"}, default_namespace=("db",))`.
            schema: its columns; those of the current version by default.

        Returns:
            this object, at the new version.

        Raises:
            InvalidInputError: no query, two in one dialect, or none in a dialect that there is one in now.
            NoSuchViewError: it was dropped.
            CommitFailedError: others changed the view in every attempt.
            CommitStateUnknownError: the metastore's answer was lost; no file was deleted.
        """
        columns = None if schema is None else view_schema(schema)
        return self.change(lambda metadata: replace_version(metadata, columns or metadata.schema(), view_version))

    def set_current_version(self, version_id: int) -> View:
        """Makes an earlier version the current one.

        Raises:
            InvalidInputError: no such version.
            NoSuchViewError: it was dropped.
        """
        return self.change(lambda metadata: set_current_version(metadata, version_id))

    def set_properties(self, properties: Mapping[str, str]) -> View:
        """Sets properties, such as `comment`.

        Raises:
            NoSuchViewError: it was dropped.
        """
        updates = text_properties(properties)
        return self.change(lambda metadata: set_view_properties(metadata, updates))

    def remove_properties(self, *names: str) -> View:
        """Removes properties; those that are not there are ignored.

        Raises:
            NoSuchViewError: it was dropped.
        """
        return self.change(lambda metadata: set_view_properties(metadata, {}, names))

    def change(self, change: Callable[[ViewMetadata], ViewMetadata]) -> View:
        """Commits the result of a function on the view's newest metadata, calling it again if another writer was first.

        Raises:
            NoSuchViewError: it was dropped.
        """
        self._loaded = change_view(self.identifier, self.metadata.view_uuid, change, self._metastore, self._storage)
        return self


def view_schema(schema: Schema | pa.Schema) -> Schema:
    """Columns of a view; Arrow's types may be any of Iceberg's, as a view holds no data."""
    if isinstance(schema, Schema):
        return schema
    from hms_iceberg.arrow.columns.arrow_schema import from_arrow

    return from_arrow(schema, format_version=3)
