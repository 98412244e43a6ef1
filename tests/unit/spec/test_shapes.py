"""Shapes in Well-Known Binary, beside shapely."""

from __future__ import annotations

import math
import struct

import pytest
import shapely

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import GeographyType, GeometryType
from hms_iceberg.spec.values.shapes import Box, extent_of
from hms_iceberg.spec.values.single_values import corners_of, point_from_bytes, point_text

POINT = struct.pack("<BIdd", 1, 1, 30, 10)
NAN = math.nan


def wkb(text: str, big_endian: bool = False) -> bytes:
    return shapely.to_wkb(shapely.from_wkt(text), flavor="iso", byte_order=0 if big_endian else 1)


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "POINT (1 2)",
        "LINESTRING (0 1, 1 0, 2 -1, -1 -2)",
        "POLYGON ((0 0, 10 0, 0 10, 0 0), (1 1, 1 2, 2 1, 1 1))",
        "MULTIPOINT ((1 2), (3 4))",
        "MULTILINESTRING ((1 2, 3 4), (5 6, -7 8))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 7, 5 5)))",
        "GEOMETRYCOLLECTION (POINT (1 2), GEOMETRYCOLLECTION (LINESTRING (3 4, 5 -6), POLYGON EMPTY))",
    ],
)
def test_the_extent_of_a_shape_is_what_shapely_says(text, big_endian):
    extent = extent_of(wkb(text, big_endian))
    assert (*extent.low[:2], *extent.high[:2]) == shapely.from_wkt(text).bounds


def test_each_dimension_has_its_extent():
    assert extent_of(wkb("LINESTRING Z (0 1 5, 2 3 -4)")).low[:3] == (0, 1, -4)
    m = extent_of(struct.pack("<BIddd", 1, 2001, 1, 2, 7))
    assert (m.high[3], math.isnan(m.high[2])) == (7, True)
    assert extent_of(struct.pack("<BIdddd", 1, 3001, 1, 2, 3, 4)).high == (1, 2, 3, 4)


@pytest.mark.parametrize(
    "text", ["POINT EMPTY", "LINESTRING EMPTY", "POLYGON EMPTY", "GEOMETRYCOLLECTION (POINT EMPTY)"]
)
def test_an_empty_shape_extends_over_nothing_and_has_no_corners(text):
    extent = extent_of(wkb(text))
    assert all(map(math.isnan, (*extent.low, *extent.high)))
    assert corners_of(extent, GeometryType()) is None
    assert not Box(-math.inf, -math.inf, math.inf, math.inf).meets(wkb(text), GeometryType())


def test_a_point_without_y_has_an_x_but_no_corners():
    extent = extent_of(struct.pack("<BIdd", 1, 1, 1, NAN))
    assert extent.low[0] == 1
    assert corners_of(extent, GeometryType()) is None
    assert corners_of(extent.widened(extent_of(POINT)), GeometryType()) is not None


def test_infinite_coordinates_are_bounds():
    extent = extent_of(struct.pack("<BIdd", 1, 1, math.inf, -math.inf))
    lower, upper = corners_of(extent.widened(extent_of(POINT)), GeometryType()) or (b"", b"")
    assert point_from_bytes(lower) == (30, -math.inf, None, None)
    assert point_from_bytes(upper) == (math.inf, 10, None, None)
    assert corners_of(extent, GeographyType()) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends in the middle"),
        (POINT[:-1], "ends in the middle"),
        (POINT + b"\0", "1 bytes follow"),
        (b"\2" + POINT[1:], "first byte is 2"),
        (struct.pack("<BIdd", 1, 8, 0, 0), "type is 0x8"),
        (struct.pack("<BIdd", 1, 4001, 0, 0), "type is 0xfa1"),
        (shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True), "EWKB"),
        (shapely.to_wkb(shapely.Point(1, 2, 3)), "EWKB"),
        (struct.pack("<BII", 1, 2, 2**32 - 1), "ends in the middle"),
        (struct.pack("<BII", 1, 4, 1) + wkb("LINESTRING (0 0, 1 1)"), "a LineString is where a Point"),
        (struct.pack("<BII", 1, 1007, 1) + POINT, "different dimensions"),
        (struct.pack("<BIII6d", 1, 3, 1, 3, 0, 0, 1, 1, 0, 0), "fewer than 4"),
        (struct.pack("<BIII8d", 1, 3, 1, 4, 0, 0, 1, 1, 2, 0, 3, 3), "not closed"),
        (b"POINT (1 2)", "first byte is 80"),
    ],
)
def test_what_is_no_shape_is_told_with_the_reason(data, reason):
    with pytest.raises(ValueError, match=reason):
        extent_of(data)


def test_a_thousand_collections_within_one_another_are_gone_through():
    data = POINT
    for _ in range(1000):
        data = struct.pack("<BII", 1, 7, 1) + data
    assert extent_of(data).low[:2] == (30, 10)


def test_corners_are_coordinates_after_one_another_with_nan_for_a_lacking_z():
    m = extent_of(struct.pack("<BIddd", 1, 2001, 1, 2, 7))
    lower, _ = corners_of(m, GeometryType()) or (b"", b"")
    assert (len(lower), point_from_bytes(lower)) == (32, (1, 2, None, 7))
    assert point_text(lower) == "x=1.0, y=2.0, m=7.0"
    assert point_text(b"abc") is None
    z = corners_of(extent_of(wkb("POINT Z (1 2 3)")), GeometryType())
    assert z is not None
    assert len(z[0]) == 24


@pytest.mark.parametrize(
    ("points", "west", "east"),
    [
        ((170, -175), 170, -175),
        ((10, 20), 10, 20),
        ((-10, 20), -10, 20),
        ((-90, 90), -90, 90),  # both ways are as long
        ((-91, 90), 90, -91),
        ((-180, 180), 180, -180),
    ],
)
def test_the_box_of_a_geography_goes_the_shorter_way(points, west, east):
    data = wkb(f"MULTIPOINT ({', '.join(f'({x} 0)' for x in points)})")
    lower, upper = corners_of(extent_of(data), GeographyType()) or (b"", b"")
    assert (point_from_bytes(lower)[0], point_from_bytes(upper)[0]) == (west, east)
    lower, upper = corners_of(extent_of(data), GeometryType()) or (b"", b"")
    assert (point_from_bytes(lower)[0], point_from_bytes(upper)[0]) == (min(points), max(points))


@pytest.mark.parametrize(
    ("box", "shape", "meets"),
    [
        ((0, 0, 1, 1), "POINT (1 1)", True),
        ((0, 0, 1, 1), "POINT (1.0000001 1)", False),
        ((0, 0, 1, 1), "LINESTRING (-5 0.5, 5 0.5)", True),
        ((0, 0, 1, 1), "LINESTRING (-5 2, 5 3)", False),
        ((170, -1, -170, 1), "POINT (175 0)", True),
        ((170, -1, -170, 1), "POINT (-175 0)", True),
        ((170, -1, -170, 1), "POINT (0 0)", False),
        ((170, -1, 175, 1), "MULTIPOINT ((160 0), (-160 0))", True),
        ((0, -1, 10, 1), "MULTIPOINT ((160 0), (-160 0))", False),
        ((175, -1, -175, 1), "MULTIPOINT ((160 0), (-160 0))", True),
    ],
)
def test_boxes_on_the_globe_meet(box, shape, meets):
    assert Box(*box).meets(wkb(shape), GeographyType()) is meets


@pytest.mark.parametrize("edges", [(NAN, 0, 1, 1), (0, 2, 1, 1), (0, 0, 1, "x"), (0, 0, 1), "0,0,1,1", 5, None])
def test_what_is_no_box_is_refused(edges):
    with pytest.raises(TypeMismatchError, match="Cannot make a box"):
        Box.of(edges)
