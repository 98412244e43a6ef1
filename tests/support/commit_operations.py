"""The commits that faults are injected into: how each is made, and how one sees whether it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitStateUnknownError, MetastoreError
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.table import Table

QUICK = {
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "10",
    "commit.retry.min-wait-ms": "1",
}
SCHEMA = pa.schema([pa.field("id", pa.int64())])
REPLACED = pa.schema([pa.field("id", pa.int64()), pa.field("city", pa.string())])


@dataclass(frozen=True)
class Operation:
    """A commit.

    Attributes:
        make: makes it, through a catalog that may be harmed.
        rows: ids of the table's rows after it; 0 is there before, except where the operation creates the table.
        creates: whether there is no table before.
        shows: whether the definition of the table is that after it.
    """

    make: Callable[[Catalog, str], object]
    rows: tuple[int, ...]
    creates: bool = False
    shows: Callable[[Table], bool] = lambda table: True

    def prepare(self, catalog: Catalog, name: str) -> None:
        """Makes the table as it is before."""
        if not self.creates:
            catalog.create_table(name, SCHEMA, properties=QUICK).append(pa.table({"id": [0]}))

    def is_made(self, catalog: Catalog, name: str) -> bool:
        """Whether it was made; raises AssertionError where the table is neither as before nor as after it."""
        if self.creates and not catalog.table_exists(name):
            return False
        table = catalog.load_table(name)
        for snapshot in table.snapshots():
            table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        for entry in table.metadata.metadata_log:
            assert table.storage.exists(entry.metadata_file), f"{entry.metadata_file} is gone"
        ids = [each for each in table.scan().to_arrow()["id"].to_pylist() if each < 2]
        if sorted(ids) == list(self.rows) and self.shows(table):
            return True
        assert ids == [0] and not self.creates, f"neither as before nor as after: {table.schema()} {ids}"
        return False


def _append(catalog: Catalog, name: str) -> None:
    catalog.load_table(name).append(pa.table({"id": [1]}))


def _create(catalog: Catalog, name: str) -> None:
    with catalog.create_table_transaction(name, SCHEMA, properties=QUICK) as transaction:
        transaction.append(pa.table({"id": [1]}))


def _replace(catalog: Catalog, name: str) -> None:
    with catalog.replace_table_transaction(name, REPLACED) as transaction:
        transaction.append(pa.table({"id": [1], "city": ["Rome"]}))


def _change_schema(catalog: Catalog, name: str) -> None:
    with catalog.load_table(name).update_schema() as update:
        update.add_column("city", StringType())


def _has_city(table: Table) -> bool:
    return "city" in [field.name for field in table.schema().fields]


OPERATIONS = {
    "create": Operation(_create, (1,), creates=True),
    "append": Operation(_append, (0, 1)),
    "replace": Operation(_replace, (1,), shows=_has_city),
    "schema change": Operation(_change_schema, (0,), shows=_has_city),
}

MODES = {
    "lock": {"iceberg.engine.hive.lock-enabled": "true", "iceberg.hive.lock-compare-enabled": "false"},
    "lock with comparison": {"iceberg.engine.hive.lock-enabled": "true"},
    "compare-and-swap": {"iceberg.engine.hive.lock-enabled": "false"},
}


def outcome(change: Callable[[], object]) -> str:
    """How a change is reported."""
    try:
        change()
    except CommitStateUnknownError:
        return "unknown"
    except MetastoreError:  # no other failure is a reason that a fault can give
        return "failed"
    return "made"


def find_out_capability(catalog: Catalog) -> bool:
    """Whether the server compares; no commit of the catalog has to find it out any more."""
    assert isinstance(catalog.metastore, HiveMetastore)
    return catalog.metastore.capability.compares_for_certain("default")
