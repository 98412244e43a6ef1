"""Shapes in Well-Known Binary, the boxes around them, and when boxes meet.

The box of a shape is that of its coordinates: the least and the greatest of each dimension, NaN left out. Edges of a
geography, which reach beyond their ends, are not followed. Its longitudes go the shorter way round: from the least to
the greatest, or across the antimeridian from the least eastern one (0 and above) to the greatest western one.

Source: Iceberg specification, "Bounds for Geometry and Geography", "Appendix G"; OGC 06-103r4, "Well-known Binary".
Refused is what Apache Iceberg in Java takes for invalid.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct, unpack_from
from typing import Any, NamedTuple

from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import GeographyType, GeometryType

_NAMES = ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
# Coordinates of XY, XYZ, XYM and XYZM, which are the thousands of a type's code.
SIZES = (2, 3, 3, 4)
LEAST_RING = 4
_EXTENDED = 0xE0000000
_HEADERS = Struct(">BI"), Struct("<BI")
_COUNTS = Struct(">I"), Struct("<I")


class Run(NamedTuple):
    """Coordinates that follow one another in a value. `offset` is in bytes. `dimensions` is 0 for XY, 1 for XYZ, 2 for
    XYM, 3 for XYZM. They are `little`-endian or not, may be a `ring` of a polygon, and may be joined by `edges`."""

    offset: int
    points: int
    dimensions: int
    little: int
    ring: bool
    edges: bool


def runs(data: bytes) -> Iterator[Run]:
    """The runs of coordinates in ISO WKB of any nesting and either byte order; ValueError says why it is no shape."""
    at = 0
    # How many shapes are left, of which type, and with which dimensions; None for any.
    waiting: list[tuple[int, int | None, int | None]] = [(1, None, None)]
    while waiting:
        left, wanted, same = waiting.pop()
        if not left:
            continue
        waiting.append((left - 1, wanted, same))
        little, kind, dimensions, at = _header(data, at)
        if wanted is not None and kind != wanted:
            raise ValueError(f"a {_NAMES[kind - 1]} is where a {_NAMES[wanted - 1]} should be")
        if same is not None and dimensions != same:
            raise ValueError("its parts have coordinates of different dimensions")
        size = 8 * SIZES[dimensions]
        if kind == _POINT:
            start, at = at, _after(data, at, size)
            yield Run(start, 1, dimensions, little, False, False)
            continue
        count, at = _count(data, at, little)
        if kind == _LINE:
            start, at = at, _after(data, at, count * size)
            yield Run(start, count, dimensions, little, False, True)
        elif kind == _POLYGON:
            for _ in range(count):
                points, at = _count(data, at, little)
                start, at = at, _after(data, at, points * size)
                if points:
                    yield Run(start, points, dimensions, little, True, True)
        else:
            waiting.append((count, None if kind == _COLLECTION else kind - 3, dimensions))
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow its end")


def _header(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Order of bytes, type and dimensions of a shape, and where it goes on."""
    if len(data) < at + 5:
        raise ValueError("it ends in the middle")
    little = data[at]
    if little > 1:
        raise ValueError(f"its first byte is {little}, neither 0 nor 1")
    code = _HEADERS[little].unpack_from(data, at)[1]
    dimensions, kind = divmod(code, 1000)
    if dimensions >= len(SIZES) or not 1 <= kind <= len(_NAMES):
        extended = ", as in EWKB; ISO WKB is needed, without an SRID" if code & _EXTENDED else ""
        raise ValueError(f"its type is {code:#x}{extended}")
    return little, kind, dimensions, at + 5


def _count(data: bytes, at: int, little: int) -> tuple[int, int]:
    end = _after(data, at, 4)
    count = int(_COUNTS[little].unpack_from(data, at)[0])
    if count > len(data) - end:
        raise ValueError("it ends in the middle")
    return count, end


def _after(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise ValueError("it ends in the middle")
    return at + size


class Extent(NamedTuple):
    """Least and greatest x, y, z and m of one shape or of many, NaN where there is none. `east` is the least x of 0 and
    above, `west` the greatest below 0."""

    low: Sequence[float]
    high: Sequence[float]
    east: float
    west: float

    def widened(self, other: Extent) -> Extent:
        return Extent(
            tuple(map(_least, self.low, other.low)),
            tuple(-_least(-one, -two) for one, two in zip(self.high, other.high, strict=True)),
            _least(self.east, other.east),
            -_least(-self.west, -other.west),
        )


def _least(one: float, two: float) -> float:
    return one if one <= two or two != two else two


def extent_of(data: bytes) -> Extent:
    """The extent of one shape's coordinates; ValueError if the bytes are no WKB."""
    found: list[list[float]] = [[], [], [], []]
    for run in runs(data):
        size = SIZES[run.dimensions]
        values = unpack_from(f"{'<' if run.little else '>'}{run.points * size}d", data, run.offset)
        columns = [values[at::size] for at in range(size)]
        if run.ring:
            check_ring([each[0] for each in columns[:2]], [each[-1] for each in columns[:2]], run.points)
        for place, column in zip((0, 1, 3) if run.dimensions == 2 else (0, 1, 2, 3), columns, strict=False):
            found[place] += (each for each in column if each == each)
    low = tuple(min(each, default=math.nan) for each in found)
    high = tuple(max(each, default=math.nan) for each in found)
    east = min((x for x in found[0] if x >= 0), default=math.nan)
    west = max((x for x in found[0] if x < 0), default=math.nan)
    return Extent(low, high, east, west)


def check_ring(first: Sequence[float], last: Sequence[float], points: int) -> None:
    """Refuses a polygon's ring that has too few points or is not closed."""
    if points < LEAST_RING:
        raise ValueError(f"a ring of a polygon has {points} points, fewer than {LEAST_RING}")
    if any(one != other and not (one != one and other != other) for one, other in zip(first, last, strict=True)):
        raise ValueError("a ring of a polygon is not closed")


def interval(extent: Extent, kind: GeometryType | GeographyType) -> tuple[float, float]:
    """The least and greatest x of a box; of a geography, the first may be the greater one."""
    low, high = extent.low[0], extent.high[0]
    across = 360 - (extent.east - extent.west)
    if isinstance(kind, GeographyType) and across < high - low:
        return extent.east, extent.west
    return low, high


@dataclass(frozen=True, slots=True)
class Box:
    """A box with its edges, to compare shapes with. For geographies, edges are in degrees, and `xmax` may be less than
    `xmin`: the box then crosses the antimeridian."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    def __post_init__(self) -> None:
        try:
            numbers = [float(each) + 0.0 for each in self.edges]
        except (TypeError, ValueError, OverflowError):
            raise TypeMismatchError(f"Cannot make a box of {self.edges!r}: its edges are numbers") from None
        if any(map(math.isnan, numbers)) or numbers[1] > numbers[3]:
            raise TypeMismatchError(
                f"Cannot make a box of {self.edges!r}: expected xmin, ymin, xmax and ymax, none of them NaN, and ymin "
                "not above ymax"
            )
        for slot, number in zip(self.__slots__, numbers, strict=True):
            object.__setattr__(self, slot, number)

    @classmethod
    def of(cls, value: Any) -> Box:
        """The box of four numbers (`xmin, ymin, xmax, ymax`, such as shapely's `bounds`), or of a box."""
        if isinstance(value, cls):
            return value
        edges = tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else ()
        if len(edges) != 4:
            raise TypeMismatchError(f"Cannot make a box of {value!r}: expected four numbers, xmin, ymin, xmax, ymax")
        return cls(*edges)

    def check(self, kind: GeometryType | GeographyType) -> None:
        """Refuses a geometry's box of negative width, and a geography's with an edge beyond the globe; ValueError."""
        if isinstance(kind, GeographyType):
            if max(abs(self.xmin), abs(self.xmax)) > 180 or max(abs(self.ymin), abs(self.ymax)) > 90:
                raise ValueError("a box on the globe reaches from -180 to 180 and from -90 to 90 degrees")
        elif self.xmin > self.xmax:
            raise ValueError("xmin is greater than xmax, which only boxes on the globe may have")

    def meets(self, data: bytes, kind: GeometryType | GeographyType) -> bool:
        """Whether the box of a shape (WKB) has a point in common with this one; empty shapes have no box."""
        extent = extent_of(data)
        if not (extent.low[1] <= self.ymax and extent.high[1] >= self.ymin):
            return False
        west, east = interval(extent, kind)
        if west > east or self.xmin > self.xmax:  # one of them crosses the antimeridian
            both = west > east and self.xmin > self.xmax
            return both or west <= self.xmax or east >= self.xmin
        return west <= self.xmax and east >= self.xmin

    @property
    def edges(self) -> tuple[float, float, float, float]:
        return self.xmin, self.ymin, self.xmax, self.ymax
