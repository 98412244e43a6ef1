"""Snapshots and statistics files against what the table says of them.

Source: Puffin specification; Iceberg specification, "Table Statistics", "Partition Statistics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from hms_iceberg.arrow.columns.projection import file_leaves
from hms_iceberg.arrow.deletes.puffin import blob_bytes, parse_footer
from hms_iceberg.arrow.formats.content_files import open_reader
from hms_iceberg.arrow.storage.filesystems import decoding
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.digests import Listed, ReadAgain, file_key, files_at, repeated, together
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.maintenance.check.summary_check import EntryCounts
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, Snapshot, StatisticsFile
from hms_iceberg.storage import Storage


def check_repeated(snapshot: Snapshot, listed: Sequence[Listed], read: ReadAgain) -> Iterator[Finding]:
    """Finds files that are live more than once, and data files with more than one deletion vector."""
    again = [(file_key(file), file.file_path) for file in files_at(listed, repeated(listed, "file"), read).values()]
    locations = dict(reversed(again))
    for key, count in Counter(key for key, _ in again).items():
        if count > 1:
            yield found.RepeatedFile(snapshot.snapshot_id, locations[key], count)
    second = files_at(listed, repeated(listed, "vector_of"), read).values()
    vectors = Counter(file.referenced_data_file for file in second)
    for data_file, count in vectors.items():
        if count > 1 and data_file is not None:
            yield found.SecondDeletionVector(snapshot.snapshot_id, data_file, count)


def check_row_ids(snapshot: Snapshot, listed: Sequence[Listed], read: ReadAgain) -> Iterator[Finding]:
    """Checks that every live row has its own row id, below the snapshot's next one; none before version 3."""
    data = [each for each in listed if each[0].content is ManifestContent.DATA]
    if snapshot.first_row_id is None or not data:
        return
    files = together(data, "first_row_id", "rows")
    place = ("manifest", "entry")
    without = files.filter(pl.col("first_row_id").is_null()).select(place).rows()
    for file in files_at(data, without, read).values():
        reason = f"it has none in snapshot {snapshot.snapshot_id}"
        yield found.WrongRowIds(f"the file {file.file_path}", reason)
    end = pl.col("first_row_id") + pl.col("rows")
    ranges = (
        files.drop_nulls("first_row_id").select(*place, "first_row_id", end.alias("end")).sort("first_row_id", "end")
    )
    before = ranges.select(pl.all().shift(1).name.suffix("_before"))
    within = pl.concat([ranges, before], how="horizontal").filter(pl.col("first_row_id") < pl.col("end_before"))
    limit = snapshot.first_row_id + (snapshot.added_rows or 0)
    beyond = ranges.filter(pl.col("end") > limit)
    places = [*within.select(place).rows(), *within.select(f"{each}_before" for each in place).rows()]
    names = files_at(data, [*places, *beyond.select(place).rows()], read)
    for row in within.iter_rows(named=True):
        file, other = names[row["manifest"], row["entry"]], names[row["manifest_before"], row["entry_before"]]
        known = f"{other.file_path} ({row['first_row_id_before']} to {row['end_before'] - 1})"
        reason = f"they begin at {row['first_row_id']}, within those of {known}"
        yield found.WrongRowIds(f"the file {file.file_path}", reason)
    for row in beyond.iter_rows(named=True):
        said = f"snapshot {snapshot.snapshot_id} assigned those below {limit}"
        reason = f"they are {row['first_row_id']} to {row['end'] - 1}, {said}"
        yield found.WrongRowIds(f"the file {names[row['manifest'], row['entry']].file_path}", reason)


# Sums of a partition statistics file, and what of the snapshot's files they are.
_SUMS = {"data_record_count": "total-records", "data_file_count": "total-data-files"}


def statistics_damage(storage: Storage, file: StatisticsFile) -> str | None:
    """The first problem of a Puffin file of statistics; changed bytes within a sketch cannot be told."""
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
    """The first problem of a file of partition statistics; its totals are compared if `counts` are known."""
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
