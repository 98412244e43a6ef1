"""The questions of reads, each with the class of the bridge that asks it.

Every one has the name of the table in the query, for errors, and the metadata file that is read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class AskVersion(msgspec.Struct, frozen=True):
    """What version of Iceberg this is (`VersionFunction`)."""


class NameVersion(msgspec.Struct, frozen=True):
    """The name of the version that a row of the metastore points at, once its file was looked at (`SessionCatalog`).

    Args:
        location: the metadata file.
        row: the parameters of the table's row in the metastore.
    """

    location: str
    row: dict[str, str]


class LoadTable(msgspec.Struct, frozen=True):
    """Which version of a table is read (`TableSource`).

    Args:
        version: what follows VERSION AS OF.
        as_of_micros: what follows TIMESTAMP AS OF.
        options: the options of the read, which may choose a version too.
        wap_branch: the session's `spark.wap.branch`.
        lacking_types: the names of Iceberg's types that this Spark does not have.
    """

    name: str
    metadata_location: str
    version: str | None = None
    as_of_micros: int | None = None
    options: dict[str, str] = {}
    wap_branch: str | None = None
    lacking_types: tuple[str, ...] = ()


class ChangelogRange(msgspec.Struct, frozen=True):
    """What follows CHANGES: which commits are wanted.

    Args:
        kind: whether the bounds are versions, or microseconds since 1970-01-01 UTC; an unbounded range has none.
        start: the first, None if unbounded.
        end: the last; None for the newest.
        start_inclusive: whether the commit of the start is wanted itself.
        end_inclusive: whether that of the end is.
    """

    kind: Literal["version", "timestamp", "unbounded"]
    start: str | int | None = None
    end: str | int | None = None
    start_inclusive: bool = True
    end_inclusive: bool = True


class ChangelogForm(msgspec.Struct, frozen=True):
    """What follows CHANGES (`IcebergChangelog`).

    Args:
        range: which commits.
        deduplication: Spark's name for what is left out: rows that were only copied; those that came and went, too.
        compute_updates: whether a deleted and an inserted row of one identity are an update.
    """

    range: ChangelogRange
    deduplication: Literal["none", "dropCarryovers", "netChanges"]
    compute_updates: bool


class DescribeChanges(LoadTable, frozen=True, kw_only=True):
    """What the changes of a table are.

    Args:
        changelog: what follows CHANGES; None for the metadata table `changes`, of which the options say what is read.
    """

    changelog: ChangelogForm | None = None


class ReadChanges(DescribeChanges, frozen=True, kw_only=True):
    """The changed rows of a table (`ChangesScan`).

    Args:
        columns: the columns that the query uses.
        schema_id: the schema of the table when it was described.
        filter: what rows are tested by afterwards, as the bridge's class FilterText writes it.
        batch: of a stream, the offsets between which a batch is.
    """

    columns: list[str]
    schema_id: int
    filter: dict[str, Any] | None = None
    batch: ChangesBatch | None = None


class ChangesOffset(msgspec.Struct, frozen=True, kw_only=True):
    """How far a stream of changes has read, as it stands in its checkpoint.

    Args:
        changes_until: the snapshot of the last commit; None before the first one.
        version: of this form.
    """

    changes_until: int | None
    version: Literal[1] = 1


class ChangesBatch(msgspec.Struct, frozen=True):
    """The part of a stream of changes that one batch reads.

    Args:
        start: the offset that it starts after.
        end: the offset that it ends with.
    """

    start: ChangesOffset
    end: ChangesOffset


class FirstChanges(DescribeChanges, frozen=True, kw_only=True):
    """Where a stream of changes begins (`ChangesStream`)."""


class LatestChanges(DescribeChanges, frozen=True, kw_only=True):
    """How far the next batch of a stream of changes goes (`ChangesStream`).

    Args:
        start: the offset up to which it has read.
    """

    start: ChangesOffset


class DescribeMetadataTable(LoadTable, frozen=True, kw_only=True):
    """What a metadata table is (`MetadataTable`).

    Args:
        kind: its name, in any case.
    """

    kind: str


class InspectRows(msgspec.Struct, frozen=True):
    """The rows of a metadata table (`MetadataScan`).

    Args:
        kind: its name, in any case.
        snapshot_id: as it was described; None for none.
        columns: the columns that the query uses.
        metrics: of ``readable_metrics``, the columns that the query uses, and which metrics of each.
        order: by which of the columns the query sorts before it takes the first rows; empty if it takes any.
        limit: how many rows the query takes at most; None for all. More may be answered, as Spark counts again.
        aggregates: of all rows; if there are any, they are the answer, in one row.
    """

    name: str
    metadata_location: str
    kind: str
    columns: list[str]
    snapshot_id: int | None = None
    metrics: dict[str, list[str]] | None = None
    order: list[SortKey] = []
    limit: int | None = None
    aggregates: list[Aggregate] = []


class ListPartitions(msgspec.Struct, frozen=True):
    """The partitions of a table (`PartitionStatements`).

    Args:
        snapshot_id: of which snapshot; None for none.
        partition: the values that they have, by the names of partition fields; a null is one.
    """

    name: str
    metadata_location: str
    snapshot_id: int | None = None
    partition: dict[str, str | None] = {}


class Aggregate(msgspec.Struct, frozen=True):
    """An aggregate of all rows of a metadata table.

    Args:
        op: count, sum, min or max.
        column: of what; None counts rows. Sums are of integers, the least and the greatest of texts too.
    """

    op: Literal["count", "sum", "min", "max"]
    column: str | None


class SortKey(msgspec.Struct, frozen=True):
    """A column that rows are sorted by.

    Args:
        column: its name.
        descending: from the largest value down.
        nulls_last: whether rows without a value come after the others.
    """

    column: str
    descending: bool
    nulls_last: bool


class StreamBatch(msgspec.Struct, frozen=True):
    """The part of a stream that one batch reads.

    Args:
        end: the offset that it ends with.
        options: the stream's options.
        start: the offset that it starts after; None where a checkpoint of an earlier version of ours does not say it.
    """

    end: dict[str, Any]
    options: dict[str, str]
    start: dict[str, Any] | None = None


class PlanScan(msgspec.Struct, frozen=True):
    """The files of a scan (`PlanScans`).

    Args:
        schema_id: the schema of the version that was loaded.
        snapshot_id: its snapshot; None for none.
        start_snapshot_id: of a read of appended rows, the snapshot that it starts after.
        batch: of a stream, what the batch reads.
        rewrite: of a rewriting, its `run` and the `group` of files that is read.
        filter: the conditions, as the bridge's class FilterText writes them.
        whole_files: whether the filter chooses files, of which all rows are read.
        all_deletes: whether the filter leaves out no delete of the files.
        aggregates: the aggregates that metadata may answer, as MetadataAnswer writes them.
        statistics: the columns of which the optimizer wants to know what there is in them.
        lacking_types: the names of Iceberg's types that this Spark does not have.
        partition_column: whether the query uses the column `_partition`.
        deleted_column: whether it uses the column `_deleted`.
    """

    name: str
    metadata_location: str
    schema_id: int
    snapshot_id: int | None = None
    start_snapshot_id: int | None = None
    batch: StreamBatch | None = None
    rewrite: dict[str, int] | None = None
    filter: dict[str, Any] | None = None
    whole_files: bool = False
    all_deletes: bool = False
    aggregates: list[dict[str, Any]] | None = None
    statistics: list[str] = []
    lacking_types: tuple[str, ...] = ()
    partition_column: bool = False
    deleted_column: bool = False


class WorkerCommand(msgspec.Struct, frozen=True):
    """The function that makes rows of files which Python workers read (`WorkerFiles`).

    Args:
        schema_id: the schema of the version that was loaded.
        columns: the columns that the query uses.
        deleted_column: whether `_deleted` is one of them.
        lacking_types: the names of Iceberg's types that this Spark does not have.
    """

    metadata_location: str
    schema_id: int
    columns: list[str]
    deleted_column: bool = False
    lacking_types: tuple[str, ...] = ()


class CheckStream(msgspec.Struct, frozen=True):
    """Whether a stream can be (`IcebergSource`)."""

    name: str
    options: dict[str, str]


class FirstOffset(msgspec.Struct, frozen=True):
    """Where a stream begins (`StreamStart`).

    Args:
        options: the stream's options.
    """

    options: dict[str, str]


class LatestOffset(msgspec.Struct, frozen=True):
    """How far the next batch of a stream goes (`IcebergStream`).

    Args:
        everything: whether the stream's limits are to be left aside.
        options: the stream's options.
        start: the offset up to which it has read, or at which it begins.
    """

    name: str
    everything: bool
    options: dict[str, str]
    start: dict[str, Any]


class LoadView(msgspec.Struct, frozen=True):
    """The current version of a view (`IcebergView`)."""

    name: str
    metadata_location: str
