"""Geometries and geographies in Spark, which has them since 4.1; older versions read the other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely

from hms_iceberg.spec.data_types import (
    GeographyType,
    GeometryType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from hms_iceberg.spec.schema import Schema
from tests.support.pyspark_home import spark_release
from tests.support.row_tables import MODES
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

SCHEMA = Schema(
    NestedField(1, "n", LongType()),
    NestedField(2, "shape", GeometryType()),
    NestedField(3, "place", GeographyType()),
    NestedField(
        4, "pair", StructType(NestedField(5, "metres", GeometryType("EPSG:3857")), NestedField(6, "k", LongType()))
    ),
    NestedField(7, "many", ListType(8, GeometryType("SRID:0"), False)),
    NestedField(9, "named", MapType(10, StringType(), 11, GeographyType(), False)),
)
SHAPES = ["POINT (1 2)", "LINESTRING (0 0, 10 10)", None, "POINT EMPTY", "POLYGON ((0 0, 4 0, 4 4, 0 0))"]
PLACES = ["POINT (170 1)", None, "POINT (-175 2)", "POINT (0 0)", "LINESTRING (0 0, 10 10)"]
COLUMNS = """
    n, hex(st_asbinary(shape)), hex(st_asbinary(place)), hex(st_asbinary(pair.metres)), pair.k,
    transform(many, each -> hex(st_asbinary(each))), transform(map_values(named), each -> hex(st_asbinary(each)))
"""
THERE = "st_setsrid(st_geomfromwkb(X'01010000000000000000003e400000000000002440'), 4326)"
SINCE = pytest.mark.since_spark("4.1", "the type geometry")


@pytest.fixture(autouse=True)
def _shapes_are_enabled(spark: SparkSession) -> None:
    """Spark 4.1 has shapes behind a switch."""
    spark.conf.set("spark.sql.geospatial.enabled", "true")


def wkb(text: str | None) -> bytes | None:
    return None if text is None else shapely.to_wkb(shapely.from_wkt(text), flavor="iso")


def made(catalog: Catalog, name: str, form: str = "parquet", mode: str = "copy-on-write") -> Table:
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    table = catalog.create_table(
        name, SCHEMA, properties={"format-version": "3", "write.format.default": form, **modes}
    )
    shapes, places = (pa.array(map(wkb, each), pa.binary()) for each in (SHAPES, PLACES))
    pair = pa.StructArray.from_arrays([shapes, pa.array(range(5), pa.int64())], ["metres", "k"])
    lists = pa.array(
        [[], None, [None, wkb("POINT (3 4)")], [wkb("POINT EMPTY")], [wkb(SHAPES[1])] * 2], pa.list_(pa.binary())
    )
    maps = pa.array(
        [{"a": wkb(PLACES[0]), "b": None}, {}, None, {}, {"c": wkb(PLACES[4])}], pa.map_(pa.string(), pa.binary())
    )
    table.append(
        pa.table({"n": range(5), "shape": shapes, "place": places, "pair": pair, "many": lists, "named": maps})
    )
    return table


def hexed(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()


def rows(table: Table) -> list[tuple[Any, ...]]:
    """The table's rows by Python, as COLUMNS gives them."""
    table.refresh()
    return [
        (
            row["n"],
            *(hexed(each) for each in (row["shape"], row["place"], row["pair"] and row["pair"]["metres"])),
            row["pair"] and row["pair"]["k"],
            row["many"] and [hexed(each) for each in row["many"]],
            row["named"] and [hexed(each) for _, each in row["named"]],
        )
        for row in table.scan().to_arrow().sort_by("n").to_pylist()
    ]


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_every_spark_reads_the_other_columns_of_a_table_with_shapes(
    spark: SparkSession, catalog: Catalog, namespace: str, form: str
) -> None:
    from pyspark.errors import AnalysisException

    name = f"{namespace}.others_{form}"
    table = made(catalog, name, form)
    inner = "pair.k" if spark_release() >= (4, 1) else "n"
    assert rows_of(spark, f"select n, {inner} from {name} where n > 2") == [(3, 3), (4, 4)]
    assert rows_of(spark, f"select n, _change_type from {name}.changes where n > 2") == [(3, "INSERT"), (4, "INSERT")]
    assert rows_of(spark, f"select record_count, readable_metrics.n.upper_bound from {name}.files") == [(5, 4)]
    table.delete("n = 3")
    spark.conf.set("spark.sql.geospatial.enabled", "false")
    spark.sql(f"call system.create_changelog_view(table => '{name}', changelog_view => 'changes_of_shapes')").collect()
    assert rows_of(spark, "select n, _change_type from changes_of_shapes where n = 3") == [(3, "DELETE"), (3, "INSERT")]
    assert rows_of(spark, f"select n, n + 1 from {name}") == [(0, 1), (1, 2), (2, 3), (4, 5)]
    refused = {
        f"select * from {name}": "Cannot read the column shape of .* geometry",
        f"select n from {name} where place is null": "Cannot read the column place of .* geography",
        f"select shape from {name}.changes": "Cannot read the column shape of .* geometry",
        "select shape from changes_of_shapes": "Cannot read the column shape of .* geometry",
        f"insert into {name} values (7{', null' * 5})": r"Cannot write .* shape has the type geometry",
    }
    for statement, message in refused.items():
        with pytest.raises(AnalysisException, match=f"UnsupportedError: {message}"):
            spark.sql(statement).collect()


@SINCE
@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_shapes_are_read(spark: SparkSession, catalog: Catalog, namespace: str, form: str) -> None:
    name = f"{namespace}.read_{form}"
    table = made(catalog, name, form)
    assert (
        spark.table(name).schema.simpleString().startswith("struct<n:bigint,shape:geometry(4326),place:geography(4326)")
    )
    assert rows_of(spark, f"select {COLUMNS} from {name} order by n") == rows(table)
    assert rows_of(spark, f"select st_srid(shape), st_srid(pair.metres) from {name} where n = 0") == [(4326, 3857)]
    assert spark.sql(f"select shape from {name} where n = 0").collect()[0][0].getBytes() == wkb(SHAPES[0])
    changes = rows_of(spark, f"select {COLUMNS} from {name}.changes order by n")
    assert changes == rows(table)


@SINCE
@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("mode", MODES)
def test_tables_with_shapes_are_made_written_and_changed(
    spark: SparkSession, catalog: Catalog, namespace: str, mode: str, form: str
) -> None:
    name = f"{namespace}.changed_{mode[:4]}_{form}"
    table = made(catalog, name, form, mode)
    before = rows(table)
    spark.sql(f"delete from {name} where n in (0, 3)")
    spark.sql(f"update {name} set shape = {THERE} where n = 1")
    spark.sql(
        f"merge into {name} t using (select 2l as n union all select 100l) s on t.n = s.n when matched then update set "
        f"shape = {THERE} when not matched then insert (n, shape) values (s.n, {THERE})"
    )
    there = "01010000000000000000003E400000000000002440"
    wanted = [(row[0], there, *row[2:]) if row[0] in (1, 2) else row for row in before if row[0] not in (0, 3)]
    assert rows(table) == [*wanted, (100, there, None, None, None, None, None)]
    assert rows_of(spark, f"select {COLUMNS} from {name} order by n") == rows(table)
    found = table.scan(row_filter="intersects_box(shape, 29, 9, 31, 11)").to_arrow()["n"].to_pylist()
    assert sorted(found) == [1, 2, 100]
    copy = f"{namespace}.copied_{mode[:4]}_{form}"
    properties = f"'format-version' = '3', 'write.format.default' = '{form}'"
    spark.sql(f"create table {copy} using iceberg tblproperties ({properties}) as select * from {name}")
    copied = catalog.load_table(copy)
    assert [field.field_type for field in copied.schema().fields[1:3]] == [GeometryType(), GeographyType()]
    assert rows(copied) == rows(table)
    bounds = [each["shape"]["upper_bound"] for each in copied.inspect.files()["readable_metrics"].to_pylist()]
    assert any(bounds)
