"""The files of a snapshot as a whole: none is live twice, every row has an id of its own.

Source: Iceberg specification, "Manifests", "Deletion Vectors", "Row Lineage".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hms_iceberg.lazy import pl
from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.digests import Listed, ReadAgain, files_at, repeated, together
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.spec.snapshots_and_refs import Snapshot


def check_repeated(snapshot: Snapshot, listed: Sequence[Listed], read: ReadAgain) -> Iterator[Finding]:
    """Files that are live more than once, and data files with more than one deletion vector.

    Args:
        snapshot: the snapshot.
        listed: its manifests.
        read: reads a manifest again, for the names of what is found.
    """
    again = files_at(listed, repeated(listed, "file"), read).values()
    times = Counter((file.file_path, file.content_offset) for file in again)
    for (location, _), count in times.items():
        if count > 1:
            yield found.RepeatedFile(snapshot.snapshot_id, location, count)
    second = files_at(listed, repeated(listed, "vector_of"), read).values()
    vectors = Counter(file.referenced_data_file for file in second)
    for data_file, count in vectors.items():
        if count > 1 and data_file is not None:
            yield found.SecondDeletionVector(snapshot.snapshot_id, data_file, count)


def check_row_ids(snapshot: Snapshot, listed: Sequence[Listed], read: ReadAgain) -> Iterator[Finding]:
    """Every live row has an id of its own, below the snapshot's next one.

    Args:
        snapshot: the snapshot; one of before format version 3 has no row ids.
        listed: its manifests.
        read: reads a manifest again, for the names of what is found.
    """
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
