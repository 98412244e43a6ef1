"""A column that a table does not have: the error names the table as its user does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import TypeMismatchError, UnknownColumnError
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import QUICK

ROWS = pa.table({"a": [1, 2]})
CALLS: dict[str, Callable[[Table], Any]] = {
    "scan": lambda table: table.scan("gone = 1").to_arrow(),
    "select": lambda table: table.scan(selected_fields=("gone",)).to_arrow(),
    "count": lambda table: table.scan("gone = 1").count(),
    "appends": lambda table: table.incremental_append_scan(row_filter="gone = 1").to_arrow(),
    "changes": lambda table: table.changelog_scan(row_filter="gone = 1").to_arrow(),
    "delete": lambda table: table.delete("gone = 1"),
    "overwrite": lambda table: table.overwrite(ROWS, "gone = 1"),
    "update where": lambda table: table.update({"a": 1}, "gone = 1"),
    "update": lambda table: table.update({"gone": 1}, "a = 1"),
    "upsert": lambda table: table.upsert(ROWS, ["gone"]),
}


@pytest.fixture(scope="module")
def table() -> Table:
    catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
    catalog.create_namespace("db", {})
    made = catalog.create_table("db.t", ROWS.schema, properties=QUICK)
    made.append(ROWS)
    return made


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_an_unknown_column_is_told_with_the_name_of_the_table(table: Table, call: Callable[[Table], Any]) -> None:
    with pytest.raises(UnknownColumnError, match=r"Unknown column 'gone'.* table db\.t\b"):
        call(table)


def test_a_literal_of_another_type_is_told_with_the_name_of_the_table(table: Table) -> None:
    with pytest.raises(TypeMismatchError, match=r"'x' is not a number\. This is about table db\.t\."):
        table.delete("a = 'x'")
