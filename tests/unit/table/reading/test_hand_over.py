"""How scans and tables are handed over: as Arrow streams, to Dask, to other processes, and how they show themselves."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.arrow.columns.geoarrow import ShapeType
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.table import Table
from tests.support.row_tables import create

ROWS = pa.table(
    {"id": pa.array([1, 2, None, 4], pa.int64()), "x": [0.5, float("nan"), None, -1.0], "page": ["/", None, "", "/buy"]}
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = load_catalog("here", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("web")
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table("web.visits", ROWS.schema)
    table.append(ROWS.slice(0, 2))
    table.append(ROWS.slice(2))
    return table


def ordered(rows: pa.Table) -> str:
    return str(rows.sort_by([("id", "ascending")]).to_pylist())


def test_arrow_takes_a_table_and_a_scan_as_they_are(table: Table) -> None:
    assert ordered(pa.table(table)) == ordered(ROWS)
    assert set(pa.table(table.scan("id > 1", ("page",)))["page"].to_pylist()) == {None, "/buy"}


def test_polars_takes_a_scan_as_it_is(table: Table) -> None:
    assert pl.DataFrame(table.scan("id = 4")).rows() == [(4, -1.0, "/buy")]


def test_duckdb_queries_a_scan_by_its_variable(table: Table) -> None:
    scan = table.scan(selected_fields=("id",))

    assert duckdb.sql("select count(*), sum(id) from scan").fetchall() == [(4, 7)]
    assert scan.count() == 4


def test_a_changelog_is_handed_over_too(table: Table) -> None:
    assert pa.table(table.changelog_scan()).num_rows == 4


def test_dask_reads_the_rows_of_a_table_with_their_types(table: Table) -> None:
    pytest.importorskip("dask.dataframe")
    frame = table.to_dask()

    found = pa.Table.from_pandas(frame.compute(scheduler="synchronous"), preserve_index=False)
    assert sorted(found["page"].to_pylist(), key=str) == sorted(ROWS["page"].to_pylist(), key=str)
    assert frame["id"].sum().compute(scheduler="synchronous") == 7


def test_dask_keeps_bytes_and_what_is_nested(catalog: Catalog) -> None:
    pytest.importorskip("dask.dataframe")
    shapes = ShapeType('{"crs": "OGC:CRS84"}').wrap_array(pa.array([b"\1\1\0\0\0" + b"\xff" * 8 + bytes(8), None]))
    lists, pairs = pa.array([[b"\xfe"], None]), pa.array([{"k": 1}, None])
    rows = pa.table({"b": [b"\xff\xf0", None], "shape": shapes, "l": lists, "p": pairs})
    table = catalog.create_table("web.bytes", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    wanted = pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), "shape": shapes.storage}).to_pylist()
    for frame in (table.to_dask(), table.scan(limit=2).to_dask()):
        found = pa.Table.from_pandas(frame.compute(scheduler="synchronous"), preserve_index=False)
        assert found.to_pylist() == wanted


def test_dask_reads_each_group_of_files_by_itself_a_limit_and_a_table_without_rows(catalog: Catalog) -> None:
    pytest.importorskip("dask.dataframe")
    properties = {"read.split.target-size": "10000", "read.split.open-file-cost": "10000"}
    table = catalog.create_table("web.split", ROWS.schema, properties=properties)
    assert len(table.to_dask().compute(scheduler="synchronous")) == 0
    for at in range(3):
        table.append(ROWS.slice(at, 1))

    assert table.to_dask().npartitions == 3
    assert len(table.scan(limit=2).to_dask().compute(scheduler="synchronous")) == 2
    assert len(table.to_dask().compute(scheduler="processes", num_workers=2)) == 3


def test_a_pickled_table_connects_anew_in_another_process_and_is_the_same_version(table: Table) -> None:
    packed = pickle.dumps(table)
    table.delete("id = 1")
    script = (
        "import pickle, sys; t = pickle.loads(sys.stdin.buffer.read());"
        "print(t.name(), t.scan().count(), t.refresh().scan().count(), t.catalog.name)"
    )
    ran = subprocess.run([sys.executable, "-c", script], input=packed, capture_output=True, timeout=60, check=True)

    assert ran.stdout.decode().strip() == "('web', 'visits') 4 3 here"


def test_a_pickled_catalog_writes_after_it_was_unpickled(catalog: Catalog, table: Table) -> None:
    again = pickle.loads(pickle.dumps(catalog))

    again.load_table("web.visits").append(ROWS.slice(0, 1))
    assert table.refresh().scan().count() == 5


def test_a_pickled_scan_reads_the_same_rows(table: Table) -> None:
    scan = table.scan("id > 1", ("id",))
    again = pickle.loads(pickle.dumps(scan))

    assert repr(again) == repr(scan)
    assert sorted(again.to_arrow()["id"].to_pylist()) == [2, 4]


def test_a_table_of_no_catalog_says_why_it_cannot_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="was not loaded from a catalog"):
        pickle.dumps(create(tmp_path))


def test_a_scan_shows_its_table_and_what_was_asked_for(table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    scan = table.scan("id > 1", ("id",), snapshot_id=snapshot.snapshot_id, limit=3)

    assert repr(table.scan()) == "TableScan(web.visits)"
    assert repr(scan) == (
        f"TableScan(web.visits, row_filter='id > 1', selected_fields=('id',), limit=3, "
        f"snapshot_id={snapshot.snapshot_id}, schema_id=0)"
    )


def test_libraries_that_read_through_pyiceberg_take_the_version_of_the_table_that_they_are_given(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    given = table.to_pyiceberg()
    table.append(ROWS)
    assert given.name() == ("web", "visits")
    assert ordered(given.scan().to_arrow()) == ordered(ROWS)
    frame = pl.scan_iceberg(given).filter(pl.col("id") > 1).select("page").collect()
    assert set(frame["page"]) == {None, "/buy"}


def test_what_pyiceberg_cannot_read_is_not_given_to_it(tmp_path: Path) -> None:
    encrypted = create(tmp_path / "keys", version=3)
    version = replace(encrypted._version, metadata=replace(encrypted.metadata, properties={"encryption.key-id": "k"}))
    later = replace(encrypted._version, metadata=replace(encrypted.metadata, format_version=4))
    for each in (version, later):
        with pytest.raises(UnsupportedError, match="to_arrow"):
            Table(encrypted.name(), each, encrypted.metastore, encrypted.storage).to_pyiceberg()
