"""Finding the snapshot that a word on the command line stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hms_iceberg.errors import NoSuchSnapshotError

if TYPE_CHECKING:
    from hms_iceberg.table.table import Table


def snapshot_named(table: Table, word: str) -> int:
    """The id of the snapshot with that id, or of that branch or tag.

    Raises:
        NoSuchSnapshotError: there is none.
    """
    ref = table.refs().get(word)
    if ref is not None:
        return ref.snapshot_id
    if word.isdigit() and table.snapshot_by_id(int(word)) is not None:
        return int(word)
    name = ".".join(table.name())
    raise NoSuchSnapshotError(
        f"Table {name} has no snapshot, branch or tag {word!r}. What it has: hms-iceberg history {name}"
    )
