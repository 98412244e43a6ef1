"""The commits that ``select * from db.t changes from … to …`` wants.

A version is a snapshot id, a branch, a tag, or the sequence number of a commit, as the column `_commit_version` has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hms_iceberg.errors import InvalidInputError, NoSuchRefError, NoSuchSnapshotError, UnsupportedError
from hms_iceberg.spark.read_questions import ChangelogRange, ChangesOffset
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Operation, Snapshot

_NUMBER = re.compile(r"[-+]?\d+")


def commits_of(metadata: TableMetadata, head_id: int | None, wanted: ChangelogRange, table: str) -> Sequence[Snapshot]:
    """The commits of a range, oldest first; `head_id` is the snapshot with which it ends if it does not say another.
    Commits without sequence numbers, as those of format version 1, are refused."""
    lineage = _lineage(metadata, head_id)
    found = (
        _by_version(metadata, lineage, wanted, table)
        if wanted.kind == "version"
        else _by_time(metadata, lineage, wanted, table)
    )
    return _numbered(found, table)


def commits_after(
    metadata: TableMetadata, head_id: int | None, start: ChangesOffset, wanted: ChangelogRange, table: str
) -> Sequence[Snapshot]:
    """The commits of a range that a stream has not read, oldest first; where the range begins is known no more. If what
    the stream has read last has expired, perhaps what came next has, too."""
    lineage = _lineage(metadata, head_id)
    ids = [each.snapshot_id for each in lineage]
    known = start.changes_until
    before = lineage[0].parent_snapshot_id if lineage else None
    if known in ids:
        rest = lineage[ids.index(known) + 1 :]
    elif before == known and (lineage or head_id is None):
        rest = lineage
    elif before is not None or (head_id is not None and not lineage):
        raise NoSuchSnapshotError(
            f"Cannot stream the changes of table {table} on: what came after its snapshot {known}, up to which the "
            "stream has read, may have expired. Start the stream with a new checkpoint, and keep snapshots for longer "
            "than a stream may stand still."
        )
    else:
        raise InvalidInputError(
            f"Cannot stream the changes of table {table} on: it was rolled back from its snapshot {known}, up to which "
            "the stream has read. Start the stream with a new checkpoint."
        )
    if wanted.kind == "timestamp":
        rest = [each for each in rest if _is_in_time(wanted, each)]
    elif wanted.end is not None:
        last = _found(metadata, str(wanted.end), table).snapshot_id
        if last in ids and known in ids and ids.index(last) <= ids.index(known):
            return []
        places = [place for place, each in enumerate(rest) if each.snapshot_id == last]
        rest = rest[: places[0] + wanted.end_inclusive] if places else rest
    return _numbered(rest, table)


def _lineage(metadata: TableMetadata, snapshot_id: int | None) -> list[Snapshot]:
    return list(metadata.ancestors_of(snapshot_id))[::-1]


def _by_version(metadata: TableMetadata, lineage: list[Snapshot], wanted: ChangelogRange, table: str) -> list[Snapshot]:
    if wanted.end is not None:
        last = _found(metadata, str(wanted.end), table)
        if last not in lineage:  # of another branch
            lineage = _lineage(metadata, last.snapshot_id)
        lineage = lineage[: lineage.index(last) + 1]
    first = _start(metadata, lineage, wanted, table)
    stop = len(lineage) if wanted.end is None or wanted.end_inclusive else -1
    return lineage[first:stop]


def _start(metadata: TableMetadata, lineage: list[Snapshot], wanted: ChangelogRange, table: str) -> int:
    """The place of the first commit that is wanted."""
    start = str(wanted.start)
    if not wanted.start_inclusive and lineage and start == str(lineage[0].parent_snapshot_id):
        return 0  # it may have expired, as its child names it
    first = _found(metadata, start, table)
    if first in lineage:
        return lineage.index(first) + (not wanted.start_inclusive)
    last = lineage[-1]
    if wanted.end is not None and last in _lineage(metadata, first.snapshot_id):
        raise InvalidInputError(
            f"Cannot read the changes of table {table} from version {start} to version {wanted.end}: the first comes "
            "after the last. Give them in the order in which they were committed."
        )
    raise InvalidInputError(
        f"Cannot read the changes of table {table} from version {start}: the snapshot {first.snapshot_id} is no "
        f"ancestor of {last.snapshot_id}, with which they end; it is of another branch, or the table was rolled back "
        "from it. Choose versions of one branch."
    )


def _found(metadata: TableMetadata, version: str, table: str) -> Snapshot:
    if not _NUMBER.fullmatch(version):
        ref = metadata.refs.get(version)
        if ref is None:
            raise NoSuchRefError(
                f"Cannot read the changes of table {table}: it has no branch or tag {version!r}. Known are "
                f"{', '.join(sorted(metadata.refs)) or 'none'}; a version may also be a snapshot id or the sequence "
                "number of a commit."
            )
        number = ref.snapshot_id
    else:
        number = int(version)  # goes before a branch of that name, as in Iceberg's Java
    found = metadata.snapshot_by_id(number)
    if found is None:
        found = next((each for each in metadata.snapshots if 0 < each.sequence_number == number), None)
    if found is None:
        raise NoSuchSnapshotError(
            f"Cannot read the changes of table {table}: {version} is neither the id of one of its snapshots nor the "
            f"sequence number of a commit; it may have expired. List the snapshots that there are: select * from "
            f"{table}.snapshots."
        )
    return found


def _by_time(metadata: TableMetadata, lineage: list[Snapshot], wanted: ChangelogRange, table: str) -> list[Snapshot]:
    if wanted.start is not None and wanted.end is not None and int(wanted.start) > int(wanted.end):
        raise InvalidInputError(
            f"Cannot read the changes of table {table}: the first timestamp is later than the last. Give them in their "
            "order."
        )
    # Timestamps need not follow the order of commits.
    found = [each for each in lineage if _is_in_time(wanted, each)]
    before = lineage[0].parent_snapshot_id if found and found[0] is lineage[0] else None
    if before is not None:
        raise NoSuchSnapshotError(
            f"Cannot read the changes of table {table} from its beginning, or from a time before its oldest snapshot "
            f"{lineage[0].snapshot_id}: the snapshot before it, {before}, has expired, and nobody knows what it "
            f"changed. Begin with what there is: changes from version {before} exclusive."
        )
    return found


def _is_in_time(wanted: ChangelogRange, snapshot: Snapshot) -> bool:
    if wanted.kind == "unbounded":
        return True
    micros = snapshot.timestamp_ms * 1000
    start, end = int(wanted.start or 0), None if wanted.end is None else int(wanted.end)
    begins = micros > start or (wanted.start_inclusive and micros == start)
    return begins and (end is None or micros < end or (wanted.end_inclusive and micros == end))


def _numbered(snapshots: Sequence[Snapshot], table: str) -> Sequence[Snapshot]:
    for snapshot in snapshots:
        if snapshot.sequence_number <= 0 and snapshot.operation != Operation.REPLACE:
            raise UnsupportedError(
                f"Cannot read the changes of table {table}: its snapshot {snapshot.snapshot_id} was committed in "
                "format version 1, which does not number commits. Begin after it once the table has version 2 (alter "
                f"table … set tblproperties ('format-version' = '2')), or read {table}.changes."
            )
    return snapshots
