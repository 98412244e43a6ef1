"""The questions of reads, each with the class of the bridge that asks it.

Every one has the name of the table in the query, for errors, and the metadata file that is read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class AskVersion(msgspec.Struct, frozen=True):
    """Asks which version of Iceberg this is (`VersionFunction`)."""


class NameVersion(msgspec.Struct, frozen=True):
    """The name of the version that a row of the metastore points at, once its file was looked at (`SessionCatalog`)."""

    location: str
    row: dict[str, str]  # the parameters of the table's row in the metastore
    deciding: dict[str, str] | None = None  # those of the row that decides the transaction that the first is marked by


class LoadTable(msgspec.Struct, frozen=True):
    """Which version of a table is read (`TableSource`), also of its changes (`ChangesTable`)."""

    name: str
    metadata_location: str
    version: str | None = None  # of VERSION AS OF
    as_of_micros: int | None = None  # of TIMESTAMP AS OF
    options: dict[str, str] = {}  # which may choose a version too
    wap_branch: str | None = None  # the session's `spark.wap.branch`
    lacking_types: tuple[str, ...] = ()  # the names of Iceberg's types that this Spark does not have


class ChangelogRange(msgspec.Struct, frozen=True):
    """The commits that CHANGES asks for."""

    kind: Literal["version", "timestamp", "unbounded"]
    start: str | int | None = None
    end: str | int | None = None
    start_inclusive: bool = True
    end_inclusive: bool = True


class ChangelogForm(msgspec.Struct, frozen=True):
    """The options that follow CHANGES (`IcebergChangelog`)."""

    range: ChangelogRange
    deduplication: Literal["none", "dropCarryovers", "netChanges"]
    compute_updates: bool


class DescribeChanges(LoadTable, frozen=True, kw_only=True):
    """Asks for the columns and size of a table's changes."""

    changelog: ChangelogForm | None = None


class ReadChanges(DescribeChanges, frozen=True, kw_only=True):
    """The changed rows of a table (`ChangesTable`), of the columns that the query uses."""

    columns: list[str]
    schema_id: int
    filter: dict[str, Any] | None = None
    batch: ChangesBatch | None = None


class ChangesOffset(msgspec.Struct, frozen=True, kw_only=True):
    """How far a stream of changes has read, as it stands in its checkpoint."""

    changes_until: int | None
    version: Literal[1] = 1


class ChangesBatch(msgspec.Struct, frozen=True):
    """The part of a stream of changes that one batch reads."""

    start: ChangesOffset
    end: ChangesOffset


class FirstChanges(DescribeChanges, frozen=True, kw_only=True):
    """Where a stream of changes begins (`ChangesStream`)."""


class LatestChanges(DescribeChanges, frozen=True, kw_only=True):
    """How far the next batch of a stream of changes goes (`ChangesStream`)."""

    start: ChangesOffset


class DescribeMetadataTable(LoadTable, frozen=True, kw_only=True):
    """Asks for the columns of a metadata table (`MetadataTable`); its kind is its name, in any case."""

    kind: str


class InspectRows(msgspec.Struct, frozen=True):
    """The rows of a metadata table (`MetadataScan`)."""

    name: str
    metadata_location: str
    kind: str  # its name, in any case
    columns: list[str]  # those that the query uses
    snapshot_id: int | None = None  # as it was described
    # of ``readable_metrics``, the columns that the query uses, and which metrics of each
    metrics: dict[str, list[str]] | None = None
    # by which of the columns the query sorts before it takes the first rows; empty if it takes any
    order: list[SortKey] = []
    # how many rows the query takes at most; None for all. More may be answered, as Spark counts again.
    limit: int | None = None
    aggregates: list[Aggregate] = []  # of all rows; if there are any, they are the answer, in one row


class ListPartitions(msgspec.Struct, frozen=True):
    """The partitions of a table (`PartitionStatements`), by values of partition fields; a null is one."""

    name: str
    metadata_location: str
    snapshot_id: int | None = None
    partition: dict[str, str | None] = {}


class Aggregate(msgspec.Struct, frozen=True):
    """An aggregate of all rows of a metadata table."""

    op: Literal["count", "sum", "min", "max"]  # sums are of integers, the least and the greatest of texts too
    column: str | None  # None counts rows


class SortKey(msgspec.Struct, frozen=True):
    column: str
    descending: bool
    nulls_last: bool


class StreamBatch(msgspec.Struct, frozen=True):
    """The part of a stream that one batch reads, between two offsets."""

    end: dict[str, Any]
    options: dict[str, str]
    start: dict[str, Any] | None = None  # None where a checkpoint of an earlier version of ours does not say it


class PlanScan(msgspec.Struct, frozen=True):
    """The files of a scan (`ScanQuestion`)."""

    name: str
    metadata_location: str
    schema_id: int  # of the version that was loaded, as is the snapshot
    snapshot_id: int | None = None
    start_snapshot_id: int | None = None  # of a read of appended rows, the snapshot that it starts after
    batch: StreamBatch | None = None  # of a stream
    rewrite: dict[str, int] | None = None  # of a rewriting, its `run` and the `group` of files that is read
    filter: dict[str, Any] | None = None  # the conditions, as the bridge's class FilterText writes them
    whole_files: bool = False  # whether the filter chooses files, of which all rows are read
    all_deletes: bool = False  # whether the filter leaves out no delete of the files
    aggregates: list[dict[str, Any]] | None = None  # those that metadata may answer, as MetadataAnswer writes them
    statistics: list[str] = []  # the columns of which the optimizer wants to know what there is in them
    row_counts: bool = False  # whether the answer tells how many rows each file has
    lacking_types: tuple[str, ...] = ()  # the names of Iceberg's types that this Spark does not have
    partition_column: bool = False  # whether the query uses `_partition`
    deleted_column: bool = False  # whether the query uses `_deleted`


class WorkerCommand(msgspec.Struct, frozen=True):
    """The function that makes rows of files which Python workers read (`WorkerFiles`)."""

    metadata_location: str
    schema_id: int
    columns: list[str]
    types: list[Any] = []  # what of each the query uses, as a type in Spark's JSON; none for all of it
    deleted_column: bool = False  # whether `_deleted` is one of the columns
    lacking_types: tuple[str, ...] = ()  # the names of Iceberg's types that this Spark does not have


class CheckStream(msgspec.Struct, frozen=True):
    """Whether a stream can be (`CheckStreams`)."""

    name: str
    options: dict[str, str]


class FirstOffset(msgspec.Struct, frozen=True):
    """Where a stream with some options begins (`StreamStart`)."""

    options: dict[str, str]


class LatestOffset(msgspec.Struct, frozen=True):
    """How far the next batch of a stream goes (`AppendedRows`)."""

    name: str
    everything: bool  # whether the stream's limits are to be left aside
    options: dict[str, str]
    start: dict[str, Any]  # the offset up to which it has read, or at which it begins


class LoadView(msgspec.Struct, frozen=True):
    """The current version of a view (`IcebergView`)."""

    name: str
    metadata_location: str
