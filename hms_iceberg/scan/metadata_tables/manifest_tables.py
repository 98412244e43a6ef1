"""The tables manifests and all_manifests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hms_iceberg.lazy import pl
from hms_iceberg.scan.metadata_tables.request import MetadataRequest, MetadataTable
from hms_iceberg.scan.partition_columns import field_types
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_bytes

_SUMMARY = StructType(
    NestedField(10, "contains_null", BooleanType(), True),
    NestedField(11, "contains_nan", BooleanType()),
    NestedField(12, "lower_bound", StringType()),
    NestedField(13, "upper_bound", StringType()),
)
# Lists of format version 1 may leave counts out, and older ones say nothing of NaN: these stay optional, though Java
# has them as required in one of the two tables.
_FIELDS = (
    NestedField(14, "content", IntegerType(), True),
    NestedField(1, "path", StringType(), True),
    NestedField(2, "length", LongType(), True),
    NestedField(3, "partition_spec_id", IntegerType(), True),
    NestedField(4, "added_snapshot_id", LongType(), True),
    NestedField(5, "added_data_files_count", IntegerType()),
    NestedField(6, "existing_data_files_count", IntegerType()),
    NestedField(7, "deleted_data_files_count", IntegerType()),
    NestedField(15, "added_delete_files_count", IntegerType(), True),
    NestedField(16, "existing_delete_files_count", IntegerType(), True),
    NestedField(17, "deleted_delete_files_count", IntegerType(), True),
    NestedField(8, "partition_summaries", ListType(9, _SUMMARY, True), True),
)
_OPTIONAL_OF_ALL = ("partition_spec_id", "added_snapshot_id", "partition_summaries")
MANIFESTS = Schema(*_FIELDS)
ALL_MANIFESTS = Schema(
    *(replace(each, required=False) if each.name in _OPTIONAL_OF_ALL else each for each in _FIELDS),
    NestedField(18, "reference_snapshot_id", LongType(), True),
    NestedField(19, "key_metadata", BinaryType()),
)


def manifests(request: MetadataRequest) -> MetadataTable:
    """One row for each manifest of the snapshot."""
    summaries = _SummaryTexts(request)
    return MetadataTable(MANIFESTS, _frame(_row(each, summaries) for each in request.manifests()))


def all_manifests(request: MetadataRequest) -> MetadataTable:
    """One row for each manifest of each snapshot."""
    summaries = _SummaryTexts(request)
    rows = [
        (*_row(each, summaries), snapshot.snapshot_id, each.key_metadata) for snapshot, each in request.all_manifests()
    ]
    return MetadataTable(ALL_MANIFESTS, _frame(rows, is_all=True))


class _SummaryTexts:
    """Partition summaries as people read them."""

    def __init__(self, request: MetadataRequest) -> None:
        self._types = field_types(request.metadata)
        self._specs = request.metadata.specs_by_id

    def of(self, manifest: ManifestFile) -> list[dict[str, Any]]:
        """One summary for each partition field."""
        spec = self._specs.get(manifest.partition_spec_id)
        fields = () if spec is None else spec.fields
        return [
            {
                "contains_null": summary.contains_null,
                "contains_nan": summary.contains_nan,
                "lower_bound": self._text(field, summary.lower_bound),
                "upper_bound": self._text(field, summary.upper_bound),
            }
            for field, summary in zip(fields, manifest.partitions or (), strict=False)
        ]

    def _text(self, field: PartitionField, bound: bytes | None) -> str:
        """A bound as text, as Java shows it: a text also if there is none."""
        source: IcebergType = self._types.get(field.source_id, UnknownType())
        if bound is None or isinstance(source, UnknownType):
            return "null"
        return field.transform.to_human_string(source, from_bytes(field.transform.result_type(source), bound))


def _row(manifest: ManifestFile, summaries: _SummaryTexts) -> tuple[Any, ...]:
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    is_data = manifest.content is ManifestContent.DATA
    return (
        int(manifest.content),
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.partition_spec_id,
        manifest.added_snapshot_id,
        *(counts if is_data else (0, 0, 0)),
        *((0, 0, 0) if is_data else counts),
        summaries.of(manifest),
    )


def _frame(rows: Iterable[tuple[Any, ...]], is_all: bool = False) -> pl.DataFrame:
    summary = {"contains_null": pl.Boolean, "contains_nan": pl.Boolean}
    bounds = {"lower_bound": pl.String, "upper_bound": pl.String}
    special = {
        "path": pl.String,
        "key_metadata": pl.Binary,
        "partition_summaries": pl.List(pl.Struct({**summary, **bounds})),
    }
    longs = ("length", "added_snapshot_id", "reference_snapshot_id")
    names = [each.name for each in (ALL_MANIFESTS if is_all else MANIFESTS).fields]
    dtypes: dict[str, Any] = {name: special.get(name, pl.Int64 if name in longs else pl.Int32) for name in names}
    return pl.DataFrame(list(rows), schema=dtypes, orient="row")
