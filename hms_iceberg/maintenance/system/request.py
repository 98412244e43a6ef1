"""Which tables a system table is about, and how they are read: side by side, and each with its own error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    IcebergError,
    MetastoreUnavailableError,
    NoSuchNamespaceError,
    UnsupportedError,
)
from hms_iceberg.maintenance_policy import Policies
from hms_iceberg.metastore import Identifier, ListedTable, TableKind
from hms_iceberg.spec.data_types import IcebergType, NestedField, StringType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.needed_files.needed_by_others import everything_in
from hms_iceberg.table.table import Table

logger = logging.getLogger(__name__)

Row = dict[str, Any]
_WILD = frozenset("*?[")
_AT_ONCE = 16  # tables that a thread looks at before it asks for others


@dataclass(frozen=True)
class Selected:
    """Which tables are wanted: by their namespaces first, so that others need not be listed."""

    of_namespace: Callable[[str], bool] = lambda namespace: True
    of_table: Callable[[Identifier], bool] = lambda identifier: True

    @staticmethod
    def by_patterns(patterns: Sequence[str]) -> Selected:
        """The selection of names with dots that match a pattern such as `web.*`."""
        namespaces = {each.partition(".")[0] for each in patterns}
        is_open = any("." not in each for each in patterns) or any(_WILD & set(each) for each in namespaces)
        return Selected(
            lambda namespace: is_open or namespace in namespaces,
            lambda identifier: any(fnmatchcase(".".join(identifier), each) for each in patterns),
        )


@dataclass(frozen=True)
class SystemTableRequest:
    """The tables of a catalog that a system table is about."""

    catalog: Catalog
    selected: Selected
    policies: Policies
    threads: int  # how many tables are looked at side by side

    def listed(self) -> list[ListedTable]:
        """The wanted tables and views of any kind, by name."""
        every = everything_in(self.catalog.metastore)
        found: Iterable[ListedTable]
        if every is None:
            found = (each for each in self._names() if self.selected.of_table(each.identifier))
        else:
            found = every.listed(self.selected.of_namespace, self.selected.of_table)
        return sorted(found, key=lambda each: each.identifier)

    def _names(self) -> Iterator[ListedTable]:
        """The names that a catalog tells of which nothing else can be listed."""
        for (namespace,) in self.catalog.list_namespaces():
            if not self.selected.of_namespace(namespace):
                continue
            for list_, kind in (
                (self.catalog.list_tables, TableKind.ICEBERG),
                (self.catalog.list_views, TableKind.ICEBERG_VIEW),
            ):
                try:
                    yield from (ListedTable(each, kind) for each in list_(namespace))
                except (NoSuchNamespaceError, UnsupportedError):  # dropped meanwhile; a catalog without views
                    continue

    def of_each(
        self, schema: pa.Schema, names: Sequence[ListedTable], rows_of: Callable[[ListedTable], Iterable[Row]]
    ) -> Iterator[pa.Table]:
        """Rows of tables, in their order; of one that cannot be read, its name and the error."""

        def rows(each: ListedTable) -> Iterable[Row]:
            listed = _listed(each)
            if each.error is not None:
                return [listed | {"error": each.error}]
            try:
                return [listed | row for row in rows_of(each)]
            except MetastoreUnavailableError:  # so are all others
                raise
            except Exception as error:  # one table's damage is never another's
                bug = None if isinstance(error, IcebergError) else error
                logger.warning("Cannot tell of table %s: %s", ".".join(each.identifier), error, exc_info=bug)
                return [listed | {"error": f"{type(error).__name__}: {error}"}]

        def part(start: int) -> pa.Table:
            some = names[start : start + _AT_ONCE]
            return pa.Table.from_pylist([row for each in some for row in rows(each)], schema)

        with ThreadPoolExecutor(self.threads, thread_name_prefix="iceberg-system") as pool:
            yield from pool.map(part, range(0, len(names), _AT_ONCE))

    def of_each_table(self, schema: pa.Schema, rows_of: Callable[[Table], Iterable[Row]]) -> Iterator[pa.Table]:
        """The rows of each Iceberg table, once it is loaded."""
        tables = [each for each in self.listed() if each.kind in (TableKind.ICEBERG, None)]
        return self.of_each(schema, tables, lambda each: rows_of(self.catalog.load_table(each.identifier)))


def _listed(each: ListedTable) -> Row:
    """The columns known of a table before it is looked at; a system table takes what it has columns for."""
    name = dict(zip(("namespace", "table"), each.identifier, strict=False))
    return {**name, "kind": each.kind and each.kind.value, "location": each.location or None}


@dataclass(frozen=True)
class SystemTable:
    """The columns of a system table, and what makes its rows, which is given the columns in Arrow's terms too."""

    schema: Schema
    read: Callable[[SystemTableRequest, pa.Schema], Iterable[pa.Table]]


def columns(*own: tuple[str, IcebergType, str] | NestedField, has_error: bool = True) -> Schema:
    """Columns by name, type and meaning, after those of the table's name, and before that of the error."""
    names = (("namespace", StringType(), "namespace of the table"), ("table", StringType(), "its name"))
    last = (("error", StringType(), "why the table cannot be told of, if so"),) if has_error else ()
    fields = []
    for field_id, each in enumerate((*names, *own, *last), 1001):  # above the ids within nested columns
        name, kind, doc = (each.name, each.field_type, each.doc) if isinstance(each, NestedField) else each
        fields.append(NestedField(field_id, name, kind, doc=doc))
    return Schema(*fields)
