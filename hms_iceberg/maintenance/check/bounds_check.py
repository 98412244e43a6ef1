"""Bounds in manifests against the footers of Parquet files, and where these do not bear them out, against the values.

Manifests may have bounds from statistics that are not to be believed: of old writers, of types that these ordered
wrongly. Only files that others wrote are looked at unless every file is opened anyway; tables have a name mapping for
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hms_iceberg.arrow.formats.content_files import open_reader
from hms_iceberg.arrow.formats.parquet_reader import ParquetReader
from hms_iceberg.arrow.metrics.batch_metrics import BatchMetrics
from hms_iceberg.arrow.metrics.footer_metrics import FULL, ColumnMetrics, MetricsMode, metrics_modes
from hms_iceberg.arrow.reading.scan_context import ScanContext
from hms_iceberg.arrow.reading.task_reader import read_task
from hms_iceberg.maintenance.check.findings import WrongBounds
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    PrimitiveType,
    StringType,
    UUIDType,
    leaf_positions,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.values.single_values import from_bytes
from hms_iceberg.storage import Storage

_DOUBTFUL = (DecimalType, StringType, BinaryType, FixedType, UUIDType, FloatType, DoubleType)
_BATCH_ROWS = 65_536


class Bounds:
    def __init__(self, metadata: TableMetadata, storage: Storage) -> None:
        self._metadata = metadata
        self._storage = storage
        self._schema = metadata.schema()
        self._kinds = {
            field.field_id: field.field_type
            for field, _ in leaf_positions(self._schema.fields)
            if isinstance(field.field_type, _DOUBTFUL)
        }

    @classmethod
    def to_check(cls, metadata: TableMetadata, storage: Storage, every_file: bool) -> Bounds | None:
        """The check of a table's bounds; None for a table without files that others wrote, unless of `every_file`."""
        return cls(metadata, storage) if every_file or metadata.name_mapping() is not None else None

    def check(self, file: DataFile) -> list[WrongBounds]:
        """The columns with values outside of their bounds, of a file whose entry has metrics."""
        wrong = self._wrong(file)
        return [
            WrongBounds(file.file_path, self._schema.find_column_name(field_id) or str(field_id), *way)
            for field_id, way in wrong.items()
        ]

    def mended(self, file: DataFile) -> DataFile | None:
        """The file, whose entry has metrics, with bounds made anew from its values; None if its bounds are right."""
        wrong = self._wrong(file)
        if not wrong:
            return None
        metadata = self._metadata
        modes = metrics_modes(self._schema, metadata.properties, metadata.sort_order())
        kept = self._counted(file, {field_id: modes[field_id] for field_id in wrong})
        lower, upper = (
            {field_id: bound for field_id, bound in (said or {}).items() if field_id not in wrong} | counted
            for said, counted in (
                (file.lower_bounds, kept.lower_bounds),
                (file.upper_bounds, kept.upper_bounds),
            )
        )
        return replace(file, lower_bounds=lower, upper_bounds=upper)

    def _wrong(self, file: DataFile) -> dict[int, tuple[str, str]]:
        """By field id of each column with wrong bounds, which way they are, and what they say."""
        doubtful = self._not_borne_out(file)
        counted = self._counted(file, dict.fromkeys(doubtful, FULL)) if doubtful else ColumnMetrics()
        return {field_id: way for field_id in doubtful if (way := self._outside(file, counted, field_id)) is not None}

    def _outside(self, file: DataFile, values: ColumnMetrics, field_id: int) -> tuple[str, str] | None:
        """Which way some values of a file lie outside of its bounds, and the bound; None if all lie within."""
        kind = self._kinds[field_id]
        assert isinstance(kind, PrimitiveType)
        for said, found, way in (
            (file.lower_bounds, values.lower_bounds, "below the least"),
            (file.upper_bounds, values.upper_bounds, "above the greatest"),
        ):
            if field_id in (said or {}) and field_id in found:
                bound, value = from_bytes(kind, (said or {})[field_id]), from_bytes(kind, found[field_id])
                if value < bound if said is file.lower_bounds else value > bound:
                    return way, repr(bound)
        return None

    def _not_borne_out(self, file: DataFile) -> list[int]:
        """The columns whose bounds the file's footer does not bear out."""
        said = {*(file.lower_bounds or {}), *(file.upper_bounds or {})} & self._kinds.keys()
        if not said or not file.is_data or file.file_format.upper() != "PARQUET":
            return []
        mapping = self._metadata.name_mapping()
        reader = open_reader(self._storage, file.file_path, file.file_format, mapping, file.key_metadata)
        try:
            assert isinstance(reader, ParquetReader)
            told = reader.metrics(self._schema, said)
        finally:
            reader.close()
        borne = {
            field_id
            for field_id in said & told.lower_bounds.keys() & told.upper_bounds.keys()
            if self._outside(file, told, field_id) is None
        }
        return sorted((said - borne) & told.value_counts.keys())

    def _counted(self, file: DataFile, modes: Mapping[int, MetricsMode]) -> ColumnMetrics:
        """The metrics of the values of some columns."""
        schema = self._schema.select_ids(modes)
        context = ScanContext(self._metadata, self._storage, schema, schema, _BATCH_ROWS)
        counted = BatchMetrics(schema, modes)
        for batch in read_task(context, FileScanTask.of(file)):
            counted.add(batch)
        return counted.result()
