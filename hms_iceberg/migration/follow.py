"""Rounds that bring an Iceberg table up to the state of the Hive table that it follows.

Every round compares the Hive table's files with those of the Iceberg table and commits the difference, so that a round
that was killed, or made twice, does no harm: the next one finds what is left.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    CommitConflictError,
    IcebergError,
    InvalidInputError,
    MigrationError,
    MissingFileError,
    NoSuchTableError,
    UnsupportedError,
)
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HiveTable
from hms_iceberg.metastore import MetadataVersion, table_identifier
from hms_iceberg.migration.hive.source_reasons import partition_key
from hms_iceberg.migration.migration_plan import MigrationOptions, MigrationPlan, MigrationPlanner
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.migration.migration_reports import ReportedMigration
from hms_iceberg.migration.migration_state import HIVE_TABLE
from hms_iceberg.migration.snapshot_table import snapshot
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.field_mapping import NAME_MAPPING_PROPERTY
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_definition import set_current_schema
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.storage import Places
from hms_iceberg.table import Table
from hms_iceberg.table.needed_files.named_files import delete_files
from hms_iceberg.table.needed_files.needed_by_others import needed_by_others, table_rows_of
from hms_iceberg.transaction.transaction import Existing, Transaction
from hms_iceberg.updates.machinery.content import Isolation
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace
from hms_iceberg.updates.rows.overwrite import Overwrite
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots, unreachable_files
from hms_iceberg.updates.table_settings import SetProperties

_IDS = re.compile(r"\b\d+: ")


def numbered_as(metadata: TableMetadata, schema: Schema, renewed: Collection[str] = ()) -> Schema:
    """A schema with the ids that a table has for columns of the same name and type; others, and renewed ones, get
    unused ids. The kind of a timestamp makes no difference."""
    known = {field.name: field for field in metadata.schema().fields}
    same = (
        known[field.name]
        for field in schema.fields
        if field.name in known
        and field.name not in renewed
        and _shape(known[field.name].field_type) == _shape(field.field_type)
    )
    return assign_fresh_ids(schema, count(metadata.last_column_id + 1).__next__, Schema(*same))


def retyped(metadata: TableMetadata, schema: Schema) -> frozenset[str]:
    """Names of top-level columns of a new schema that have the id of one of the table's columns, and another type."""
    now = metadata.schema()
    return frozenset(
        field.name
        for field in schema.fields
        if now.has_field(field.field_id) and now.find_type(field.field_id) != field.field_type
    )


def _shape(kind: IcebergType) -> str:
    return _IDS.sub("", str(kind)).replace("timestamptz", "timestamp")


@dataclass(frozen=True)
class TakeColumns(Update):
    """Gives a table the columns of its source, numbered already."""

    schema: Schema

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses a schema that was changed concurrently."""
        if not base.schema().same_as(start.schema()):
            raise CommitConflictError(f"The columns of the table at {base.location} were changed meanwhile.")

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        if base.schema().same_as(self.schema):
            return base
        changed = set_current_schema(base, self.schema)
        return replace(changed, last_column_id=max(base.last_column_id, self.schema.highest_field_id))


logger = logging.getLogger(__name__)

_LOOKS = 5
_PAUSE_SECONDS = 0.3


@dataclass(frozen=True)
class FollowRound:
    """The result of one round.

    Attributes:
        source: the Hive table.
        target: the Iceberg table that follows it.
        added, removed: files; one that was replaced under its name counts as both.
        waiting: partitions that Hive changed while they were looked at, left for the next round.
        ended: the source is an Iceberg table now, and there is nothing left to follow.
        failure: why the round was not made; empty where it was.
        seconds: how long it took.
    """

    source: str
    target: str
    added: int = 0
    removed: int = 0
    waiting: int = 0
    ended: bool = False
    failure: str = ""
    seconds: float = 0.0


def follow(
    catalog: Catalog,
    source: str | tuple[str, ...],
    target: str | tuple[str, ...],
    *,
    interval: float,
    options: MigrationOptions | None = None,
    location: str | None = None,
    progress: Progress = silent,
) -> Iterator[FollowRound]:
    """Makes rounds without end, until the source is migrated; see `Follower`.

    A round that fails is told of, and tried again in the next.

    Args:
        catalog, source, target, options, location, progress: as of `Follower`.
        interval: seconds from the end of a round to the next.

    Returns:
        what each round found and did, as it is done.

    Raises:
        NoSuchTableError: the source is gone.
    """
    follower = Follower(catalog, source, target, options=options, location=location, progress=progress)
    while True:
        try:
            found = follower.round()
        except NoSuchTableError:
            raise
        except IcebergError as error:
            logger.warning("A round of %s was not made: %s", follower.target, error)
            found = FollowRound(follower.source, follower.target, failure=str(error))
        yield found
        if found.ended:
            return
        time.sleep(interval)


class Follower:
    """Brings the changes of a Hive table into an Iceberg table over the same files: partitions, files and columns that
    were added, removed or replaced.

    The Iceberg table is made by the first round, as `snapshot` makes it, and is for reading: a round refuses one that
    somebody else wrote to. Snapshots of it that name files which Hive has replaced since cannot be read any more; those
    that the table's `history.expire.*` lets go are expired with each change.

    Args:
        catalog: the catalog on whose metastore the tables are.
        source: the Hive table, `"db.table"` or `("db", "table")`.
        target: the Iceberg table that follows it.
        options: how types and files are taken, as of a migration.
        location: the folder of the Iceberg table, by default what the catalog says.
        progress: is called with each stage of a round, and how many of its parts are done.
    """

    def __init__(
        self,
        catalog: Catalog,
        source: str | tuple[str, ...],
        target: str | tuple[str, ...],
        *,
        options: MigrationOptions | None = None,
        location: str | None = None,
        progress: Progress = silent,
    ) -> None:
        self._catalog = catalog
        self._names = tuple(part.lower() for part in table_identifier(source))
        self._target = tuple(part.lower() for part in table_identifier(target))
        if self._names == self._target:
            raise InvalidInputError(f"Table {self.source} cannot follow itself. Give the follower another name.")
        self._hive = HiveTables.of(catalog.metastore)
        self._options = options or MigrationOptions()
        self._location = location
        self._progress = progress
        self._planner = self._new_planner()

    @property
    def source(self) -> str:
        """Name of the Hive table."""
        return ".".join(self._names)

    @property
    def target(self) -> str:
        """Name of the table that follows it."""
        return ".".join(self._target)

    def round(self) -> FollowRound:
        """Takes over the changes since the last round, in one commit.

        Footers are read of files that this object has not seen yet.

        Raises:
            UnsupportedError: the Hive table cannot be read as Iceberg any more, or has other partition keys.
            NoSuchTableError: there is no such Hive table.
            MigrationError: the Iceberg table is not one that follows the Hive table, or was written to.
            CommitConflictError: others changed it in every attempt.
        """
        with ReportedMigration(self.source, "follow") as reported:
            found = self._round()
            reported.made(found.added)
            return found

    def _round(self) -> FollowRound:
        started = time.monotonic()
        for attempt in range(_LOOKS):
            row = self._row()
            if row.is_iceberg:
                return FollowRound(self.source, self.target, ended=True)
            try:
                added, removed, waiting = self._take_in(row)
            except (MissingFileError, CommitConflictError) as error:
                logger.info("%s changed meanwhile; looking again: %s", self.source, error)
                if attempt == _LOOKS - 1:
                    raise
                time.sleep(_PAUSE_SECONDS)
                continue
            seconds = time.monotonic() - started
            return FollowRound(self.source, self.target, added, removed, waiting, seconds=seconds)
        raise AssertionError("unreachable")

    def _row(self) -> HiveTable:
        """The source's row, which is missing for a moment in the middle of its switch."""
        for _ in range(_LOOKS):
            row = self._hive.find(*self._names)
            if row is not None:
                return row
            time.sleep(_PAUSE_SECONDS)
        raise NoSuchTableError(f"Table {self.source} does not exist in the metastore. Check its name.")

    def _take_in(self, row: HiveTable) -> tuple[int, int, int]:
        if not self._catalog.table_exists(self._target):
            made = snapshot(
                self._catalog,
                self._names,
                self._target,
                location=self._location,
                options=self._options,
                progress=self._progress,
            )
            return made.files, 0, 0
        table = self._catalog.load_table(self._target)
        self._refuse_foreign(table)
        plan, moving = self._look(row, table)
        if _sources(plan.spec) != _sources(table.spec()):
            raise UnsupportedError(
                f"Table {self.target} cannot follow {self.source} any more: the partition keys of the Hive table were "
                "changed. Drop the follower, which deletes no file of Hive's, and begin anew."
            )
        live = _by_path(table)
        kept = {path for path, file in live.items() if partition_key(file.partition) in moving}
        planned = {
            file.file_path: file
            for file in plan.data_files
            if partition_key(file.partition) not in moving and file.file_path not in kept
        }
        unlike = {path for path in planned.keys() & live.keys() if _facts(planned[path]) != _facts(live[path])}
        added = [file for path, file in planned.items() if path not in live or path in unlike]
        removed = [file for path, file in live.items() if path in unlike or path not in planned.keys() | kept]
        self._commit(table, plan, added, removed)
        return len(added), len(removed), len(moving)

    def _refuse_foreign(self, table: Table) -> None:
        """Refuses a follower that others wrote to: their rows would be lost, or be there twice."""
        made_here = table.properties.get("snapshot") == "true" and all(
            each.summary.get(HIVE_TABLE) == self.source for each in table.metadata.snapshots
        )
        if not made_here:
            raise MigrationError(
                f"Table {self.target} cannot follow {self.source}: it is not a snapshot table of it, or was written to "
                "by somebody else. Nothing was changed. Follow with a table of another name."
            )

    def _look(self, row: HiveTable, table: Table) -> tuple[MigrationPlan, frozenset[tuple[Any, ...]]]:
        """The files that the Iceberg table should have, and the partitions whose files changed while listed."""
        for attempt in range(_LOOKS):
            time.sleep(_PAUSE_SECONDS * attempt)
            plan = self._plan(row, table)
            moving = self._planner.replaced_since(plan)
            if not moving:
                break
        return plan, moving

    def _plan(self, row: HiveTable, table: Table) -> MigrationPlan:
        metadata = table.metadata
        try:
            plan = self._planner.plan(row, lambda schema: numbered_as(metadata, schema))
        except UnsupportedError:  # it may be what the planner remembers of files that are gone
            self._planner = self._new_planner()
            plan = self._planner.plan(row, lambda schema: numbered_as(metadata, schema))
        renewed = retyped(metadata, plan.schema)
        if renewed:
            plan = self._planner.plan(row, lambda schema: numbered_as(metadata, schema, renewed))
        return plan

    def _new_planner(self) -> MigrationPlanner:
        return MigrationPlanner(self._hive, self._catalog.storage, self._options, self._progress)

    def _commit(self, table: Table, plan: MigrationPlan, added: list[DataFile], removed: list[DataFile]) -> None:
        version = MetadataVersion(table.metadata_location, table.metadata)
        transaction = Transaction(table.identifier, Existing(version), table.metastore, table.storage)
        transaction.add(TakeColumns(plan.schema))
        mapping = plan.properties[NAME_MAPPING_PROPERTY]
        if table.properties.get(NAME_MAPPING_PROPERTY) != mapping:
            transaction.add(SetProperties({NAME_MAPPING_PROPERTY: mapping}))
        if added or removed:
            transaction.add(
                Overwrite(
                    added=tuple(added),
                    removed=tuple(removed),
                    isolation=Isolation.SERIALIZABLE,
                    properties={HIVE_TABLE: self.source},
                    action=f"follow {self.source} with",
                )
            )
        transaction.add(ExpireSnapshots(of_others_files=True))
        transaction.commit()
        self._delete_metadata_of_expired(table)

    @staticmethod
    def _delete_metadata_of_expired(table: Table) -> None:
        """Deletes manifests that no snapshot needs any more. Data files are Hive's."""
        before, name, rows = table.metadata, ".".join(table.name()), table_rows_of(table.metastore)
        try:
            after = table.refresh().metadata
            files = unreachable_files(before, after, table.storage, Places(table.storage).anywhere)
            version = MetadataVersion(table.metadata_location, after)
            doomed = (*files.manifests, *files.manifest_lists)
            kept = needed_by_others(table.identifier, version, doomed, table.storage, rows)
            delete_files(table.storage, (each for each in doomed if each not in kept), name)
        except IcebergError as error:
            logger.warning("Metadata files of snapshots of %s that went are left over: %s", name, error)


def _by_path(table: Table) -> Mapping[str, DataFile]:
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    entries = (entry for manifest in manifests for entry in entries_of(manifest, table.storage))
    return {entry.data_file.file_path: entry.data_file for entry in entries if entry.is_live}


def _facts(file: DataFile) -> tuple[Any, ...]:
    """Facts that distinguish a file from a later file of the same name."""
    counts = (file.value_counts, file.null_value_counts, file.nan_value_counts, file.column_sizes)
    bounds = (file.lower_bounds, file.upper_bounds)
    metrics = tuple(sorted((each or {}).items()) for each in (*counts, *bounds))
    splits = tuple(file.split_offsets or ())
    size = file.record_count, file.file_size_in_bytes
    return partition_key(file.partition), str(file.file_format), *size, splits, metrics


def _sources(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(field.source_id, str(field.transform)) for field in spec.fields]
