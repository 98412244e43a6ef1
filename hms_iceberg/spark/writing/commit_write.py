"""Committing what Spark's tasks have written."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.metrics.file_footer import FileFooter
from hms_iceberg.arrow.metrics.footer_metrics import (
    ColumnMetrics,
    MetricsMode,
    data_file_from_parquet,
    footer_of,
    metrics_modes,
)
from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.spark.reading.conditions import row_filter, stored_value
from hms_iceberg.spark.writing.merge_schema import add_columns
from hms_iceberg.spark.writing.worker import described
from hms_iceberg.spark.writing.write_questions import CommitWrite, WrittenFile
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.data_types import DoubleType, FloatType, StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import LINEAGE
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.spec.values.single_values import bounds_to_bytes
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.transaction.transaction import Transaction
from hms_iceberg.updates.conditional_changes import Epoch, OnceAnEpoch, SinceSnapshot
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.append import FastAppend, MergeAppend
from hms_iceberg.updates.rows.overwrite import Overwrite, ReplacePartitions

_MAGIC = b"PAR1"


def data_files(
    files: list[WrittenFile], metadata: TableMetadata, properties: Mapping[str, str], storage: Storage, **fields: Any
) -> tuple[DataFile, ...]:
    """The files of a write as manifests hold them, with further `fields` of `DataFile`; properties of the write go
    first."""
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
    if file.described is not None:
        return replace(described(file.described), spec_id=file.spec_id, partition=partition, **fields)
    if file.footer is None:
        return DataFile(
            file_path=file.path,
            file_format=file.format.upper(),
            spec_id=file.spec_id,
            partition=partition,
            record_count=file.rows,
            file_size_in_bytes=file.size,
            split_offsets=file.splits or None,
            key_metadata=file.key,
            **_counted(file, metadata.schema(), modes).as_fields(),
            **fields,
        )
    return data_file_from_parquet(
        storage,
        file.path,
        metadata.schema(),
        spec_id=file.spec_id,
        partition=partition,
        modes=modes,
        size=file.size,
        footer=_footer(file.footer, file.path),
        key_metadata=file.key,
        nan_counts={int(field_id): nans for field_id, (_, nans, _, _) in file.columns.items()},
        float_bounds={
            int(field_id): None if low is None else (float(low), float(high))
            for field_id, (_, _, low, high) in file.columns.items()
        },
        nan_leaves=file.nan_leaves,
        **fields,
    )


def _counted(file: WrittenFile, schema: Schema, modes: Mapping[int, MetricsMode]) -> ColumnMetrics:
    """The counts and values that the task told, as manifests hold them."""
    metrics = ColumnMetrics()
    for text, (nulls, nans, low, high) in file.columns.items():
        field_id = int(text)
        kind = (schema.index_by_id.get(field_id) or LINEAGE[field_id]).field_type
        metrics.value_counts[field_id] = file.rows
        metrics.null_value_counts[field_id] = nulls
        floating = isinstance(kind, (FloatType, DoubleType))
        if floating:
            metrics.nan_value_counts[field_id] = nans
        if low is None:
            continue
        least, greatest = stored_value(kind, low), stored_value(kind, high)
        if floating:  # some readers take a zero for less than the other one
            least, greatest = least or -0.0, greatest or 0.0
        lower, upper = bounds_to_bytes(kind, least, greatest, modes[field_id].width)
        metrics.lower_bounds[field_id] = lower
        if upper is not None:
            metrics.upper_bounds[field_id] = upper
    return metrics


def _footer(deflated: bytes, location: str) -> FileFooter:
    """A footer alone, read as the end of a file without rows."""
    footer = zlib.decompress(deflated)
    file = b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    return footer_of(pa.BufferReader(file), location)


def _partition(values: list[Any], spec: PartitionSpec, metadata: TableMetadata) -> tuple[Any, ...]:
    kinds: StructType = spec.partition_type(metadata.schema_for_spec(spec))
    return tuple(
        None if value is None else stored_value(field.field_type, value)
        for field, value in zip(kinds.fields, values, strict=True)
    )


logger = logging.getLogger(__name__)


def commit_write(
    asked: CommitWrite, target: TableTransaction, metadata: TableMetadata, *, is_staged: bool = False
) -> None:
    """Makes a write part of a transaction, which then owns its files: where it is given up, it deletes them. `metadata`
    is the table when the write began. A staged transaction is committed by the statement that made it."""
    transaction = target._transaction
    for file in asked.files:
        transaction.track(file.path)
    if transaction.metadata.table_uuid != metadata.table_uuid:
        raise CommitConflictError(
            f"Cannot write to the table {asked.name}: it was dropped, and another one created under its name, since "
            "the query began. Start it again."
        )
    epoch = _epoch(asked)
    if epoch is not None and epoch.is_in(transaction.metadata):  # before columns are added for it
        logger.info("Epoch %s of the query %s is in %s already", asked.epoch, asked.query_id, asked.name)
        for file in asked.files:
            transaction.workspace.delete_quietly(file.path)
        return
    if asked.decided.columns is not None:
        metadata = add_columns(target, asked.name, metadata, asked.decided.columns)
    update = _update(asked, metadata, transaction)
    if update is not None:
        transaction.add(update if epoch is None else OnceAnEpoch(update, epoch), preview=is_staged)


def _update(asked: CommitWrite, metadata: TableMetadata, transaction: Transaction) -> Update | None:
    """The change that the write makes; None for none."""
    settings = WriteSettings(asked.name, asked.options, asked.session, metadata.properties)
    decided = asked.decided
    files = data_files(
        asked.files, metadata, decided.properties, transaction.workspace.storage, sort_order_id=decided.sort_order_id
    )
    common = snapshot_fields(asked, settings)
    if asked.kind == "append":
        merging = asked.epoch is None or settings.switch("use-merge-append-for-streaming", False)
        return MergeAppend(files, **common) if merging else FastAppend(files, **common)
    update: Update
    if asked.kind == "replace-partitions":
        if not files:
            return None
        update = ReplacePartitions(files, isolation=settings.isolation, **common)
    else:
        update = _overwrite(asked, files, settings, metadata, common)
    start = settings.number("validate-from-snapshot-id")
    return update if start is None else SinceSnapshot(update, start)


def _overwrite(
    asked: CommitWrite,
    files: tuple[DataFile, ...],
    settings: WriteSettings,
    metadata: TableMetadata,
    common: Mapping[str, Any],
) -> Overwrite:
    return Overwrite(
        added=files,
        row_filter=_exact_filter(asked, metadata),
        isolation=settings.isolation,
        **common,
    )


def _exact_filter(asked: CommitWrite, metadata: TableMetadata) -> BooleanExpression:
    if asked.filter is None:
        return AlwaysTrue()
    found, exact = row_filter(asked.filter, metadata.schema())
    if not exact:
        raise InvalidInputError(
            f"Cannot overwrite rows of the table {asked.name}: its condition has a part that cannot be told of whole "
            "files. Use comparisons of columns with constants, or DELETE and INSERT."
        )
    return found


def snapshot_fields(asked: CommitWrite, settings: WriteSettings) -> dict[str, Any]:
    """The fields that updates have of the snapshot, as keywords: `branch`, `stage_only` and `properties`."""
    epoch = _epoch(asked)
    properties = {**asked.engine, **settings.snapshot_properties(), **(epoch.properties if epoch else {})}
    wap_id = settings.wap_id()
    if wap_id is not None:
        properties["wap.id"] = wap_id
    return {
        "branch": asked.decided.branch or MAIN_BRANCH,
        "properties": properties,
        "stage_only": wap_id is not None,
    }


def _epoch(asked: CommitWrite) -> Epoch | None:
    """The epoch of a stream's write; None for other writes."""
    return None if asked.epoch is None else Epoch(asked.query_id, asked.epoch, asked.decided.branch or MAIN_BRANCH)
