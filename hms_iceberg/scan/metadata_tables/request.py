"""The request for a metadata table, and the table: a frame with an Iceberg schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import NoSuchSnapshotError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.scan.partition_columns import PartitionColumns, partition_columns
from hms_iceberg.spec.data_types import StructType
from hms_iceberg.spec.manifests.manifest_values import ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import unified_partition_type
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage


@dataclass(frozen=True)
class MetadataTable:
    """A metadata table: its columns as Apache Iceberg (Java) has them, and its rows as stored values. Dates and
    timestamps are integers, UUIDs bytes; a map is a list of structs of ``key`` and ``value``."""

    schema: Schema
    frame: pl.DataFrame


@dataclass(frozen=True)
class MetadataRequest:
    metadata: TableMetadata
    storage: Storage
    snapshot_id: int | None = None  # for tables about one; None takes the current one
    metadata_location: str | None = None  # the current metadata file, for ``metadata_log_entries``
    row_filter: BooleanExpression | None = None  # for ``partitions``: only those that may hold a row that matches
    case_sensitive: bool = True
    # which are needed (None: all); tables of files leave out others, as metrics take most of their time
    columns: Collection[str] | None = None
    # of ``readable_metrics``, the table's columns that are needed, and which metrics of each; None for all of all
    metrics: Mapping[str, Collection[str]] | None = None
    # the manifests to read, of tables of files; None for those of the snapshot, or of all
    listed: Sequence[ManifestFile] | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot; None for a table without any."""
        if self.snapshot_id is None:
            return self.metadata.current_snapshot()
        snapshot = self.metadata.snapshot_by_id(self.snapshot_id)
        if snapshot is None:
            raise NoSuchSnapshotError(
                f"Cannot inspect the table at {self.metadata.location}: it has no snapshot {self.snapshot_id}"
            )
        return snapshot

    def manifests(self) -> list[ManifestFile]:
        """The manifests of the snapshot, or those that are listed."""
        if self.listed is not None:
            return list(self.listed)
        return [] if self.snapshot is None else manifests_of(self.snapshot, self.storage)

    def all_manifests(self) -> list[tuple[Snapshot, ManifestFile]]:
        """The manifests of every snapshot, each with its snapshot."""
        return [
            (snapshot, manifest)
            for snapshot in self.metadata.snapshots
            for manifest in manifests_of(snapshot, self.storage)
        ]

    def distinct_manifests(self) -> list[ManifestFile]:
        """The manifests of all snapshots, each once, or those that are listed."""
        if self.listed is not None:
            return list(self.listed)
        return list({manifest.manifest_path: manifest for _, manifest in self.all_manifests()}.values())

    @cached_property
    def partitions(self) -> PartitionColumns:
        return partition_columns(self.metadata)

    @cached_property
    def partition_type(self) -> StructType:
        """The partition fields of all specs; those of dropped columns are left out."""
        return unified_partition_type(self.metadata.partition_specs, self.metadata.schema())


def partition_struct(frame: pl.DataFrame, fields: StructType, dtypes: Sequence[object]) -> pl.Expr:
    """The partition columns of a frame as one struct; null if the row's spec lacks the field."""

    def value(name: str, field_id: int, dtype: object) -> pl.Expr:
        column = f"p{field_id}"
        known = column in frame.columns and frame.schema[column] != pl.Null
        return (pl.col(column) if known else pl.lit(None)).cast(dtype).alias(name)  # type: ignore[arg-type]

    parts = (value(each.name, each.field_id, dtype) for each, dtype in zip(fields.fields, dtypes, strict=True))
    return pl.struct(*parts).alias("partition")
