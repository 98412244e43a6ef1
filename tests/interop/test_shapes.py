"""Geometries and geographies that Python and Spark write are read and changed by Apache Iceberg, and read here again.

In folders, since Apache Iceberg 1.12 has no name of these types for a metastore.
"""

from __future__ import annotations

from random import Random
from struct import unpack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely

from hms_iceberg import load_catalog
from hms_iceberg.arrow.columns.shape_columns import extents
from hms_iceberg.spark import extend
from hms_iceberg.spec.data_types import GeographyType, GeometryType, LongType, NestedField, StructType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import corners_of
from tests.support.spark_tables import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.generated_code,
    pytest.mark.since_spark("4.1", "the type geometry"),
]

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "shape", GeometryType()),
    NestedField(3, "place", GeographyType()),
    NestedField(4, "metres", GeometryType("EPSG:3857")),
    NestedField(5, "s", StructType(NestedField(6, "g", GeometryType()))),
)
SHAPES = [
    "POINT (1 2)",
    "LINESTRING (0 0, 10 10)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT ((5 5), (-5 -5))",
    "POINT EMPTY",
    None,
    "GEOMETRYCOLLECTION (POINT (7 7), LINESTRING (1 1, 2 3))",
    "POINT Z (1 2 3)",
]
PLACES = ["POINT (170 1)", "POINT (-175 2)", None, "POINT (0 0)", "LINESTRING (0 0, 10 10)", None, "POINT EMPTY", None]
THERE = "POINT (30 10)"


def wkb(text: str | None) -> bytes | None:
    return None if text is None else shapely.to_wkb(shapely.from_wkt(text), flavor="iso")


def rows(table: Any) -> list[list[Any]]:
    """All rows with shapes as Java's peer answers them: hexadecimal digits."""
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    return [
        [
            row["id"],
            *(
                each and each.hex().upper()
                for each in (*map(row.get, ("shape", "place", "metres")), (row["s"] or {}).get("g"))
            ),
        ]
        for row in found
    ]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_java_reads_and_changes_the_shapes_that_python_writes(iceberg_java: Any, mode: str) -> None:
    iceberg_java.sql("set spark.sql.geospatial.enabled=true")
    catalog = load_catalog("files", type="hadoop", warehouse=str(iceberg_java.files))
    catalog.create_namespace_if_not_exists("shapes")
    name = f"shapes.{mode.replace('-', '_')}"
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    table = catalog.create_table(name, SCHEMA, properties={"format-version": "3", **modes})
    shapes, places = pa.array(map(wkb, SHAPES), pa.binary()), pa.array(map(wkb, PLACES), pa.binary())
    nested = pa.StructArray.from_arrays([shapes], ["g"], mask=shapes.is_null())
    table.append(pa.table({"id": range(8), "shape": shapes, "place": places, "metres": shapes, "s": nested}))
    written = rows(table)
    asked = ", ".join(f"hex(st_asbinary({each}))" for each in ("shape", "place", "metres", "s.g"))
    by_java = f"select id, {asked} from files.{name} order by id"
    assert iceberg_java.sql(by_java) == written
    assert iceberg_java.sql(f"select st_srid(shape), st_srid(metres) from files.{name} where id = 0") == [[4326, 3857]]
    there = f"st_setsrid(st_geomfromwkb(X'{wkb(THERE).hex()}'), 4326)"
    iceberg_java.sql(f"delete from files.{name} where id in (0, 3)")
    iceberg_java.sql(f"update files.{name} set shape = {there} where id = 1")
    iceberg_java.sql(
        f"merge into files.{name} t using (select 2l as id union all select 100l) n on t.id = n.id when matched then "
        f"update set shape = {there} when not matched then insert (id, shape) values (n.id, {there})"
    )
    table.refresh()
    hexed = wkb(THERE).hex().upper()
    wanted = [[row[0], hexed, *row[2:]] if row[0] in (1, 2) else row for row in written if row[0] not in (0, 3)]
    assert rows(table) == [*wanted, [100, hexed, None, None, None]]
    assert iceberg_java.sql(by_java) == rows(table)
    box = table.scan(row_filter="intersects_box(shape, 29, 9, 31, 11)")
    assert sorted(box.to_arrow()["id"].to_pylist()) == [1, 2, 100]
    table.delete("intersects_box(shape, 29, 9, 31, 11) and id > 1")
    assert iceberg_java.sql(by_java) == rows(table)
    assert [row[0] for row in rows(table)] == [1, 4, 5, 6, 7]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_java_and_spark_change_shapes_in_turns(iceberg_java: Any, spark: SparkSession, mode: str) -> None:
    folders = {"type": "hadoop", "warehouse": str(iceberg_java.files), "cache-enabled": "false"}
    extend(spark, catalogs={"turns": folders})
    for run in (iceberg_java.sql, spark.sql):
        run("set spark.sql.geospatial.enabled=true")
    catalog = load_catalog("files", **folders)
    catalog.create_namespace_if_not_exists("shapes")
    name = f"shapes.turns_{mode.replace('-', '_')}"
    properties = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    spark.sql(
        f"create table turns.{name} (id bigint, shape geometry(4326), place geography(4326), metres geometry(3857), "
        f"s struct<g: geometry(4326)>) using iceberg tblproperties ('format-version' = '3', {properties})"
    )
    table = catalog.load_table(name)
    assert [field.field_type for field in table.schema().fields[1:4]] == [
        GeometryType(), GeographyType(), GeometryType("EPSG:3857")
    ]  # fmt: skip

    def shape(text: str | None, make: str = "st_geomfromwkb", srid: int = 4326) -> str:
        made = f"{make}(X'{wkb(text).hex()}')" if text else "null"
        return f"st_setsrid({made}, {srid})" if text and make == "st_geomfromwkb" else made

    def row(number: int, text: str | None, place: str | None) -> str:
        place = shape(place, "st_geogfromwkb")
        return f"({number}, {shape(text)}, {place}, {shape(text, srid=3857)}, struct({shape(text)}))"

    values = [row(n, *each) for n, each in enumerate(zip(SHAPES, PLACES, strict=True))]
    spark.sql(f"insert into turns.{name} values {', '.join(values[:5])}")
    iceberg_java.sql(f"insert into files.{name} values {', '.join(values[5:])}")
    asked = ", ".join(f"hex(st_asbinary({each}))" for each in ("shape", "place", "metres", "s.g"))

    def everywhere() -> list[list[Any]]:
        table.refresh()
        found = rows(table)
        assert iceberg_java.sql(f"select id, {asked} from files.{name} order by id") == found
        assert [list(each) for each in rows_of(spark, f"select id, {asked} from turns.{name}")] == found
        return found

    before = everywhere()
    assert [each[1] for each in before] == [text and wkb(text).hex().upper() for text in SHAPES]
    spark.sql(f"update turns.{name} set shape = {shape(THERE)} where id in (1, 6)")
    iceberg_java.sql(f"update files.{name} set metres = {shape(THERE, srid=3857)} where id in (2, 6)")
    spark.sql(f"delete from turns.{name} where id in (0, 5)")
    iceberg_java.sql(f"delete from files.{name} where id = 3")
    there = wkb(THERE).hex().upper()
    wanted = [
        [n, there if n in (1, 6) else own, place, there if n in (2, 6) else metres, nested]
        for n, own, place, metres, nested in before
        if n not in (0, 3, 5)
    ]
    assert everywhere() == wanted


def javas_bounds(spark: Any, shapes: list[str]) -> Any:
    """The bounds of geometries in digits, by Apache Iceberg's own writer of Parquet files, which Spark does not use."""
    java = spark._jvm
    kind = java.org.apache.iceberg.types.Types.GeometryType.crs84()
    builder = getattr(java.org.apache.iceberg, "GeometryFieldMetrics$Builder")(1, kind)
    for shape in shapes:
        builder.addValue(java.java.nio.ByteBuffer.wrap(bytes.fromhex(shape)))
    metrics = builder.build()
    if not metrics.hasBounds():
        return None
    return [bytes(each.toByteBuffer().array()).hex() for each in (metrics.lowerBound(), metrics.upperBound())]


def test_bounds_in_x_and_y_are_those_of_javas_own_writer(iceberg_java: Any) -> None:
    """Java's writer of Parquet files has no z and m; of what is no shape, or has NaN in part, it keeps no bounds."""
    random = Random(7)

    def point() -> str:
        return f"{random.choice([0, -0.0, 1e300, -1e-300, random.uniform(-180, 180)])} {random.uniform(-90, 90)}"

    def ring() -> str:
        first = point()
        return f"({first}, {point()}, {point()}, {first})"

    makers = [
        lambda: f"POINT ({point()})",
        lambda: f"LINESTRING ({point()}, {point()}, {point()})",
        lambda: f"POLYGON ({ring()}, {ring()})",
        lambda: f"MULTIPOINT (({point()}), ({point()}))",
        lambda: f"MULTIPOLYGON (({ring()}), ({ring()}))",
        lambda: f"GEOMETRYCOLLECTION (POINT ({point()}), GEOMETRYCOLLECTION EMPTY, LINESTRING ({point()}, {point()}))",
        lambda: f"POINT Z ({point()} {random.uniform(-5, 5)})",
        lambda: f"LINESTRING ZM ({point()} 1 2, {point()} 3 4)",
        lambda: random.choice(["POINT EMPTY", "LINESTRING EMPTY", "GEOMETRYCOLLECTION EMPTY"]),
    ]
    files = [[random.choice(makers)() for _ in range(random.randint(1, 4))] for _ in range(60)]
    files += [["POINT EMPTY"], ["POINT EMPTY", "POINT (1 2)"], ["POINT (NaN 2)", "POINT (1 NaN)"], ["POINT Z (1 2 3)"]]
    for texts in files:
        shapes = [wkb(text) for text in texts]
        found = corners_of(extents(pa.array(shapes, pa.binary())).whole(), GeometryType())
        own = None if found is None else [unpack("<2d", each[:16]) for each in found]
        told = iceberg_java.ask(javas_bounds, [shape.hex() for shape in shapes if shape])
        # As numbers: of 0.0 and -0.0, either may be the least.
        assert (told and [unpack("<2d", bytes.fromhex(each)) for each in told]) == own, texts
