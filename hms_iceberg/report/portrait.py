"""The facts that a picture of a table shows, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bin:
    """The number of values of a histogram between two limits.

    Attributes:
        low: the least value that belongs here.
        high: the least value that does not any more.
        count: how many there are.
    """

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class SnapshotPoint:
    """A snapshot in the history of a table; counts are None if its summary lacks them.

    Attributes:
        snapshot_id: its id.
        parent_id: the snapshot that it was made from, if the table still has that one.
        timestamp_ms: when it was made, in milliseconds from 1970-01-01 UTC.
        operation: what it did, such as `append`.
        added_rows: rows of the data files that it added.
        deleted_rows: rows of the data files that it removed.
        total_rows: rows of all its data files, deleted ones included.
        total_bytes: bytes of all its files.
        refs: branches and tags that point at it, sorted.
        is_current: whether the table's main branch is here or came through here.
    """

    snapshot_id: int
    parent_id: int | None
    timestamp_ms: int
    operation: str | None
    added_rows: int | None
    deleted_rows: int | None
    total_rows: int | None
    total_bytes: int | None
    refs: tuple[str, ...]
    is_current: bool


@dataclass(frozen=True)
class PartitionShare:
    """The size of one partition.

    Attributes:
        name: its values, such as `day=2026-01-31`.
        rows: rows of its data files.
        files: its data files.
        bytes: their bytes.
        delete_files: its delete files, of positions and of keys.
    """

    name: str
    rows: int
    files: int
    bytes: int
    delete_files: int


@dataclass(frozen=True)
class Advice:
    """A maintenance action that the table needs.

    Attributes:
        action: the name of the action that would help.
        why: what was found.
        command: the command that does it.
    """

    action: str
    why: str
    command: str


@dataclass(frozen=True)
class TablePortrait:
    """A table at one version: its size, its files, its history.

    Attributes:
        name: `db.table`.
        location: its folder.
        uuid: its UUID.
        format_version: 1, 2 or 3.
        updated_ms: when its metadata was written, in milliseconds from 1970-01-01 UTC.
        columns: its columns as text, in order.
        partitioned_by: its partition fields as text.
        sorted_by: its sort fields as text.
        properties: its properties.
        rows: rows of the live data files, deleted ones included.
        data_files: live data files.
        data_bytes: their bytes.
        position_delete_files: live files of deleted positions; deletion vectors are not among them.
        deletion_vectors: live deletion vectors.
        equality_delete_files: live files of deleted keys.
        deleted_positions: rows that position deletes and vectors delete.
        file_sizes: a histogram of the data files' bytes.
        deletes_per_file: a histogram of how many delete files apply to a data file.
        snapshots: its history, the newest first.
        partitions: its largest partitions, by bytes.
        partition_count: how many partitions there are; 0 if it is not partitioned.
        advice: what it needs.
    """

    name: str
    location: str
    uuid: str
    format_version: int
    updated_ms: int
    columns: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    properties: dict[str, str]
    rows: int
    data_files: int
    data_bytes: int
    position_delete_files: int
    deletion_vectors: int
    equality_delete_files: int
    deleted_positions: int
    file_sizes: tuple[Bin, ...]
    deletes_per_file: tuple[Bin, ...]
    snapshots: tuple[SnapshotPoint, ...]
    partitions: tuple[PartitionShare, ...]
    partition_count: int
    advice: tuple[Advice, ...]

    @property
    def delete_files(self) -> int:
        """Live delete files of every kind."""
        return self.position_delete_files + self.deletion_vectors + self.equality_delete_files


@dataclass(frozen=True)
class Failure:
    """A table that could not be drawn.

    Attributes:
        name: `db.table`.
        message: why.
    """

    name: str
    message: str
