"""The plan of a migration, made without changing anything."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.hms.rows.hive_rows import HivePartition, HiveTable
from hms_iceberg.migration.hive.file_schemas import INSTANT, LOCAL
from hms_iceberg.migration.hive.footers import FooterReader, SourceFooters
from hms_iceberg.migration.hive.format_footers import URL, declared_schema
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source import Listing, SourceTable, carried_parameters, list_files, source_or_refusal
from hms_iceberg.migration.hive.source_reasons import TRANSACTIONAL, Reason, Refusal, Remedy, of_texts, partition_key
from hms_iceberg.migration.migration_progress import Progress, silent
from hms_iceberg.migration.migration_state import DATA, HIDDEN_FOLDER, HIDDEN_METADATA, METADATA
from hms_iceberg.spec.data_types import (
    IcebergType,
    NestedField,
    NestedType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.field_mapping import NAME_MAPPING_PROPERTY
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import DATA_PATH, METADATA_PATH
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

TIMESTAMP_TYPES: dict[str, TimestampType | TimestamptzType] = {
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
}


@dataclass(frozen=True)
class MigrationOptions:
    """Options of a migration.

    Attributes:
        backup_name: name of the Hive table after the migration, by default the table's with `_backup_` after it.
        timestamp_type: `timestamptz` or `timestamp` for every Hive timestamp; by default what the files hold.
        char_as_string: whether `char(n)` columns are migrated as strings.
        include_subdirectories: whether files below a partition's directory are migrated too.
        properties: properties of the Iceberg table, over those that the Hive table had.
        threads: how many directories or footers are read at once.
        take_over: whether to go on although the process that began an unfinished migration may still live.
    """

    backup_name: str | None = None
    timestamp_type: str | None = None
    char_as_string: bool = False
    include_subdirectories: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    threads: int = min(32, 4 * (os.cpu_count() or 4))
    take_over: bool = False

    def __post_init__(self) -> None:
        if self.timestamp_type not in (None, *TIMESTAMP_TYPES):
            raise InvalidInputError(
                f"Not a type for timestamps: {self.timestamp_type!r}. Expected 'timestamp' or 'timestamptz'."
            )
        if self.threads < 1:
            raise InvalidInputError(f"Cannot read with {self.threads} threads. Expected 1 or more.")

    @property
    def types(self) -> TypeOptions:
        """The choices that concern types."""
        return TypeOptions(TIMESTAMP_TYPES[self.timestamp_type or "timestamptz"], self.char_as_string)


@dataclass(frozen=True)
class MigrationPlan:
    """The Iceberg table that a Hive table becomes: `schema` has its final field ids, `data_files` their metrics."""

    source: SourceTable
    listing: Listing
    schema: Schema
    spec: PartitionSpec
    data_files: tuple[DataFile, ...]
    properties: Mapping[str, str]

    @property
    def table(self) -> HiveTable:
        return self.source.table

    @property
    def location(self) -> str:
        return self.source.location

    @property
    def is_partitioned(self) -> bool:
        return self.source.is_partitioned

    @property
    def partition_count(self) -> int:
        return len(self.source.partitions) if self.source.is_partitioned else 0

    @property
    def iceberg_location(self) -> str:
        """Where the Iceberg table is: in the same place."""
        return self.location

    @property
    def journal_folder(self) -> str:
        """Where the journal goes, and the Iceberg table's metadata."""
        return f"{self.location}/{HIDDEN_METADATA if is_hidden(self.source) else METADATA}"

    @property
    def records(self) -> int:
        return sum(file.record_count for file in self.data_files)


def is_hidden(source: SourceTable) -> bool:
    """Whether a migrated table keeps what Iceberg adds in a hidden folder (`_…`): Hive and Spark read all below an
    unpartitioned table's directory; a partitioned one's is free unless a partition is in or above the usual places."""
    usual = [f"{source.location}/{name}/" for name in (METADATA, DATA)]
    partitions = (f"{row.storage.location.rstrip('/')}/" for row in source.partitions)
    return not source.is_partitioned or any(
        place.startswith(each) or each.startswith(place) for place in partitions for each in usual
    )


def _as_it_is(schema: Schema) -> Schema:
    return schema


class MigrationPlanner:
    """Plans the migration of a Hive table; reads the footer of each file once, however often it plans."""

    def __init__(
        self, hive: HiveTables, storage: Storage, options: MigrationOptions, progress: Progress = silent
    ) -> None:
        self._hive = hive
        self._storage = storage
        self._options = options
        self._progress = progress
        self._reader: FooterReader | None = None

    def plan(self, table: HiveTable, numbered: Callable[[Schema], Schema] = _as_it_is) -> MigrationPlan:
        """Plans the Iceberg table; `numbered` gives its columns other field ids. Raises an UnsupportedError with
        every reason."""
        found = self.plan_or_refusal(table, numbered)
        if isinstance(found, Refusal):
            raise found.error()
        return found

    def plan_or_refusal(
        self, table: HiveTable, numbered: Callable[[Schema], Schema] = _as_it_is
    ) -> MigrationPlan | Refusal:
        """Plans the Iceberg table, or gives every reason why the table cannot be migrated in place, with its remedy."""
        source = source_or_refusal(table, self._partitions(table), self._options.types, self._avro_schema(table))
        if isinstance(source, Refusal):
            return source
        source = replace(source, schema=numbered(source.schema))
        listing = self._list(source)
        reasons = self._reasons_in_files(listing)
        if reasons:
            return Refusal(table, tuple(reasons))
        if listing.empty:
            logger.info("Table %s: %d files without a byte are left out", table, listing.empty)
        modes = metrics_modes(source.schema, self._options.properties)
        if self._reader is None or not self._reader.fits(source):
            self._reader = FooterReader(self._storage, source, modes)
        footers = self._reader.read_all(source, listing.files, self._options.threads, self._progress)
        schema, undecided = self._with_timestamps(source, footers)
        remedy = Remedy.NOTHING if footers.hopeless else Remedy.REWRITE
        reasons = [*of_texts(footers.problems, remedy), *undecided]
        if reasons:
            return Refusal(table, tuple(reasons))
        properties = {
            **carried_parameters(table.parameters),
            **self._options.properties,
            NAME_MAPPING_PROPERTY: footers.name_mapping.to_json(),
        }
        if is_hidden(source):
            properties[METADATA_PATH.name] = f"{source.location}/{HIDDEN_METADATA}"
            properties[DATA_PATH.name] = f"{source.location}/{HIDDEN_FOLDER}/{DATA}"
        spec = _identity_spec(source)
        return MigrationPlan(source, listing, schema, spec, footers.data_files, properties)

    def is_current(self, plan: MigrationPlan, table: HiveTable) -> bool:
        """Whether columns, partitions and storage of the row, and names, sizes and times of the files, are as planned.
        Footers are not read again."""
        before = plan.source.table
        same_row = (table.columns, table.partition_keys, table.storage) == (
            before.columns,
            before.partition_keys,
            before.storage,
        )
        if not same_row:
            return False
        if plan.source.is_partitioned and set(map(_key, self._partitions(table))) != set(
            map(_key, plan.source.partitions)
        ):
            return False
        return set(self._list(plan.source).files) == set(plan.listing.files)

    def replaced_since(self, plan: MigrationPlan) -> frozenset[tuple[Any, ...]]:
        """The keys of partitions of which files that were planned for are gone, or others took their names."""
        now = set(self._list(plan.source).files)
        values = plan.source.partition_values
        return frozenset(partition_key(values[file.partition]) for file in plan.listing.files if file not in now)

    def _partitions(self, table: HiveTable) -> list[HivePartition]:
        return list(self._hive.partitions(table.database, table.name)) if table.partition_keys else []

    def _list(self, source: SourceTable) -> Listing:
        locations = [row.storage.location for row in source.partitions]
        return list_files(self._storage, locations, self._options.threads, self._progress)

    def _avro_schema(self, table: HiveTable) -> str | None:
        """The text behind a table's `avro.schema.url`, on which its columns in Avro files depend."""
        url = declared_schema(table, URL)
        return None if url is None or table.is_iceberg else self._storage.read(url).decode()

    def _reasons_in_files(self, listing: Listing) -> list[Reason]:
        if listing.transactional:
            return [Reason(f"file {listing.transactional} is of {TRANSACTIONAL}")]
        reasons = []
        if listing.in_subdirectories and not self._options.include_subdirectories:
            text = (
                f"file {listing.in_subdirectories} is in a directory below its partition's, where Spark reads it and "
                "Hive by default does not; pass --include-subdirectories to migrate such files, or move them."
            )
            reasons.append(Reason(text, Remedy.OPTION))
        if listing.shared:
            text = f"file {listing.shared} is in two partitions, and in Iceberg it can be in one only."
            reasons.append(Reason(text, Remedy.REWRITE))
        return reasons

    def _with_timestamps(self, source: SourceTable, footers: SourceFooters) -> tuple[Schema, list[Reason]]:
        """The schema with each timestamp as its files hold it, unless the user chose."""
        schema = source.schema
        reasons: list[Reason] = []
        if self._options.timestamp_type is None:
            schema, reasons = _as_files_hold(source, footers.timestamps)
        if reasons:
            return schema, reasons
        for field_id, kinds in footers.orc_timestamps.items():
            wanted = INSTANT if isinstance(schema.find_type(field_id), TimestamptzType) else LOCAL
            if kinds != {wanted}:
                text = (
                    f"column {schema.find_column_name(field_id)!r} would be a {schema.find_type(field_id)}, and its "
                    f"ORC files hold {_KINDS[INSTANT if wanted == LOCAL else LOCAL]}, which Iceberg's readers take for "
                    "nothing else."
                )
                reasons.append(Reason(text, Remedy.REWRITE))
        return schema, reasons


_KINDS = {INSTANT: "instants", LOCAL: "times without zone"}


def _as_files_hold(source: SourceTable, found: Mapping[int, frozenset[str]]) -> tuple[Schema, list[Reason]]:
    undecided = []
    local: set[int] = set()
    for field_id, kinds in found.items():
        name = source.schema.find_column_name(field_id)
        if len(kinds) > 1:
            undecided.append(
                f"column {name!r} holds instants in some files and times without zone in others; pass "
                "--timestamp-type to say what they all shall be."
            )
        elif LOCAL in kinds:
            local.add(field_id)
        elif INSTANT in kinds and isinstance(source.schema.find_type(field_id), TimestampType):
            undecided.append(
                f"column {name!r} is a timestamp without zone, and its files hold instants; pass --timestamp-type "
                "to say what it shall be."
            )
    reasons = of_texts(undecided, Remedy.OPTION)
    if not local:
        return source.schema, reasons
    fields = (_localised(column, local) for column in source.schema.fields)
    return Schema(*fields, schema_id=source.schema.schema_id), reasons


def _key(partition: HivePartition) -> tuple[tuple[str, ...], str]:
    return partition.values, partition.storage.location


def _localised(column: NestedField, local: set[int]) -> NestedField:
    return replace(column, field_type=_localised_type(column.field_id, column.field_type, local))


def _localised_type(field_id: int, kind: IcebergType, local: set[int]) -> IcebergType:
    if field_id in local:
        return TimestampType()
    if isinstance(kind, NestedType):
        return kind.with_children([_localised(each, local) for each in kind.children()])
    return kind


def _identity_spec(source: SourceTable) -> PartitionSpec:
    fields = (
        PartitionField(source.schema.find_field(name).field_id, PARTITION_FIELD_ID_START + n, IdentityTransform(), name)
        for n, name in enumerate(source.partition_columns)
    )
    return PartitionSpec(*fields)
