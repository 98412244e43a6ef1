"""Geometries and geographies that Python writes are read and changed by Apache Iceberg, and read here again.

In folders, since Apache Iceberg 1.12 has no name of these types for a metastore.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import shapely

from hms_iceberg import load_catalog
from hms_iceberg.spec.data_types import GeographyType, GeometryType, LongType, NestedField, StructType
from hms_iceberg.spec.schema import Schema

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.since_spark("4.1", "the type geometry")]

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
