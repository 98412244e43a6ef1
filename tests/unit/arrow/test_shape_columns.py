"""Columns of geometries and geographies in files of every format, beside DuckDB and shapely."""

from __future__ import annotations

import json
import math
import pickle
import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from hms_iceberg.arrow.columns.arrow_schema import from_arrow, to_arrow
from hms_iceberg.arrow.columns.geoarrow import ShapeType
from hms_iceberg.arrow.columns.shape_columns import NoShapeError, extents, meets
from hms_iceberg.errors import CorruptDataFileError, InvalidSchemaError, TypeMismatchError, UnsupportedError
from hms_iceberg.expressions import IntersectsBox, parse
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.json_filters import FilterReader, filter_to_json
from hms_iceberg.maintenance.check.consistency import check_table
from hms_iceberg.spec.data_types import (
    BinaryType,
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
from hms_iceberg.spec.values.shapes import Box, extent_of
from hms_iceberg.spec.values.single_values import point_from_bytes, point_to_bytes
from hms_iceberg.table.table import Table
from tests.support.row_tables import MODES, create

FORMATS = ("parquet", "orc", "avro")
GLOBE = GeographyType()
SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "shape", GeometryType()), NestedField(3, "place", GLOBE)
)
SHAPES = [
    *(
        "POINT (1 2)",
        "POINT Z (3 4 5)",
        "LINESTRING (0 0, 10 10)",
        "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    ),
    *(
        "MULTIPOINT ((5 5), (-5 -5))",
        "MULTIPOLYGON (((20 20, 21 20, 21 21, 20 20)), ((-20 -20, -21 -20, -21 -21, -20 -20)))",
    ),
    *(
        "POINT EMPTY",
        "POLYGON EMPTY",
        "GEOMETRYCOLLECTION (POINT (7 7), LINESTRING (8 8, 9 9))",
        "POINT (1e300 -1e300)",
    ),
    *("LINESTRING (2 1000, 2 -1000)", "POINT (-0.0 0.0)"),
]


def wkb(text: str | None) -> bytes | None:
    return None if text is None else shapely.to_wkb(shapely.from_wkt(text), flavor="iso")


def points(*places: tuple[float, float] | None) -> pa.Array:
    return pa.array([None if each is None else struct.pack("<BIdd", 1, 1, *each) for each in places], pa.binary())


def rows(shapes: list[bytes | None], start: int = 0) -> pa.Table:
    there = points(*(((start + at) % 180, at % 90) if at % 5 else None for at in range(len(shapes))))
    return pa.table(
        {"id": pa.array(range(start, start + len(shapes))), "shape": pa.array(shapes, pa.binary()), "place": there}
    )


def table_of(
    folder: Path, form: str = "parquet", schema: Schema = SCHEMA, mode: str | None = None, **more: str
) -> Table:
    return create(folder, 3, mode, schema, **{"write.format.default": form, **more})


def ids(table: Table, row_filter: Any) -> list[int]:
    return sorted(table.scan(row_filter=row_filter).to_arrow()["id"].to_pylist())


def by_duckdb(data: pa.Table, box: tuple[float, ...], column: str = "shape", negated: bool = False) -> list[int]:
    """The rows whose boxes meet a box, by DuckDB's own type GEOMETRY."""
    test = f"st_geomfromwkb({column}) && st_geomfromwkb(?)"
    found = duckdb.execute(
        f"select id from data where {f'not ({test})' if negated else test} order by id",
        [shapely.to_wkb(shapely.box(*box))],
    )
    return [each for (each,) in found.fetchall()]


# ------------------------------------------------------------------------------------------------ whole columns


def test_a_column_of_any_shapes_extends_over_what_each_of_them_does():
    generator = np.random.default_rng(7)
    data: list[bytes | None] = [wkb(each) for each in SHAPES] + [None]
    data += list(shapely.to_wkb(shapely.points(generator.normal(0, 60, (50, 3))), flavor="iso", byte_order=0))
    data += list(shapely.to_wkb(shapely.linestrings(generator.normal(0, 60, (50, 4, 2)))))
    data += [struct.pack("<BIddd", 1, 2001, *generator.normal(0, 9, 3)) for _ in range(5)]
    lines = (" , ".join(" ".join(map(str, point)) for point in generator.normal(0, 9, (3, 4))) for _ in range(5))
    data += [wkb(f"MULTILINESTRING ZM (({line}), ({line}))") for line in lines]
    data += [struct.pack("<BIdd", 1, 1, 1, math.nan), struct.pack("<BIII8d", 1, 3, 1, 4, 0, 0, 1, 1, 2, 0, 0, 0)]
    generator.shuffle(data)
    column = pa.array([b"hidden", *data], pa.binary()).slice(1)
    found = extents(column)
    for place, each in enumerate(data):
        if each is None:
            assert np.isnan(found.low[place]).all()
            continue
        corners = shapely.get_coordinates(shapely.from_wkb(each), include_z=True, include_m=True)
        np.testing.assert_array_equal(found.low[place], np.fmin.reduce(corners, initial=math.nan))
        np.testing.assert_array_equal(found.high[place], np.fmax.reduce(corners, initial=math.nan))
        one = extent_of(each)
        for name in ("low", "high", "east", "west"):
            np.testing.assert_array_equal(getattr(found, name)[place], getattr(one, name))
    for kind in (GeometryType(), GLOBE):
        for box in (
            Box(-5, -5, 5, 5),
            Box(-180, -90, 180, 90),
            Box(3, 3, 3, 3),
            *([Box(170, -9, -170, 9)] * (kind == GLOBE)),
        ):
            wanted = [each is not None and box.meets(each, kind) for each in data]
            assert meets(column, box, kind).tolist() == wanted


def test_a_value_that_is_no_shape_is_told_with_its_row(monkeypatch):
    monkeypatch.setattr("hms_iceberg.arrow.columns.shape_columns._PART_BYTES", 64)
    column = pa.concat_arrays([points(*[(1, 2)] * 9), pa.array([None, b"\1\1\0\0\0"], pa.binary())])
    with pytest.raises(NoShapeError, match=r"row 10 is no shape .*: it ends in the middle"):
        extents(column)
    assert extents(column.slice(0, 10)).whole().low[:2] == [1, 2]
    assert np.isnan(extents(column.slice(0, 0)).whole().west)


# ------------------------------------------------------------------------------------------------ rows and files


@pytest.mark.parametrize("form", FORMATS)
def test_rows_that_meet_a_box_are_those_of_duckdb(tmp_path, form):
    table = table_of(tmp_path, form)
    data = rows([*map(wkb, SHAPES), None])
    for start in range(0, len(SHAPES) + 1, 4):
        table.append(data.slice(start, 4))
    read = table.scan().to_arrow().sort_by("id")
    assert read.cast(data.schema).equals(data)
    for box in (
        (0, 0, 5, 5),
        (1, 2, 1, 2),
        (-1e308, -1e308, 1e308, 1e308),
        (2, 500, 3, 600),
        (30, 30, 31, 31),
        (0, 0, 0, 0),
    ):
        assert ids(table, IntersectsBox("shape", box)) == by_duckdb(data, box)
        text = ", ".join(map(repr, box))
        assert ids(table, f"not intersects_box(shape, {text})") == by_duckdb(data, box, negated=True)
        assert ids(table, f"intersects_box(shape, {text}) or shape is null") == sorted(
            [*by_duckdb(data, box), len(SHAPES)]
        )
    assert ids(table, IntersectsBox("shape", (-math.inf, -math.inf, math.inf, math.inf))) == [*range(6), *range(8, 12)]
    assert ids(table, IntersectsBox("place", (0, 0, 180, 90))) == by_duckdb(data, (0, 0, 180, 90), "place")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_rows_that_meet_a_box_are_deleted(tmp_path, form, mode):
    table = table_of(tmp_path, form, mode=mode)
    data = rows([*map(wkb, SHAPES), None])
    table.append(data)
    box = (0, 0, 5, 5)
    table.delete(IntersectsBox("shape", box))
    kept = [each for each in range(len(SHAPES) + 1) if each not in by_duckdb(data, box)]
    assert table.scan().to_arrow().sort_by("id").cast(data.schema).equals(data.take(kept))
    table.delete("not intersects_box(shape, 20, 20, 30, 30)")
    assert ids(table, "true") == [len(SHAPES)]


def test_bounds_are_the_corners_of_the_box_in_every_format(tmp_path):
    shapes = [wkb("POINT Z (3 4 5)"), wkb("LINESTRING (0 9, 10 -10)"), struct.pack("<BIddd", 1, 2001, 1, 2, 7), None]
    schema = Schema(*SCHEMA.fields, NestedField(4, "nested", StructType(NestedField(5, "way", GLOBE))))
    for form in FORMATS:
        table = table_of(tmp_path / form, form, schema)
        data = rows(shapes).set_column(2, "place", points((170, 1), (-175, 2), None, None))
        way = pa.array([{"way": wkb("LINESTRING (0 0, 100 50)")}, None, {"way": None}, {"way": wkb("POINT (1 1)")}])
        table.append(data.append_column("nested", way.cast(pa.struct([("way", pa.binary())]))))
        file = table.inspect.files().to_pylist()[0]
        lower, upper = (dict(file[name]) for name in ("lower_bounds", "upper_bounds"))
        assert point_from_bytes(lower[2]) == (0, -10, 5, 7)
        assert point_from_bytes(upper[2]) == (10, 9, 5, 7)
        # Across the antimeridian, and none where edges of a geography reach who knows where.
        assert (lower[3], upper[3]) == (point_to_bytes(170, 1), point_to_bytes(-175, 2))
        assert 5 not in lower
        assert dict(file["null_value_counts"])[2] == 1
        assert dict(file["value_counts"])[5] == 4
        readable = file["readable_metrics"]
        assert readable["place"]["lower_bound"] == "x=170.0, y=1.0"
        assert readable["shape"]["upper_bound"] == "x=10.0, y=9.0, z=5.0, m=7.0"
        assert readable["nested.way"]["upper_bound"] is None


def test_files_without_a_shape_in_the_box_are_left_out_also_across_the_antimeridian(tmp_path):
    table = table_of(tmp_path)
    for some in ([(1, 1), (9, 9)], [(170, 0), (-170, 5)], [(-120, 0), (0, 0), (120, 1)], [(0, 0), None]):
        each = points(*some)
        table.append(pa.table({"id": range(len(some)), "shape": each, "place": each}))

    def files(row_filter: str) -> int:
        return len(list(table.scan(row_filter=row_filter).plan_files()))

    assert files("intersects_box(shape, 2, 2, 3, 3)") == 2
    assert files("intersects_box(shape, 9, 9, 11, 11)") == 1
    assert files("intersects_box(shape, 0, 100, 1, 101)") == 0
    assert (
        files("intersects_box(place, 175, 0, 178, 1)") == 2
    )  # one is 240 degrees wide: its shapes may go the other way
    assert files("intersects_box(place, 175, 4, 178, 4)") == 1
    assert files("intersects_box(place, 175, 2, -175, 9)") == 1
    assert files("not intersects_box(shape, -180, -90, 180, 90)") == 4  # empty shapes are not told


def test_a_file_goes_as_a_whole_only_if_no_row_can_meet_the_box(tmp_path):
    table = table_of(tmp_path, mode="merge-on-read")
    table.append(pa.table({"id": [1, 2], "shape": points((1, 1), (2, 2))}))
    table.append(pa.table({"id": [3, 4], "shape": points((50, 50), None)}))
    table.append(pa.table({"id": [5, 6], "shape": points((60, 50), (70, 70))}))
    table.delete("not intersects_box(shape, 0, 0, 9, 9)")
    assert ids(table, "true") == [1, 2, 4]
    summary = table.current_snapshot().summary
    assert (summary["deleted-data-files"], summary["added-dvs"]) == ("1", "1")


def test_row_groups_are_left_out_by_the_boxes_of_the_footer(tmp_path):
    table = table_of(tmp_path, **{"write.parquet.row-group-limit": "10"})
    table.append(pa.table({"id": range(100), "shape": points(*((each, each) for each in range(100)))}))
    (task,) = table.scan(row_filter="intersects_box(shape, 41, 41, 42, 42)").plan_files()
    footer = pq.read_metadata(task.file.file_path)
    assert footer.num_row_groups == 10
    # A damaged row group that nothing is read of is not noticed.
    chunk = footer.row_group(0).column(1)
    damaged = bytearray(Path(task.file.file_path).read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    damaged[start : start + 8] = b"\xff" * 8
    Path(task.file.file_path).write_bytes(damaged)
    assert ids(table, "intersects_box(shape, 41, 41, 42, 42)") == [41, 42]
    with pytest.raises(CorruptDataFileError):
        ids(table, "intersects_box(shape, 1, 1, 42, 42)")


def test_of_a_million_points_in_200_clustered_files_only_files_that_can_hold_a_point_are_read(tmp_path):
    table = table_of(tmp_path, schema=Schema(*SCHEMA.fields[:2]), **{"write.parquet.compression-codec": "uncompressed"})
    generator = np.random.default_rng(1)
    header = np.frombuffer(struct.pack("<BI", 1, 1), np.uint8)
    batches, cells = [], []
    for cell in range(200):
        x, y = generator.uniform(cell % 20, cell % 20 + 1, 5000), generator.uniform(cell // 20, cell // 20 + 1, 5000)
        both = np.hstack([np.tile(header, (5000, 1)), np.stack([x, y], 1).view(np.uint8).reshape(-1, 16)])
        shapes = pa.Array.from_buffers(
            pa.binary(),
            5000,
            [None, pa.py_buffer((np.arange(5001) * 21).astype(np.int32)), pa.py_buffer(both.tobytes())],
        )
        batches.append(pa.table({"id": np.arange(5000) + 5000 * cell, "shape": shapes}))
        cells.append((x, y))
    with table.transaction() as transaction:
        for batch in batches:
            transaction.append(batch)
    box = (3.25, 4.5, 5.75, 6.25)
    inside = [
        np.flatnonzero((x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])) + 5000 * cell
        for cell, (x, y) in enumerate(cells)
    ]
    scan = table.scan(row_filter=IntersectsBox("shape", box))
    assert table.scan().count() == 1_000_000
    assert len(list(scan.plan_files())) == sum(map(bool, map(len, inside))) == 9
    assert sorted(scan.to_arrow()["id"].to_pylist()) == np.concatenate(inside).tolist()


# ------------------------------------------------------------------------------------------------ types


@pytest.mark.parametrize("algorithm", ["spherical", "vincenty", "thomas", "andoyer", "karney"])
def test_parquet_files_name_the_type_with_its_system_and_edges(tmp_path, algorithm):
    schema = Schema(
        NestedField(1, "a", GeometryType("EPSG:3857")),
        NestedField(2, "b", GeographyType("OGC:CRS27", algorithm)),
        NestedField(3, "list", ListType(4, GeometryType("projjson:mine"), False)),
        NestedField(5, "map", MapType(6, StringType(), 7, GeographyType("SRID:4326", algorithm), False)),
    )
    table = table_of(tmp_path, schema=schema)
    one = points((1, 2))[0].as_py()
    values = {"a": [one], "b": [one], "list": [[one, None]], "map": [[("k", one)]]}
    kinds = [
        ("a", pa.binary()),
        ("b", pa.binary()),
        ("list", pa.list_(pa.binary())),
        ("map", pa.map_(pa.string(), pa.binary())),
    ]
    table.append(pa.table({name: pa.array(values[name], kind) for name, kind in kinds}))
    (task,) = table.scan().plan_files()
    footer = pq.read_metadata(task.file.file_path)
    named = {footer.schema.column(at).path: footer.schema.column(at).logical_type for at in range(footer.num_columns)}
    assert str(named["a"]) == "Geometry(crs=EPSG:3857)"
    assert str(named["b"]) == f"Geography(crs=OGC:CRS27, algorithm={algorithm})"
    assert str(named["list.list.element"]) == "Geometry(crs=projjson:mine)"
    assert str(named["map.key_value.value"]) == f"Geography(crs=SRID:4326, algorithm={algorithm})"
    assert not any(each.statistics and each.statistics.has_min_max for each in map(footer.row_group(0).column, (0, 1)))
    assert table.scan().to_arrow().to_pylist() == [{key: value[0] for key, value in values.items()}]
    by_duckdb = duckdb.execute(f"select st_astext(a) from '{task.file.file_path}'").fetchall()
    assert by_duckdb == [("POINT (1 2)",)]


def test_scans_give_the_types_of_geoarrow_which_duckdb_and_shapely_understand(tmp_path):
    table = table_of(tmp_path)
    table.append(rows([wkb("POINT (1 2)")]).set_column(2, "place", points((5, 6))))
    scanned = table.scan().to_arrow()
    assert [str(each.type.extension_name) for each in list(scanned.schema)[1:]] == ["geoarrow.wkb"] * 2
    assert json.loads(scanned.schema.field("place").type.__arrow_ext_serialize__()) == {
        "crs": "OGC:CRS84",
        "edges": "spherical",
    }
    assert from_arrow(scanned.schema, 3).fields == SCHEMA.fields
    assert from_arrow(scanned.schema, 2).find_type("shape") == BinaryType()
    found = (
        table.scan().to_duckdb("found").sql("select st_astext(shape), typeof(shape), st_geomfromwkb(place) from found")
    )
    assert found.fetchall()[0][:2] == ("POINT (1 2)", "GEOMETRY('OGC:CRS84')")
    assert shapely.from_wkb(scanned["shape"].to_pylist()[0]).wkt == "POINT (1 2)"
    assert pickle.loads(pickle.dumps(scanned)).equals(scanned)
    assert table.scan().to_pandas()["shape"][0] == scanned["shape"][0].as_py()
    assert table.scan().to_polars()["shape"][0] == scanned["shape"][0].as_py()


def shapes_as(crs: Any = None, edges: str | None = None, by_metadata: bool = False) -> pa.Table:
    """A column of a point of GeoArrow, as pyarrow has it if it knows the type, or does not."""
    parameters = json.dumps({"crs": crs, "edges": edges} if edges else {"crs": crs} if crs else {})
    if by_metadata:
        names = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": parameters}
        return pa.Table.from_arrays([points((1, 2))], schema=pa.schema([pa.field("c", pa.binary(), metadata=names)]))
    return pa.table({"c": pa.ExtensionArray.from_storage(ShapeType(parameters), points((1, 2)))})


PROJJSON = {"type": "GeographicCRS", "name": "WGS 84", "id": {"authority": "EPSG", "code": 4326}}


@pytest.mark.parametrize("by_metadata", [False, True])
@pytest.mark.parametrize(
    ("kind", "crs", "edges", "problem"),
    [
        (GeometryType(), None, None, None),
        (GeometryType(), "OGC:CRS84", "planar", None),
        (GeometryType(), PROJJSON, None, None),
        (GeometryType("srid:3857"), "EPSG:3857", None, None),
        (GLOBE, None, None, None),
        (GeographyType(algorithm="karney"), "OGC:CRS84", "karney", None),
        (GeometryType(), "EPSG:3857", None, "coordinate reference system is EPSG:3857"),
        (GeometryType("EPSG:25832"), PROJJSON, None, "coordinate reference system is EPSG:4326"),
        (GeometryType(), {"name": "mine"}, None, "has no identifier"),
        (GeometryType(), None, "spherical", "edges are spherical, not planar"),
        (GLOBE, None, "vincenty", "edges are vincenty, not spherical"),
    ],
)
def test_data_of_another_coordinate_system_or_with_other_edges_is_refused(
    tmp_path, kind, crs, edges, problem, by_metadata
):
    table = table_of(tmp_path, schema=Schema(NestedField(1, "c", kind)))
    data = shapes_as(crs, edges, by_metadata)
    if problem is None:
        table.append(data)
        assert table.scan().to_arrow()["c"].to_pylist() == points((1, 2)).to_pylist()
        return
    with pytest.raises(TypeMismatchError, match=rf"column 'c' of table db.events.*{problem}"):
        table.append(data)
    assert not list(tmp_path.rglob("*.parquet"))


def test_types_of_geoarrow_pyarrow_go_in(tmp_path):
    ga = pytest.importorskip("geoarrow.pyarrow")
    table = table_of(tmp_path, schema=Schema(NestedField(1, "c", GeometryType("EPSG:3857"))))
    column = ga.with_crs(ga.as_wkb(["POINT (1 2)"]), "EPSG:3857")
    table.append(pa.table({"c": column}))
    assert ga.as_wkt(table.scan().to_arrow()["c"].combine_chunks().storage).to_pylist() == ["POINT (1 2)"]
    with pytest.raises(TypeMismatchError, match=r"'c' of table db.events.*geoarrow.point, not Well-Known Binary"):
        table.append(pa.table({"c": ga.with_crs(ga.as_geoarrow(column), "EPSG:3857")}))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("shape", b"POINT (1 2)", "first byte is 80"),
        ("shape", shapely.to_wkb(shapely.Point(1, 2, 3)), "EWKB.*flavor='iso'"),
        ("place", struct.pack("<BIdd", 1, 1, 181, 0), "longitudes from -180 to 180.* to 181"),
        ("place", struct.pack("<BIdd", 1, 1, 0, -math.inf), "latitudes from -90 to 90"),
    ],
)
def test_values_that_are_no_shapes_are_refused_before_anything_is_written(tmp_path, form, column, value, problem):
    table = table_of(tmp_path, form)
    good = points((1, 1))[0].as_py()
    with pytest.raises(TypeMismatchError, match=f"column '{column}' of table db.events.*{problem}"):
        table.append(pa.table({"id": [1, 2], column: pa.array([good, value], pa.binary())}))
    with pytest.raises(TypeMismatchError, match=f"'{column}' of table db.events: expected geo"):
        table.append(pa.table({"id": [1], column: ["POINT (1 2)"]}))
    assert not list(tmp_path.rglob(f"*.{form}"))


def written(file: Path, shapes: pa.Array, parameters: str = "{}", **options: Any) -> str:
    """A file with ids and shapes by pyarrow alone."""
    column = pa.ExtensionArray.from_storage(ShapeType(parameters), shapes)
    pq.write_table(pa.table({"id": range(len(shapes)), "shape": column}), file, **options)
    return str(file)


def test_what_others_wrote_is_read_but_no_box_is_compared_with_it(tmp_path):
    shapes = pa.array([b"no shape", points((1, 1))[0].as_py()], pa.binary())
    table = table_of(tmp_path, schema=Schema(*SCHEMA.fields[:2]))
    table.add_files([written(tmp_path / "other.parquet", shapes)])
    assert table.scan().to_arrow()["shape"].to_pylist()[0] == b"no shape"
    with pytest.raises(CorruptDataFileError, match=r"Cannot compare column 'shape' .*row 0 is no shape"):
        ids(table, "intersects_box(shape, 0, 0, 1, 1)")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert "x=" not in str(table.inspect.files()["readable_metrics"].to_pylist())


def test_bounds_of_added_files_come_from_their_footers(tmp_path):
    table = table_of(tmp_path, schema=Schema(*SCHEMA.fields[:2]))
    shapes = points((1, 2), (-3, 9))
    table.add_files(
        [
            written(tmp_path / "told.parquet", shapes, '{"crs": "EPSG:4326"}'),
            written(tmp_path / "untold.parquet", shapes, write_statistics=False),
            written(tmp_path / "partly.parquet", pa.concat_arrays([shapes, points((math.nan, 1))]), row_group_size=2),
        ]
    )
    bounds = [each["shape"]["lower_bound"] for each in table.inspect.files()["readable_metrics"].to_pylist()]
    assert sorted(bounds, key=str) == [None, None, "x=-3.0, y=2.0"]
    assert len(ids(table, "intersects_box(shape, -4, 8, -2, 10)")) == 3


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ('{"crs": "EPSG:3857"}', "coordinate reference system is EPSG:3857"),
        ('{"edges": "spherical"}', "edges are spherical, not planar"),
        (None, "does not say that they are of type GEOMETRY"),
    ],
)
def test_a_file_of_bytes_or_of_another_system_is_not_added(tmp_path, parameters, problem):
    table = table_of(tmp_path, schema=Schema(*SCHEMA.fields[:2]))
    file = str(tmp_path / "other.parquet")
    if parameters is None:
        pq.write_table(pa.table({"id": [1], "shape": points((1, 2))}), file)
    else:
        written(tmp_path / "other.parquet", points((1, 2)), parameters)
    with pytest.raises(
        TypeMismatchError, match=rf"Cannot add .*other.parquet: its column 'shape' is geometry.*{problem}"
    ):
        table.add_files([file])


# ------------------------------------------------------------------------------------------------ rules of the types


def test_older_tables_defaults_partitions_and_orders_refuse_shapes(tmp_path):
    from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
    from hms_iceberg.spec.sort_orders import SortField, SortOrder
    from hms_iceberg.transforms import BucketTransform, IdentityTransform

    for kind in (GeometryType(), GLOBE):
        schema = Schema(NestedField(1, "c", kind))
        with pytest.raises(Exception, match="version 3"):
            create(tmp_path, 2, schema=schema)
        for transform in (IdentityTransform(), BucketTransform(4)):
            with pytest.raises(Exception, match="geo"):
                create(tmp_path, 3, schema=schema, spec=PartitionSpec(PartitionField(1, 1000, transform, "p")))
        with pytest.raises(Exception, match="geo"):
            create(tmp_path, 3, schema=schema, sort_order=SortOrder(SortField(1)))
        with pytest.raises(InvalidSchemaError, match="default"):
            create(tmp_path, 3, schema=Schema(NestedField(1, "c", kind, False, initial_default=b"\0")))


def test_systems_and_edges_stay_through_changes_of_the_schema_and_in_the_metastore(tmp_path):
    kinds = (GeometryType("EPSG:3857"), GeographyType("OGC:CRS83", "thomas"))
    table = table_of(tmp_path, schema=Schema(NestedField(1, "a", kinds[0])))
    with table.update_schema() as update:
        update.add_column("b", kinds[1])
        update.rename_column("a", "c")
    table.append(pa.table({"c": points((1, 2)), "b": points((3, 4))}))
    table.refresh()
    assert [(field.name, field.field_type) for field in table.schema().fields] == list(zip("cb", kinds, strict=True))
    with pytest.raises(Exception, match="geometry"), table.update_schema() as update:
        update.update_column("c", GeometryType("EPSG:4326"))
    assert to_arrow(table.schema()).field("b").type == ShapeType('{"crs": "OGC:CRS83", "edges": "thomas"}')


@pytest.mark.parametrize(
    ("row_filter", "problem"),
    [
        ("intersects_box(id, 0, 0, 1, 1)", "only a column of type geometry or geography.*'id' is long"),
        ("intersects_box(shape, 2, 0, 1, 1)", "xmin is greater than xmax"),
        ("intersects_box(place, -190, 0, 1, 1)", "from -180 to 180"),
        ("intersects_box(shape, 0, 1, 1, 0)", "ymin"),
        ("intersects_box(shape, 0, 0, 1)", "four numbers"),
        ("intersects_box(shape, 0, 0, 1, '1')", "four numbers"),
        ("intersects_box(shape, 0, 0, 1, null)", "four numbers"),
        ("intersects_box(0, 0, 0, 1, 1)", "needs a column"),
        ("shape = X'00'", "geometry"),
        ("shape < X'00'", "geometry"),
    ],
)
def test_a_filter_that_no_shape_can_be_compared_with_is_refused(tmp_path, row_filter, problem):
    with pytest.raises(Exception, match=problem) as caught:
        ids(table_of(tmp_path), row_filter)
    assert caught.type.__module__ == "hms_iceberg.errors"


def test_rows_with_shapes_are_merged_compacted_compared_and_checked(tmp_path):
    schema = Schema(
        NestedField(1, "id", LongType(), True), *SCHEMA.fields[1:], NestedField(4, "ways", ListType(5, GLOBE, False))
    )
    table = table_of(tmp_path, schema=schema, mode="merge-on-read")

    def some(keys: range, y: float) -> pa.Table:
        shapes = points(*((key, y) for key in keys))
        ways = pa.array([[each, None] for each in shapes.to_pylist()], pa.list_(pa.binary()))
        id_field = pa.field("id", pa.int64(), False)
        kinds = [id_field, ("shape", pa.binary()), ("place", pa.binary()), ("ways", ways.type)]
        return pa.table([pa.array(keys, pa.int64()), shapes, shapes, ways], schema=pa.schema(kinds))

    table.append(some(range(10), 0))
    changed = table.upsert(some(range(5, 12), 1), join_cols=["id"])
    assert (changed.rows_updated, changed.rows_inserted) == (5, 2)
    again = table.upsert(table.scan().to_arrow(), join_cols=["id"])
    assert (again.rows_updated, again.rows_inserted) == (0, 0)
    wanted = pa.concat_tables([some(range(5), 0), some(range(5, 12), 1)])
    assert table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}).added_data_files_count == 1
    assert table.scan().to_arrow().sort_by("id").cast(wanted.schema).equals(wanted)
    changes = table.changelog_scan(identifier_columns=["id"]).to_arrow()
    assert sorted(set(changes["_change_type"].to_pylist())) == ["INSERT", "UPDATE_AFTER", "UPDATE_BEFORE"]
    assert not check_table(table, values=True).findings
    with pytest.raises(UnsupportedError, match=r"shape of type geometry.* cannot be part of a z-order"):
        table.maintenance.rewrite_data_files(strategy="sort", sort_order="zorder(id, shape)")


def test_a_box_crosses_the_rest_protocol_of_this_package():
    bound = bind(SCHEMA, parse("not intersects_box(place, 170, -1, -170, 1.5) and intersects_box(shape, -9, 0, 1, 1)"))
    told = json.loads(json.dumps(filter_to_json(bound)))
    assert told["left"] == {"type": "not-intersects-box", "term": "place", "value": [170.0, -1.0, -170.0, 1.5]}
    assert bind(SCHEMA, FilterReader(SCHEMA, True).read(told)) == bound
