"""The commits that the clause CHANGES wants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import IcebergError, InvalidInputError, NoSuchRefError, NoSuchSnapshotError, UnsupportedError
from hms_iceberg.spark.read_questions import ChangelogRange, ChangesOffset
from hms_iceberg.spark.reading.changelog.changelog_ranges import commits_after, commits_of
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.table.file_system import FileSystemTables

ROWS = pa.table({"id": pa.array([1], pa.int64())})
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def metadata(tmp_path: Path) -> TableMetadata:
    """Four commits, a second from one to the next; a tag is at the second."""
    table = FileSystemTables().create(ROWS.schema, str(tmp_path / "t"))
    for _ in range(4):
        table.append(ROWS)
    with table.manage_snapshots() as manage:
        manage.create_tag(table.refresh().metadata.snapshots[1].snapshot_id, "second")
    made = table.refresh().metadata
    timed = (replace(each, timestamp_ms=FIRST_MS + 1000 * n) for n, each in enumerate(made.snapshots))
    return replace(made, snapshots=tuple(timed))


def found(metadata: TableMetadata, wanted: ChangelogRange, head: int | None = None) -> list[int]:
    head_id = metadata.current_snapshot_id if head is None else metadata.snapshots[head].snapshot_id
    return [each.sequence_number for each in commits_of(metadata, head_id, wanted, "t")]


def expired(metadata: TableMetadata, count: int) -> TableMetadata:
    return replace(metadata, snapshots=metadata.snapshots[count:], refs={})


def rolled_back(metadata: TableMetadata, to: int) -> TableMetadata:
    return replace(metadata, current_snapshot_id=metadata.snapshots[to].snapshot_id)


@pytest.mark.parametrize(
    ("start", "end", "inclusive", "wanted"),
    [
        ("1", None, (True, True), [1, 2, 3, 4]),
        ("1", None, (False, True), [2, 3, 4]),
        ("2", "3", (True, True), [2, 3]),
        ("2", "3", (False, False), []),
        ("2", "2", (True, True), [2]),
        ("2", "2", (False, True), []),
        ("2", "2", (True, False), []),
        ("second", "main", (False, False), [3]),
        ("1", "second", (True, True), [1, 2]),
    ],
)
def test_bounds_belong_to_a_range_unless_they_do_not(
    metadata: TableMetadata, start: str, end: str | None, inclusive: tuple[bool, bool], wanted: list[int]
) -> None:
    assert found(metadata, ChangelogRange("version", start, end, *inclusive)) == wanted


def test_a_snapshot_id_is_a_version(metadata: TableMetadata) -> None:
    ids = [str(each.snapshot_id) for each in metadata.snapshots]
    assert found(metadata, ChangelogRange("version", ids[1], ids[2])) == [2, 3]
    # Its child names it, though it has expired.
    assert found(expired(metadata, 2), ChangelogRange("version", ids[1], None, False)) == [3, 4]


def test_times_choose_whole_commits(metadata: TableMetadata) -> None:
    first = FIRST_MS * 1000

    def between(start: int, end: int | None, *inclusive: bool) -> list[int]:
        return found(metadata, ChangelogRange("timestamp", start, end, *inclusive))

    assert between(first, None) == [1, 2, 3, 4]
    assert between(first, first + 2_000_000) == [1, 2, 3]
    assert between(first, first + 2_000_000, False, False) == [2]
    assert between(first + 1, first + 999_999) == []
    assert between(first + 9_000_000, None) == []
    assert found(metadata, ChangelogRange("unbounded")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wanted", "error", "why"),
    [
        (ChangelogRange("version", "9"), NoSuchSnapshotError, "9 is neither the id of one of its snapshots"),
        (ChangelogRange("version", "0"), NoSuchSnapshotError, "0 is neither"),
        (ChangelogRange("version", "-1"), NoSuchSnapshotError, "-1 is neither"),
        (ChangelogRange("version", "1", "9"), NoSuchSnapshotError, "9 is neither"),
        (ChangelogRange("version", "third"), NoSuchRefError, "no branch or tag 'third'. Known are main, second"),
        (ChangelogRange("version", "3", "2"), InvalidInputError, "the first comes after the last"),
        (ChangelogRange("timestamp", 2, 1), InvalidInputError, "the first timestamp is later than the last"),
    ],
)
def test_a_range_that_cannot_be_is_refused(
    metadata: TableMetadata, wanted: ChangelogRange, error: type[IcebergError], why: str
) -> None:
    with pytest.raises(error, match=why):
        found(metadata, wanted)


def test_what_was_rolled_back_is_no_ancestor(metadata: TableMetadata) -> None:
    back = rolled_back(metadata, 1)
    with pytest.raises(InvalidInputError, match="or the table was rolled back from it"):
        found(back, ChangelogRange("version", "3"))
    assert found(back, ChangelogRange("version", "2")) == [2]
    # It still is a version with which a range may end.
    assert found(back, ChangelogRange("version", "2", "3")) == [2, 3]


def test_what_has_expired_is_not_left_out_in_silence(metadata: TableMetadata) -> None:
    rest = expired(metadata, 1)
    for wanted in (ChangelogRange("unbounded"), ChangelogRange("timestamp", 0)):
        with pytest.raises(NoSuchSnapshotError, match=r"has expired, .* changes from version \d+ exclusive"):
            found(rest, wanted)
    assert found(rest, ChangelogRange("timestamp", (FIRST_MS + 1500) * 1000)) == [3, 4]


def test_commits_without_a_number_are_refused(metadata: TableMetadata) -> None:
    old = replace(metadata, snapshots=tuple(replace(each, sequence_number=0) for each in metadata.snapshots))
    with pytest.raises(UnsupportedError, match="format version 1, which does not number commits"):
        found(old, ChangelogRange("unbounded"))


def after(metadata: TableMetadata, snapshot_id: int | None, wanted: ChangelogRange) -> list[int]:
    commits = commits_after(
        metadata, metadata.current_snapshot_id, ChangesOffset(changes_until=snapshot_id), wanted, "t"
    )
    return [each.sequence_number for each in commits]


def test_a_stream_goes_on_after_what_it_has_read(metadata: TableMetadata) -> None:
    ids: list[Any] = [each.snapshot_id for each in metadata.snapshots]
    forever, until_3 = ChangelogRange("version", "1"), ChangelogRange("version", "1", "3")
    assert after(metadata, None, forever) == [1, 2, 3, 4]
    assert after(metadata, ids[1], forever) == [3, 4]
    assert after(metadata, ids[3], forever) == []
    assert after(metadata, ids[1], until_3) == [3]
    assert after(metadata, ids[1], ChangelogRange("version", "1", "3", True, False)) == []
    assert after(metadata, ids[2], until_3) == after(metadata, ids[3], until_3) == []
    assert after(metadata, ids[0], ChangelogRange("timestamp", (FIRST_MS + 2000) * 1000)) == [3, 4]
    assert after(expired(metadata, 2), ids[1], forever) == [3, 4]
    with pytest.raises(NoSuchSnapshotError, match="up to which the stream has read, may have expired"):
        after(expired(metadata, 2), ids[0], forever)
    with pytest.raises(NoSuchSnapshotError, match="may have expired"):
        commits_after(metadata, 77, ChangesOffset(changes_until=ids[0]), forever, "t")
    with pytest.raises(InvalidInputError, match="was rolled back from its snapshot"):
        after(rolled_back(metadata, 1), ids[2], forever)
