"""Ids that files were written with: a replay must not give them to something else.

Columns are found in files by field id, partitions by spec id. Both are drawn when an update is applied, and again when
it is replayed; files stay what they were written as.
"""

from __future__ import annotations

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema


def check_new_ids(start: TableMetadata, written: TableMetadata, replayed: TableMetadata, table: str) -> None:
    """Refuses if a replay gives columns or specs other ids than the files of a transaction were written with.

    Columns that a transaction adds draw their ids anew. One that the table had can get another id as well: a
    concurrent commit dropped or renamed it, and the transaction's own change, such as a union by name, brings it back.

    Args:
        start: the table that the transaction was begun on.
        written: the table as its files were written for.
        replayed: the table after the replay.
        table: its name, for messages.

    Raises:
        CommitConflictError: a concurrent commit added columns or specs as well, or took away columns that come back.
    """
    old, mine, new = start.schema(), written.schema(), replayed.schema()
    if not mine.same_as(old):
        _check_names(old, mine, new, table)
    for field_id, field in mine.index_by_id.items():
        if old.has_field(field_id):
            continue
        now = new.index_by_id.get(field_id)
        if now != field or new.find_column_name(field_id) != mine.find_column_name(field_id):
            raise _taken(table, f"column {field}", now)
    for spec_id, spec in written.specs_by_id.items():
        if spec_id not in start.specs_by_id and replayed.specs_by_id.get(spec_id) != spec:
            raise _taken(table, f"partition spec {spec_id} {spec}", replayed.specs_by_id.get(spec_id))


def _check_names(old: Schema, mine: Schema, new: Schema, table: str) -> None:
    """Refuses another column in the place of one that was there. Some sessions match names without regard to case."""
    ids: dict[str, set[int]] = {}
    for name, field_id in new.index_by_name.items():
        ids.setdefault(name.lower(), set()).add(field_id)
    for field_id in old.index_by_id:
        column = mine.find_column_name(field_id)
        if column is None or new.find_column_name(field_id) == column:
            continue
        others = ids.get(column.lower(), set()) - {field_id}
        if others:
            now = ", ".join(str(new.find_field(each)) for each in sorted(others))
            raise CommitConflictError(
                f"Cannot commit to table {table}: its files were written with column {column!r} as id {field_id}, and "
                f"a concurrent commit dropped or renamed that column. The column of this name would be {now}, without "
                "the values of the files. Repeat the transaction on the newer version."
            )


def _taken(table: str, what: str, now: object) -> CommitConflictError:
    return CommitConflictError(
        f"Cannot commit to table {table}: the transaction adds {what} and files that were written with it, and a "
        f"concurrent commit took the id: it is now {now}. Repeat the transaction on the newer version."
    )


def check_same_ids(planned: TableMetadata, now: TableMetadata, table: str) -> None:
    """Refuses to replace or create a table if its files have other ids than the table would have.

    Args:
        planned: the new table as it was when its files were written.
        now: the new table on what is there now.
        table: its name, for messages.

    Raises:
        CommitConflictError: the table came, went or was evolved meanwhile.
    """
    if now.schema().same_as(planned.schema()) and now.spec().fields == planned.spec().fields:
        return
    raise CommitConflictError(
        f"Cannot replace table {table}: it was created, dropped or evolved by a concurrent commit, so that its columns "
        f"have other ids than those that data was written with. They were {planned.schema()} when the change was "
        f"begun, and would be {now.schema()}. Repeat the change."
    )
