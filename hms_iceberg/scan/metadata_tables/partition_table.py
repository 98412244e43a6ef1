"""The table partitions: what each partition of the snapshot holds."""

from __future__ import annotations

from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.residuals import inclusive_projection
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_tables.file_tables import entry_frame, live
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, MetadataTable, partition_struct
from hms_iceberg.scan.partition_columns import partition_predicate, polars_dtype
from hms_iceberg.spec.data_types import IntegerType, LongType, NestedField, StructType, TimestamptzType
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.schema import Schema


def partitions(request: MetadataRequest) -> MetadataTable:
    """One row for each partition of the snapshot; one row in all for a table that was never partitioned."""
    frame = live(entry_frame(request, request.manifests()))
    if request.row_filter is not None:
        frame = _matching(frame, request)
    times = pl.DataFrame(
        [(each.snapshot_id, each.timestamp_ms * 1000) for each in request.metadata.snapshots],
        schema={"snapshot_id": pl.Int64, "committed_at": pl.Int64},
        orient="row",
    )
    partition_type = request.partition_type
    dtypes = [polars_dtype(each.field_type) for each in partition_type.fields]
    keyed = frame.join(times, on="snapshot_id", how="left").sort("committed_at", maintain_order=True)
    if partition_type.fields:
        shown = {field.field_id for field in partition_type.fields}
        widths = {
            spec.spec_id: sum(field.field_id in shown for field in spec.fields)
            for spec in request.metadata.partition_specs
        }
        width = pl.col("spec_id").replace_strict(widths, return_dtype=pl.Int32)
        keyed = keyed.with_columns(partition_struct(frame, partition_type, dtypes), width=width)
        # Null because a spec lacks the field is not the same as null in it; a field of a dropped column does not count.
        grouped = keyed.group_by("partition", "width")
        rows = grouped.agg(pl.col("spec_id").last(), *_counts()).sort("partition", "width")
    else:
        rows = keyed.select(*_counts()) if keyed.height else keyed.clear().select(*_counts()).clear()
    schema = _schema(partition_type)
    return MetadataTable(schema, rows.select(each.name for each in schema.fields))


def _matching(frame: pl.DataFrame, request: MetadataRequest) -> pl.DataFrame:
    """The entries whose partition may hold a row that matches the request's filter."""
    assert request.row_filter is not None
    schema = request.metadata.schema()
    matches = pl.lit(False)
    for spec in request.metadata.partition_specs:
        partition = Schema(*request.partitions.structs[spec.spec_id].fields)
        projected = inclusive_projection(schema, spec, request.case_sensitive)(request.row_filter)
        columns = {field.field_id: f"p{field.field_id}" for field in partition.fields}
        matches |= (pl.col("spec_id") == spec.spec_id) & partition_predicate(bind(partition, projected), columns)
    return frame.filter(matches)


def _counts() -> list[pl.Expr]:
    def of(content: DataFileContent) -> pl.Expr:
        return pl.col("content") == int(content)

    def rows(content: DataFileContent) -> pl.Expr:
        return pl.col("record_count").filter(of(content)).sum()

    def count(content: DataFileContent) -> pl.Expr:
        return of(content).sum().cast(pl.Int32)

    data, positions, keys = DataFileContent.DATA, DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES
    return [
        rows(data).alias("record_count"),
        count(data).alias("file_count"),
        pl.col("file_size_in_bytes").filter(of(data)).sum().alias("total_data_file_size_in_bytes"),
        rows(positions).alias("position_delete_record_count"),
        count(positions).alias("position_delete_file_count"),
        rows(keys).alias("equality_delete_record_count"),
        count(keys).alias("equality_delete_file_count"),
        pl.col("committed_at").last().alias("last_updated_at"),
        pl.col("snapshot_id").filter(pl.col("committed_at").is_not_null()).last().alias("last_updated_snapshot_id"),
    ]


def _schema(partition_type: StructType) -> Schema:
    fields = [
        NestedField(1, "partition", partition_type, True),
        NestedField(4, "spec_id", IntegerType(), True),
        NestedField(2, "record_count", LongType(), True, "Count of records in data files"),
        NestedField(3, "file_count", IntegerType(), True, "Count of data files"),
        NestedField(11, "total_data_file_size_in_bytes", LongType(), True, "Total size in bytes of data files"),
        NestedField(5, "position_delete_record_count", LongType(), True, "Count of records in position delete files"),
        NestedField(6, "position_delete_file_count", IntegerType(), True, "Count of position delete files"),
        NestedField(7, "equality_delete_record_count", LongType(), True, "Count of records in equality delete files"),
        NestedField(8, "equality_delete_file_count", IntegerType(), True, "Count of equality delete files"),
        NestedField(
            9, "last_updated_at", TimestamptzType(), doc="Commit time of snapshot that last updated this partition"
        ),
        NestedField(10, "last_updated_snapshot_id", LongType(), doc="Id of snapshot that last updated this partition"),
    ]
    return Schema(*(fields if partition_type.fields else fields[2:]))
