"""The read methods of a table at one version of its metadata, and tables that are one such version only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.printable import printable
from hms_iceberg.scan.manifests.cache import planning_ready
from hms_iceberg.scan.tasks import TaskPlanner
from hms_iceberg.spec.field_mapping import NameMapping
from hms_iceberg.spec.json_model import column_names
from hms_iceberg.spec.metadata.metadata_json import metadata_file_location
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef
from hms_iceberg.spec.sort_orders import SortOrder
from hms_iceberg.storage import FileIO, Storage
from hms_iceberg.table.inspect import InspectTable
from hms_iceberg.table.locations import LocationProvider
from hms_iceberg.table.reading.incremental_scans import ChangelogScan, IncrementalAppendScan
from hms_iceberg.table.reading.pyiceberg_table import pyiceberg_table
from hms_iceberg.table.reading.scan import TableScan, snapshot_as_of
from hms_iceberg.table.table_html import table_html
from hms_iceberg.transaction.workspace import read_version, storage_of
from hms_iceberg.updates.applied_offsets import applied_offsets

if TYPE_CHECKING:
    import bodo
    import daft
    import dask.dataframe as dd
    import pyiceberg.table
    import ray


class ReadableTable:
    """A table at one version: its schema, specs, snapshots and refs, and scans of it."""

    def __init__(self, identifier: Identifier, version: MetadataVersion, storage: Storage) -> None:
        self._identifier = identifier
        self._version = version
        self._storage = storage

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.field_type}" for field in self.schema().fields)
        told = f"{'.'.join(self._identifier)}, columns=[{columns}], snapshot={self.metadata.current_snapshot_id}"
        return f"{type(self).__name__}({printable(told)})"

    def _repr_html_(self) -> str:
        return table_html(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ReadableTable)
            and other._identifier == self._identifier
            and other._version.identity == self._version.identity
        )

    def __hash__(self) -> int:
        return hash((self._identifier, self._version.identity))

    @property
    def identifier(self) -> Identifier:
        """The table's name in parts."""
        return self._identifier

    def name(self) -> Identifier:
        """The table's name in parts."""
        return self._identifier

    @property
    def storage(self) -> Storage:
        """The storage that reads and writes the table's files."""
        return storage_of(self.metadata, self._storage)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata at this version."""
        return self._version.metadata

    @property
    def metadata_location(self) -> str:
        """Location of the metadata JSON of this version."""
        return self._version.location

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties."""
        return self.metadata.properties

    def applied_offsets(self, name: str, branch: str = MAIN_BRANCH) -> dict[str, int]:
        """Where a reader that calls `apply_changes` reads on: its offsets, as the branch's history has them.

        After a rollback they are those of then, so that what was rolled back is applied again.

        Args:
            name: the reader's name, as of `apply_changes`.
            branch: the branch that it writes to.

        Returns:
            The next offset of each part of the source; empty if nothing was applied under the name.

        Raises:
            InvalidInputError: the snapshots that say so have expired, and the branch was rolled back before that.
            CorruptMetadataError: somebody changed them to what are no offsets.
        """
        return applied_offsets(self.metadata, name, branch)

    @property
    def format_version(self) -> int:
        """Version of the table format: 1, 2 or 3; 4 if previews are read."""
        return self.metadata.format_version

    @property
    def last_sequence_number(self) -> int:
        """The highest sequence number assigned so far; 0 in a v1 table."""
        return self.metadata.last_sequence_number

    @property
    def inspect(self) -> InspectTable:
        """The table's metadata tables."""
        return InspectTable(self._version, self.storage)

    @property
    def io(self) -> FileIO:
        """Reads and writes files in the table's storage: `table.io.new_input(location).open()`."""
        return FileIO(self.storage)

    def location(self) -> str:
        """The table's base location."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def schemas(self) -> dict[int, Schema]:
        """All schemas by id."""
        return {schema.schema_id: schema for schema in self.metadata.schemas}

    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.metadata.spec()

    def specs(self) -> dict[int, PartitionSpec]:
        """All partition specs by id."""
        return {spec.spec_id: spec for spec in self.metadata.partition_specs}

    def last_partition_id(self) -> int:
        """The highest id of a partition field that was ever assigned; 999 if there was none."""
        return self.metadata.last_partition_id

    def location_provider(self) -> LocationProvider:
        """Gives locations for new files of the table."""
        return LocationProvider(self.metadata.location, self.metadata.properties)

    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return self.metadata.sort_order()

    def sort_orders(self) -> dict[int, SortOrder]:
        """All sort orders by id."""
        return {order.order_id: order for order in self.metadata.sort_orders}

    def name_mapping(self) -> NameMapping | None:
        """The names of columns in files without field ids; None if the table has no such mapping."""
        return self.metadata.name_mapping()

    # ----------------------------------------------------------------------------------------- snapshots

    def current_snapshot(self) -> Snapshot | None:
        """The head of main; None for an empty table."""
        return self.metadata.current_snapshot()

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, in the metadata's order."""
        return list(self.metadata.snapshots)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id; None if the table has none."""
        return next((item for item in self.metadata.snapshots if item.snapshot_id == snapshot_id), None)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """The snapshot that a branch or tag names; None if there is no such ref."""
        ref = self.metadata.refs.get(name)
        return None if ref is None else self.snapshot_by_id(ref.snapshot_id)

    def snapshot_as_of_timestamp(self, timestamp_ms: int | dt.datetime, inclusive: bool = True) -> Snapshot | None:
        """The snapshot that was current at a time, None if there was none yet.

        Args:
            timestamp_ms: milliseconds since the epoch, or a datetime (UTC if it has no zone).
            inclusive: whether a snapshot of exactly that time counts.

        Raises:
            NoSuchSnapshotError: the snapshot of that time has expired.
            InvalidInputError: not a time.
        """
        return snapshot_as_of(self.metadata, timestamp_ms, inclusive)

    def history(self) -> list[SnapshotLogEntry]:
        """The snapshots that were current, with their times, oldest first."""
        return list(self.metadata.snapshot_log)

    def metadata_log(self) -> list[MetadataLogEntry]:
        """Earlier metadata files that are still kept, oldest first."""
        return list(self.metadata.metadata_log)

    def refs(self) -> dict[str, SnapshotRef]:
        """Branches and tags by name."""
        return dict(self.metadata.refs)

    # ---------------------------------------------------------------------------------------------- scan

    def scan(
        self,
        row_filter: str | BooleanExpression | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
        *,
        ref: str | None = None,
        as_of: int | str | dt.datetime | None = None,
    ) -> TableScan:
        """Makes a scan, which reads nothing before it is asked for its rows.

        Args:
            row_filter: a predicate as text (`"ts >= '2024-01-01' and id in (1, 2)"`) or an expression; None for all
                rows.
            selected_fields: columns to read, nested ones with dots; `("*",)` reads all.
            case_sensitive: whether column names must match in case.
            snapshot_id: the snapshot to read; by default the current one.
            options: further reading options.
            limit: at most this many rows.
            ref: the branch or tag to read.
            as_of: the time to read the table as of: milliseconds since the epoch, ISO text, or a datetime.

        Returns:
            the scan; `to_arrow`, `to_pandas`, `to_polars`, `count` and others read it.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: no snapshot of that id or time, or no such ref.
            InvalidInputError: more than one of `snapshot_id`, `ref` and `as_of`.
            ExpressionParseError: the filter's text cannot be read. Columns are looked up when the scan is read.
        """
        given = [
            key for key, value in (("snapshot_id", snapshot_id), ("ref", ref), ("as_of", as_of)) if value is not None
        ]
        if len(given) > 1:
            raise InvalidInputError(
                f"Cannot scan table {'.'.join(self._identifier)} by {' and '.join(given)} at once. Pass one of them."
            )
        scan = TableScan(
            metadata=self.metadata,
            storage=self.storage,
            row_filter=AlwaysTrue() if row_filter is None else row_filter,
            selected_fields=column_names(selected_fields, "selected_fields"),
            case_sensitive=case_sensitive,
            options=dict(options or {}),
            limit=limit,
            table_name=".".join(self._identifier),
            planner=self._planner(),
        )
        if ref is not None:
            return scan.use_ref(ref)
        if as_of is not None:
            return scan.as_of(as_of)
        return scan if snapshot_id is None else scan.use_snapshot(snapshot_id)

    def to_polars(self) -> pl.LazyFrame:
        """The table as a polars LazyFrame, which reads only the columns and rows of its query when it is collected."""
        return self.scan().to_polars_lazy()

    def _planner(self) -> TaskPlanner | None:
        """The planner of scans if the catalog plans on a server; None if this process plans."""
        return None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows as a stream of Arrow's C interface: `pa.table(table)`; see `RowSource.__arrow_c_stream__`."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def to_dask(self) -> dd.DataFrame:
        """The table as a Dask data frame; raises `MissingDependencyError` without Dask."""
        return self.scan().to_dask()

    def to_ray(self) -> ray.data.Dataset:
        """The table as a dataset of Ray; raises `MissingDependencyError` without Ray."""
        return self.scan().to_ray()

    def to_daft(self) -> daft.DataFrame:
        """The table as a Daft data frame; raises `MissingDependencyError` without Daft."""
        return self.scan().to_daft()

    def to_bodo(self) -> bodo.pandas.DataFrame:
        """The table as a data frame of Bodo; raises `MissingDependencyError` without Bodo."""
        return self.scan().to_bodo()

    def to_pyiceberg(self) -> pyiceberg.table.Table:
        """The table at this version as PyIceberg's, for libraries that read Iceberg through it.

        `pl.scan_iceberg(table.to_pyiceberg())` and `daft.read_iceberg(table.to_pyiceberg())` read it, with the rules
        and the limits of PyIceberg; nothing can be written through it.

        Raises:
            MissingDependencyError: PyIceberg is not installed.
            UnsupportedError: the table is encrypted, or of a format version that PyIceberg does not know.
        """
        return pyiceberg_table(self._identifier, self.metadata, self.metadata_location, self.storage)

    def incremental_append_scan(
        self,
        *,
        from_snapshot_id_exclusive: int | None = None,
        to_snapshot_id_inclusive: int | None = None,
        row_filter: str | BooleanExpression | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> IncrementalAppendScan:
        """Makes a scan of the rows that appends between two snapshots added.

        Args:
            from_snapshot_id_exclusive: the snapshot before the first; by default the scan begins with the oldest.
            to_snapshot_id_inclusive: the last snapshot, by default the current one.
            row_filter: a predicate, as of `scan`.
            selected_fields: columns to read, as of `scan`.
            case_sensitive: whether column names must match in case.
            options: further reading options.
            limit: at most this many rows.

        Returns:
            the scan; snapshots are looked up when it is read.

        Raises:
            InvalidInputError: the filter cannot be read, or `selected_fields` are not names.
        """
        return IncrementalAppendScan(
            metadata=self.metadata,
            storage=self.storage,
            row_filter=AlwaysTrue() if row_filter is None else row_filter,
            selected_fields=column_names(selected_fields, "selected_fields"),
            case_sensitive=case_sensitive,
            options=dict(options or {}),
            limit=limit,
            table_name=".".join(self._identifier),
            from_snapshot_id=from_snapshot_id_exclusive,
            to_snapshot_id=to_snapshot_id_inclusive,
        )

    def changelog_scan(
        self,
        *,
        from_snapshot_id_exclusive: int | None = None,
        to_snapshot_id_inclusive: int | None = None,
        row_filter: str | BooleanExpression | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        case_sensitive: bool = True,
        identifier_columns: Sequence[str] | None = None,
        compute_updates: bool | None = None,
        net_changes: bool = False,
        carryovers: bool = False,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> ChangelogScan:
        """Makes a scan of the rows that were inserted, deleted and updated between two snapshots; see `ChangelogScan`.

        Args:
            from_snapshot_id_exclusive: the snapshot before the first; by default the scan begins with the oldest.
            to_snapshot_id_inclusive: the last snapshot, by default the current one.
            row_filter: a predicate, as of `scan`; an update of which only one side matches shows that side alone.
            selected_fields: columns to read, as of `scan`.
            case_sensitive: whether column names must match in case.
            identifier_columns: columns that identify a row for update pairs; by default the table's identifier fields.
            compute_updates: whether to find update pairs; by default if `identifier_columns` are given.
            net_changes: whether to leave out rows that were inserted and deleted again.
            carryovers: whether to show also rows that were rewritten without a change.
            options: further reading options.
            limit: at most this many rows.

        Returns:
            the scan, whose rows have `_change_type`, `_change_ordinal` and `_commit_snapshot_id` beside the table's
            columns; snapshots are looked up when it is read.

        Raises:
            InvalidInputError: the filter cannot be read, or `selected_fields` are not names.
        """
        return ChangelogScan(
            metadata=self.metadata,
            storage=self.storage,
            row_filter=AlwaysTrue() if row_filter is None else row_filter,
            selected_fields=column_names(selected_fields, "selected_fields"),
            case_sensitive=case_sensitive,
            options=dict(options or {}),
            limit=limit,
            table_name=".".join(self._identifier),
            from_snapshot_id=from_snapshot_id_exclusive,
            to_snapshot_id=to_snapshot_id_inclusive,
            identifier_columns=None if identifier_columns is None else tuple(identifier_columns),
            compute_updates=compute_updates,
            net_changes=net_changes,
            carryovers=carryovers,
        )


# ------------------------------------------------------------------------------ tables read from a metadata file


class StaticTable(ReadableTable):
    """One version of a table, for reading only."""

    @classmethod
    def from_metadata(
        cls, metadata_location: str, properties: Mapping[str, str] | None = None, storage: Storage | None = None
    ) -> StaticTable:
        """Reads the table that a metadata file describes.

        Args:
            metadata_location: the metadata JSON; or the table's or its metadata folder with a `version-hint.text`.
            properties: storage properties such as `s3.endpoint`, and `io.manifest.cache.max-total-bytes`.
            storage: a storage to use instead.

        Returns:
            the table, which can be read, and neither changed nor refreshed.

        Raises:
            MissingFileError: no such file.
            CorruptMetadataError: it does not hold table metadata.
            InvalidInputError: the location is empty.
        """
        storage = storage or ArrowStorage(dict(properties or {}))
        with planning_ready():
            location = _metadata_file(metadata_location, storage)
            return cls(("static-table", location), read_version(location, storage), storage)

    @property
    def identifier(self) -> Identifier:
        """`("static-table", <metadata location>)`."""
        return self._identifier

    def refresh(self) -> StaticTable:
        """Refuses: the table is one metadata file.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"A static table cannot be refreshed: it is the metadata file {self.metadata_location}. Load the table "
            "from its catalog, or read another metadata file."
        )


def _metadata_file(location: str, storage: Storage) -> str:
    metadata_file_location(location)
    if location.endswith((".json", ".json.gz")):
        return location
    folder = location.rstrip("/")
    if not folder.endswith("/metadata"):
        folder += "/metadata"
    hint = f"{folder}/version-hint.text"
    if not storage.exists(hint):
        return location
    version = storage.read(hint).decode("utf-8", "replace").strip()
    if version.endswith(".metadata.json"):
        return f"{folder}/{version}"
    return f"{folder}/v{version}.metadata.json" if version.isdecimal() else f"{folder}/{version}.metadata.json"
