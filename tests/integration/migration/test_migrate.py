"""Hive tables to Iceberg tables in place, and back, on the real metastore."""

from __future__ import annotations

import threading
import time
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    MetastoreAnswerLostError,
    MetastoreError,
    MigrationError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import HiveMetastore
from hms_iceberg.hms.hive_tables import HiveTables
from hms_iceberg.maintenance.expire_with_files import expire_snapshots
from hms_iceberg.migration import Follower, MigrationOptions, MigrationResult, migrate, rollback
from hms_iceberg.migration.migration_plan import MigrationPlanner
from hms_iceberg.migration.rewrite import rewrite
from tests.support.fixed_rows import FixedRows
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, Rows, all_files, data_files, write_files

COLUMNS = "id int, name string"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]})


@pytest.fixture
def warehouse(catalog: Catalog, namespace: str) -> HiveWarehouse:
    return HiveWarehouse(catalog, namespace)


@pytest.fixture
def flights(warehouse: HiveWarehouse) -> Rows:
    """A managed table with three partitions, one of them null, and four files."""
    warehouse.create("flights", COLUMNS, "month int", parameters={"team": "ops"})
    warehouse.add_partition("flights", ["1"], rows(1, 2), rows(3))
    warehouse.add_partition("flights", ["2"], rows(4))
    warehouse.add_partition("flights", ["__HIVE_DEFAULT_PARTITION__"], rows(5))
    return warehouse.rows("flights")


@pytest.fixture
def plain(warehouse: HiveWarehouse) -> Rows:
    """A managed table without partitions, with two files."""
    made = warehouse.create("plain", COLUMNS)
    write_files(made.table.sd.location, rows(1, 2), rows(3))
    return warehouse.rows("plain")


def ids(warehouse: HiveWarehouse, name: str, **scan: Any) -> list[int]:
    table = warehouse.catalog.load_table((warehouse.namespace, name))
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


def run(warehouse: HiveWarehouse, name: str, **options: Any) -> MigrationResult:
    return migrate(warehouse.catalog, (warehouse.namespace, name), MigrationOptions(**options))


# ------------------------------------------------------------------------------------------ there and back


def test_a_partitioned_table_becomes_an_iceberg_table_and_no_file_moves(
    warehouse: HiveWarehouse, flights: Rows
) -> None:
    before = data_files(flights.location)

    result = run(warehouse, "flights")

    assert (result.files, result.partitions, result.records, result.already_done) == (4, 3, 5, False)
    assert data_files(flights.location) == before
    table = warehouse.catalog.load_table((warehouse.namespace, "flights"))
    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5]
    assert ids(warehouse, "flights", row_filter="month = 1") == [1, 2, 3]
    assert ids(warehouse, "flights", row_filter="month is null") == [5]
    assert [str(field) for field in table.spec().fields] == ["1000: month: identity(3)"]
    assert table.location() == flights.table.sd.location
    assert table.properties["team"] == "ops"
    assert '"names": ["name"]' in table.properties["schema.name-mapping.default"]
    assert table.metadata_location == result.metadata_location
    assert table.current_snapshot().snapshot_id == result.snapshot_id
    assert len(table.metadata.snapshots) == 1
    assert warehouse.rows("flights").table.owner == "hive-user"


def test_a_filter_on_the_partition_column_reads_only_its_files(warehouse: HiveWarehouse, flights: Rows) -> None:
    run(warehouse, "flights")

    table = warehouse.catalog.load_table((warehouse.namespace, "flights"))

    assert len(list(table.scan(row_filter="month = 2").plan_files())) == 1
    assert len(list(table.scan(row_filter="id = 3").plan_files())) == 1


def test_the_hive_table_stays_as_the_backup_with_its_partitions(warehouse: HiveWarehouse, flights: Rows) -> None:
    result = run(warehouse, "flights")

    backup = warehouse.rows("flights_backup_")
    assert result.backup == f"{warehouse.namespace}.flights_backup_"
    assert warehouse.names() == ["flights", "flights_backup_"]
    assert (backup.table.tableType, backup.table.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert backup.table.parameters["external.table.purge"] == "false"
    assert [row.sd.location for row in backup.partitions] == [row.sd.location for row in flights.partitions]


@pytest.mark.parametrize("name", ["flights", "plain"])
def test_dropping_the_backup_never_deletes_data(
    warehouse: HiveWarehouse, name: str, request: pytest.FixtureRequest
) -> None:
    made: Rows = request.getfixturevalue(name)
    run(warehouse, name)
    before, found = data_files(made.location), ids(warehouse, name)

    purge = {"ifPurge": "TRUE"}
    warehouse.client.drop_table(warehouse.namespace, f"{name}_backup_", delete_data=True, environment=purge)

    assert data_files(made.location) == before
    assert ids(warehouse, name) == found


@pytest.mark.parametrize("name", ["flights", "plain"])
def test_a_rollback_puts_the_hive_table_back_exactly(
    warehouse: HiveWarehouse, name: str, request: pytest.FixtureRequest
) -> None:
    made: Rows = request.getfixturevalue(name)
    files = all_files(made.location)
    run(warehouse, name)

    result = rollback(warehouse.catalog, (warehouse.namespace, name))

    assert warehouse.rows(name) == made
    assert warehouse.names() == [name]
    assert all_files(made.location) == files
    assert (result.files, result.discarded_snapshots) == (len(files), 0)


def test_a_table_can_be_migrated_again_after_a_rollback(warehouse: HiveWarehouse, flights: Rows) -> None:
    run(warehouse, "flights")
    rollback(warehouse.catalog, (warehouse.namespace, "flights"))

    assert run(warehouse, "flights").records == 5
    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5]


def test_a_table_without_partitions_is_switched_in_one_step(warehouse: HiveWarehouse, plain: Rows) -> None:
    before = data_files(plain.location)

    result = run(warehouse, "plain")

    assert result.unresolved_ms == 0
    assert ids(warehouse, "plain") == [1, 2, 3]
    assert data_files(plain.location) == before
    assert warehouse.names() == ["plain", "plain_backup_"]


def test_what_iceberg_adds_to_a_table_without_partitions_is_hidden_from_hive(
    warehouse: HiveWarehouse, plain: Rows
) -> None:
    before = data_files(plain.location)
    run(warehouse, "plain")

    warehouse.catalog.load_table((warehouse.namespace, "plain")).append(rows(4))

    assert ids(warehouse, "plain") == [1, 2, 3, 4]
    assert data_files(plain.location) == before
    assert all(path.startswith("_iceberg/") for path in all_files(plain.location) - set(before))


def test_rows_can_be_appended_and_older_ones_seen_by_time_travel(warehouse: HiveWarehouse, flights: Rows) -> None:
    result = run(warehouse, "flights")
    table = warehouse.catalog.load_table((warehouse.namespace, "flights"))

    table.append(rows(6).append_column("month", pa.array([2], pa.int32())))

    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5, 6]
    assert ids(warehouse, "flights", snapshot_id=result.snapshot_id) == [1, 2, 3, 4, 5]


def test_an_external_table_stays_where_it_is_and_gets_its_own_flags_back(
    warehouse: HiveWarehouse, tmp_path: Any
) -> None:
    parameters = {"external.table.purge": "true"}
    made = warehouse.create(
        "ext", COLUMNS, "k string", managed=False, parameters=parameters, location=f"file:{tmp_path}/ext"
    )
    warehouse.add_partition("ext", ["a"], rows(1))
    made = warehouse.rows("ext")

    run(warehouse, "ext")
    assert warehouse.rows("ext_backup_").table.parameters["external.table.purge"] == "false"
    rollback(warehouse.catalog, (warehouse.namespace, "ext"))

    assert warehouse.rows("ext") == made


def test_partitions_with_odd_values_and_places_are_taken_in(warehouse: HiveWarehouse, tmp_path: Any) -> None:
    warehouse.create("odd", COLUMNS, "k string, day date")
    values = ["a/b", "50%", "x=y", "ü ber", "%2F", " blank "]
    for number, value in enumerate(values):
        warehouse.add_partition("odd", [value, "2013-01-01"], rows(number))
    elsewhere = f"file:{tmp_path}/else where"
    warehouse.add_partition("odd", ["else", "__HIVE_DEFAULT_PARTITION__"], rows(99), location=elsewhere)

    run(warehouse, "odd")

    table = warehouse.catalog.load_table((warehouse.namespace, "odd")).scan().to_arrow()
    found = dict(zip(table["id"].to_pylist(), table["k"].to_pylist(), strict=True))
    assert found == {**dict(enumerate(values)), 99: "else"}
    assert ids(warehouse, "odd", row_filter="day is null") == [99]
    assert ids(warehouse, "odd", row_filter="k = '%2F'") == [4]


def test_an_empty_table_and_empty_partitions_can_be_migrated(warehouse: HiveWarehouse) -> None:
    made = warehouse.create("none", COLUMNS, "k int")
    warehouse.add_partition("none", ["1"])
    (local_path(made.table.sd.location) / "k=1" / "000000_0").touch()

    result = run(warehouse, "none")

    assert (result.files, result.partitions, result.snapshot_id) == (0, 1, None)
    assert ids(warehouse, "none") == []


def test_a_dry_run_changes_nothing(warehouse: HiveWarehouse, flights: Rows) -> None:
    files = all_files(flights.location)

    result = migrate(warehouse.catalog, f"{warehouse.namespace}.flights", dry_run=True)

    assert (result.dry_run, result.files, result.records) == (True, 4, 5)
    assert warehouse.rows("flights") == flights
    assert all_files(flights.location) == files


def test_progress_is_told_for_both_stages(warehouse: HiveWarehouse, flights: Rows) -> None:
    told: list[tuple[str, int, int]] = []

    migrate(warehouse.catalog, (warehouse.namespace, "flights"), progress=lambda *step: told.append(step))

    assert ("Listing partitions", 3, 3) in told
    assert ("Reading footers", 4, 4) in told


def test_running_the_command_again_says_that_it_is_done(warehouse: HiveWarehouse, flights: Rows) -> None:
    first = run(warehouse, "flights")

    second = run(warehouse, "flights")

    assert second.already_done
    assert (second.metadata_location, second.files) == (first.metadata_location, 4)


def test_the_name_is_always_resolved_for_a_table_without_partitions_and_but_for_a_moment_otherwise(
    warehouse: HiveWarehouse, flights: Rows, plain: Rows, metastore: EmbeddedMetastore
) -> None:
    with Watcher(metastore.uri, warehouse.namespace, "plain", "flights") as watcher:
        run(warehouse, "plain")
        result = run(warehouse, "flights")

    assert watcher.seen["plain"] == ["Hive", "Iceberg"]
    assert [kind for kind in watcher.seen["flights"] if kind != "missing"] == ["Hive", "Iceberg"]
    assert result.unresolved_ms < 5_000


class Watcher:
    """Looks at tables all the time on a connection of its own, and notes each change of their kind."""

    def __init__(self, uri: str, namespace: str, *names: str) -> None:
        self._hive = HiveTables.of(HiveMetastore({"uri": uri}))
        self._namespace = namespace
        self.seen: dict[str, list[str]] = {name: [] for name in names}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._stop.is_set():
            for name, seen in self.seen.items():
                row = self._hive.find(self._namespace, name)
                kind = "missing" if row is None else "Iceberg" if row.is_iceberg else "Hive"
                if seen[-1:] != [kind]:
                    seen.append(kind)

    def __enter__(self) -> Watcher:
        self._thread.start()
        while not all(self.seen.values()):
            time.sleep(0.01)
        return self

    def __exit__(self, *error: object) -> None:
        time.sleep(0.2)
        self._stop.set()
        self._thread.join()


# ---------------------------------------------------------------------------------------------- refusals


def test_a_table_that_does_not_exist_is_named(warehouse: HiveWarehouse) -> None:
    with pytest.raises(NoSuchTableError, match="nothing_here"):
        run(warehouse, "nothing_here")


def test_an_iceberg_table_is_refused(warehouse: HiveWarehouse) -> None:
    warehouse.catalog.create_table((warehouse.namespace, "ice"), pa.schema([("a", pa.int32())]))

    with pytest.raises(UnsupportedError, match="an Iceberg table already"):
        run(warehouse, "ice")


@pytest.mark.parametrize("taken", ["flights_backup_", "flights__iceberg_staging"])
def test_a_name_that_is_taken_is_refused(warehouse: HiveWarehouse, flights: Rows, taken: str) -> None:
    warehouse.create(taken, COLUMNS)

    with pytest.raises(TableAlreadyExistsError, match=taken):
        run(warehouse, "flights")

    assert warehouse.rows("flights") == flights


def test_the_backup_can_have_another_name(warehouse: HiveWarehouse, flights: Rows) -> None:
    warehouse.create("flights_backup_", COLUMNS)

    result = run(warehouse, "flights", backup_name="Flights_Hive")
    assert result.backup == f"{warehouse.namespace}.flights_hive"
    rollback(warehouse.catalog, (warehouse.namespace, "flights"))

    assert warehouse.rows("flights") == flights


def test_every_bad_file_is_named_and_nothing_is_written(warehouse: HiveWarehouse, flights: Rows) -> None:
    write_files(f"{flights.table.sd.location}/month=1", pa.table({"id": ["text"]}))
    (flights.location / "month=2" / "broken").write_bytes(b"PAR1 but no more")
    files = all_files(flights.location)

    with pytest.raises(UnsupportedError) as caught:
        run(warehouse, "flights")

    assert "month=1/000002_0 holds string in the column 'id'" in str(caught.value)
    assert "month=2/broken" in str(caught.value)
    assert warehouse.rows("flights") == flights
    assert all_files(flights.location) == files


def test_metadata_cannot_be_put_elsewhere_while_migrating(
    warehouse: HiveWarehouse, flights: Rows, tmp_path: Any
) -> None:
    with pytest.raises(MigrationError, match=r"write\.metadata\.path .* Set it after the migration"):
        run(warehouse, "flights", properties={"write.metadata.path": f"file:{tmp_path}/elsewhere"})

    assert warehouse.rows("flights") == flights


def test_files_below_a_partitions_directory_are_migrated_only_when_asked_for(
    warehouse: HiveWarehouse, flights: Rows
) -> None:
    write_files(f"{flights.table.sd.location}/month=1/HIVE_UNION_SUBDIR_1", rows(7))

    with pytest.raises(UnsupportedError, match="--include-subdirectories"):
        run(warehouse, "flights")
    run(warehouse, "flights", include_subdirectories=True)

    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5, 7]


# ---------------------------------------------------------------------------------------------- failures


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a method of the metastore's rows fail, before or after it did its work."""

    def install(method: str, error: BaseException, after: bool = False, times: int = 1) -> None:
        real, left = getattr(HiveTables, method), [times]

        def call(*arguments: Any, **named: Any) -> Any:
            if left[0] == 0:
                return real(*arguments, **named)
            left[0] -= 1
            if after:
                real(*arguments, **named)
            raise error

        monkeypatch.setattr(HiveTables, method, call)

    return install


@pytest.mark.parametrize("method", ["change", "rename_pair"])
def test_a_failure_of_a_partitioned_table_leaves_the_hive_table_as_it_was(
    warehouse: HiveWarehouse, flights: Rows, failing: Any, method: str
) -> None:
    files = all_files(flights.location)
    failing(method, MetastoreError("no such luck"))

    with pytest.raises(MigrationError, match="the Hive table is as it was: no such luck"):
        run(warehouse, "flights")

    assert warehouse.rows("flights") == flights
    assert warehouse.names() == ["flights"]
    assert all_files(flights.location) == files


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StorageError("full"), SystemExit(3)])
def test_an_interrupt_in_the_middle_leaves_the_hive_table_as_it_was(
    warehouse: HiveWarehouse, flights: Rows, failing: Any, error: BaseException
) -> None:
    files = all_files(flights.location)
    failing("change", error, after=True)

    with pytest.raises(MigrationError if isinstance(error, Exception) else type(error)):
        run(warehouse, "flights")

    assert warehouse.rows("flights") == flights
    assert all_files(flights.location) == files


def test_a_switch_whose_answer_is_lost_is_a_success(warehouse: HiveWarehouse, flights: Rows, failing: Any) -> None:
    failing("rename_pair", MetastoreAnswerLostError("broken pipe"), after=True)

    assert run(warehouse, "flights").records == 5

    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5]


def test_a_row_that_the_metastore_does_not_let_change_is_switched_by_renames(
    warehouse: HiveWarehouse, plain: Rows, failing: Any
) -> None:
    failing("take_over", MetastoreError("The following columns have types incompatible with the existing columns"))
    run(warehouse, "plain")
    assert ids(warehouse, "plain") == [1, 2, 3]
    assert warehouse.names() == ["plain", "plain_backup_"]

    rollback(warehouse.catalog, (warehouse.namespace, "plain"))

    assert warehouse.rows("plain") == plain


def test_a_type_that_iceberg_widened_is_narrow_again_after_a_rollback(warehouse: HiveWarehouse) -> None:
    made = warehouse.create("narrow", "a tinyint, b smallint")
    write_files(made.table.sd.location, pa.table({"a": pa.array([1], pa.int8()), "b": pa.array([2], pa.int16())}))
    made = warehouse.rows("narrow")

    assert run(warehouse, "narrow").unresolved_ms == 0
    assert [column.type for column in warehouse.rows("narrow").table.sd.cols] == ["int", "int"]
    assert rollback(warehouse.catalog, (warehouse.namespace, "narrow")).unresolved_ms == 0

    assert warehouse.rows("narrow") == made


def test_files_that_come_while_the_table_is_migrated_are_taken_in(
    warehouse: HiveWarehouse, flights: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, added = MigrationPlanner.plan, []

    def plan(self: MigrationPlanner, *arguments: Any) -> Any:
        made = real(self, *arguments)
        if len(added) < 2:
            added.append(100 + len(added))
            warehouse.add_partition("flights", [str(50 + len(added))], rows(added[-1]))
        return made

    monkeypatch.setattr(MigrationPlanner, "plan", plan)

    result = run(warehouse, "flights")

    assert (result.records, result.partitions) == (7, 5)
    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5, 100, 101]
    assert len(warehouse.catalog.load_table((warehouse.namespace, "flights")).metadata.snapshots) == 1


def test_a_table_that_never_stands_still_is_left_alone(
    warehouse: HiveWarehouse, flights: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MigrationPlanner, "is_current", lambda *_: False)

    with pytest.raises(MigrationError, match="Stop the jobs that write to it"):
        run(warehouse, "flights")

    assert warehouse.rows("flights") == flights
    assert warehouse.names() == ["flights"]


def test_a_locked_table_is_not_switched(warehouse: HiveWarehouse, flights: Rows, metastore: EmbeddedMetastore) -> None:
    properties = {"uri": metastore.uri, "iceberg.hive.lock-timeout-ms": "300"}
    impatient = Catalog("impatient", HiveMetastore(properties), warehouse.catalog.storage, properties)
    identifier = (warehouse.namespace, "flights")

    with warehouse.catalog.metastore.lease(identifier, {}) as lease:
        lease.acquire()
        thread = ThreadWithError(lambda: migrate(impatient, identifier))
        thread.start()
        thread.join()

    assert isinstance(thread.error, MigrationError)
    assert "No lock on table" in str(thread.error)
    assert warehouse.rows("flights") == flights


class ThreadWithError(threading.Thread):
    """A thread that keeps the error of what it ran."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self._function = function
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._function()
        except BaseException as error:
            self.error = error


def test_two_threads_do_not_migrate_one_table(
    warehouse: HiveWarehouse, flights: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[BaseException | None] = []
    real = MigrationPlanner.plan

    def plan(self: MigrationPlanner, *arguments: Any) -> Any:
        if not errors:
            errors.append(None)
            thread = ThreadWithError(lambda: run(warehouse, "flights"))
            thread.start()
            thread.join()
            errors.append(thread.error)
        return real(self, *arguments)

    monkeypatch.setattr(MigrationPlanner, "plan", plan)

    run(warehouse, "flights")

    assert isinstance(errors[1], MigrationError)
    assert "Another thread" in str(errors[1])


# ------------------------------------------------------------------------------------- refused ways back


def test_a_changed_table_is_taken_back_only_when_the_changes_may_go(warehouse: HiveWarehouse, flights: Rows) -> None:
    run(warehouse, "flights")
    table = warehouse.catalog.load_table((warehouse.namespace, "flights"))
    table.append(rows(6).append_column("month", pa.array([2], pa.int32())))

    with pytest.raises(MigrationError, match="--discard-changes"):
        rollback(warehouse.catalog, (warehouse.namespace, "flights"))
    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5, 6]
    result = rollback(warehouse.catalog, (warehouse.namespace, "flights"), discard_changes=True)

    assert result.discarded_snapshots == 1
    assert warehouse.rows("flights") == flights


@pytest.mark.parametrize("loss", ["gone", "gone, and others came", "replaced", "partition dropped"])
def test_a_table_without_the_files_that_it_had_is_not_taken_back(
    warehouse: HiveWarehouse, flights: Rows, loss: str
) -> None:
    run(warehouse, "flights")
    warehouse.catalog.load_table((warehouse.namespace, "flights")).set_properties({"used": "yes"})
    lost = flights.location / "month=2" / "000000_0"
    if loss == "partition dropped":
        warehouse.client.drop_partition(warehouse.namespace, "flights_backup_", ["2"])
    else:
        lost.unlink()
    if loss == "gone, and others came":  # as many files as there were
        write_files(f"{flights.table.sd.location}/month=1", rows(8), rows(9))
    if loss == "replaced":
        write_files(f"{flights.table.sd.location}/month=2", rows(7, 8))
    before = all_files(flights.location)

    with pytest.raises(MigrationError, match=f"of the 4 files.*1 are gone.*Nothing was changed.*{lost}"):
        rollback(warehouse.catalog, (warehouse.namespace, "flights"), discard_changes=True)

    assert all_files(flights.location) == before
    assert warehouse.catalog.table_exists((warehouse.namespace, "flights"))


def test_a_look_at_the_way_back_tells_for_how_long_there_is_one_and_changes_nothing(
    warehouse: HiveWarehouse, flights: Rows
) -> None:
    made = run(warehouse, "flights")
    name = f"{warehouse.namespace}.flights"
    table = warehouse.catalog.load_table(name)

    def look(**options: bool) -> Any:
        before = all_files(flights.location), warehouse.rows("flights"), warehouse.names()
        found = rollback(warehouse.catalog, name, dry_run=True, **options)
        assert (all_files(flights.location), warehouse.rows("flights"), warehouse.names()) == before
        return found.files, found.appended_files, found.discarded_snapshots, found.left_over, found.safe_until_ms

    assert look() == (4, 0, 0, 0, None)
    table.append(rows(6).append_column("month", pa.array([2], pa.int32())))
    assert look(as_hive=True) == (5, 1, 0, 0, None)
    table.delete("id = 4")
    own = table.metadata.snapshot_by_id(made.snapshot_id)
    assert own is not None
    assert look(discard_changes=True) == (4, 0, 2, 1, own.timestamp_ms + 5 * 24 * 3600 * 1000)
    for options in ({}, {"as_hive": True}):
        with pytest.raises((MigrationError, UnsupportedError), match="Nothing was changed"):
            look(**options)
    expiry = expire_snapshots(table, older_than=int(time.time() * 1000) + 1000, retain_last=1)
    assert len(expiry.kept) == 1 and "flights_backup_" in next(iter(expiry.kept.values()))
    assert look(discard_changes=True) == (4, 0, 1, 1, 0)
    (flights.location / "month=2" / "000000_0").unlink()
    with pytest.raises(MigrationError, match=r"1 are gone.*Nothing was changed"):
        look(discard_changes=True)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_partitions_of_nan_and_of_both_zeros_are_migrated_followed_and_handed_back(
    warehouse: HiveWarehouse, kind: str
) -> None:
    catalog, name = warehouse.catalog, f"{warehouse.namespace}.t"
    values = ["NaN", "-Infinity", "0.0", "-0.0", "1.5", "__HIVE_DEFAULT_PARTITION__"]
    warehouse.create("t", "id int", f"k {kind}")
    for number, value in enumerate(values):
        warehouse.add_partition("t", [value], pa.table({"id": pa.array([number], pa.int32())}))
    follower = Follower(catalog, name, f"{name}_follower")
    assert [(each.added, each.removed, each.waiting) for each in (follower.round(), follower.round())] == [
        (6, 0, 0),
        (0, 0, 0),
    ]

    migrate(catalog, name)
    table = catalog.load_table(name)
    found = {row["id"]: str(row["k"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {0: "nan", 1: "-inf", 2: "0.0", 3: "-0.0", 4: "1.5", 5: "None"}
    assert table.scan(row_filter="k is nan").to_arrow()["id"].to_pylist() == [0]
    more = pa.array([float("nan"), -0.0, float("inf")], pa.float64() if kind == "double" else pa.float32())
    table.append(pa.table({"id": pa.array([7, 8, 9], pa.int32()), "k": more}))
    rollback(catalog, name, as_hive=True)

    partitions = warehouse.rows("t").partitions
    assert {row.values[0] for row in partitions} == {*values, "Infinity"}
    files = {row.values[0]: len(list(local_path(row.sd.location).glob("*"))) for row in partitions}
    assert files == {**dict.fromkeys(values, 1), "NaN": 2, "-0.0": 2, "Infinity": 1}


@pytest.mark.parametrize("folder", ["metadata", "data", "data/month=1", ""])
def test_partitions_where_iceberg_keeps_its_files_hold_none_of_them(warehouse: HiveWarehouse, folder: str) -> None:
    location = f"{warehouse.location}/t/{folder}".rstrip("/")
    warehouse.create("t", COLUMNS, "month int")
    warehouse.add_partition("t", ["1"], rows(1, 2), location=location)
    warehouse.add_partition("t", ["2"], rows(3), location=f"{warehouse.location}/elsewhere")
    made = warehouse.rows("t")
    before = all_files(made.location)

    run(warehouse, "t")
    table = warehouse.catalog.load_table((warehouse.namespace, "t"))
    table.append(rows(4, 5).append_column("month", pa.array([1, 2], pa.int32())))

    assert ids(warehouse, "t") == [1, 2, 3, 4, 5] and ids(warehouse, "t", row_filter="month = 1") == [1, 2, 4]
    added = all_files(made.location) - before
    assert added and all(path.startswith("_iceberg/") for path in added)
    assert {str(path.name) for path in local_path(location).glob("*_0")} == {"000000_0"}
    rollback(warehouse.catalog, (warehouse.namespace, "t"), discard_changes=True)
    assert warehouse.rows("t") == made
    assert {path for path in all_files(made.location) if not path.startswith("_iceberg/data/")} == before
    run(warehouse, "t")
    assert ids(warehouse, "t") == [1, 2, 3]


def test_a_table_whose_backup_is_gone_is_not_taken_back(warehouse: HiveWarehouse, flights: Rows) -> None:
    run(warehouse, "flights")
    warehouse.client.drop_table(warehouse.namespace, "flights_backup_")

    with pytest.raises(MigrationError, match="flights_backup_ is gone"):
        rollback(warehouse.catalog, (warehouse.namespace, "flights"))

    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("table", "skip.header.line.count", "1"),
        ("serde", "skip.header.line.count", "2"),
        ("table", "skip.footer.line.count", "1"),
        ("table", "textinputformat.record.delimiter", "\x03"),
        ("serde", "parquet.column.index.access", "true"),
    ],
)
def test_a_table_of_which_spark_and_hive_read_other_rows_is_neither_copied_nor_taken_in(
    warehouse: HiveWarehouse, where: str, name: str, value: str
) -> None:
    text = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    serde = ttypes.SerDeInfo(serializationLib=text, parameters={name: value} if where == "serde" else {})
    warehouse.create("t", COLUMNS, parameters={name: value} if where == "table" else {}, serdeInfo=serde)
    before = warehouse.rows("t")
    (before.location / "000000_0").write_text("id,name\n1,a\n")

    for act in (migrate, lambda *args: rewrite(*args, rows=FixedRows(warehouse.catalog))):
        with pytest.raises(UnsupportedError, match=f"(?s){name}.*Nothing was changed"):
            act(warehouse.catalog, f"{warehouse.namespace}.t")

    assert warehouse.rows("t") == before and all_files(before.location.parent) == {"t/000000_0"}


def test_only_migrated_tables_are_taken_back(warehouse: HiveWarehouse, flights: Rows) -> None:
    warehouse.catalog.create_table((warehouse.namespace, "ice"), pa.schema([("a", pa.int32())]))

    with pytest.raises(MigrationError, match="not migrated by this package"):
        rollback(warehouse.catalog, (warehouse.namespace, "ice"))
    with pytest.raises(MigrationError, match="no unfinished migration"):
        rollback(warehouse.catalog, (warehouse.namespace, "flights"))
    with pytest.raises(NoSuchTableError, match="no trace of a migration"):
        rollback(warehouse.catalog, (warehouse.namespace, "nothing"))


def test_a_new_hive_table_under_an_old_name_is_not_taken_for_the_old_one(
    warehouse: HiveWarehouse, flights: Rows, tmp_path: Any
) -> None:
    run(warehouse, "flights")
    warehouse.client.drop_table(warehouse.namespace, "flights")
    warehouse.create("flights", COLUMNS, location=f"file:{tmp_path}/new")
    write_files(f"file:{tmp_path}/new", rows(1))

    with pytest.raises(TableAlreadyExistsError, match="flights_backup_"):
        run(warehouse, "flights")
    run(warehouse, "flights", backup_name="flights_new_backup")

    assert ids(warehouse, "flights") == [1]
    assert len(warehouse.rows("flights_backup_").partitions) == 3


def test_the_history_of_an_iceberg_table_whose_row_was_dropped_is_not_thrown_away(
    warehouse: HiveWarehouse, flights: Rows
) -> None:
    run(warehouse, "flights")
    table = warehouse.catalog.load_table((warehouse.namespace, "flights"))
    table.append(rows(6).append_column("month", pa.array([2], pa.int32())))
    warehouse.client.drop_table(warehouse.namespace, "flights")

    with pytest.raises(MigrationError, match=r"an Iceberg table .* changed after its migration"):
        run(warehouse, "flights")
    with pytest.raises(MigrationError, match="register_table"):
        rollback(warehouse.catalog, (warehouse.namespace, "flights"))
    warehouse.catalog.register_table((warehouse.namespace, "flights"), table.metadata_location)
    assert ids(warehouse, "flights") == [1, 2, 3, 4, 5, 6]
    warehouse.client.drop_table(warehouse.namespace, "flights")
    rollback(warehouse.catalog, (warehouse.namespace, "flights"), discard_changes=True)

    assert warehouse.rows("flights") == flights
