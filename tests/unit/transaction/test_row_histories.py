"""Random transactions of two writers on rows: together they leave what one after the other leaves, or one is refused.

The model is a list of rows, and an operation a function of it. Reads are serializable: which rows an operation sees
decides what it writes, so that a lost update or a write skew would leave rows that no order of the two explains.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.maintenance import check_table
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import BY_CITY, QUICK

# Histories a test run; HMS_ICEBERG_EXAMPLES=1000 searches longer.
EXAMPLES = int(os.environ.get("HMS_ICEBERG_EXAMPLES", "25"))
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "city", StringType()), NestedField(3, "n", LongType()))
ARROW = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int64())])
CITIES = ("Bonn", "Rome", "Ulm")
KINDS = ("append", "delete id", "delete city", "move", "count", "upsert", "overwrite", "replace partitions")

Row = tuple[int, str, int]
Rows = list[Row]


@dataclass(frozen=True)
class Operation:
    """One operation of a transaction, and what it does to the rows that it sees."""

    kind: str
    city: str
    other: str
    key: int

    @property
    def row(self) -> Row:
        return (self.key, self.city, 100 + self.key)

    def run(self, on: TableTransaction) -> None:
        """Does it."""
        rows = pa.table(dict(zip(ARROW.names, ([value] for value in self.row), strict=True)), schema=ARROW)
        calls: dict[str, Callable[[], object]] = {
            "append": lambda: on.append(rows),
            "delete id": lambda: on.delete(f"id = {self.key}"),
            "delete city": lambda: on.delete(f"city = '{self.city}'"),
            "move": lambda: on.update({"city": self.other}, f"city = '{self.city}'"),
            "count": lambda: on.update({"n": pc.add(pc.field("n"), 1)}, f"id >= {self.key}"),
            "upsert": lambda: on.upsert(rows, ["id"]),
            "overwrite": lambda: on.overwrite(rows, f"id = {self.key}"),
            "replace partitions": lambda: on.dynamic_partition_overwrite(rows),
        }
        calls[self.kind]()

    def of(self, rows: Rows) -> Rows:
        """The rows after it."""
        if self.kind == "append":
            return [*rows, self.row]
        if self.kind == "delete id":
            return [row for row in rows if row[0] != self.key]
        if self.kind == "delete city":
            return [row for row in rows if row[1] != self.city]
        if self.kind == "move":
            return [(key, self.other if city == self.city else city, n) for key, city, n in rows]
        if self.kind == "count":
            return [(key, city, n + 1 if key >= self.key else n) for key, city, n in rows]
        if self.kind == "replace partitions":
            return [*(row for row in rows if row[1] != self.city), self.row]
        kept = [row for row in rows if row[0] != self.key]
        matches = len(rows) - len(kept)
        return [*kept, *[self.row] * (matches or 1 if self.kind == "upsert" else 1)]


def after(operations: list[Operation], rows: Rows) -> Rows:
    """The rows after these operations, sorted."""
    for operation in operations:
        rows = operation.of(rows)
    return sorted(rows)


def rows_of(table: Table) -> Rows:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def make(version: int, mode: str, partitioned: bool) -> Table:
    catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
    catalog.create_namespace("db", {})
    modes = {f"write.{operation}.mode": mode for operation in ("delete", "update", "merge")}
    table = catalog.create_table(
        "db.events",
        SCHEMA,
        partition_spec=BY_CITY if partitioned else UNPARTITIONED,
        properties={**QUICK, **modes, "format-version": str(version)},
    )
    table.append(pa.table({"id": [1, 2, 3], "city": ["Bonn", "Rome", "Bonn"], "n": [1, 2, 3]}, schema=ARROW))
    return table


def both(table: Table, theirs: list[Operation], mine: list[Operation]) -> bool:
    """Begins both transactions on the same version and commits them; whether the second was accepted."""
    transactions = []
    for operations in (theirs, mine):
        transaction = table.refresh().transaction()
        for each in operations:
            each.run(transaction)
        transactions.append(transaction)
    transactions[0].commit_transaction()
    try:
        transactions[1].commit_transaction()
    except CommitConflictError:
        return False
    finally:
        table.refresh()
    return True


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("kind", [(1, "copy-on-write"), (3, "merge-on-read")])
@pytest.mark.parametrize("read", ["delete id", "delete city", "move", "count", "upsert"])
def test_a_read_without_a_match_counts_in_a_transaction_that_writes(
    kind: tuple[int, str], partitioned: bool, read: str
) -> None:
    """Each writer looks for what the other adds and finds nothing: at most one of them may be right."""
    table = make(*kind, partitioned)
    before = rows_of(table)
    first = [Operation(read, "Ulm", "Rome", 4), Operation("append", "Rome", "Rome", 5)]
    if read == "upsert":  # matches, and finds nothing to change
        table.append(pa.table({"id": [4], "city": ["Ulm"], "n": [104]}, schema=ARROW))
        before = rows_of(table)
        second = [Operation("delete id", "Rome", "Rome", 5), Operation("overwrite", "Bonn", "Bonn", 4)]
    else:
        second = [Operation("delete id", "Rome", "Rome", 5), Operation("append", "Ulm", "Ulm", 4)]
    assert not both(table, first, second)
    assert rows_of(table) == after(first, before)


def test_a_read_without_a_match_under_snapshot_isolation_lets_both_write() -> None:
    table = make(2, "copy-on-write", False)
    table.set_properties({"write.delete.isolation-level": "snapshot"})
    first = [Operation("delete id", "Ulm", "Ulm", 4), Operation("append", "Rome", "Rome", 5)]
    second = [Operation("delete id", "Ulm", "Ulm", 5), Operation("append", "Rome", "Rome", 4)]
    assert both(table, first, second)
    assert [key for key, _, _ in rows_of(table)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("read", ["delete id", "delete city", "move", "count"])
def test_a_transaction_that_changes_nothing_is_never_refused(read: str) -> None:
    table = make(2, "copy-on-write", False)
    snapshots = len(table.snapshots())
    assert both(table, [Operation("append", "Ulm", "Ulm", 4)], [Operation(read, "Ulm", "Rome", 4)])
    assert len(table.snapshots()) == snapshots + 1


operation = st.builds(
    Operation, st.sampled_from(KINDS), st.sampled_from(CITIES), st.sampled_from(CITIES), st.integers(1, 6)
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from([(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")]),
    partitioned=st.booleans(),
    rounds=st.lists(
        st.tuples(st.lists(operation, min_size=1, max_size=2), st.lists(operation, min_size=1, max_size=2)),
        min_size=1,
        max_size=2,
    ),
)
def test_transactions_on_rows_are_as_if_one_came_after_the_other_or_one_is_refused(
    kind: tuple[int, str], partitioned: bool, rounds: list[tuple[list[Operation], list[Operation]]]
) -> None:
    table = make(*kind, partitioned)
    expected = rows_of(table)
    for mine, theirs in rounds:
        if not partitioned:
            mine, theirs = ([each for each in one if each.kind != "replace partitions"] for one in (mine, theirs))
        orders = [after(theirs, expected)]
        try:
            both_made = both(table, theirs, mine)
        except InvalidInputError:  # an upsert into rows that share a key
            reject()
        if both_made:
            orders = [after(mine, orders[0]), after(theirs, after(mine, expected))]
        expected = rows_of(table)
        assert expected in orders
        assert check_table(table, record_counts=True).findings == ()
