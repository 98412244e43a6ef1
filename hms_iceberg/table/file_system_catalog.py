"""A catalog without a metastore: a warehouse folder with a folder for each namespace, and one for each table in these.

The layout is that of Iceberg Java's `HadoopCatalog`, with one level of namespaces. A table is its folder: it cannot be
renamed, be elsewhere, or be dropped without its files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.storage.filesystems import translated_errors
from hms_iceberg.errors import (
    ConfigurationError,
    CorruptMetadataError,
    InvalidInputError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.lazy import fs
from hms_iceberg.metastore import Identifier, MetadataVersion, TableRow
from hms_iceberg.storage import Places
from hms_iceberg.table.file_system_metastore import FileSystemMetastore
from hms_iceberg.transaction.workspace import read_version

_METADATA = re.compile(r"v\d+(\.gz)?\.metadata\.json(\.gz)?$")
# Hadoop calls files hidden whose names begin so.
_NO_NAME = re.compile(r"[._]|.*[/\\:]")
_MOST_BYTES = 255  # of a file's name, on local disks and in HDFS


class FileSystemCatalog(FileSystemMetastore):
    """Implements `CatalogMetastore` over the folders of a warehouse, which need not exist yet."""

    def __init__(self, warehouse: str | None, storage: ArrowStorage) -> None:
        if not warehouse:
            raise ConfigurationError(
                "A catalog of type 'hadoop' needs the folder of its tables. Set the property `warehouse`."
            )
        super().__init__(storage)
        self._folders = storage
        self._warehouse = warehouse.rstrip("/")

    # ---------------------------------------------------------------------------------------- namespaces

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        """Makes the namespace's folder, which has no place for properties."""
        if properties:
            raise UnsupportedError(
                f"Cannot create namespace {name} with the properties {sorted(properties)}: a folder has none. Leave "
                "them out."
            )
        location = self._namespace_location(name)
        if self._is_folder(location):
            raise NamespaceAlreadyExistsError(f"Cannot create namespace {name}: the folder {location} exists already.")
        self._change("make", location)

    def list_namespaces(self) -> list[str]:
        """Names of the warehouse's folders, sorted."""
        return [name for name in self._children(self._warehouse) if not self._is_table(f"{self._warehouse}/{name}")]

    def check_new_name(self, identifier: Identifier) -> None:
        """Refuses names that cannot be folders."""
        for name in identifier:
            _name(name)

    def namespace_properties(self, name: str) -> dict[str, str]:
        """The namespace's `location`, its only property."""
        location = self._namespace_location(name)
        if not self._is_folder(location) or self._is_table(location):
            raise NoSuchNamespaceError(
                f"There is no namespace {name}: the warehouse has no such folder ({location}). Create it first."
            )
        return {"location": location}

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        """Refuses any change: a folder has no properties."""
        self.namespace_properties(name)
        if updates or removals:
            raise UnsupportedError(
                f"Cannot change the properties {sorted({*updates, *removals})} of namespace {name}: a folder has none. "
                "Use a catalog with a metastore."
            )

    def drop_namespace(self, name: str) -> None:
        location = self.namespace_properties(name)["location"]
        inside = self._inside(location)
        if inside:
            raise NamespaceNotEmptyError(
                f"Cannot drop namespace {name}: its folder {location} is not empty, it has {inside[0].base_name!r}. "
                "Drop its tables first."
            )
        self._change("remove", location)

    # -------------------------------------------------------------------------------------------- tables

    def location_of(self, identifier: Identifier) -> str:
        namespace, name = identifier
        return f"{self._namespace_location(namespace)}/{_name(name)}"

    def list_iceberg_tables(self, namespace: str) -> list[Identifier]:
        location = self.namespace_properties(namespace)["location"]
        return [(namespace, name) for name in self._children(location) if self._is_table(f"{location}/{name}")]

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether the table's folder has a metadata file."""
        return self._is_table(self.location_of(identifier))

    def swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> MetadataVersion:
        if base is None:
            self.namespace_properties(identifier[0])
        return super().swap(identifier, base, new)

    def drop_table(self, identifier: Identifier) -> None:
        """Refuses to drop a table without its files; see `purge_table`."""
        self._current(identifier)
        raise UnsupportedError(
            f"Cannot drop table {'.'.join(identifier)} and keep its files: it is the folder "
            f"{self.location_of(identifier)}. Purge it (drop_table(…, purge_requested=True)) to delete that."
        )

    def purge_table(self, identifier: Identifier) -> None:
        """Deletes the table's files, wherever they are, and its folder with everything in it. Files in the folders of
        other tables of the warehouse stay; a table with files of others in its folder is refused."""
        from hms_iceberg.table.needed_files.named_files import files_of, log_unreadable, purge_files
        from hms_iceberg.table.needed_files.nearby_tables import Search
        from hms_iceberg.table.needed_files.needed_by_others import needed_by_others

        version, folder = read_version(self._current(identifier).location, self._folders), self.location_of(identifier)
        name = ".".join(identifier)
        search = Search(identifier, version.metadata, version.location, folder, Places(self._folders))
        search.in_metastore(self)
        search.in_listing(self._folders.list(folder), self._folders)
        search.found().refuse(f"purge table {name}")
        files = files_of(version.metadata, version.location, self._folders, log_unreadable)
        purge_files(files, self._folders, name, needed_by_others(identifier, version, files, self._folders, self))
        self._change("remove", folder)

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Refuses: a table's metadata has its folder's name in it."""
        if not self.table_exists(source):
            raise NoSuchTableError(f"Cannot rename table {'.'.join(source)}: there is none.")
        self.namespace_properties(target[0])
        if self.table_exists(target):
            raise TableAlreadyExistsError(f"Cannot rename {'.'.join(source)}: there is a table {'.'.join(target)}.")
        raise UnsupportedError(
            f"Cannot rename table {'.'.join(source)}: it is the folder {self.location_of(source)}, whose name is in "
            "all of its metadata. Register it in a catalog with a metastore to give it another name."
        )

    # ------------------------------------------------------------------------------------- rows of tables

    @property
    def table_rows(self) -> FileSystemCatalog:
        """Itself, which implements `TableRows` by reading each table's metadata."""
        return self

    def rows(self, namespace: str | None = None) -> Iterator[TableRow]:
        for name in self.list_namespaces() if namespace is None else [namespace]:
            for identifier in self.list_iceberg_tables(name):
                row = self.row(identifier)
                if row is not None:
                    yield row

    def row(self, identifier: Identifier) -> TableRow | None:
        location, found = self.location_of(identifier), ""
        try:
            found = self._current(identifier).location
            metadata = read_version(found, self._folders).metadata
        except NoSuchTableError:
            return None
        except (MissingFileError, CorruptMetadataError):
            return TableRow(identifier, location, {"metadata_location": found}, True)
        own = {"metadata_location": found, "uuid": metadata.table_uuid or ""}
        return TableRow(identifier, metadata.location, {**metadata.properties, **own}, True)

    def partition_locations(self, identifier: Identifier) -> Iterator[str]:
        """Empty: a metastore knows no partitions of tables that are folders."""
        return iter(())

    # ------------------------------------------------------------------------------------------- folders

    def _namespace_location(self, name: str) -> str:
        return f"{self._warehouse}/{_name(name)}"

    def _is_folder(self, location: str) -> bool:
        filesystem, path = self._folders.filesystem(location)
        with translated_errors("read", f"the folder {location}"):
            return bool(filesystem.get_file_info(path).type == fs.FileType.Directory)

    def _is_table(self, location: str) -> bool:
        return any(_METADATA.match(item.base_name) for item in self._inside(f"{location}/metadata"))

    def _children(self, location: str) -> list[str]:
        names = (item.base_name for item in self._inside(location) if item.type == fs.FileType.Directory)
        return sorted(name for name in names if not _NO_NAME.match(name))

    def _inside(self, location: str) -> list[fs.FileInfo]:
        filesystem, path = self._folders.filesystem(location)
        with translated_errors("read", f"the folder {location}"):
            inside: list[fs.FileInfo] = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return inside

    def _change(self, action: str, location: str) -> None:
        filesystem, path = self._folders.filesystem(location)
        with translated_errors(action, f"the folder {location}"):
            if action == "make":
                filesystem.create_dir(path, recursive=True)
            else:
                filesystem.delete_dir(path)


def _name(name: str) -> str:
    if not name or _NO_NAME.match(name):
        raise InvalidInputError(
            f"Not a name in a catalog of folders: {name!r}. Expected one that does not begin with '.' or '_' and has "
            "none of / \\ : in it."
        )
    length = len(name.encode("utf-8"))
    if length > _MOST_BYTES:
        raise InvalidInputError(
            f"Not a name in a catalog of folders: {name!r} has {length} bytes in UTF-8, and the name of a folder has "
            f"{_MOST_BYTES} at most. Choose a shorter one."
        )
    return name
