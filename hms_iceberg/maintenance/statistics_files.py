"""Statistics of a table in files that its metadata names: distinct values of columns, and a row for each partition.

Distinct values are kept as sketches in a Puffin file.

Source: Puffin specification, blob type `apache-datasketches-theta-v1`; Iceberg documentation, "Spark Procedures",
`compute_table_stats`; Iceberg specification, "Partition Statistics".
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence

import cramjam
import mmh3
import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_stored
from hms_iceberg.arrow.columns.frames import frame_to_arrow
from hms_iceberg.arrow.deletes.puffin import PuffinBlob, write_puffin
from hms_iceberg.arrow.formats.content_files import ContentFormat, format_name
from hms_iceberg.encryption.encrypted_tables import refuse_encrypted
from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError, UnknownColumnError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_tables.file_tables import entry_frame, live
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, partition_struct
from hms_iceberg.scan.partition_columns import polars_dtype
from hms_iceberg.spec.data_types import IntegerType, LongType, NestedField, PrimitiveType, StructType, UnknownType
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import BlobMetadata, PartitionStatisticsFile, Snapshot, StatisticsFile
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.table.table import Table

_SEED = 9001
_SEED_HASH = mmh3.hash64(struct.pack("<q", _SEED), 0, signed=False)[0] & 0xFFFF
_NOMINAL_ENTRIES = 4096  # as Apache Iceberg's
_MAX_THETA = (1 << 63) - 1
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED = 2, 4, 8, 16
_COMPACT_FAMILY, _SERIAL_VERSION = 3, 3


class ThetaSketch:
    """The smallest hashes of distinct values: so many that their spread tells how many values there are."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.uint64)
        self._theta = _MAX_THETA

    def update(self, values: Iterable[bytes]) -> None:
        """Counts values in their single-value serialization; equal ones count once."""
        hashes = np.fromiter((mmh3.hash64(value, _SEED, signed=False)[0] >> 1 for value in values), np.uint64)
        merged = np.union1d(self._hashes, hashes[(hashes < self._theta) & (hashes > 0)])
        if len(merged) > _NOMINAL_ENTRIES:
            self._theta = int(merged[_NOMINAL_ENTRIES])
            merged = merged[:_NOMINAL_ENTRIES]
        self._hashes = merged

    @property
    def estimate(self) -> float:
        """About how many distinct values there were; exact up to 4096."""
        return len(self._hashes) / (self._theta / _MAX_THETA)

    def serialized(self) -> bytes:
        count = len(self._hashes)
        flags = _READ_ONLY | _COMPACT | _ORDERED
        if count == 0:
            return struct.pack("<BBBBBBH", 1, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags | _EMPTY, _SEED_HASH)
        estimates = self._theta < _MAX_THETA
        if count == 1 and not estimates:
            head = struct.pack("<BBBBBBH", 1, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
            return head + self._hashes.tobytes()
        longs = 3 if estimates else 2
        head = struct.pack("<BBBBBBH", longs, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
        head += struct.pack("<If", count, 1.0)
        if estimates:
            head += struct.pack("<Q", self._theta)
        return head + self._hashes.tobytes()


_NOT_ENCRYPTED = "A file of statistics has no place for its key, and would show values to whoever reads storage."
THETA_V1 = "apache-datasketches-theta-v1"
_NDV = "ndv"


def compute_table_stats(
    table: Table, *, snapshot_id: int | None = None, columns: Sequence[str] | None = None
) -> StatisticsFile | None:
    """Counts the distinct values of columns in a snapshot, writes sketches of them to a file and registers it.

    Args:
        table: the table, which moves to its newest version.
        snapshot_id: the snapshot; the current one by default.
        columns: top-level columns of primitive types; all such by default.

    Returns:
        The file, in place of one that the snapshot had; None for a table without snapshots.

    Raises:
        NoSuchSnapshotError: the table has no such snapshot.
        UnknownColumnError, InvalidInputError: a column is not there, or of no primitive type.
        CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
    """
    name = ".".join(table.identifier)
    metadata = table.refresh().metadata
    refuse_encrypted(metadata.properties, name, "Cannot compute statistics of table", _NOT_ENCRYPTED)
    snapshot = metadata.current_snapshot() if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        if snapshot_id is None:
            return None
        raise NoSuchSnapshotError(f"Cannot compute statistics of table {name}: it has no snapshot {snapshot_id}.")
    schema = metadata.schema_for_snapshot(snapshot)
    fields = _fields(schema, columns, name)
    blobs = [
        _blob(field, sketch, snapshot) for field, sketch in zip(fields, _sketches(table, snapshot, fields), strict=True)
    ]
    folder = metadata_folder(metadata.location, metadata.properties)
    location = f"{folder}/{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    written = write_puffin(table.storage, location, blobs)
    file = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        file_size_in_bytes=written.size,
        file_footer_size_in_bytes=written.footer_size,
        blob_metadata=tuple(
            BlobMetadata(blob.type, blob.snapshot_id, blob.sequence_number, tuple(blob.fields), dict(blob.properties))
            for blob in blobs
        ),
    )
    with table.update_statistics() as update:
        update.set_statistics(file)
    return file


def _fields(schema: Schema, columns: Sequence[str] | None, name: str) -> list[NestedField]:
    if columns is None:
        return [field for field in schema.fields if _has_values(field)]
    top = {field.name: field for field in schema.fields}
    fields = []
    for column in columns:
        if column not in top:
            raise UnknownColumnError(
                f"Cannot compute statistics of table {name}: it has no column {column!r}, only {', '.join(top)}."
            )
        if not _has_values(top[column]):
            raise InvalidInputError(
                f"Cannot compute statistics of table {name}: column {column} of type {top[column].field_type} has no "
                "primitive values."
            )
        fields.append(top[column])
    return fields


def _has_values(field: NestedField) -> bool:
    return isinstance(field.field_type, PrimitiveType) and not isinstance(field.field_type, UnknownType)


def _sketches(table: Table, snapshot: Snapshot, fields: Sequence[NestedField]) -> list[ThetaSketch]:
    sketches = [ThetaSketch() for _ in fields]
    if fields:
        scan = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=tuple(field.name for field in fields))
        for batch in scan.to_arrow_batch_reader():
            for sketch, field, column in zip(sketches, fields, batch.columns, strict=True):
                sketch.update(_distinct(column, field))
    return sketches


def _distinct(column: pa.Array, field: NestedField) -> Iterable[bytes]:
    """The distinct values of a batch, in their single-value serialization; null is none."""
    plain = column.storage if isinstance(column, pa.ExtensionArray) else column
    values: Iterator[object] = iter(to_stored(plain.unique().drop_null(), field.field_type))
    return (to_bytes(field.field_type, value) for value in values)


def _blob(field: NestedField, sketch: ThetaSketch, snapshot: Snapshot) -> PuffinBlob:
    return PuffinBlob(
        type=THETA_V1,
        fields=(field.field_id,),
        data=bytes(cramjam.zstd.compress(sketch.serialized())),
        properties={_NDV: str(int(sketch.estimate))},
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        compression="zstd",
    )


# -------------------------------------------------------------------------------------------------- by partition


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
        ConfigurationError: the table's `write.format.default` is unknown.
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
