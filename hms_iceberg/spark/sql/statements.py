"""The statements of Iceberg's SQL extensions. They cross from the parser to the table as JSON."""

from __future__ import annotations

import msgspec


class Statement(msgspec.Struct, frozen=True, tag_field="statement", forbid_unknown_fields=True):
    """A statement about one table, whose name Spark resolves."""


class TransformOf(msgspec.Struct, frozen=True):
    """A transform, as Iceberg writes it ("bucket[16]"), of a column: its dotted name."""

    column: str
    transform: str = "identity"

    @property
    def is_plain_name(self) -> bool:
        """Whether it may as well be the name of a partition field."""
        return self.transform == "identity"


class AddPartitionFieldStatement(Statement, frozen=True, tag=True):
    """ADD PARTITION FIELD transform [AS name]."""

    field: TransformOf
    name: str | None = None


class DropPartitionFieldStatement(Statement, frozen=True, tag=True):
    """DROP PARTITION FIELD transform, or the name of a field."""

    field: TransformOf


class ReplacePartitionFieldStatement(Statement, frozen=True, tag=True):
    """REPLACE PARTITION FIELD transform WITH transform [AS name]."""

    field: TransformOf
    by: TransformOf
    name: str | None = None


class SortTerm(msgspec.Struct, frozen=True):
    term: TransformOf
    descending: bool = False
    nulls_last: bool = False


class SetWriteOrderStatement(Statement, frozen=True, tag=True):
    """WRITE …: the sort order, and the distribution mode if the statement says something of it."""

    order: tuple[SortTerm, ...] = ()
    distribution_mode: str | None = None


class SetIdentifierFieldsStatement(Statement, frozen=True, tag=True):
    """SET IDENTIFIER FIELDS column, …."""

    columns: tuple[str, ...]


class DropIdentifierFieldsStatement(Statement, frozen=True, tag=True):
    """DROP IDENTIFIER FIELDS column, …."""

    columns: tuple[str, ...]


class PutRefStatement(Statement, frozen=True, tag=True):
    """CREATE, REPLACE or CREATE OR REPLACE of a branch or tag."""

    name: str
    is_branch: bool  # a branch; else a tag
    create: bool  # it may be new
    replace: bool = False  # it may be there already; with `create` as well, either
    if_not_exists: bool = False  # nothing is to be done where it is there already
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


class DropRefStatement(Statement, frozen=True, tag=True):
    name: str
    is_branch: bool
    if_exists: bool = False


AnyStatement = (
    AddPartitionFieldStatement
    | DropPartitionFieldStatement
    | ReplacePartitionFieldStatement
    | SetWriteOrderStatement
    | SetIdentifierFieldsStatement
    | DropIdentifierFieldsStatement
    | PutRefStatement
    | DropRefStatement
)


class TableStatement(msgspec.Struct, frozen=True):
    """A statement with the table that it names."""

    table: tuple[str, ...]  # the parts of the table's name
    command: str  # the statement's first words, for errors: "ALTER TABLE ... CREATE BRANCH".
    statement: AnyStatement  # what to do
