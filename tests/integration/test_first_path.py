"""The first true path on the real metastore: create, append, scan, time travel, drop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import (
    CommitConflictError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.spec.data_types import DoubleType, LongType, NestedField, StringType, TimestampType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import DayTransform, IdentityTransform
from hms_iceberg.table import StaticTable, Table

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "amount", DoubleType()),
    NestedField(4, "at", TimestampType()),
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("city", pa.string()),
        pa.field("amount", pa.float64()),
        pa.field("at", pa.timestamp("us")),
    ]
)
BY_CITY_AND_DAY = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "city"), PartitionField(4, 1001, DayTransform(), "at_day")
)


def rows(*ids: int, city: str | None = "Bonn") -> pa.Table:
    return pa.table(
        {
            "id": list(ids),
            "city": [city] * len(ids),
            "amount": [float(each) / 2 for each in ids],
            "at": [1_700_000_000_000_000 + each * 86_400_000_000 for each in ids],
        },
        schema=ARROW,
    )


def ids(table: Table | StaticTable, *arguments: object, **options: object) -> list[int]:
    return sorted(table.scan(*arguments, **options).to_arrow()["id"].to_pylist())  # type: ignore[arg-type]


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    return catalog.create_table((namespace, "events"), SCHEMA, partition_spec=BY_CITY_AND_DAY)


def test_what_is_appended_is_read_back(catalog: Catalog, namespace: str, table: Table) -> None:
    first, second = rows(1, 2, 3), rows(4, 5, city=None)
    table.append(first)
    table.append(second.to_reader())
    expected = pa.concat_tables([first, second]).to_pylist()
    found = catalog.load_table(f"{namespace}.events").scan().to_arrow()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == expected
    assert found.schema.equals(ARROW, check_metadata=False)


def test_a_scan_filters_projects_and_limits(table: Table) -> None:
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20), city="Köln"))
    assert ids(table, "id >= 8 and id < 12") == [8, 9, 10, 11]
    assert ids(table, "city = 'Köln' and amount > 9") == [19]
    assert ids(table, "at >= '2023-11-30T00:00:00' and city = 'Bonn'") == []
    assert table.scan("id < 3", selected_fields=("amount",)).to_arrow().column_names == ["amount"]
    assert table.scan(limit=7).to_arrow().num_rows == 7
    assert table.scan("city = 'Köln'").count() == 10
    assert table.scan().count() == 20
    planned = list(table.scan("city = 'Köln' and id = 15").plan_files())
    assert {task.file.partition[0] for task in planned} == {"Köln"}


def test_the_past_is_read_by_snapshot_time_and_ref(table: Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag(None, "first").commit()
    table.append(rows(2))
    table.append(rows(3), branch="audit")
    assert ids(table) == [1, 2]
    assert ids(table, snapshot_id=first.snapshot_id) == [1]
    assert ids(table, as_of=first.timestamp_ms) == [1]
    assert ids(table, ref="first") == [1]
    assert ids(table, ref="audit") == [1, 2, 3]
    assert [entry.snapshot_id for entry in table.history()] == [
        snapshot.snapshot_id for snapshot in table.snapshots()[:2]
    ]


def test_rows_come_in_every_form(table: Table) -> None:
    table.append(rows(1, 2))
    scan = table.scan("id = 2")
    assert scan.to_pandas()["city"].tolist() == ["Bonn"]
    assert scan.to_polars()["id"].to_list() == [2]
    assert scan.to_arrow_batch_reader().read_all().num_rows == 1
    connection = scan.to_duckdb("found")
    assert connection.execute("select id, city from found").fetchall() == [(2, "Bonn")]
    connection.close()


def test_a_table_is_evolved_and_both_old_and_new_files_are_read(table: Table) -> None:
    table.append(rows(1))
    with table.update_schema() as schema:
        schema.rename_column("amount", "price")
        schema.add_column("note", StringType())
    with table.update_spec() as spec:
        spec.remove_field("at_day")
        spec.add_field("id", "bucket[4]")
    table.append(
        pa.table(
            {"id": [2], "city": ["Bonn"], "price": [9.0], "at": [None], "note": ["new"]},
            schema=pa.schema(
                [
                    pa.field("id", pa.int64(), nullable=False),
                    pa.field("city", pa.string()),
                    pa.field("price", pa.float64()),
                    pa.field("at", pa.timestamp("us")),
                    pa.field("note", pa.string()),
                ]
            ),
        )
    )
    found = table.scan(selected_fields=("id", "price", "note")).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "price": 0.5, "note": None}, {"id": 2, "price": 9.0, "note": "new"}]


def test_a_transaction_makes_all_of_its_changes_or_none(catalog: Catalog, namespace: str, table: Table) -> None:
    with table.transaction() as transaction:
        with transaction.update_schema() as schema:
            schema.add_column("note", StringType())
        transaction.append(rows(1).append_column("note", pa.array(["x"])))
        transaction.set_properties({"owner-team": "billing"})
    assert table.properties["owner-team"] == "billing"
    assert table.scan().to_arrow()["note"].to_pylist() == ["x"]

    files = set(_files(table))
    with _expected(ZeroDivisionError), table.transaction() as transaction:
        transaction.append(rows(2).append_column("note", pa.array(["y"])))
        raise ZeroDivisionError
    assert ids(catalog.load_table((namespace, "events"))) == [1]
    assert set(_files(table)) == files, "nothing is left of what was given up"


def test_a_conflict_in_one_change_undoes_the_whole_transaction(catalog: Catalog, namespace: str, table: Table) -> None:
    transaction = table.transaction()
    transaction.append(rows(1))
    transaction.update_schema().rename_column("city", "town").commit()
    other = catalog.load_table((namespace, "events"))
    other.update_schema().rename_column("city", "place").commit()
    with pytest.raises(CommitConflictError, match="place"):
        transaction.commit_transaction()
    assert ids(table.refresh()) == []
    assert table.schema().find_field("place").field_id == 2


def test_names_are_created_listed_renamed_and_dropped(catalog: Catalog, namespace: str, table: Table) -> None:
    table.append(rows(1))
    assert catalog.list_tables(namespace) == [(namespace, "events")]
    assert (namespace,) in catalog.list_namespaces()
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((namespace, "events"), ARROW)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    renamed = catalog.rename_table((namespace, "events"), (namespace, "moved"))
    assert ids(renamed) == [1]
    renamed.append(rows(2))
    assert ids(catalog.load_table((namespace, "moved"))) == [1, 2]
    with pytest.raises(NoSuchTableError):
        catalog.load_table((namespace, "events"))
    catalog.drop_table((namespace, "moved"))
    registered = catalog.register_table((namespace, "back"), renamed.metadata_location)
    assert ids(registered) == [1, 2]
    assert StaticTable.from_metadata(registered.metadata_location).scan().count() == 2
    catalog.purge_table((namespace, "back"))
    assert list(_files(registered)) == []
    catalog.drop_namespace(namespace)
    assert not catalog.namespace_exists(namespace)


def test_what_is_not_there_is_a_typed_error(catalog: Catalog, namespace: str) -> None:
    with pytest.raises(NoSuchTableError, match=f"{namespace}.absent"):
        catalog.load_table((namespace, "absent"))
    with pytest.raises(NoSuchNamespaceError, match="absent_namespace"):
        catalog.create_table("absent_namespace.events", ARROW)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("absent_namespace")
    assert not catalog.table_exists((namespace, "absent"))


def test_a_create_transaction_makes_the_table_appear_with_its_rows(catalog: Catalog, namespace: str) -> None:
    transaction = catalog.create_table_transaction((namespace, "whole"), ARROW)
    transaction.append(rows(1, 2))
    assert not catalog.table_exists((namespace, "whole"))
    table = transaction.commit_transaction()
    assert ids(table) == ids(catalog.load_table((namespace, "whole"))) == [1, 2]


def test_two_handles_append_one_after_the_other_without_a_refresh(
    catalog: Catalog, namespace: str, table: Table
) -> None:
    other = catalog.load_table((namespace, "events"))
    table.append(rows(1))
    other.append(rows(2))
    table.append(rows(3))
    assert ids(table) == [1, 2, 3]


def test_a_compare_and_swap_catalog_commits_too(metastore: object, namespace: str, table: Table) -> None:
    with load_catalog(
        "unlocked",
        type="hive",
        uri=metastore.uri,  # type: ignore[attr-defined]
        **{"iceberg.engine.hive.lock-enabled": "false"},
    ) as catalog:
        unlocked = catalog.load_table((namespace, "events"))
        unlocked.append(rows(1))
        unlocked.append(rows(2))
        assert ids(unlocked) == [1, 2]


def _files(table: Table) -> Iterator[str]:
    return (file.location for file in table.storage.list(table.location()))


@contextmanager
def _expected(kind: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}")
