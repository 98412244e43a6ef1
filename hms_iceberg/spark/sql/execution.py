"""Statements of Iceberg's SQL extensions, made part of a table as the Python API does it."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import msgspec

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError, SqlParseError, UnknownColumnError
from hms_iceberg.spark.sql.statement_parser import parse_statement
from hms_iceberg.spark.sql.statements import (
    AddPartitionFieldStatement,
    AnyStatement,
    DropIdentifierFieldsStatement,
    DropPartitionFieldStatement,
    DropRefStatement,
    PutRefStatement,
    ReplacePartitionFieldStatement,
    SetIdentifierFieldsStatement,
    SetWriteOrderStatement,
    SortTerm,
    Statement,
    TransformOf,
)
from hms_iceberg.spec.snapshots_and_refs import SnapshotRefType
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection
from hms_iceberg.spec.table_properties import DISTRIBUTION_MODE
from hms_iceberg.spec.transforms.partition_transforms import parse_transform
from hms_iceberg.table.table import TableTransaction
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionChange, PartitionSpecUpdate
from hms_iceberg.updates.partition_spec import RemovePartitionField as RemoveField
from hms_iceberg.updates.rows.append import FastAppend
from hms_iceberg.updates.table_settings import ReplaceSortOrder, SortKey


class ReadStatement(msgspec.Struct, frozen=True):
    """A text that Spark's own parser does not understand."""

    text: str


class RunStatement(msgspec.Struct, frozen=True):
    """A statement on a table that Spark has found, in the JSON that reading it gave."""

    statement: str
    case_sensitive: bool = False


def read_statement(question: ReadStatement) -> dict[str, Any]:
    """Reads a statement: its `table`, its `command` and itself as JSON (`statement`); nothing if it is none of ours,
    and the `problem` and its place if it begins as one of Iceberg's and goes wrong."""
    try:
        parsed = parse_statement(question.text)
    except SqlParseError as error:
        return {"problem": error.problem, "near": error.near, "line": error.line, "position": error.position}
    if parsed is None:
        return {}
    statement = msgspec.json.encode(parsed.statement).decode()
    return {"table": parsed.table, "command": parsed.command, "statement": statement}


def run_statement(target: TableTransaction, question: RunStatement) -> None:
    """Makes a statement of the SQL extensions part of a transaction of its table."""
    statement = msgspec.json.decode(question.statement, type=AnyStatement)
    run(statement, target, question.case_sensitive)


@singledispatch
def run(statement: Statement, target: TableTransaction, case_sensitive: bool) -> None:
    """Makes one kind of statement part of a transaction."""
    raise NotImplementedError(type(statement))


@run.register
def _add_partition_field(statement: AddPartitionFieldStatement, target: TableTransaction, case_sensitive: bool) -> None:
    _change_spec(target, case_sensitive, _added(statement.field, statement.name))


@run.register
def _drop_partition_field(
    statement: DropPartitionFieldStatement, target: TableTransaction, case_sensitive: bool
) -> None:
    _change_spec(target, case_sensitive, _removed(statement.field, target, case_sensitive))


@run.register
def _replace_partition_field(
    statement: ReplacePartitionFieldStatement, target: TableTransaction, case_sensitive: bool
) -> None:
    removed = _removed(statement.field, target, case_sensitive)
    _change_spec(target, case_sensitive, removed, _added(statement.by, statement.name))


def _added(field: TransformOf, name: str | None) -> AddPartitionField:
    return AddPartitionField(field.column, parse_transform(field.transform), name)


def _removed(field: TransformOf, target: TableTransaction, case_sensitive: bool) -> RemoveField:
    """A plain name that is no column is the name of a partition field."""
    if field.is_plain_name and not _is_column(target, field.column, case_sensitive):
        return RemoveField(field.column)
    return RemoveField(None, field.column, parse_transform(field.transform))


def _is_column(target: TableTransaction, name: str, case_sensitive: bool) -> bool:
    try:
        target.metadata.schema().find_field(name, case_sensitive)
    except UnknownColumnError:
        return False
    return True


def _change_spec(target: TableTransaction, case_sensitive: bool, *changes: PartitionChange) -> None:
    target.add(PartitionSpecUpdate(changes, case_sensitive))


@run.register
def _set_write_order(statement: SetWriteOrderStatement, target: TableTransaction, case_sensitive: bool) -> None:
    target.add(ReplaceSortOrder(tuple(map(_sort_key, statement.order)), case_sensitive))
    if statement.distribution_mode is not None:
        target.set_properties({DISTRIBUTION_MODE.name: statement.distribution_mode})


def _sort_key(term: SortTerm) -> SortKey:
    return SortKey(
        term.term.column,
        parse_transform(term.term.transform),
        SortDirection.DESC if term.descending else SortDirection.ASC,
        NullOrder.NULLS_LAST if term.nulls_last else NullOrder.NULLS_FIRST,
    )


@run.register
def _set_identifier_fields(
    statement: SetIdentifierFieldsStatement, target: TableTransaction, case_sensitive: bool
) -> None:
    with target.update_schema(case_sensitive=case_sensitive) as update:
        update.set_identifier_fields(*statement.columns)


@run.register
def _drop_identifier_fields(
    statement: DropIdentifierFieldsStatement, target: TableTransaction, case_sensitive: bool
) -> None:
    schema = target.metadata.schema()
    ids = list(schema.identifier_field_ids)
    for column in statement.columns:
        field_id = schema.find_id(column, case_sensitive)
        if field_id not in ids:
            names = ", ".join(schema.find_column_name(each) or "" for each in ids) or "none"
            raise InvalidInputError(
                f"Cannot drop identifier field {column!r} of table {_name(target)}: it is no identifier field; its "
                f"identifier fields are {names}."
            )
        ids.remove(field_id)
    with target.update_schema() as update:
        update.set_identifier_fields(*(schema.find_column_name(each) or "" for each in ids))


@run.register
def _put_ref(statement: PutRefStatement, target: TableTransaction, case_sensitive: bool) -> None:
    exists = statement.name in target.metadata.refs
    if exists and statement.if_not_exists:
        return
    current = target.metadata.current_snapshot_id
    snapshot_id = current if statement.snapshot_id is None else statement.snapshot_id
    if snapshot_id is None:
        _require_new_branch(statement, target, exists)
        target.add(FastAppend((), statement.name))  # an empty snapshot, for the branch to point at
    changes = target.manage_snapshots()
    kind = SnapshotRefType.BRANCH if statement.is_branch else SnapshotRefType.TAG
    if statement.replace and (exists or not statement.create):
        assert snapshot_id is not None
        if kind is SnapshotRefType.BRANCH:
            changes.replace_branch(statement.name, snapshot_id)
        else:
            changes.replace_tag(statement.name, snapshot_id)
    elif snapshot_id is not None:
        if kind is SnapshotRefType.BRANCH:
            changes.create_branch(snapshot_id=snapshot_id, branch_name=statement.name)
        else:
            changes.create_tag(snapshot_id=snapshot_id, tag_name=statement.name)
    if statement.min_snapshots_to_keep is not None:
        changes.set_min_snapshots_to_keep(statement.name, statement.min_snapshots_to_keep)
    if statement.max_snapshot_age_ms is not None:
        changes.set_max_snapshot_age_ms(statement.name, statement.max_snapshot_age_ms)
    if statement.max_ref_age_ms is not None:
        changes.set_max_ref_age_ms(statement.name, statement.max_ref_age_ms)
    changes.commit()


def _name(target: TableTransaction) -> str:
    return ".".join(target._transaction.identifier)


def _require_new_branch(statement: PutRefStatement, target: TableTransaction, exists: bool) -> None:
    if statement.is_branch and statement.create and not exists:
        return
    kind = "branch" if statement.is_branch else "tag"
    verb = "create" if statement.create else "replace"
    raise NoSuchSnapshotError(
        f"Cannot {verb} {kind} {statement.name!r} of table {_name(target)}: main has no snapshot. "
        "Write to the table first, or name a snapshot (AS OF VERSION)."
    )


@run.register
def _drop_ref(statement: DropRefStatement, target: TableTransaction, case_sensitive: bool) -> None:
    if statement.if_exists and statement.name not in target.metadata.refs:
        return
    changes = target.manage_snapshots()
    if statement.is_branch:
        changes.remove_branch(statement.name)
    else:
        changes.remove_tag(statement.name)
    changes.commit()
