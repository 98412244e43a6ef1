"""Reading data files in Spark's Python workers, in Spark's types.

These are files with types that Spark's own readers do not know, and ORC and Avro files that are encrypted. Each becomes
a pickled task, a row of a small relation that Spark spreads over its executors; ``read_in_worker`` turns tasks into
rows.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.nested import children_of, make_struct, struct_children, with_children
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.expressions.bound import BoundPredicate, BoundVariantGet
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import RebuildingVisitor, fold
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_filter import with_metadata_columns
from hms_iceberg.scan.tasks import FileScanTask, ScanPlan
from hms_iceberg.spark.nanoseconds import shown, to_spark
from hms_iceberg.spark.reading.worker_code import for_workers
from hms_iceberg.spark.schemas import is_held, needs_python
from hms_iceberg.spec.data_types import (
    NANO_TIMESTAMPS,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
    TimeType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import PARTITION_ID, metadata_column
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

# Spark's numbers of coordinate reference systems.
_SRIDS = {"OGC:CRS84": 4326, "EPSG:3857": 3857, "SRID:0": 0}
# How Spark tells a variant from a struct.
_VARIANT = [
    pa.field("value", pa.binary(), False),
    pa.field("metadata", pa.binary(), False, {"variant": "true"}),
]


def for_spark(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch with UUIDs as text, fixed bytes as bytes, times in nanoseconds, and variants and shapes marked. A batch
    without columns gets one of nulls: between Spark and its workers, rows are counted by their columns."""
    if not schema.fields:
        return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.bool_())], names=["row"])
    columns = [
        pa.nulls(batch.num_rows, pa.struct([])) if _is_no_partition(field) else converted(column, field.field_type)
        for column, field in zip(batch.columns, schema.fields, strict=True)
    ]
    fields = [_field(field, column) for field, column in zip(schema.fields, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _is_no_partition(field: NestedField) -> bool:
    """Whether the partition is null, as Iceberg's Java gives it for a table that was never partitioned."""
    return field.field_id == PARTITION_ID and not field.field_type.fields  # type: ignore[attr-defined]


def converted(array: Any, kind: IcebergType) -> Any:
    """A column in Spark's type for it."""
    if isinstance(kind, UUIDType):
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in storage.to_pylist()]
        return pa.array(texts, pa.string())
    if isinstance(kind, FixedType):
        return array.cast(pa.binary())
    if isinstance(kind, TimeType):
        return array.cast(pa.time64("ns"))
    if isinstance(kind, VariantType):
        metadata, value = struct_children(array)
        return make_struct(array, [value, metadata], _VARIANT)
    if isinstance(kind, (GeometryType, GeographyType)):
        wkb = array.storage if isinstance(array, pa.ExtensionArray) else array
        srid = _SRIDS[kind.crs.upper()]
        marks = {"geometry" if isinstance(kind, GeometryType) else "geography": "true", "srid": str(srid)}
        fields = [pa.field("srid", pa.int32(), False), pa.field("wkb", pa.binary(), False, marks)]
        return make_struct(wkb, [pa.repeat(pa.scalar(srid, pa.int32()), len(wkb)), wkb.cast(pa.binary())], fields)
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns" and not isinstance(kind, NANO_TIMESTAMPS):
        return to_spark(array, kind)
    if isinstance(kind, NestedType):
        below = zip(children_of(array), kind.children(), strict=True)
        children = [converted(child, field.field_type) for child, field in below]
        return with_children(array, children, list(map(_field, kind.children(), children)))
    return array


def _field(field: NestedField, column: Any) -> pa.Field:
    return pa.field(field.name, column.type, field.optional)


_BATCH_ROWS = 10_000  # what Spark's own Arrow batches hold


def split(plan: ScanPlan, lacking_types: Collection[str]) -> tuple[ScanPlan, ScanPlan | None]:
    """Splits a plan into what the bridge's readers read in the JVM, and what Python workers have to, if anything."""
    others = _only_in_python(plan.files, plan.metadata)
    if any(needs_python(each, lacking_types) for each in plan.metadata.schemas):
        others |= True
    deletes = _only_in_python(plan.delete_files, plan.metadata) & plan.delete_files["content_size_in_bytes"].is_null()
    deletes |= _of_unheld_keys(plan, lacking_types)
    if not others.any() and not deletes.any():
        return plan, None
    mask = others | (plan.count_deletes(deletes) > 0)
    in_workers = replace(plan.subset(mask), row_filter=fold(plan.row_filter, _WithoutVariants()))
    return plan.subset(~mask), in_workers


def _only_in_python(files: pl.DataFrame, metadata: TableMetadata) -> pl.Series:
    """Which ORC and Avro files the bridge cannot read: encrypted ones, and those of tables with variants or shapes."""
    found = files["file_format"].str.to_uppercase() != "PARQUET"
    if not found.any():
        return found
    kinds = {type(field.field_type) for schema in metadata.schemas for field in schema.index_by_id.values()}
    if kinds.isdisjoint((VariantType, GeometryType, GeographyType)):
        found &= files["key_metadata"].is_not_null()
    return found


class _WithoutVariants(RebuildingVisitor):
    """Leaves tests of values within variants to Spark, whose casts go by its time zone."""

    def visit_bound(self, predicate: BoundPredicate) -> BooleanExpression:
        return AlwaysTrue() if isinstance(predicate.term, BoundVariantGet) else predicate


def _of_unheld_keys(plan: ScanPlan, lacking_types: Collection[str]) -> pl.Series:
    """Which delete files have keys that Spark cannot compare, because it cannot hold them."""
    keys = plan.delete_files["equality_ids"]
    if keys.null_count() == len(keys):
        return pl.repeat(False, len(keys), dtype=pl.Boolean, eager=True)
    unheld = {
        field_id
        for schema in (plan.schema, *plan.metadata.schemas)
        for field_id, field in schema.index_by_id.items()
        if not is_held(field.field_type, lacking_types)
    }
    return pl.Series([any(each in unheld for each in ids or ()) for ids in keys.to_list()], dtype=pl.Boolean)


@dataclass(frozen=True)
class _Reading:
    """The part that every task of a scan has in common."""

    filter_schema: Schema
    projected: Schema
    metadata: TableMetadata
    storage: Storage
    marks_deleted: bool
    nanoseconds: str | None


def worker_command(reading: bytes) -> bytes:
    """Pickles the function of Spark's Python workers, from pickled tasks to rows in batches; see `what_to_read`."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from hms_iceberg.spark.reading.worker_files import read_in_worker

        return read_in_worker(reading, batches)

    return for_workers(read, "the ORC and Avro files of Iceberg tables")


def what_to_read(
    metadata: TableMetadata,
    schema: Schema,
    columns: Sequence[str],
    storage: Storage,
    marks_deleted: bool = False,
    nanoseconds: str | None = None,
    types: Sequence[Any] = (),
) -> bytes:
    """Pickles what every task of a scan has in common, for `read_in_worker`: filters are bound to `schema`, `columns`
    come in order (metadata columns too) with Spark's `types` of nested fields; `marks_deleted` reads deleted rows, and
    `nanoseconds` is what the session takes such timestamps for."""
    filter_schema = with_metadata_columns(metadata, schema)
    projected = _projected(metadata, schema, columns)
    if types:
        read = (_with_type(each, _parts(each.field_type, of)) for each, of in zip(projected.fields, types, strict=True))
        projected = Schema(*read)
    slim = slim_metadata(metadata)
    return pickle.dumps(_Reading(filter_schema, projected, slim, storage, marks_deleted, nanoseconds))


def pickled_tasks(plan: ScanPlan) -> list[bytes]:
    """The tasks of a plan, in the order of its files."""
    return [pickle.dumps(task) for task in plan.tasks()]


def read_in_worker(reading: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the files of tasks in Spark's Python workers: rows in Spark's types, deletes applied."""
    common: _Reading = pickle.loads(reading)
    schema, metadata, storage = common.projected, common.metadata, common.storage
    tasks: Iterator[FileScanTask] = (pickle.loads(task.as_py()) for batch in batches for task in batch.column(0))
    read = read_tasks(
        tasks,
        common.filter_schema,
        schema,
        metadata,
        storage,
        batch_rows=_BATCH_ROWS,
        marks_deleted=common.marks_deleted,
    )
    in_spark = shown(schema, common.nanoseconds)
    return (for_spark(rows, in_spark) for rows in read)


def _projected(metadata: TableMetadata, schema: Schema, columns: Sequence[str]) -> Schema:
    own: Mapping[str, NestedField] = {field.name: field for field in schema.fields}
    fields = []
    for name in columns:
        field = own.get(name) or metadata_column(name, metadata.partition_specs, schema)
        if field is None:
            raise UnsupportedError(f"Cannot read the column {name!r} of ORC and Avro files from Spark.")
        fields.append(field)
    return Schema(*fields)


def _parts(kind: IcebergType, read: Any) -> IcebergType:
    """A type whose structs have only the fields that they have in a type of Spark's JSON."""
    if isinstance(kind, StructType):
        own = {field.name: field for field in kind.fields}
        found = ((own[each["name"]], each["type"]) for each in read["fields"])
        return StructType(*(_with_type(field, _parts(field.field_type, of)) for field, of in found))
    if isinstance(kind, ListType):
        return ListType(kind.element_id, _parts(kind.element_type, read["elementType"]), kind.element_required)
    if isinstance(kind, MapType):
        key, value = _parts(kind.key_type, read["keyType"]), _parts(kind.value_type, read["valueType"])
        return MapType(kind.key_id, key, kind.value_id, value, kind.value_required)
    return kind


def _with_type(field: NestedField, kind: IcebergType) -> NestedField:
    return NestedField(
        field.field_id, field.name, kind, field.required, field.doc, field.initial_default, field.write_default
    )


def slim_metadata(metadata: TableMetadata) -> TableMetadata:
    """Only what reading files and manifests needs: a long history need not travel to every worker."""
    properties = {key: value for key, value in metadata.properties.items() if key.startswith("schema.")}
    return replace(
        metadata,
        properties=properties,
        snapshots=(),
        current_snapshot_id=None,
        snapshot_log=(),
        metadata_log=(),
        refs={},
        statistics=(),
        partition_statistics=(),
    )
