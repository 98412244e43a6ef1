"""Looks at a table's metadata and tells what a picture of it shows. No data file is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import quote
from typing import TYPE_CHECKING, Any

from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.expire_with_files import cost_of_snapshots
from hms_iceberg.maintenance.service.assessment import needs_of
from hms_iceberg.maintenance.system.files_health import files_health
from hms_iceberg.maintenance_policy import Policies, Policy
from hms_iceberg.report.number_text import sort_fields
from hms_iceberg.report.portrait import Advice, Bin, PartitionShare, SnapshotPoint, TablePortrait
from hms_iceberg.spec.partitions.partition_specs import partition_terms

if TYPE_CHECKING:
    from hms_iceberg.spec.metadata.table_metadata import TableMetadata
    from hms_iceberg.spec.snapshots_and_refs import Snapshot
    from hms_iceberg.table.table import Table

MOST_PARTITIONS = 20
# Four-fold steps from 1 KiB to 16 GiB: the usual targets of 128 and 512 MiB fall into steps of their own.
_SIZE_LIMITS = (0, *(1024 * 4**step for step in range(13)), 2**62)
_COUNT_LIMITS = (0, 1, 2, 3, 5, 9, 17, 33, 65, 129, 2**31)


def portrait_of(
    table: Table, most_partitions: int = MOST_PARTITIONS, policies: Policies | None = None
) -> TablePortrait:
    """The facts that the picture of a table shows.

    Args:
        table: the table, at the version to be shown.
        most_partitions: how many partitions are listed, the largest first.
        policies: the maintenance policies that the advice follows; the default one unless given.

    Returns:
        the facts, without anything of the metastore.

    Raises:
        StorageError, CorruptManifestError: its metadata cannot be read.
    """
    metadata = table.metadata
    name = ".".join(table.name())
    plan = table.scan().plan()
    policy = (policies or Policies()).of(name, table.properties)
    health = files_health(table, plan, policy)
    partitions, partition_count = _partitions(table, most_partitions)
    return TablePortrait(
        name=name,
        location=metadata.location,
        uuid=str(metadata.table_uuid),
        format_version=metadata.format_version,
        updated_ms=metadata.last_updated_ms,
        columns=tuple(str(field) for field in table.schema().fields),
        partitioned_by=partition_terms(table.spec(), table.schema()),
        sorted_by=sort_fields(table.sort_order(), table.schema()),
        properties=dict(sorted(metadata.properties.items())),
        rows=health.rows,
        data_files=health.data_files,
        data_bytes=health.data_bytes,
        position_delete_files=health.position_delete_files,
        deletion_vectors=health.deletion_vectors,
        equality_delete_files=health.equality_delete_files,
        deleted_positions=health.deleted_positions,
        file_sizes=_histogram(plan.files["file_size_in_bytes"], _SIZE_LIMITS),
        deletes_per_file=_histogram(plan.count_deletes(), _COUNT_LIMITS),
        snapshots=_history(metadata),
        partitions=partitions,
        partition_count=partition_count,
        advice=tuple(_advice(table, name, policy)),
    )


def _advice(table: Table, name: str, policy: Policy) -> Iterator[Advice]:
    cost = cost_of_snapshots(len(table.metadata.snapshots))
    if cost is not None:
        remedy = "keep fewer by history.expire.max-snapshot-age-ms and history.expire.min-snapshots-to-keep"
        yield Advice("expire_snapshots", f"{cost}: {remedy}", _command("expire_snapshots", name))
    for need in needs_of(table, policy):
        yield Advice(need.action, need.why, _command(need.action, name))


def _histogram(values: pl.Series, limits: Sequence[int]) -> tuple[Bin, ...]:
    """A histogram of values between limits that follow each other, without the empty bins at both ends."""
    bins = [Bin(low, high, int(((values >= low) & (values < high)).sum())) for low, high in pairwise(limits)]
    filled = [index for index, each in enumerate(bins) if each.count]
    return tuple(bins[filled[0] : filled[-1] + 1]) if filled else ()


def _history(metadata: TableMetadata) -> tuple[SnapshotPoint, ...]:
    known = {each.snapshot_id: each for each in metadata.snapshots}
    current = set()
    each = metadata.current_snapshot()
    while each is not None and each.snapshot_id not in current:
        current.add(each.snapshot_id)
        each = known.get(each.parent_snapshot_id or 0)
    refs: dict[int, list[str]] = {}
    for name, ref in sorted(metadata.refs.items()):
        refs.setdefault(ref.snapshot_id, []).append(name)
    newest = sorted(known.values(), key=lambda found: (found.sequence_number, found.timestamp_ms), reverse=True)
    return tuple(
        _point(each, known, tuple(refs.get(each.snapshot_id, ())), each.snapshot_id in current) for each in newest
    )


def _point(snapshot: Snapshot, known: dict[int, Snapshot], refs: tuple[str, ...], is_current: bool) -> SnapshotPoint:
    def count(key: str) -> int | None:
        text = snapshot.summary[key]
        return int(text) if text is not None and text.isdigit() else None

    parent = snapshot.parent_snapshot_id
    return SnapshotPoint(
        snapshot_id=snapshot.snapshot_id,
        parent_id=parent if parent in known else None,
        timestamp_ms=snapshot.timestamp_ms,
        operation=None if snapshot.operation is None else str(snapshot.operation),
        added_rows=count("added-records"),
        deleted_rows=count("deleted-records"),
        total_rows=count("total-records"),
        total_bytes=count("total-files-size"),
        refs=refs,
        is_current=is_current,
    )


def _partitions(table: Table, most: int) -> tuple[tuple[PartitionShare, ...], int]:
    found = table.inspect.partitions()
    if "partition" not in found.column_names:
        return (), 0
    largest = found.sort_by([("total_data_file_size_in_bytes", "descending")]).slice(0, most)
    return tuple(map(_share, largest.to_pylist())), found.num_rows


def _share(row: dict[str, Any]) -> PartitionShare:
    values = ((name, "null" if value is None else value) for name, value in row["partition"].items())
    return PartitionShare(
        name=", ".join(f"{name}={value}" for name, value in values),
        rows=row["record_count"],
        files=row["file_count"],
        bytes=row["total_data_file_size_in_bytes"],
        delete_files=row["position_delete_file_count"] + row["equality_delete_file_count"],
    )


def _command(action: str, table: str) -> str:
    if action in ("finish_erasure", "delete_old_rows", "tag_periods", "drop_unused_branches"):
        return f"hms-iceberg maintain --table {quote(table)}"
    name = "rewrite-position-deletes" if action == "rewrite_position_delete_files" else action.replace("_", "-")
    return f"hms-iceberg {name} {quote(table)}"
