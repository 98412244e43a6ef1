"""Tables in folders that Apache Iceberg (Java) and this project write in turns."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.catalog import load_catalog
from hms_iceberg.maintenance import check_table
from hms_iceberg.table.file_system import FileSystemTables

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{each}" for each in ids]}, schema=ARROW)


@pytest.fixture(params=["1", "2", "3"], ids=["v1", "v2", "v3"])
def properties(request: pytest.FixtureRequest) -> dict[str, str]:
    mode = "copy-on-write" if request.param == "1" else "merge-on-read"
    return {"format-version": request.param, "write.delete.mode": mode}


@pytest.fixture
def catalog(iceberg_java: Any) -> Any:
    return load_catalog("files", type="hadoop", warehouse=str(iceberg_java.files))


@pytest.fixture
def namespace(catalog: Any) -> str:
    name = f"n_{uuid.uuid4().hex[:8]}"
    catalog.create_namespace(name)
    return name


def test_a_table_of_javas_hadoop_catalog_is_written_in_turns(
    iceberg_java: Any, catalog: Any, namespace: str, properties: dict[str, str]
) -> None:
    name = f"{namespace}.java"
    settings = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    iceberg_java.sql(f"create table files.{name} (id bigint, name string) using iceberg tblproperties ({settings})")
    iceberg_java.sql(f"insert into files.{name} values (1, 'n1'), (2, 'n2'), (3, 'n3')")
    assert catalog.list_tables(namespace) == [(namespace, "java")]
    table = catalog.load_table(name)
    table.append(rows(4, 5))
    table.delete("id = 2")
    assert iceberg_java.sql(f"select id from files.{name} order by id") == [[1], [3], [4], [5]]
    iceberg_java.sql(f"delete from files.{name} where id = 4")
    table.refresh()
    table.append(rows(6))
    expected = [[1, "n1"], [3, "n3"], [5, "n5"], [6, "n6"]]
    assert iceberg_java.sql(f"select * from files.{name} order by id") == expected
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [list(row.values()) for row in found] == expected
    assert table.metadata_location.endswith(f"/v{len(table.metadata_log()) + 1}.metadata.json")
    assert check_table(table, record_counts=True).findings == ()


def test_a_table_by_path_is_one_of_javas_hadoop_catalog(
    iceberg_java: Any, namespace: str, properties: dict[str, str]
) -> None:
    location = str(iceberg_java.files / namespace / "ours")
    compressed = {**properties, "write.metadata.compression-codec": "gzip"}
    table = FileSystemTables().create(ARROW, location, properties=compressed)
    table.append(rows(1, 2, 3))
    name = f"files.{namespace}.ours"
    assert iceberg_java.sql(f"show tables in files.{namespace}") == [[namespace, "ours", False]]
    iceberg_java.sql(f"delete from {name} where id = 1")
    iceberg_java.sql(f"insert into {name} values (4, 'n4')")
    table.refresh()
    table.delete("id = 3")
    assert iceberg_java.sql(f"select id from {name} order by id") == [[2], [4]]
    found = FileSystemTables().load(location)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [2, 4]
    assert found.metadata_location.endswith("/v5.gz.metadata.json")
    assert check_table(found, record_counts=True).findings == ()
