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


def test_orc_files_of_both_hold_fractions_of_seconds_before_1970(
    iceberg_java: Any, catalog: Any, namespace: str
) -> None:
    micros = [
        -1_500_000,
        -1_999_500,
        -1_000_001,
        -999_500,
        -2_000_000,
        -86_400_000_001,
        -8_000_000_000_500_000,
        1,
        None,
    ]
    kind = pa.timestamp("us", "UTC")
    times = pa.array(micros, pa.int64()).view(kind)
    given = pa.table({"id": list(range(len(micros))), "at": times, "s": pa.array([{"at": each} for each in times])})
    ours = catalog.create_table(f"{namespace}.ours", given.schema, properties={"write.format.default": "orc"})
    ours.append(given)
    java = f"files.{namespace}.java"
    query = "select id, unix_micros(at), unix_micros(s.at) from {} order by id"
    expected = [[place, each, each] for place, each in enumerate(micros)]

    assert iceberg_java.sql(query.format(f"files.{namespace}.ours")) == expected
    for value in micros[:-1]:  # what statistics say of a file leaves no row out
        where = f"where at = timestamp_micros({value})"
        assert iceberg_java.sql(f"select count(*) from files.{namespace}.ours {where}") == [[1]]
    properties = "tblproperties('write.format.default'='orc')"
    iceberg_java.sql(f"create table {java} using iceberg {properties} as select * from files.{namespace}.ours")
    assert iceberg_java.sql(query.format(java)) == expected
    found = catalog.load_table(f"{namespace}.java").scan().to_arrow().sort_by("id")
    assert found["at"].cast(pa.int64()).to_pylist() == micros
