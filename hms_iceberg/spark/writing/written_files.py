"""From what tasks tell of their files to data files, with the metrics that are taken from footers everywhere."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode, data_file_from_parquet, metrics_modes
from hms_iceberg.spark.reading.conditions import stored_value
from hms_iceberg.spark.writing.worker import described
from hms_iceberg.spark.writing.write_questions import WrittenFile
from hms_iceberg.spec.data_types import StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.storage import Storage

_MAGIC = b"PAR1"


def data_files(
    files: list[WrittenFile], metadata: TableMetadata, properties: Mapping[str, str], storage: Storage, **fields: Any
) -> tuple[DataFile, ...]:
    """The files of a write as manifests hold them.

    Args:
        files: what the tasks told.
        metadata: the table when the write began.
        properties: the table's properties, with those of the write before them.
        storage: where the files are.
        fields: further fields of `DataFile`, such as `sort_order_id`.
    """
    modes = metrics_modes(metadata.schema(), properties, metadata.sort_order())
    return tuple(_data_file(each, metadata, modes, storage, fields) for each in files)


def _data_file(
    file: WrittenFile,
    metadata: TableMetadata,
    modes: Mapping[int, MetricsMode],
    storage: Storage,
    fields: Mapping[str, Any],
) -> DataFile:
    partition = _partition(file.partition, metadata.spec_by_id(file.spec_id), metadata)
    if file.footer is None:
        assert file.described is not None
        return replace(described(file.described), spec_id=file.spec_id, partition=partition, **fields)
    floats = {int(field_id): metrics for field_id, metrics in file.floats.items()}
    return data_file_from_parquet(
        storage,
        file.path,
        metadata.schema(),
        spec_id=file.spec_id,
        partition=partition,
        modes=modes,
        size=file.size,
        footer=_footer(file.footer),
        nan_counts={field_id: nans for field_id, (nans, _, _) in floats.items()},
        float_bounds={
            field_id: None if low is None else (float(low), float(high)) for field_id, (_, low, high) in floats.items()
        },
        **fields,
    )


def _footer(deflated: bytes) -> pq.FileMetaData:
    """A footer alone, read as the end of a file without rows."""
    footer = zlib.decompress(deflated)
    file = b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    return pq.ParquetFile(pa.BufferReader(file), arrow_extensions_enabled=False).metadata


def _partition(values: list[Any], spec: PartitionSpec, metadata: TableMetadata) -> tuple[Any, ...]:
    kinds: StructType = spec.partition_type(metadata.schema_for_spec(spec))
    return tuple(
        None if value is None else stored_value(field.field_type, value)
        for field, value in zip(kinds.fields, values, strict=True)
    )
