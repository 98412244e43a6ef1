"""Files with statistics against what the table says of them: whole, and about the snapshot that they are named for.

Source: Puffin specification; Iceberg specification, "Table Statistics", "Partition Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from hms_iceberg.arrow.columns.file_schema import file_leaves
from hms_iceberg.arrow.deletes.puffin_footer import blob_bytes, parse_footer
from hms_iceberg.arrow.formats.readers import open_reader
from hms_iceberg.arrow.storage.failures import decoding
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.maintenance.check.summary_check import EntryCounts
from hms_iceberg.spec.statistics_files import PartitionStatisticsFile, StatisticsFile
from hms_iceberg.storage import Storage

# Sums of a partition statistics file, and what of the snapshot's files they are.
_SUMS = {"data_record_count": "total-records", "data_file_count": "total-data-files"}


def statistics_damage(storage: Storage, file: StatisticsFile) -> str | None:
    """The first problem of a Puffin file of statistics; None if there is none.

    Bytes within a sketch may be others than were written: that cannot be told.

    Raises:
        MissingFileError: it is not there.
        StorageError: the storage does not let it be read.
    """
    location, said = file.statistics_path, _named(file)
    try:
        if wrong := _wrong_size(storage, file):
            return wrong
        data = storage.read(location)
        start, footer = parse_footer(data, location)
        if len(data) - start != file.file_footer_size_in_bytes:
            return f"{said} has a footer of {len(data) - start:,} bytes, not {file.file_footer_size_in_bytes:,}."
        with decoding(location, "Puffin", "its footer"):
            held = {_about(blob) for blob in footer["blobs"]}
        if any(
            (each.type, each.fields, each.snapshot_id, each.sequence_number) not in held for each in file.blob_metadata
        ):
            return f"{said} holds other statistics than the table says: it is that of another snapshot or table."
        for blob in footer["blobs"]:
            blob_bytes(data, blob, location)
    except CorruptDataFileError as error:
        return f"{said} is damaged: {error}"
    return None


def _named(file: StatisticsFile | PartitionStatisticsFile) -> str:
    return f"The statistics file {file.statistics_path}"


def _wrong_size(storage: Storage, file: StatisticsFile | PartitionStatisticsFile) -> str | None:
    size, told = storage.length(file.statistics_path), file.file_size_in_bytes
    return None if size == told else f"{_named(file)} has {size:,} bytes, not {told:,}."


def _about(blob: Mapping[str, Any]) -> tuple[Any, ...]:
    return blob["type"], tuple(blob["fields"]), blob["snapshot-id"], blob["sequence-number"]


def partition_statistics_damage(
    storage: Storage, file: PartitionStatisticsFile, counts: EntryCounts | None
) -> str | None:
    """The first problem of a file of partition statistics; None if there is none.

    Args:
        storage: where it is.
        file: what the table says of it.
        counts: those of its snapshot; None if they are not known.

    Raises:
        MissingFileError: it is not there.
        StorageError: the storage does not let it be read.
    """
    said = _named(file)
    try:
        if wrong := _wrong_size(storage, file):
            return wrong
        sums = _sums(storage, file.statistics_path)
    except CorruptDataFileError as error:
        return f"{said} is damaged: {error}"
    for column, key in _SUMS.items():
        if sums.get(column) is None:
            return f"{said} has no column {column}."
        if counts is not None and sums[column] != counts.live[key]:
            return f"{said} says {key} {sums[column]:,}; the snapshot's manifests say {counts.live[key]:,}."
    return None


def _sums(storage: Storage, location: str) -> dict[str, int]:
    """The sums of its columns; every column is read, and so decoded."""
    reader = open_reader(storage, location, location.rpartition(".")[2])
    sums: dict[str, int] = {}
    try:
        leaves = range(len(file_leaves(reader.schema)))
        for rows in reader.ranges():
            for _, batch in reader.read(rows, leaves, rows.rows, False):
                for name in _SUMS.keys() & set(batch.schema.names):
                    sums[name] = sums.get(name, 0) + (pc.sum(batch[name]).as_py() or 0)
    finally:
        reader.close()
    return sums
