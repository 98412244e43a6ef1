"""Rows, namespaces and names on the real metastore, as other programs see them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.errors import (
    InvalidInputError,
    MetastoreError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    NotAnIcebergTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.hms.commit.capability import Capability
from hms_iceberg.hms.commit.scratch_rows import scratch_row
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.data_types import (
    BinaryType,
    DecimalType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from hms_iceberg.table.readable import StaticTable
from hms_iceberg.view import ViewVersion
from tests.support.metastore_contract import swap

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("who", pa.string())])
COLUMN_SETTING = "hive.metastore.disallow.incompatible.col.type.changes"


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    return catalog.create_table((namespace, "events"), SCHEMA)


@pytest.fixture
def row(client: HmsClient, namespace: str) -> Callable[[], ttypes.Table]:
    """Reads the row of the table `events` as it is now."""
    return lambda: client.get_table(namespace, "events")


def columns(row: ttypes.Table) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in row.sd.cols]


def test_a_row_follows_the_table(table: Table, row: Callable[[], ttypes.Table]) -> None:
    first = row()
    assert (first.tableType, first.parameters["EXTERNAL"], first.partitionKeys) == ("EXTERNAL_TABLE", "TRUE", [])
    assert "DO_NOT_UPDATE_STATS" not in first.parameters
    assert columns(first) == [("id", "bigint"), ("who", "string")]
    assert first.sd.location == table.location()
    table.append(pa.table({"id": [1, 2], "who": ["a", "b"]}, schema=SCHEMA))
    second = row()
    assert second.parameters["metadata_location"] == table.metadata_location
    assert second.parameters["previous_metadata_location"] == first.parameters["metadata_location"]
    assert (second.parameters["numRows"], second.parameters["numFiles"]) == ("2", "1")
    assert second.parameters["current-snapshot-id"] == str(table.metadata.current_snapshot_id)


def test_what_others_put_into_a_row_survives_commits(
    client: HmsClient, table: Table, row: Callable[[], ttypes.Table]
) -> None:
    changed = row()
    changed.parameters.update({"comment": "hands off", "governance.tag": "pii"})
    changed.owner = "somebody"
    client.alter_table(changed.dbName, changed.tableName, changed)
    table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    kept = row()
    assert (kept.parameters["comment"], kept.parameters["governance.tag"]) == ("hands off", "pii")
    assert kept.owner == "somebody"


def test_the_embedded_metastore_lets_other_programs_drop_and_reorder_columns(client: HmsClient) -> None:
    assert client.config_value(COLUMN_SETTING, "?") == "false"


@pytest.mark.parametrize("lock", ["true", "false"], ids=["lock", "compare-and-swap"])
def test_columns_may_be_dropped_reordered_and_retyped_although_the_server_forbids_it(
    strict_metastore: EmbeddedMetastore, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"warehouse": strict_metastore.warehouse, "iceberg.engine.hive.lock-enabled": lock}
    with load_catalog("strict", type="hive", uri=strict_metastore.uri, **properties) as catalog:
        client = catalog.metastore.client  # type: ignore[attr-defined]
        assert client.config_value(COLUMN_SETTING, "?") == "true"
        namespace = f"strict_{lock}"
        catalog.create_namespace(namespace)
        refusals = _watch_refusals(catalog, monkeypatch)
        table = catalog.create_table((namespace, "events"), SCHEMA)

        def row() -> ttypes.Table:
            return client.get_table(namespace, "events")

        with table.update_schema() as update:
            update.move_first("who")
        assert columns(row()) == [("who", "string"), ("id", "bigint")]
        with table.update_schema() as update:
            update.delete_column("who")
        assert columns(row()) == [("id", "bigint")]
        table.append(pa.table({"id": [1]}))
        assert table.scan().count() == 1
        found = row()
    assert any("types incompatible" in str(refusal) for refusal in refusals)
    assert found.parameters["metadata_location"] == table.metadata_location


def _watch_refusals(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> list[MetastoreError]:
    client = catalog.metastore.client  # type: ignore[attr-defined]
    alter, refusals = client.alter_table, []

    def watched(*arguments: object) -> None:
        try:
            alter(*arguments)
        except MetastoreError as error:
            refusals.append(error)
            raise

    monkeypatch.setattr(client, "alter_table", watched)
    return refusals


def test_a_server_that_forbids_even_that_is_told_by_its_setting_and_nothing_is_changed(
    strict_metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = load_catalog("strict", uri=strict_metastore.uri, warehouse=strict_metastore.warehouse)
    catalog.create_namespace("stricter")
    table = catalog.create_table("stricter.events", SCHEMA)
    client = catalog.metastore.client  # type: ignore[attr-defined]
    alter = client.alter_table

    def row() -> ttypes.Table:
        return client.get_table("stricter", "events")

    def stricter(database: str, name: str, new: ttypes.Table, environment: object = None) -> None:
        if not new.sd.cols:
            raise MetastoreError("at least one column is needed")
        alter(database, name, new, environment)

    monkeypatch.setattr(client, "alter_table", stricter)
    before = row()
    files = {file.location for file in table.storage.list(table.location())}
    update = table.update_schema()
    update.move_first("who")
    with pytest.raises(MetastoreError, match=r"hive\.metastore\.disallow\.incompatible\.col\.type\.changes"):
        update.commit()
    assert row() == before
    assert {file.location for file in table.storage.list(table.location())} == files
    catalog.close()


def test_every_type_makes_a_row_that_the_server_takes(catalog: Catalog, namespace: str, client: HmsClient) -> None:
    nested = StructType(
        NestedField(20, "plain", LongType()), NestedField(21, "with space", StringType(), doc="x" * 300)
    )
    kinds = [
        DecimalType(38, 10),
        TimeType(),
        TimestamptzType(),
        TimestampNanoType(),
        UUIDType(),
        FixedType(7),
        BinaryType(),
        UnknownType(),
        VariantType(),
        ListType(30, MapType(31, StringType(), 32, nested, False), False),
    ]
    fields = [NestedField(number, f"c{number}", kind, doc="d" * 400) for number, kind in enumerate(kinds, 1)]
    schema = Schema(*fields, NestedField(90, "a.b Ü", LongType()))
    catalog.create_table((namespace, "all_types"), schema, properties={"format-version": "3"})
    found = client.get_table(namespace, "all_types").sd.cols
    assert len(found) == 11
    assert found[9].type == "string", "Hive cannot hold the name of a field within it"
    assert found[0].comment == "d" * 256


def test_values_over_the_limit_are_left_out_and_the_commit_is_made(
    metastore: EmbeddedMetastore, namespace: str, row: Callable[[], ttypes.Table], caplog: pytest.LogCaptureFixture
) -> None:
    limit = {"iceberg.hive.table-property-max-size": "4000", "warehouse": metastore.warehouse}
    with (
        load_catalog("small", type="hive", uri=metastore.uri, **limit) as catalog,
        caplog.at_level(logging.WARNING, logger="hms_iceberg.hms.rows.table_rows"),
    ):
        wide = pa.schema([pa.field(f"a_rather_long_column_name_{number}", pa.int64()) for number in range(100)])
        table = catalog.create_table((namespace, "events"), wide, properties={"notes": "x" * 5000})
        table.append(pa.table({name: [1] for name in wide.names}, schema=wide))
    assert not {"current-schema", "notes"} & row().parameters.keys()
    assert table.properties["notes"] == "x" * 5000
    assert len([record for record in caplog.records if "Property notes" in record.getMessage()]) == 1


def test_who_is_second_to_create_a_table_learns_it(
    catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_refuse_if_taken", lambda name: None)  # as the other one was not done yet
    files = {file.location for file in table.storage.list(table.location())}
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(table.identifier, SCHEMA, location=table.location())
    assert {file.location for file in table.storage.list(table.location())} == files


def test_names_are_one_in_any_case(catalog: Catalog, namespace: str, table: Table) -> None:
    table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    shouted = catalog.load_table((namespace.upper(), "EVENTS"))
    assert shouted.identifier == (namespace, "events")
    shouted.append(pa.table({"id": [2], "who": ["b"]}, schema=SCHEMA))
    assert table.refresh().scan().count() == 2
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((namespace, "Events"), SCHEMA)
    assert catalog.table_exists((namespace.upper(), "Events"))
    assert catalog.list_tables(namespace.upper()) == [(namespace, "events")]


def test_a_table_is_renamed_into_another_namespace_and_stays_where_it_is(catalog: Catalog, table: Table) -> None:
    table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    other = f"other_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(other)
    moved = catalog.rename_table(table.identifier, (other, "moved"))
    assert (moved.identifier, moved.location()) == ((other, "moved"), table.location())
    moved.append(pa.table({"id": [2], "who": ["b"]}, schema=SCHEMA))
    assert moved.scan().count() == 2
    with pytest.raises(NoSuchTableError):
        catalog.load_table(table.identifier)


def test_a_managed_row_is_not_renamed_as_the_metastore_would_move_its_files(
    catalog: Catalog, client: HmsClient, table: Table, row: Callable[[], ttypes.Table]
) -> None:
    managed = row()
    managed.tableType, managed.parameters["EXTERNAL"] = "MANAGED_TABLE", "FALSE"
    client.alter_table(managed.dbName, managed.tableName, managed)
    with pytest.raises(UnsupportedError, match="Make it external first"):
        catalog.rename_table(table.identifier, (table.identifier[0], "other"))
    assert catalog.table_exists(table.identifier)


def test_a_dropped_table_leaves_its_files(catalog: Catalog, table: Table) -> None:
    table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    catalog.drop_table(table.identifier)
    assert Path(table.location().removeprefix("file:")).exists()
    again = catalog.register_table(table.identifier, table.metadata_location)
    assert again.scan().count() == 1


def test_a_view_is_neither_listed_nor_loaded_nor_overwritten(
    catalog: Catalog, client: HmsClient, namespace: str
) -> None:
    view = scratch_row(namespace, "seen", "1")
    client.create_table(view)
    assert catalog.list_tables(namespace) == []
    with pytest.raises(NoSuchTableError, match="is a view"):
        catalog.load_table((namespace, "seen"))
    with pytest.raises(TableAlreadyExistsError, match="a view of that name"):
        swap(catalog.metastore, (namespace, "seen"), None, _version(catalog, namespace))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    client.drop_table(namespace, "seen")


def _version(catalog: Catalog, namespace: str) -> MetadataVersion:
    table = catalog.create_table((namespace, "of_the_version"), SCHEMA)
    catalog.drop_table(table.identifier)
    return MetadataVersion(table.metadata_location, table.metadata)


def test_a_server_without_get_table_req_is_asked_with_get_table(
    client: HmsClient, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    call = client.pool.call

    def old_server(method: str, *arguments: object, **options: object) -> object:
        asked.append(method)
        if method in ("get_table_req", "get_table_objects_by_name_req"):
            method = "get_open_txns_of_the_future"
            arguments = ()
            raise _invalid_method(method)
        return call(method, *arguments, **options)

    monkeypatch.setattr(client.pool, "call", old_server)
    database, name = table.identifier
    for _ in range(2):
        assert client.get_table(database, name).tableName == name
    assert asked == ["get_table_req", "get_table", "get_table"], "it is asked once and remembered"
    assert [found.tableName for found in client.get_tables(database, [name, "absent"])] == [name]


def _invalid_method(name: str) -> Exception:
    from thrift.Thrift import TApplicationException

    return TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'")


def test_locks_switched_off_where_the_server_cannot_compare_are_refused_before_anything_is_sent(
    metastore: EmbeddedMetastore, table: Table, row: Callable[[], ttypes.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Capability, "_probe", lambda *_: False)
    off = {"iceberg.engine.hive.lock-enabled": "false"}
    before = row()
    with load_catalog("off", type="hive", uri=metastore.uri, **off) as catalog:
        victim = catalog.load_table(table.identifier)
        with pytest.raises(UnsupportedError, match="HIVE-26882"):
            victim.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    assert row() == before
    auto = {"iceberg.engine.hive.lock-enabled": "auto"}
    with load_catalog("auto", type="hive", uri=metastore.uri, **auto) as catalog:
        catalog.load_table(table.identifier).append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    assert table.refresh().scan().count() == 1


def test_the_tables_property_decides_about_the_lock_before_the_catalogs(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table((namespace, "free"), SCHEMA, properties={"engine.hive.lock-enabled": "false"})
    client = catalog.metastore.client  # type: ignore[attr-defined]
    monkeypatch.setattr(client, "lock", lambda *arguments: pytest.fail("a lock was taken"))
    table.append(pa.table({"id": [1], "who": ["a"]}, schema=SCHEMA))
    assert table.scan().count() == 1


def test_what_this_server_cannot_change_of_a_namespace_is_refused_and_nothing_is_changed(
    catalog: Catalog, namespace: str
) -> None:
    before = catalog.load_namespace_properties(namespace)
    for doubtful in ("location", "comment"):
        with pytest.raises(
            UnsupportedError, match=f"Cannot change {doubtful} of namespace {namespace}.*Hive 2 ignores"
        ):
            catalog.update_namespace_properties(namespace, updates={doubtful: "file:/elsewhere", "stage": "prod"})
    with pytest.raises(InvalidInputError, match="comment cannot be removed"):
        catalog.update_namespace_properties(namespace, removals={"comment"}, updates={"stage": "prod"})
    assert catalog.load_namespace_properties(namespace) == before
    catalog.update_namespace_properties(namespace, updates={"location": before["location"], "stage": "prod"})
    assert catalog.load_namespace_properties(namespace) == {**before, "stage": "prod"}


@pytest.mark.parametrize("name", ["..", ".", "../t", "a/b", "a\\b", "a\nb", "táble", "таблица", "x" * 300, "tab\x7f"])
def test_a_name_that_no_metastore_takes_leaves_no_folder_behind(catalog: Catalog, namespace: str, name: str) -> None:
    folder = Path(catalog.load_namespace_properties(namespace)["location"].removeprefix("file:"))
    version = ViewVersion.of_sql({"spark": "select 1 as id"}, default_namespace=(namespace,))
    for create in (
        lambda: catalog.create_table((namespace, name), SCHEMA),
        lambda: catalog.create_or_replace_table((namespace, name), SCHEMA),
        lambda: catalog.create_view((namespace, name), SCHEMA, version),
    ):
        with pytest.raises(InvalidInputError, match=r"name of a table|takes no such name"):
            create()
    assert not list(folder.iterdir())
    assert {each.name for each in folder.parent.iterdir()} >= {folder.name}
    assert not (folder.parent / "metadata").exists()


def test_an_empty_metadata_location_is_told(
    catalog: Catalog, client: HmsClient, table: Table, row: Callable[[], ttypes.Table], namespace: str
) -> None:
    for attempt in (lambda: catalog.register_table((namespace, "empty"), ""), lambda: StaticTable.from_metadata(" ")):
        with pytest.raises(InvalidInputError, match="Not the location of a metadata file"):
            attempt()
    changed = row()
    changed.parameters["metadata_location"] = ""
    client.alter_table(changed.dbName, changed.tableName, changed)
    with pytest.raises(NotAnIcebergTableError, match=r"parameter metadata_location is ''\. Set it"):
        catalog.load_table(table.identifier)
