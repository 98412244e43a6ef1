"""The commits that faults are injected into: how each is made, and how one sees whether it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitStateUnknownError, MetastoreError, MissingFileError
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.maintenance.repair import repair_table, undo_repair
from hms_iceberg.spec.data_types import StringType
from hms_iceberg.table import Table
from hms_iceberg.view import ViewVersion
from tests.support.hdfs_path import local_path

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
        mends: whether there is none that can be read.
        shows: whether the definition of the table is that after it.
    """

    make: Callable[[Catalog, str], object]
    rows: tuple[int, ...]
    creates: bool = False
    mends: bool = False
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

    def go_on(self, catalog: Catalog, name: str) -> None:
        """The next commit, which finds nothing in its way."""
        table = catalog.load_table(name)
        columns = {field.name: [2 if field.name == "id" else "Oslo"] for field in table.schema().fields}
        table.append(pa.table(columns))
        assert 2 in catalog.load_table(name).scan().to_arrow()["id"].to_pylist(), "the next commit is not there"

    def folder(self, catalog: Catalog, name: str) -> Path:
        """Where the files of the table are, or will be."""
        namespace = catalog.load_namespace_properties(name.partition(".")[0])["location"]
        return local_path(namespace) / name.rpartition(".")[2]


@dataclass(frozen=True)
class OverwrittenByFile(Operation):
    """A metadata file of before becomes the table's."""

    def prepare(self, catalog: Catalog, name: str) -> None:
        """A table with a row more than that file's."""
        super().prepare(catalog, name)
        table = catalog.load_table(name)
        table.set_properties({"before": table.metadata_location})
        table.append(pa.table({"id": [1]}))

    def is_made(self, catalog: Catalog, name: str) -> bool:
        """Whether the rows are those of the file."""
        ids = [each for each in catalog.load_table(name).scan().to_arrow()["id"].to_pylist() if each < 2]
        assert sorted(ids) in ([0], [0, 1])
        return ids == [0]


@dataclass(frozen=True)
class Repaired(Operation):
    """A table whose newest metadata file is gone is repaired, which takes it back by a row."""

    def prepare(self, catalog: Catalog, name: str) -> None:
        """A table that cannot be read."""
        super().prepare(catalog, name)
        table = catalog.load_table(name)
        table.append(pa.table({"id": [1]}))
        table.storage.delete(table.metadata_location)

    def is_made(self, catalog: Catalog, name: str) -> bool:
        """Whether it can be read."""
        try:
            return super().is_made(catalog, name)
        except MissingFileError:
            return False


@dataclass(frozen=True)
class Undone(Operation):
    """The repair of a table is taken back; its file was found meanwhile."""

    def prepare(self, catalog: Catalog, name: str) -> None:
        """A repaired table."""
        super().prepare(catalog, name)
        table = catalog.load_table(name)
        table.append(pa.table({"id": [1]}))
        content = table.storage.read(table.metadata_location)
        table.storage.delete(table.metadata_location)
        _repair(catalog, name)
        table.storage.create(table.metadata_location, content)


@dataclass(frozen=True)
class ViewOperation(Operation):
    """A commit to a view. `rows` are those that its query tells."""

    def prepare(self, catalog: Catalog, name: str) -> None:
        """Makes the view as it is before."""
        if not self.creates:
            catalog.create_view(name, SCHEMA, _query(0))

    def is_made(self, catalog: Catalog, name: str) -> bool:
        """Whether the view has its new query."""
        if self.creates and not catalog.view_exists(name):
            return False
        told = [each.sql for each in catalog.load_view(name).current_version().representations]
        assert told in ([_query(row).representations[0].sql] for row in (0, 1, 2)), told
        return told != [_query(0).representations[0].sql]

    def go_on(self, catalog: Catalog, name: str) -> None:
        """Another query."""
        catalog.load_view(name).set_properties({"next": "made"})
        assert catalog.load_view(name).properties["next"] == "made"


def _query(row: int) -> ViewVersion:
    return ViewVersion.of_sql({"spark": f"select {row} as id"})


def _register(catalog: Catalog, name: str) -> None:
    catalog.register_table(name, catalog.load_table(name).properties["before"], overwrite=True)


def _repair(catalog: Catalog, name: str) -> None:
    repair_table(catalog, tuple(name.split(".")), dry_run=False, accept_loss=True)


def _undo_repair(catalog: Catalog, name: str) -> None:
    undo_repair(catalog, tuple(name.split(".")), dry_run=False)


def _create_view(catalog: Catalog, name: str) -> None:
    catalog.create_view(name, SCHEMA, _query(1))


def _change_view(catalog: Catalog, name: str) -> None:
    catalog.create_or_replace_view(name, SCHEMA, _query(1))


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

# Commits that are no transactions of a table, and those of views.
OTHERS = {
    "register": OverwrittenByFile(_register, (0,)),
    "repair": Repaired(_repair, (0,), mends=True),
    "undo a repair": Undone(_undo_repair, (0, 1)),
    "create a view": ViewOperation(_create_view, (1,), creates=True),
    "change a view": ViewOperation(_change_view, (1,)),
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
