"""CREATE, DROP and RENAME TABLE, and tables that are staged until the rows of their statement are written."""

from __future__ import annotations

from typing import Any

import msgspec

from hms_iceberg.errors import NoSuchTableError
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.spark.catalogs import version_name
from hms_iceberg.spark.ddl.definition import DefineTable
from hms_iceberg.spark.reading.descriptions import described
from hms_iceberg.spark.staged_tables import Targets
from hms_iceberg.table.table import TableTransaction


def create_table(definition: DefineTable, targets: Targets) -> dict[str, Any]:
    """Creates an empty table; the answer names its version as `metadata_location`."""
    catalog = targets.catalogs.numbered(definition.catalog)
    table = catalog.create_table(definition.identifier, **definition.arguments())
    return {"metadata_location": version_name(MetadataVersion(table.metadata_location, table.metadata))}


class DropTable(msgspec.Struct, frozen=True):
    """DROP TABLE; with `purge` the table's files are deleted."""

    catalog: int
    namespace: str
    table: str
    purge: bool = False


def drop_table(question: DropTable, targets: Targets) -> dict[str, Any]:
    """Drops a table; the answer says whether there was one, as `dropped`."""
    catalog = targets.catalogs.numbered(question.catalog)
    try:
        catalog.drop_table((question.namespace, question.table), purge_requested=question.purge)
    except NoSuchTableError:
        return {"dropped": False}
    return {"dropped": True}


class RenameTable(msgspec.Struct, frozen=True):
    """ALTER TABLE … RENAME TO a namespace and name; a catalog's name in front of them is left out."""

    catalog: int
    namespace: str
    table: str
    to: list[str]

    @property
    def target(self) -> Identifier:
        return tuple(self.to[-2:]) if len(self.to) > 1 else (self.namespace, self.to[0])


def rename_table(question: RenameTable, targets: Targets) -> None:
    """Renames a table; its files stay where they are."""
    targets.catalogs.numbered(question.catalog).rename_table((question.namespace, question.table), question.target)


CREATE, REPLACE, CREATE_OR_REPLACE = "create", "replace", "create-or-replace"


class StageTable(DefineTable, frozen=True, kw_only=True):
    """A table that is defined now and committed later; its kind is `create`, `replace` or `create-or-replace`."""

    kind: str


class StagedTable(msgspec.Struct, frozen=True):
    """A question about a staged table, by its number."""

    staged: int


def stage_table(question: StageTable, targets: Targets) -> dict[str, Any]:
    """Begins the table's transaction; the answer has its number as `staged`, and the table's `description`."""
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


def commit_staged(question: StagedTable, targets: Targets) -> None:
    """Commits the table with what was written into it, as one version."""
    targets.unstage(question.staged).commit_transaction()


def abort_staged(question: StagedTable, targets: Targets) -> None:
    """Gives up a staged table and deletes the files that were written for it."""
    targets.unstage(question.staged).abandon()
