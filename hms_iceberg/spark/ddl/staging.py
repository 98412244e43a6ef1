"""CREATE TABLE AS SELECT, REPLACE TABLE and CREATE OR REPLACE TABLE: definition and rows become one commit."""

from __future__ import annotations

from typing import Any

import msgspec

from hms_iceberg.spark.ddl.definition import DefineTable
from hms_iceberg.spark.reading.descriptions import described
from hms_iceberg.spark.targets import Targets
from hms_iceberg.table.table import TableTransaction

CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create-or-replace"


class StageTable(DefineTable, frozen=True, kw_only=True):
    """A table that is defined now and committed later.

    Args:
        kind: `create`, `replace` or `create-or-replace`.
    """

    kind: str


class StagedTable(msgspec.Struct, frozen=True):
    """A question about a staged table, by its number.

    Args:
        staged: its number.
    """

    staged: int


def stage_table(question: StageTable, targets: Targets) -> dict[str, Any]:
    """Begins the table's transaction.

    Returns:
        its number as `staged`, and the table's `description`.

    Raises:
        TableAlreadyExistsError, NoSuchTableError, NoSuchNamespaceError: for the kind.
        InvalidInputError, UnsupportedError: of the definition.
    """
    transaction = _begun(question, targets)
    try:
        metadata = transaction.metadata
        description = described(metadata, metadata.schema(), None, question.name)
    except Exception:
        transaction.abandon()
        raise
    return {"staged": targets.stage(transaction), "description": description}


def _begun(question: StageTable, targets: Targets) -> TableTransaction:
    catalog = targets.catalogs.numbered(question.catalog)
    if question.kind == CREATE:
        return catalog.create_table_transaction(question.identifier, **question.arguments())
    return catalog.replace_table_transaction(
        question.identifier, **question.arguments(), or_create=question.kind == CREATE_OR_REPLACE
    )


def commit_staged(question: StagedTable, targets: Targets) -> dict[str, Any]:
    """Commits the table with what was written into it, as one version."""
    targets.unstage(question.staged).commit_transaction()
    return {}


def abort_staged(question: StagedTable, targets: Targets) -> dict[str, Any]:
    """Gives up a staged table and deletes the files that were written for it."""
    targets.unstage(question.staged).abandon()
    return {}
