"""ALTER TABLE: columns, properties, location and the current snapshot, all changes of a statement as one commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import count, groupby
from typing import Any

import msgspec

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spark.ddl.column_json import ColumnDefinition, iceberg_type, stored_default
from hms_iceberg.spark.shown_properties import IDENTIFIER_FIELDS, SORT_ORDER
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.schema.schema_changes import (
    AddColumn,
    DeleteColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    UpdateColumn,
)
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from hms_iceberg.updates.table_settings import SetProperties

logger = logging.getLogger(__name__)

_LOCATION, _SNAPSHOT, _CHERRY_PICK = "location", "current-snapshot-id", "cherry-pick-snapshot-id"
_SAID_OTHERWISE = {
    SORT_ORDER: "ALTER TABLE ... WRITE ORDERED BY",
    IDENTIFIER_FIELDS: "ALTER TABLE ... SET IDENTIFIER FIELDS",
}


class TableChange(msgspec.Struct, frozen=True):
    # of columns `add`, `delete`, `rename`, `type`, `nullability`, `comment`, `default` or `move`; of properties `set`
    # or `remove`
    kind: str
    path: list[str] = []  # the column, with the structs, `element`, `key` and `value` that it is in
    column: ColumnDefinition | None = None  # the new column (`add`), or its new type, nullability, comment or default
    new_name: str = ""
    first: bool = False
    after: str | None = None
    key: str = ""
    value: str = ""


class AlterTable(msgspec.Struct, frozen=True):
    """ALTER TABLE, COMMENT ON TABLE; the name is for errors."""

    name: str
    changes: list[TableChange]


def alter_table(question: AlterTable, transaction: TableTransaction) -> None:
    _refuse_reserved(question)
    for of_columns, group in groupby(question.changes, lambda change: bool(change.path)):
        changes = list(group)
        if of_columns:
            edits = tuple(edit for change in changes for edit in _edits(change, question.name))
            transaction.add(SchemaUpdate(edits))
        else:
            _change_properties(transaction, changes, question.name)


def may_change(metadata: TableMetadata, storage: Storage, question: AlterTable) -> dict[str, Any]:
    """Whether it is `possible` to change columns so that rows of a statement fit. False as well if the table would stay
    as it is, since the rows then need no change of it."""
    try:
        edits = tuple(edit for change in question.changes for edit in _edits(change, question.name))
        return {"possible": SchemaUpdate(edits).edited_metadata(metadata) is not metadata}
    except (InvalidInputError, UnsupportedError) as error:
        logger.debug("Not a change that rows may bring: %s", error)
        return {"possible": False}


def _refuse_reserved(question: AlterTable) -> None:
    for change in question.changes:
        if change.kind == "set" and change.key.lower() in _SAID_OTHERWISE:
            raise UnsupportedError(
                f"Cannot set the property {change.key!r} of the Iceberg table {question.name}: it is reserved. Nothing "
                f"was changed. Say {_SAID_OTHERWISE[change.key.lower()]}."
            )


# ---------------------------------------------------------------------------------------------------- columns


def _edits(change: TableChange, table: str) -> list[SchemaChange]:
    return _EDITS[change.kind](change, tuple(change.path), table)


def _add(change: TableChange, path: tuple[str, ...], table: str) -> list[SchemaChange]:
    column = _column(change)
    kind = iceberg_type(column.type, table, ".".join(path), count(1))
    default = stored_default(column, kind, table)
    added: list[SchemaChange] = [AddColumn(path, kind, column.comment, not column.nullable, default)]
    return added + (_move(change, path, table) if change.first or change.after is not None else [])


def _move(change: TableChange, path: tuple[str, ...], table: str) -> list[SchemaChange]:
    if change.after is not None:
        return [MoveColumn(path, (*path[:-1], change.after), after=True)]
    return [MoveColumn(path)]


def _retype(change: TableChange, path: tuple[str, ...], table: str) -> list[SchemaChange]:
    kind = iceberg_type(_column(change).type, table, ".".join(path), count(1))
    return [UpdateColumn(path, field_type=kind)]


def _set_default(change: TableChange, path: tuple[str, ...], table: str) -> list[SchemaChange]:
    column = _column(change)
    kind = iceberg_type(column.type, table, ".".join(path), count(1))
    return [SetDefault(path, stored_default(column, kind, table))]


_EDITS: Mapping[str, Callable[[TableChange, tuple[str, ...], str], list[SchemaChange]]] = {
    "add": _add,
    "delete": lambda change, path, table: [DeleteColumn(path)],
    "rename": lambda change, path, table: [RenameColumn(path, change.new_name)],
    "type": _retype,
    "nullability": lambda change, path, table: [UpdateColumn(path, required=not _column(change).nullable)],
    "comment": lambda change, path, table: [UpdateColumn(path, doc=_column(change).comment or "")],
    "default": _set_default,
    "move": _move,
}


def _column(change: TableChange) -> ColumnDefinition:
    assert change.column is not None
    return change.column


# ------------------------------------------------------------------------------------------------- properties


def _change_properties(transaction: TableTransaction, changes: list[TableChange], table: str) -> None:
    """The last change of a key counts, as in a map."""
    last = {change.key: change for change in changes}
    updates = {key: change.value for key, change in last.items() if change.kind == "set"}
    location, current, picked = (updates.pop(key, None) for key in (_LOCATION, _SNAPSHOT, _CHERRY_PICK))
    if current is not None:
        transaction.manage_snapshots().set_current_snapshot(_snapshot_id(current, table)).commit()
    if picked is not None:
        transaction.manage_snapshots().cherrypick(_snapshot_id(picked, table)).commit()
    if location is not None:
        transaction.update_location(location)
    removals = frozenset(key for key, change in last.items() if change.kind == "remove")
    if updates or removals:
        update: Update = SetProperties(updates, removals)
        transaction.add(update)


def _snapshot_id(text: str, table: str) -> int:
    if not text.isdigit():
        raise InvalidInputError(
            f"Cannot set the current snapshot of the Iceberg table {table} to {text!r}: expected a snapshot's id."
        )
    return int(text)
