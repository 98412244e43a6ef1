"""Plain Hive tables through the REST server: read as Iceberg tables, up to date, and never changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.rest import RestSettings
from tests.support.hdfs_path import local_path
from tests.support.hive_warehouse import HiveWarehouse, write_files
from tests.support.rest_server import RestServer, served

SERDES = {"orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde", "avro": "org.apache.hadoop.hive.serde2.avro.AvroSerDe"}
TABLE = "/v1/namespaces/oldhive/tables/flights"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]})


@pytest.fixture(scope="module")
def hive(metastore: Any) -> Iterator[Catalog]:
    with load_catalog("behind", uri=metastore.uri) as catalog:
        catalog.create_namespace("oldhive")
        yield catalog


@pytest.fixture(scope="module")
def warehouse(hive: Catalog) -> HiveWarehouse:
    made = HiveWarehouse(hive, "oldhive")
    made.create("flights", "id int, name string", "month int")
    made.add_partition("flights", ["1"], rows(1, 2), rows(3))
    made.add_partition("flights", ["__HIVE_DEFAULT_PARTITION__"], rows(5))
    hive.create_table("oldhive.iceberg", rows(1).schema)
    return made


@pytest.fixture(scope="module")
def server(hive: Catalog, warehouse: HiveWarehouse) -> Iterator[RestServer]:
    with served(hive, RestSettings(hive_tables="followers", hive_tables_seconds=0)) as running:
        yield running


def test_a_hive_table_is_read_and_follows_what_hive_does(
    server: RestServer, warehouse: HiveWarehouse, hive: Catalog
) -> None:
    with load_catalog("client", uri=server.url) as client:
        assert client.list_tables("oldhive") == [("oldhive", "flights"), ("oldhive", "iceberg")]
        assert client.table_exists("oldhive.flights") and not client.table_exists("oldhive.none")
        found = client.load_table("oldhive.flights").scan().to_arrow().sort_by("id").to_pylist()
        assert [(row["id"], row["name"], row["month"]) for row in found] == [
            (1, "n1", 1),
            (2, "n2", 1),
            (3, "n3", 1),
            (5, "n5", None),
        ]
        warehouse.add_partition("flights", ["7"], rows(7))
        write_files(f"file:{warehouse.rows('flights').location}/month=1", rows(4))
        assert client.load_table("oldhive.flights").scan().count() == 6
        plan = server.ask("POST", f"{TABLE}/plan", {"filter": {"type": "eq", "term": "month", "value": 7}})
        assert len(plan.body["file-scan-tasks"]) == 1


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_a_hive_table_of_other_files_is_read_like_one_of_parquet(
    server: RestServer, warehouse: HiveWarehouse, kind: str
) -> None:
    serde = ttypes.SerDeInfo(serializationLib=SERDES[kind], parameters={})
    folder = local_path(warehouse.create(kind, "id int, name string", serdeInfo=serde).table.sd.location)
    expected = [{"id": 1, "name": "n1"}, {"id": -5, "name": None}, {"id": None, "name": ""}]
    if kind == "orc":
        orc.write_table(pa.Table.from_pylist(expected, rows(1).schema), folder / "000000_0")
    else:
        fields = [{"name": "id", "type": ["null", "int"]}, {"name": "name", "type": ["null", "string"]}]
        with open(folder / "000000_0", "wb") as file:
            fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, expected)
    for mode in ("client", "server"):
        with load_catalog("client", uri=server.url, **{"scan-planning-mode": mode}) as client:
            table = client.load_table(f"oldhive.{kind}")
            assert table.scan().to_arrow().to_pylist() == expected
            assert table.scan("id < 0 or name = ''").to_arrow().to_pylist() == expected[1:]


def test_a_hive_table_is_not_changed(server: RestServer, warehouse: HiveWarehouse, hive: Catalog) -> None:
    before = warehouse.rows("flights")
    update = {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert server.ask("POST", TABLE, update).error == "UnsupportedOperationException"
    for method, path in (
        ("DELETE", TABLE),
        ("DELETE", f"{TABLE}?purgeRequested=true"),
        ("POST", f"{TABLE}/unregister"),
    ):
        assert server.ask(method, path).error == "NoSuchTableException"
    new = {"name": "flights", "schema": {"type": "struct", "fields": []}}
    assert server.ask("POST", "/v1/namespaces/oldhive/tables", new).status == 409
    assert warehouse.rows("flights") == before


def test_without_being_asked_for_hive_tables_are_not_shown(hive: Catalog, warehouse: HiveWarehouse) -> None:
    with served(hive) as plain:
        assert plain.ask("GET", TABLE).error == "NoSuchTableException"
        listed = plain.ask("GET", "/v1/namespaces/oldhive/tables").body["identifiers"]
        assert [each["name"] for each in listed] == ["iceberg"]
