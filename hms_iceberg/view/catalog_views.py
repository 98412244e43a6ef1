"""The views of a catalog. The names and arguments are PyIceberg's."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hms_iceberg.errors import (
    CorruptFileError,
    IcebergError,
    MissingFileError,
    NoSuchViewError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from hms_iceberg.metastore import (
    CatalogMetastore,
    Identifier,
    ViewMetastore,
    namespace_name,
    table_identifier,
)
from hms_iceberg.spec.metadata.metadata_json import metadata_file_location
from hms_iceberg.spec.metadata.view_metadata import (
    ViewMetadata,
    ViewVersion,
    new_view_metadata,
    replace_version,
    set_view_properties,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import GC_ENABLED, with_defaults
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.view.commit import change_view, create_view, read_view, view_commit
from hms_iceberg.view.view import View, view_schema

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)


class CatalogViews(ABC):
    """The operations of a catalog on views."""

    metastore: CatalogMetastore
    storage: Storage
    properties: dict[str, str]

    @abstractmethod
    def _default_location(self, identifier: Identifier, namespace: Mapping[str, str]) -> str: ...

    # ---------------------------------------------------------------------------------------------- reading

    def list_views(self, namespace: str | Identifier) -> list[Identifier]:
        """Iceberg views of a namespace, sorted; Hive's own views are not listed.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
        """
        return self._views().list(namespace_name(namespace))

    def view_exists(self, identifier: str | Identifier) -> bool:
        """Whether an Iceberg view of that name exists."""
        try:
            self._views().load(table_identifier(identifier))
        except NoSuchViewError:
            return False
        return True

    def load_view(self, identifier: str | Identifier) -> View:
        """Loads a view.

        Raises:
            NoSuchViewError: no Iceberg view of that name.
            CorruptMetadataError: its metadata file cannot be read.
        """
        views = self._views()
        pointer = views.load(table_identifier(identifier))
        return View(pointer.identifier, read_view(pointer.metadata_location, self.storage), views, self.storage)

    # ---------------------------------------------------------------------------------------------- changes

    def create_view(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        view_version: ViewVersion,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        keep_ids: bool = False,
        check: Callable[[ViewMetadata], object] | None = None,
    ) -> View:
        """Creates a view.

        Args:
            identifier: `"db.name"` or `("db", "name")`.
            schema: its columns; field ids are assigned anew, unless `keep_ids`.
            view_version: its query, such as `ViewVersion.of_sql({"spark": "select …"}, default_namespace=("db",))`.
            location: the folder for its metadata; by default one of its name below the namespace's location.
            properties: `comment`, `version.history.num-entries` (10) ...
            keep_ids: whether the columns keep their field ids.
            check: gets the view's metadata before anything is written, and raises if it is not to be.

        Returns:
            the view in its first version.

        Raises:
            ViewAlreadyExistsError, TableAlreadyExistsError: the name is taken.
            NoSuchNamespaceError: no such namespace.
            InvalidInputError: no query, or two in one dialect.
            UnsupportedError: the catalog has no views, as one of folders.
            CommitStateUnknownError: the metastore's answer was lost; look whether the view is there.
        """
        name = table_identifier(identifier)
        views = self._views()
        self.metastore.check_new_name(name)
        namespace = self.metastore.namespace_properties(name[0])
        location = location or self._default_location(name, namespace)
        own = with_defaults("view", properties, self.properties)
        metadata = new_view_metadata(view_schema(schema), view_version, location, own, keep_ids=keep_ids)
        if check is not None:
            check(metadata)
        return View(name, create_view(name, metadata, views, self.storage), views, self.storage)

    def create_or_replace_view(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        view_version: ViewVersion,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Creates a view, or gives the one that is there another query; its earlier versions and properties stay.

        Args:
            identifier, schema, view_version, location, properties: as `create_view` takes them.

        Returns:
            the view with the query as its current version.

        Raises:
            TableAlreadyExistsError: the name is a table's.
            InvalidInputError: see `create_view` and `View.replace`.
            NoSuchNamespaceError: no such namespace.
            UnsupportedError: the catalog has no views, as one of folders.
            CommitFailedError: others changed the view in every attempt.
        """
        try:
            return self.create_view(identifier, schema, view_version, location, properties)
        except ViewAlreadyExistsError:
            view = self.load_view(identifier)
        columns, updates = view_schema(schema), with_defaults("view", properties, self.properties)
        version = change_view(
            view.identifier,
            view.metadata.view_uuid,
            lambda metadata: set_view_properties(replace_version(metadata, columns, view_version), updates),
            self._views(),
            self.storage,
        )
        return View(view.identifier, version, self._views(), self.storage)

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        """Makes an existing metadata file the view of that name. Its file is used as it is.

        Args:
            identifier: the name: `database.view`, or a tuple of both.
            metadata_location: the metadata file.

        Returns:
            the view, at the version of that file.

        Raises:
            ViewAlreadyExistsError, TableAlreadyExistsError: the name is taken.
            MissingFileError: no such metadata file.
            CorruptMetadataError: it cannot be read.
            InvalidInputError: not a namespace and a name, or an empty location.
            UnsupportedError: the catalog has no views, as one of folders.
        """
        name, views = table_identifier(identifier), self._views()
        version = read_view(metadata_file_location(metadata_location), self.storage)
        if self.view_exists(name):
            raise ViewAlreadyExistsError(f"Cannot register view {'.'.join(name)}: it exists already. Drop it first.")
        with view_commit(name, views, self.storage) as commit, views.lease(name) as lease:
            commit.swap(lease, None, version)
        return View(name, commit.made.version, views, self.storage)

    def drop_view(self, identifier: str | Identifier) -> None:
        """Drops a view and deletes its current metadata file, unless its property `gc.enabled` is false.

        The file also stays if another view that was registered from it still names it, or if that cannot be told.
        A view whose file is lost or damaged is dropped as well.

        Raises:
            NoSuchViewError: no Iceberg view of that name.
        """
        views = self._views()
        try:
            view = self.load_view(identifier)
        except (MissingFileError, CorruptFileError) as error:
            logger.warning("Dropping a view whose metadata cannot be read: %s", error)
            views.drop(table_identifier(identifier))
            return
        views.drop(view.identifier)
        if not GC_ENABLED.of(view.properties):
            return
        try:
            is_needed = views.names_file(view.metadata_location)
        except IcebergError as error:
            logger.warning("Nobody knows who needs %s, and it stays: %s", view.metadata_location, error)
            return
        if not is_needed:
            FileWorkspace(self.storage).delete_quietly(view.metadata_location)

    def rename_view(self, from_identifier: str | Identifier, to_identifier: str | Identifier) -> View:
        """Renames a view; its files stay where they are.

        Args:
            from_identifier: the name that it has.
            to_identifier: the name that it gets; its namespace must exist.

        Returns:
            the view under its new name.

        Raises:
            NoSuchViewError: no view of the old name.
            NoSuchNamespaceError: the new name's namespace does not exist.
            ViewAlreadyExistsError: the new name is taken, by a view or a table.
            UnsupportedError: the catalog has no views, as one of folders.
        """
        self._views().rename(table_identifier(from_identifier), table_identifier(to_identifier))
        return self.load_view(to_identifier)

    def _views(self) -> ViewMetastore:
        views = getattr(self.metastore, "views", None)
        if views is None:
            raise UnsupportedError("This catalog has no views: only a Hive Metastore keeps them.")
        assert isinstance(views, ViewMetastore)
        return views
