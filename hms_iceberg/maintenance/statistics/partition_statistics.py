"""One row of statistics for each partition of a snapshot, in a file that the table's metadata names.

Source: Iceberg specification, "Partition Statistics".
"""

from __future__ import annotations

import uuid

from hms_iceberg.arrow.columns.frames import frame_to_arrow
from hms_iceberg.arrow.formats.content_files import ContentFormat, format_name
from hms_iceberg.encryption.encrypted_tables import refuse_encrypted
from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_tables.file_tables import entry_frame, live
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, partition_struct
from hms_iceberg.scan.partition_columns import polars_dtype
from hms_iceberg.spec.data_types import IntegerType, LongType, NestedField, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.table.table import Table

_NOT_ENCRYPTED = "A file of statistics has no place for its key, and would show values to whoever reads storage."


def compute_partition_stats(table: Table, *, snapshot_id: int | None = None) -> PartitionStatisticsFile | None:
    """Computes the statistics of a snapshot's partitions, writes them to a file and registers it.

    Args:
        table: the table, which moves to its newest version.
        snapshot_id: the snapshot; the current one by default.

    Returns:
        The file; the one that is there if the snapshot has one already; None for a table without rows.

    Raises:
        NoSuchSnapshotError: the table has no such snapshot.
        InvalidInputError: the table is not partitioned.
        CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
        ConfigurationError: the table's file format is none.
    """
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    refuse_encrypted(metadata.properties, name, "Cannot compute partition statistics of table", _NOT_ENCRYPTED)
    if all(spec.is_unpartitioned() for spec in metadata.partition_specs):
        raise InvalidInputError(f"Cannot compute partition statistics of table {name}: it is not partitioned.")
    snapshot = metadata.current_snapshot() if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        if snapshot_id is None:
            return None
        raise NoSuchSnapshotError(f"Cannot compute partition statistics of table {name}: no snapshot {snapshot_id}.")
    known = next((each for each in metadata.partition_statistics if each.snapshot_id == snapshot.snapshot_id), None)
    if known is not None:
        return known
    request = MetadataRequest(metadata, table.storage, snapshot.snapshot_id)
    rows = _rows(request)
    if not rows.height:
        return None
    schema = _schema(request.partition_type, metadata.format_version)
    file_format = format_name(metadata.properties)
    folder = metadata_folder(metadata.location, metadata.properties)
    location = f"{folder}/partition-stats-{snapshot.snapshot_id}-{uuid.uuid4()}.{file_format}"
    writer = ContentFormat(table.storage, file_format, schema, metadata.properties, {}).open(location)
    writer.write_row_group(frame_to_arrow(rows, schema).to_batches())
    written = writer.close()
    file = PartitionStatisticsFile(snapshot.snapshot_id, location, written.file_size_in_bytes)
    with table.update_statistics() as update:
        update.set_statistics(file)
    return file


def _rows(request: MetadataRequest) -> pl.DataFrame:
    """The statistics, sorted by partition with nulls first."""
    frame = live(entry_frame(request, request.manifests()))
    times = pl.DataFrame(
        [(each.snapshot_id, each.timestamp_ms) for each in request.metadata.snapshots],
        schema={"snapshot_id": pl.Int64, "committed_at": pl.Int64},
        orient="row",
    )
    fields = request.partition_type
    partition = partition_struct(frame, fields, [polars_dtype(each.field_type) for each in fields.fields])
    keyed = frame.with_columns(partition).join(times, on="snapshot_id", how="left")
    data, positions, keys = (pl.col("content") == int(each) for each in DataFileContent)
    vector = (
        positions
        & pl.col("referenced_data_file").is_not_null()
        & (pl.col("file_format").str.to_uppercase() == "PUFFIN")
    )
    records, size = pl.col("record_count"), pl.col("file_size_in_bytes")
    newest = pl.col("committed_at").arg_max()
    grouped = keyed.group_by("partition", "spec_id").agg(
        records.filter(data).sum().alias("data_record_count"),
        data.sum().cast(pl.Int32).alias("data_file_count"),
        size.filter(data).sum().alias("total_data_file_size_in_bytes"),
        records.filter(positions).sum().alias("position_delete_record_count"),
        (positions & ~vector).sum().cast(pl.Int32).alias("position_delete_file_count"),
        vector.sum().cast(pl.Int32).alias("dv_count"),
        records.filter(keys).sum().alias("equality_delete_record_count"),
        keys.sum().cast(pl.Int32).alias("equality_delete_file_count"),
        pl.col("committed_at").max().alias("last_updated_at"),
        pl.col("snapshot_id").get(newest, null_on_oob=True).alias("last_updated_snapshot_id"),
    )
    # Position delete files and equality deletes may name rows twice: then only reading tells how many are left.
    is_exact = (pl.col("position_delete_file_count") == 0) & (pl.col("equality_delete_file_count") == 0)
    left = pl.col("data_record_count") - pl.col("position_delete_record_count")
    names = [field.name for field in fields.fields]
    return grouped.with_columns(pl.when(is_exact).then(left).alias("total_record_count")).sort(
        [*(pl.col("partition").struct.field(each) for each in names), "spec_id"], nulls_last=False
    )


def _schema(partition_type: StructType, format_version: int) -> Schema:
    deletes_required = format_version >= 3
    fields = [
        NestedField(1, "partition", partition_type, True),
        NestedField(2, "spec_id", IntegerType(), True),
        NestedField(3, "data_record_count", LongType(), True),
        NestedField(4, "data_file_count", IntegerType(), True),
        NestedField(5, "total_data_file_size_in_bytes", LongType(), True),
        NestedField(6, "position_delete_record_count", LongType(), deletes_required),
        NestedField(7, "position_delete_file_count", IntegerType(), deletes_required),
        NestedField(8, "equality_delete_record_count", LongType(), deletes_required),
        NestedField(9, "equality_delete_file_count", IntegerType(), deletes_required),
        NestedField(10, "total_record_count", LongType()),
        NestedField(11, "last_updated_at", LongType()),
        NestedField(12, "last_updated_snapshot_id", LongType()),
    ]
    if deletes_required:
        fields.append(NestedField(13, "dv_count", IntegerType(), True))
    return Schema(*fields)
