"""The catalog over a metastore in memory: names, locations, properties, purge."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog, PropertiesUpdateSummary
from hms_iceberg.errors import (
    CommitConflictError,
    ConfigurationError,
    InvalidInputError,
    InvalidPartitionSpecError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotAnIcebergTableError,
    StorageDeniedError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.metastore import namespace_name, table_identifier
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, DayTransform, IdentityTransform
from tests.support import memory_metastore as outcomes
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])
SCHEMA = Schema(NestedField(10, "id", LongType(), required=True), NestedField(20, "name", StringType()))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path / "db.db")})
    return catalog


@pytest.mark.parametrize("name", ["events", "a.b.c", "", ".x", ("a",), ("a", ""), ("a", "b", "c"), ("a", 1)])
def test_a_name_that_is_not_a_namespace_and_a_table_is_refused(name: object) -> None:
    with pytest.raises(InvalidInputError, match="Not the name of a table"):
        table_identifier(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a.b", ("a", "b"), ()])
def test_a_name_that_is_not_a_namespace_is_refused(name: object) -> None:
    with pytest.raises(InvalidInputError, match="Not the name of a namespace"):
        namespace_name(name)  # type: ignore[arg-type]


def test_a_table_lies_in_its_namespaces_location_unless_told(catalog: Catalog, tmp_path: Path) -> None:
    assert catalog.create_table("db.a", ARROW).location() == str(tmp_path / "db.db" / "a")
    assert catalog.create_table("db.b", ARROW, location=f"{tmp_path}/else/").location() == f"{tmp_path}/else"


def test_without_a_location_of_the_namespace_the_warehouse_counts(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("plain", {"location": ""})
    assert catalog.create_table("plain.a", ARROW).location() == f"{tmp_path}/plain.db/a"
    catalog.properties.clear()
    with pytest.raises(ConfigurationError, match="warehouse"):
        catalog.create_table("plain.b", ARROW)


def test_ids_are_assigned_anew_and_specs_and_orders_follow(catalog: Catalog) -> None:
    table = catalog.create_table(
        "db.a",
        SCHEMA,
        partition_spec=PartitionSpec(PartitionField(20, 5, BucketTransform(4), "bucket")),
        sort_order=SortOrder(SortField(10)),
    )
    assert [field.field_id for field in table.schema().fields] == [1, 2]
    assert table.spec().fields[0].source_id == 2
    assert table.spec().fields[0].field_id == 1000
    assert table.sort_order().fields[0].source_id == 1


def test_the_format_version_is_a_property(catalog: Catalog) -> None:
    assert catalog.create_table("db.a", ARROW).format_version == 2
    for version in (1, 2, 3):
        table = catalog.create_table(f"db.v{version}", ARROW, properties={"format-version": str(version)})
        assert table.format_version == version
        assert "format-version" not in table.properties
    with pytest.raises(InvalidInputError):
        catalog.create_table("db.v4", ARROW, properties={"format-version": "4"})


def test_defaults_and_overrides_of_the_catalog_surround_the_callers_properties(catalog: Catalog) -> None:
    catalog.properties.update(
        {"table-default.a": "1", "table-default.b": "1", "table-override.c": "3", "table-default.format-version": "1"}
    )
    table = catalog.create_table("db.a", ARROW, properties={"b": "2", "c": "2"})
    assert {key: table.properties[key] for key in "abc"} == {"a": "1", "b": "2", "c": "3"}
    assert table.format_version == 1


def test_what_cannot_be_created_leaves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(20, 1000, DayTransform(), "day"))
    with pytest.raises(InvalidPartitionSpecError):
        catalog.create_table("db.a", SCHEMA, partition_spec=spec)
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("absent.a", SCHEMA)
    assert not list(tmp_path.rglob("*.json"))
    assert not catalog.table_exists("db.a")


def test_a_name_that_is_taken_is_refused_before_anything_is_written(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.a", ARROW)
    catalog.metastore.add_foreign_table(("db", "plain"))  # type: ignore[attr-defined]
    files = list(tmp_path.rglob("*"))
    with pytest.raises(TableAlreadyExistsError, match=r"db\.a"):
        catalog.create_table("db.a", ARROW)
    with pytest.raises(TableAlreadyExistsError, match=r"hms-iceberg migrate db\.plain"):
        catalog.create_table("db.plain", ARROW)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("db.a", table.metadata_location)
    with pytest.raises(NotAnIcebergTableError, match=r"hms-iceberg migrate db\.plain"):
        catalog.load_table("db.plain")
    assert catalog.create_table_if_not_exists("db.a", ARROW) == table
    assert list(tmp_path.rglob("*")) == files


def test_a_registered_table_may_take_anothers_place(catalog: Catalog) -> None:
    old = catalog.create_table("db.a", ARROW)
    location = old.metadata_location
    old.append(pa.table({"id": [1], "name": ["x"]}, schema=ARROW))
    table = catalog.register_table("db.a", location, overwrite=True)
    assert table.metadata_location == catalog.load_table("db.a").metadata_location == location


def test_properties_of_namespaces_are_set_and_removed(catalog: Catalog) -> None:
    summary = catalog.update_namespace_properties("db", {"absent", "location"}, {"a": "1"})
    assert summary == PropertiesUpdateSummary(removed=["location"], updated=["a"], missing=["absent"])
    assert catalog.load_namespace_properties(("db",)) == {"a": "1"}
    with pytest.raises(InvalidInputError, match="both removed and set"):
        catalog.update_namespace_properties("db", {"a"}, {"a": "2"})
    catalog.create_namespace_if_not_exists("db")
    assert catalog.list_namespaces() == [("db",)]
    assert catalog.list_namespaces("db") == []


def test_a_dropped_table_keeps_its_files_and_a_purged_one_does_not(catalog: Catalog, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "name": ["x", "y"]}, schema=ARROW)
    for name in ("db.kept", "db.purged"):
        table = catalog.create_table(name, ARROW)
        table.append(rows)
        table.append(rows)
    kept = set((tmp_path / "db.db" / "kept").rglob("*.*"))
    catalog.drop_table("db.kept")
    catalog.purge_table("db.purged")
    assert set((tmp_path / "db.db" / "kept").rglob("*.*")) == kept
    assert list((tmp_path / "db.db" / "purged").rglob("*.*")) == []


def test_a_table_whose_files_this_user_may_not_delete_is_not_dropped(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("db.a", ARROW)

    def refuse(location: str) -> None:
        raise StorageDeniedError(location)

    monkeypatch.setattr(catalog.storage, "delete", refuse)
    with pytest.raises(StorageDeniedError):
        catalog.purge_table("db.a")
    assert catalog.table_exists("db.a")


def test_a_table_whose_files_may_belong_to_others_is_not_purged(catalog: Catalog) -> None:
    catalog.create_table("db.a", ARROW, properties={"gc.enabled": "false"})
    with pytest.raises(UnsupportedError, match=r"gc\.enabled"):
        catalog.purge_table("db.a")
    assert catalog.table_exists("db.a")


# ---------------------------------------------------------------------------------------------- replace


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": ["x"] * len(ids)}, schema=ARROW)


OTHER = pa.schema([("name", pa.string()), ("score", pa.float64())])


def test_a_replaced_table_keeps_its_history_and_the_ids_of_its_columns(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", ARROW, properties={"kept": "1"})
    table.append(rows(1, 2))
    (old,) = table.snapshots()
    transaction = catalog.replace_table_transaction("db.a", OTHER, properties={"added": "2"})
    transaction.append(pa.table({"name": ["y"], "score": [1.5]}, schema=OTHER))
    replaced = transaction.commit_transaction()
    assert replaced.metadata.table_uuid == table.metadata.table_uuid
    assert replaced.location() == table.location()
    assert [(field.field_id, field.name) for field in replaced.schema().fields] == [(2, "name"), (3, "score")]
    assert (replaced.properties["kept"], replaced.properties["added"]) == ("1", "2")
    assert replaced.scan().to_arrow().to_pylist() == [{"name": "y", "score": 1.5}]
    assert replaced.scan(snapshot_id=old.snapshot_id).to_arrow()["id"].to_pylist() == [1, 2]


def test_a_table_is_created_or_replaced_whichever_it_takes(catalog: Catalog) -> None:
    created = catalog.create_or_replace_table("db.a", ARROW)
    created.append(rows(1))
    replaced = catalog.create_or_replace_table("db.a", ARROW)
    assert replaced.metadata.table_uuid == created.metadata.table_uuid
    assert replaced.scan().count() == 0
    assert len(replaced.snapshots()) == 1


def test_only_a_table_that_exists_is_replaced(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTableError, match=r"db\.absent"):
        catalog.replace_table_transaction("db.absent", ARROW)
    catalog.metastore.add_foreign_table(("db", "plain"))  # type: ignore[attr-defined]
    with pytest.raises(NotAnIcebergTableError):
        catalog.create_or_replace_table("db.plain", ARROW)


def test_a_table_that_came_meanwhile_is_replaced_and_one_that_went_is_created(catalog: Catalog) -> None:
    coming = catalog.replace_table_transaction("db.a", ARROW, or_create=True)
    catalog.create_table("db.a", OTHER)
    replaced = coming.commit_transaction()
    assert [(field.field_id, field.name) for field in replaced.schema().fields] == [(3, "id"), (1, "name")]

    going = catalog.replace_table_transaction("db.a", ARROW, or_create=True)
    catalog.drop_table("db.a")
    created = going.commit_transaction()
    assert [(field.field_id, field.name) for field in created.schema().fields] == [(1, "id"), (2, "name")]


def test_data_written_under_ids_that_are_the_same_meanwhile_is_kept(catalog: Catalog) -> None:
    transaction = catalog.replace_table_transaction("db.a", ARROW, or_create=True)
    transaction.append(rows(1))
    catalog.create_table("db.a", ARROW).append(rows(2))
    assert transaction.commit_transaction().scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("schema", "spec"),
    [(OTHER, UNPARTITIONED), (ARROW, PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket")))],
    ids=["columns", "partition fields"],
)
def test_data_written_under_ids_that_are_anothers_meanwhile_is_a_conflict(
    catalog: Catalog, schema: pa.Schema, spec: PartitionSpec
) -> None:
    by_name = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    transaction = catalog.replace_table_transaction("db.a", ARROW, partition_spec=by_name, or_create=True)
    transaction.append(rows(1))
    other = catalog.create_table("db.a", schema, partition_spec=spec)
    with pytest.raises(CommitConflictError, match="other ids"):
        transaction.commit_transaction()
    assert catalog.load_table("db.a") == other


def test_a_create_that_loses_the_race_in_the_swap_becomes_a_replace(catalog: Catalog) -> None:
    transaction = catalog.replace_table_transaction("db.a", ARROW, properties=QUICK, or_create=True)
    transaction.append(rows(1))
    catalog.metastore.script.append(outcomes.after(lambda: _create(catalog)))  # type: ignore[attr-defined]
    table = transaction.commit_transaction()
    assert table.scan().to_arrow()["id"].to_pylist() == [1]
    assert table.metadata_location == catalog.load_table("db.a").metadata_location


def _create(catalog: Catalog) -> None:
    catalog.create_table("db.a", ARROW)


def test_a_change_made_while_a_table_is_replaced_stays_in_its_history(catalog: Catalog) -> None:
    table = catalog.create_table("db.a", ARROW, properties=QUICK)
    transaction = catalog.replace_table_transaction("db.a", OTHER)
    transaction.append(pa.table({"name": ["y"], "score": [1.5]}, schema=OTHER))
    table.append(rows(1))
    replaced = transaction.commit_transaction()
    assert replaced.scan().count() == 1
    assert len(replaced.snapshots()) == 2


def test_a_replacement_that_is_given_up_leaves_the_table_as_it_was(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.a", ARROW)
    table.append(rows(1))
    files = set(tmp_path.rglob("*.*"))
    transaction = catalog.replace_table_transaction("db.a", OTHER)
    transaction.append(pa.table({"name": ["y"], "score": [1.5]}, schema=OTHER))
    transaction.abandon()
    assert catalog.load_table("db.a") == table
    assert set(tmp_path.rglob("*.*")) == files
