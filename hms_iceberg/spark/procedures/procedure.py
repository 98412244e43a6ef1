"""A procedure: its name, parameters, result columns and function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.metastore import Identifier, table_identifier
from hms_iceberg.spark.reading.conditions import row_filter
from hms_iceberg.spark.rewriting.runs import SparkRewrite
from hms_iceberg.spark.transactions import OpenTransactions, SessionTransaction
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table

_MICROSECONDS = 1000


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure: name, type, and whether it is required."""

    # as in named arguments. The one called `table` is the name of a table of the procedure's catalog: Spark resolves
    # it, and `Call.identifier` is what it means.
    name: str
    # Spark's name of the type: string, bigint, int, boolean, double, timestamp, or array<…> and map<…> of them
    type: str
    required: bool = False  # whether it has to be given; an optional one is null by default, as in Apache Iceberg


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Call:
    """A call of a procedure."""

    catalog: Catalog  # that of the procedure, in which its tables are
    identifier: tuple[str, ...]  # the table that the parameter `table` names; empty if there is no such parameter
    current_namespace: tuple[str, ...]  # where names of one part are looked for in this catalog
    # those that are given and not null, by name. Timestamps are microseconds since 1970 in UTC; `where` is what the
    # bridge's class FilterText makes of the condition.
    arguments: Mapping[str, Any]
    transactions: OpenTransactions  # those of all sessions
    transaction: SessionTransaction | None = None  # the one that the session which calls has open

    def table(self) -> Table:
        """The table at its newest version."""
        return self.catalog.load_table(self.identifier)

    def named(self, text: str) -> Identifier:
        """The table that a text names, in the catalog of the procedure."""
        parts = tuple(part.strip().strip("`") for part in text.split("."))
        if len(parts) == 3 and parts[0] == self.catalog.name:
            parts = parts[1:]
        return table_identifier((*self.current_namespace, *parts) if len(parts) == 1 else parts)

    def get(self, name: str, default: Any = None) -> Any:
        """An argument; the default if it is not given."""
        return self.arguments.get(name, default)

    def required(self, name: str) -> Any:
        """An argument of a required parameter, for which null may be given all the same, and is refused."""
        if name not in self.arguments:
            raise InvalidInputError(f"Parameter '{name}' is not set: it must not be null.")
        return self.arguments[name]

    def milliseconds(self, name: str) -> int | None:
        """A timestamp in milliseconds, rounded down; None if it is not given."""
        value = self.arguments.get(name)
        return None if value is None else value // _MICROSECONDS

    def where(self, schema: Schema) -> BooleanExpression | None:
        """The condition of the argument `where`, which Spark has read; None if it is not given."""
        if "where" not in self.arguments:
            return None
        condition, is_exact = row_filter(self.arguments["where"], schema)
        if not is_exact:
            raise InvalidInputError(
                f"Cannot translate the where option for table {'.'.join(self.identifier)}: it may compare columns with "
                "constants, and test for null, NaN, lists and beginnings of text; functions may be those of `system`."
            )
        return condition


Row = Sequence[Any]


@dataclass(frozen=True)
class ResultView:
    """A temporary view that the call makes in the session, of the table's changes."""

    name: str  # of the view
    options: Mapping[str, str]  # of the read of ``db.t.changes`` that the view is
    rows: Sequence[Row]  # the result of the call


@dataclass(frozen=True)
class SessionTransactionChange:
    """The call has begun the transaction of its session, or has ended it."""

    rows: Sequence[Row]  # the result of the call
    open: int | None = None  # the number of the transaction that it has begun
    changed: Sequence[Identifier] = ()  # the tables that are not what the session has read


@dataclass(frozen=True)
class Procedure:
    """A row of the table of procedures."""

    name: str  # in the catalog's namespace `system`
    parameters: tuple[Parameter, ...]  # in the order of positional arguments, required ones first
    columns: tuple[Column, ...]  # of the result, with the types and nullability of Apache Iceberg's
    # does the work and gives the rows of the result, or a view to make, or files for Spark to rewrite
    run: Callable[[Call], Iterable[Row] | ResultView | SessionTransactionChange | SparkRewrite]
    # whether nothing is changed, so that what is cached of the table stays, and nobody asks what became of a call that
    # was interrupted
    only_reads: bool = False
    # what it does to the transaction of its session; any other cannot be called while one is open
    transaction: Literal["begins", "ends"] | None = None
    # whether Spark reads the condition `where` by the table's columns of today; else it is the text that was given
    resolves_where: bool = True


TABLE = Parameter("table", "string", required=True)
