"""The catalog of one metastore, with PyIceberg's names and arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hms_iceberg.catalog.namespaces import CatalogNamespaces, Identifiers
from hms_iceberg.errors import (
    CommitFailedError,
    ConfigurationError,
    IcebergError,
    NoSuchTableError,
    NotAnIcebergTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.metastore import (
    CatalogMetastore,
    Identifier,
    MetadataVersion,
    TablePointer,
    namespace_name,
    table_identifier,
)
from hms_iceberg.notebook_html import framed, heading, pairs_table, rows_table
from hms_iceberg.printable import printable_html
from hms_iceberg.reports import listen_as_named
from hms_iceberg.spec.metadata.metadata_json import metadata_file_location
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.spec.table_properties import GC_ENABLED
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.workspace import read_current, read_version
from hms_iceberg.view.catalog_views import CatalogViews

if TYPE_CHECKING:  # what reads and changes tables takes longer to import than all else, and is imported with the first
    import pyarrow as pa

    from hms_iceberg.catalog.transactions import CatalogTransaction
    from hms_iceberg.table import Table
    from hms_iceberg.table.changes.table_definition import TableDefinition
    from hms_iceberg.table.table import TableTransaction
    from hms_iceberg.transaction.retry import Freshness
    from hms_iceberg.transaction.transaction import Origin


_SHOWN_TABLES = 50
_MOST_LOOKS = 100


class Catalog(CatalogNamespaces, CatalogViews, Identifiers):
    """Namespaces, Iceberg tables and views of one metastore; a context manager that closes its connections.

    Attributes:
        name: the catalog's name.
        metastore: the metastore.
        storage: the storage that reads and writes the tables' files.
        properties: the catalog's properties.
    """

    def __init__(
        self, name: str, metastore: CatalogMetastore, storage: Storage, properties: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.metastore = metastore
        self.storage = storage
        self.properties: dict[str, str] = dict(properties or {})
        listen_as_named(self.properties)

    def __repr__(self) -> str:
        return f"Catalog({self.name!r}, uri={self.properties.get('uri')!r})"

    def _repr_html_(self) -> str:
        """The catalog as HTML, for notebooks: where it is, its namespaces, and tables of theirs."""
        rows: list[tuple[str, str]] = []
        try:
            for namespace in self.list_namespaces():
                tables = sorted(name[-1] for name in self.list_tables(namespace))
                more = f" and {len(tables) - _SHOWN_TABLES:,} more" if len(tables) > _SHOWN_TABLES else ""
                rows.append((".".join(namespace), ", ".join(tables[:_SHOWN_TABLES]) + more))
            shown = rows_table(("namespace", "Iceberg tables"), rows)
        except IcebergError as error:
            shown = f"<p>{printable_html(error)}</p>"
        facts = [(name, self.properties.get(name, "")) for name in ("uri", "warehouse")]
        return framed(heading(self.name), pairs_table(each for each in facts if each[1]), shown)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles a catalog as its name and its properties, secrets among them; unpickled, it connects anew."""
        if type(self) is Catalog:
            raise TypeError(f"Cannot pickle catalog {self.name!r}: load_catalog did not make it from properties.")
        return _connected, (type(self), self.name, self._given())

    def _given(self) -> Mapping[str, str]:
        return self.properties

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the metastore's connections. Tables loaded from the catalog cannot be refreshed after that."""
        close = getattr(self.metastore, "close", None)
        if close is not None:
            close()

    # -------------------------------------------------------------------------------------------- tables

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Lists the Iceberg tables of a namespace.

        Args:
            namespace: its name.

        Returns:
            the identifiers, sorted; tables of other kinds are not among them.

        Raises:
            NoSuchNamespaceError: no namespace of that name.
            InvalidInputError: not the name of a namespace.
        """
        return self.metastore.list_iceberg_tables(namespace_name(namespace))

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Whether an Iceberg table of that name exists."""
        return self.metastore.table_exists(table_identifier(identifier))

    def load_table(self, identifier: str | Identifier) -> Table:
        """Loads a table.

        Raises:
            NoSuchTableError: no table of that name.
            NotAnIcebergTableError: the name is another kind of table; the message names the way to migrate it.
            CorruptMetadataError: its metadata file cannot be read.
        """
        from hms_iceberg.scan.manifests.cache import planning_ready

        with planning_ready():
            pointer = self.metastore.load(table_identifier(identifier))
            return self._table(pointer.identifier, read_current(pointer, self.storage))

    def load_tables(self, identifiers: Iterable[str | Identifier]) -> list[Table]:
        """Loads several tables as they were at one moment: no commit to several of them lies between.

        Args:
            identifiers: their names.

        Returns:
            the tables, in the order of the names.

        Raises:
            NoSuchTableError, NotAnIcebergTableError, CorruptMetadataError: as `load_table`.
            CommitFailedError: the tables change too often to be read at one moment.
        """
        names = [table_identifier(each) for each in identifiers]
        seen: list[TablePointer] = []
        for _ in range(_MOST_LOOKS):
            before, seen = seen, [self.metastore.load(each) for each in names]
            if [each.metadata_location for each in before] == [each.metadata_location for each in seen]:
                return [self._table(each.identifier, self._read_current(each)) for each in seen]
        raise CommitFailedError(
            f"Tables {', '.join(map('.'.join, names))} could not be read as they were at one moment: one of them was "
            f"changed during each of {_MOST_LOOKS} looks. Try again."
        )

    def _read_current(self, pointer: TablePointer) -> MetadataVersion:
        return read_current(pointer, self.storage)

    def transaction(self) -> CatalogTransaction:
        """Begins a transaction on several tables of the catalog: all of its changes appear, or none.

        >>> with catalog.transaction() as transaction:
        ...     transaction.table("bank.accounts").update({"balance": 90}, "id = 1")
        ...     transaction.table("bank.entries").append(rows)

        Returns:
            the transaction; use it in a `with` block, or call `commit_transaction`.

        Raises:
            UnsupportedError: the catalog has tables in folders, or its REST server cannot commit to several tables.
        """
        from hms_iceberg.catalog.transactions import CatalogTransaction

        return CatalogTransaction(self.name, self.metastore, self.load_table)

    def table_at(self, identifier: str | Identifier, version: MetadataVersion, seen_at: float | None = None) -> Table:
        """Gives a table at a version that was read before; the metastore is not asked.

        Args:
            identifier: `"db.name"` or `("db", "name")`.
            version: the version.
            seen_at: when the version was the newest one (`time.monotonic`), if that is known.

        Returns:
            a table that stays at `version` until it is refreshed or changed.

        Raises:
            InvalidInputError: not a namespace and a name.
        """
        from hms_iceberg.transaction.retry import Freshness

        return self._table(table_identifier(identifier), version, Freshness.of(seen_at))

    def _table(self, identifier: Identifier, version: MetadataVersion, freshness: Freshness | None = None) -> Table:
        from hms_iceberg.table import Table

        return Table(identifier, version, self.metastore, self.storage, self.name, self, freshness)

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Creates an empty table.

        Args:
            identifier: `"db.name"` or `("db", "name")`.
            schema: the columns; field ids are assigned anew.
            location: where the table's files go; by default a folder of its name below the namespace's location.
            partition_spec: by source ids of `schema`.
            sort_order: by source ids of `schema`.
            properties: table properties; `format-version` (default 2) is one of them.

        Returns:
            the table in its first version, without a snapshot.

        Raises:
            TableAlreadyExistsError: a table of that name, of any kind, exists.
            NoSuchNamespaceError: no such namespace.
            InvalidInputError: schema, spec and order do not fit each other.
            ConfigurationError: neither the namespace nor the catalog says where its folder is to be.
            CommitStateUnknownError: the metastore's answer was lost; look whether the table is there.
        """
        definition = _definition(schema, location, partition_spec, sort_order, properties)
        return self._creating(identifier, definition).commit_transaction()

    def create_table_if_not_exists(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Creates a table, or loads the present one.

        Args:
            identifier, schema, location, partition_spec, sort_order, properties: as of `create_table`; a present table
                keeps its own.

        Returns:
            the new table, or the present one as it is, whatever its schema.

        Raises:
            NoSuchNamespaceError: no such namespace.
            NotAnIcebergTableError: the name is another kind of table.
            InvalidInputError: schema, spec and order do not fit each other.
        """
        try:
            return self.create_table(identifier, schema, location, partition_spec, sort_order, properties)
        except TableAlreadyExistsError:
            return self.load_table(identifier)

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
    ) -> TableTransaction:
        """Begins a transaction that creates a table together with the changes in it: both or neither appear.

        Args:
            identifier, schema, location, partition_spec, sort_order, properties: as of `create_table`.

        Returns:
            the transaction; use it in a `with` block, or call `commit_transaction`.

        Raises:
            TableAlreadyExistsError: a table of that name, of any kind, exists.
            NoSuchNamespaceError: no such namespace.
            InvalidInputError: schema, spec and order do not fit each other.
        """
        definition = _definition(schema, location, partition_spec, sort_order, properties)
        return self._creating(identifier, definition)

    def replace_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
        or_create: bool = False,
    ) -> TableTransaction:
        """Begins a transaction that replaces a table's definition, removes its rows, and makes the changes in it.

        The table keeps its identity and its history: earlier snapshots can still be read. Columns with the name of a
        present column keep its id, and properties are added to the present ones.

        Args:
            identifier, schema, location, partition_spec, sort_order, properties: as of `create_table`; the location is
                the present one unless given.
            or_create: whether a table that does not exist is created.

        Returns:
            the transaction; use it in a `with` block, or call `commit_transaction`.

        Raises:
            NoSuchTableError: no table of that name, and `or_create` is not set.
            NotAnIcebergTableError: the name is another kind of table.
            InvalidInputError: schema, spec and order do not fit each other, or the present table.
            CorruptMetadataError, MissingFileError: the present table's metadata cannot be read.
        """
        definition = _definition(schema, location, partition_spec, sort_order, properties)
        return self._replacing(identifier, definition, must_exist=not or_create)

    def create_or_replace_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED,
        sort_order: SortOrder = UNSORTED,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Creates an empty table, or replaces the present one; see `replace_table_transaction`.

        Args:
            identifier, schema, location, partition_spec, sort_order, properties: as of `create_table`.

        Returns:
            the table without rows; earlier snapshots of a replaced table can still be read.

        Raises:
            NotAnIcebergTableError: the name is another kind of table.
            NoSuchNamespaceError: no such namespace.
            InvalidInputError: schema, spec and order do not fit each other, or the present table.
        """
        definition = _definition(schema, location, partition_spec, sort_order, properties)
        return self._replacing(identifier, definition, must_exist=False).commit_transaction()

    def _creating(self, identifier: str | Identifier, definition: TableDefinition) -> TableTransaction:
        from hms_iceberg.transaction.transaction import Created

        name = table_identifier(identifier)
        self._refuse_if_taken(name)
        return self._defining(name, Created(self._new_metadata(name, definition)))

    def _replacing(
        self, identifier: str | Identifier, definition: TableDefinition, must_exist: bool
    ) -> TableTransaction:
        from hms_iceberg.transaction.transaction import CreatedOrReplaced

        name = table_identifier(identifier)
        start = self._version_of(name)
        replaced = definition.resolved(self.properties).replacing
        origin = CreatedOrReplaced(lambda: self._new_metadata(name, definition), replaced, start, must_exist=must_exist)
        return self._defining(name, origin)

    def _defining(self, name: Identifier, origin: Origin) -> TableTransaction:
        from hms_iceberg.table.table import TableTransaction
        from hms_iceberg.transaction.transaction import Transaction

        transaction = Transaction(name, origin, self.metastore, self.storage)
        return TableTransaction(transaction, lambda version: self._table(name, version))

    def _version_of(self, identifier: Identifier) -> MetadataVersion | None:
        try:
            pointer = self.metastore.load(identifier)
        except NotAnIcebergTableError:
            raise
        except NoSuchTableError:
            return None
        return read_current(pointer, self.storage)

    def _refuse_if_taken(self, identifier: Identifier) -> None:
        try:
            self.metastore.load(identifier)
        except NotAnIcebergTableError as error:
            raise TableAlreadyExistsError(
                f"Cannot create table {'.'.join(identifier)}: a table of that name exists, and it is not an Iceberg "
                f"table. Choose another name, or migrate it: hms-iceberg migrate {'.'.join(identifier)}"
            ) from error
        except NoSuchTableError:
            return
        raise TableAlreadyExistsError(
            f"Cannot create table {'.'.join(identifier)}: it exists already. Load it, or choose another name."
        )

    def _new_metadata(self, identifier: Identifier, definition: TableDefinition) -> TableMetadata:
        self.metastore.check_new_name(identifier)
        namespace = self.metastore.namespace_properties(identifier[0])
        location = definition.location or self._default_location(identifier, namespace)
        return replace(definition.resolved(self.properties), location=location).new_metadata()

    def _default_location(self, identifier: Identifier, namespace: Mapping[str, str]) -> str:
        folder = namespace.get("location")
        if folder:
            return f"{folder.rstrip('/')}/{identifier[1]}"
        warehouse = self.properties.get("warehouse")
        if warehouse:
            return f"{warehouse.rstrip('/')}/{identifier[0]}.db/{identifier[1]}"
        raise ConfigurationError(
            f"Cannot create table {'.'.join(identifier)}: neither its namespace has a location nor the catalog a "
            "warehouse. Pass location=…, or set the catalog's property `warehouse`."
        )

    def register_table(self, identifier: str | Identifier, metadata_location: str, overwrite: bool = False) -> Table:
        """Makes an existing metadata file, which is used as it is, the table of a name.

        Args:
            identifier: `"db.name"` or `("db", "name")`.
            metadata_location: the metadata file.
            overwrite: whether a table of that name is replaced in the catalog; its files stay.

        Returns:
            the table, at the version of that file.

        Raises:
            TableAlreadyExistsError: the name is taken, and `overwrite` is not set, or it is no Iceberg table.
            InvalidInputError: the location is empty.
            MissingFileError: no such metadata file.
            CorruptMetadataError: the metadata file cannot be read.
            CommitFailedError: the table was changed meanwhile (with `overwrite`).
        """
        from hms_iceberg.transaction.transaction import table_commit

        name = table_identifier(identifier)
        version = read_version(metadata_file_location(metadata_location), self.storage)
        present = self.load_table(name) if overwrite and self.table_exists(name) else None
        if present is None:
            self._refuse_if_taken(name)
        properties = present.properties if present else version.metadata.properties
        commit = table_commit(name, self.metastore, self.storage)
        with commit, self.metastore.lease(name, properties) as lease:
            if present is None:
                commit.swap(lease, None, version)
            else:
                lease.acquire()
                commit.swap(lease, commit.read(lease.load().metadata_location), version)
        return self._table(name, commit.made.version)

    def drop_table(self, identifier: str | Identifier, purge_requested: bool = False) -> None:
        """Drops a table from the catalog; its files stay, unless `purge_requested`.

        A purge leaves the files that others need: copies that were registered from the table's metadata, and, of a
        migrated table, the Hive table that is kept for a rollback.

        Args:
            identifier: `"db.name"` or `("db", "name")`.
            purge_requested: whether the files that only this table needs are deleted as well.

        Raises:
            NoSuchTableError: no table of that name.
            NotAnIcebergTableError: the name is another kind of table, which is left alone.
            UnsupportedError: a purge of a table whose property `gc.enabled` is false; or no purge of a table that is a
                folder, which cannot be dropped without its files.
            StorageDeniedError: this user may not delete files; the table was not dropped.
            CorruptFileError: files that a copy needs cannot be determined; the table was not dropped.
            CorruptMetadataError, CorruptManifestError, StorageError: the table's own files cannot be determined; the
                table was not dropped.
        """
        name = table_identifier(identifier)
        if not purge_requested:
            self.metastore.drop_table(name)
            return
        self._purge(name)

    def _purge(self, name: Identifier) -> None:
        from hms_iceberg.table.needed_files.named_files import (
            check_right_to_purge,
            check_rights_to_delete,
            files_of,
            log_unreadable,
            purge_files,
        )
        from hms_iceberg.table.needed_files.needed_by_others import needed_by_others, table_rows_of

        table = self.load_table(name)
        if not GC_ENABLED.of(table.properties):
            raise UnsupportedError(
                f"Cannot purge table {'.'.join(name)}: its property gc.enabled is false, its files may belong to "
                "others. Drop it without purging, or set gc.enabled to true first."
            )
        check_right_to_purge(table.metadata_location, self.storage)
        purge = getattr(self.metastore, "purge_table", None)
        if purge is not None:
            purge(name)
            return
        files = files_of(table.metadata, table.metadata_location, self.storage, log_unreadable)
        version, rows = MetadataVersion(table.metadata_location, table.metadata), table_rows_of(self.metastore)
        kept = needed_by_others(name, version, files, self.storage, rows)
        check_rights_to_delete(files, self.storage, kept)
        self.metastore.drop_table(name)
        purge_files(files, self.storage, ".".join(name), kept)

    def purge_table(self, identifier: str | Identifier) -> None:
        """Drops a table and deletes its files; see `drop_table`."""
        self.drop_table(identifier, purge_requested=True)

    def rename_table(self, from_identifier: str | Identifier, to_identifier: str | Identifier) -> Table:
        """Renames a table; its files stay where they are.

        Args:
            from_identifier: the name that it has.
            to_identifier: the name that it gets; its namespace must exist.

        Returns:
            the table under its new name.

        Raises:
            NoSuchTableError: no table of the old name.
            NoSuchNamespaceError: the new name's namespace does not exist.
            TableAlreadyExistsError: the new name is taken.
            NotAnIcebergTableError: the old name is another kind of table.
            InvalidInputError: not a namespace and a name.
        """
        self.metastore.rename_table(table_identifier(from_identifier), table_identifier(to_identifier))
        return self.load_table(to_identifier)


def _connected(kind: type[Catalog], name: str, properties: Mapping[str, str]) -> Catalog:
    """Makes an unpickled catalog."""
    make: Any = kind
    catalog: Catalog = make(name, **properties)
    return catalog


def _definition(
    schema: Schema | pa.Schema,
    location: str | None,
    partition_spec: PartitionSpec,
    sort_order: SortOrder,
    properties: Mapping[str, str] | None,
) -> TableDefinition:
    from hms_iceberg.table.changes.table_definition import TableDefinition

    return TableDefinition(schema, location, partition_spec, sort_order, properties)
