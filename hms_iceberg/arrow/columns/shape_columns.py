"""Columns of shapes: their boxes, many at once, and what is no shape.

Points, lines and polygons of one ring, which most columns are made of, are found in the bytes of the whole column;
`hms_iceberg.spec.values.shapes` goes through the others one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.data_types import GeographyType, GeometryType
from hms_iceberg.spec.values.shapes import LEAST_RING, SIZES, Box, Extent, check_ring, runs

# Bytes of shapes that are looked at together; their numbers take some times as much.
_PART_BYTES = 8 * 1024 * 1024
_HEADER, _COUNT = 5, 4
_PLACES = ((0, 1), (0, 1, 2), (0, 1, 3), (0, 1, 2, 3))


class NoShapeError(InvalidInputError, ValueError):
    """A value of a column is no shape in Well-Known Binary; `row` is its place in the column, from 0."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"the value in row {row} is no shape in Well-Known Binary: {reason}")
        self.row = row
        self.reason = reason


@dataclass(frozen=True)
class Extents:
    """The extents of each shape of a column, NaN where it has none. `low` and `high` hold x, y, z and m. `east` is the
    least x of 0 and above, `west` the greatest below 0."""

    low: np.ndarray[Any, Any]
    high: np.ndarray[Any, Any]
    east: np.ndarray[Any, Any]
    west: np.ndarray[Any, Any]
    edges: bool

    def whole(self) -> Extent:
        if not len(self.east):
            nothing = [np.nan] * 4
            return Extent(nothing, nothing, np.nan, np.nan)
        return Extent(
            np.fmin.reduce(self.low).tolist(),
            np.fmax.reduce(self.high).tolist(),
            float(np.fmin.reduce(self.east)),
            float(np.fmax.reduce(self.west)),
        )


def extents(column: pa.BinaryArray) -> Extents:
    """The extents of the shapes (WKB) of a column, none for nulls; NoShapeError names a value that is no shape."""
    parts = []
    start = 0
    for part in _parts(column):
        try:
            parts.append(_extents(part))
        except NoShapeError as error:
            raise NoShapeError(start + error.row, error.reason) from None
        start += len(part)
    if len(parts) == 1:
        return parts[0]
    return Extents(
        np.concatenate([each.low for each in parts]),
        np.concatenate([each.high for each in parts]),
        np.concatenate([each.east for each in parts]),
        np.concatenate([each.west for each in parts]),
        any(each.edges for each in parts),
    )


def meets(column: pa.BinaryArray, box: Box, kind: GeometryType | GeographyType) -> np.ndarray[Any, Any]:
    """A mask of the shapes (WKB) of a column whose box has a point in common with `box`; no null has."""
    found = extents(column)
    west, east = found.low[:, 0], found.high[:, 0]
    if isinstance(kind, GeographyType):
        across = 360 - (found.east - found.west) < east - west
        west, east = np.where(across, found.east, west), np.where(across, found.west, east)
        within = (west <= box.xmax) & (east >= box.xmin)
        either = (west <= box.xmax) | (east >= box.xmin)
        within = np.where(west > east, either | (box.xmin > box.xmax), either if box.xmin > box.xmax else within)
    else:
        within = (west <= box.xmax) & (east >= box.xmin)
    return within & (found.low[:, 1] <= box.ymax) & (found.high[:, 1] >= box.ymin)


def _parts(column: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
    rows = max(1, _PART_BYTES * len(column) // max(column.nbytes, 1))
    if len(column) <= rows:
        yield column
        return
    for start in range(0, len(column), rows):
        yield column.slice(start, rows)


# Of coordinates: their dimensions, whether they are little-endian, and whether they are rings.
_Form = tuple[int, int, bool]


class _Runs:
    """Coordinates that are found, by their form: the row of each run, where it begins, and how many points it has."""

    def __init__(self) -> None:
        self._found: dict[_Form, list[tuple[Any, Any, Any]]] = {}

    def add(self, form: _Form, rows: Any, offsets: Any, counts: Any) -> None:
        some = counts > 0
        if some.any():
            self._found.setdefault(form, []).append((rows[some], offsets[some], counts[some]))

    def groups(self) -> Iterator[tuple[_Form, Any, Any, Any]]:
        for form, found in self._found.items():
            rows, offsets, counts = (np.concatenate(each) for each in zip(*found, strict=True))
            yield form, rows, offsets, counts


def _extents(column: pa.BinaryArray) -> Extents:
    rows = len(column)
    if not rows:
        return Extents(np.empty((0, 4)), np.empty((0, 4)), np.empty(0), np.empty(0), False)
    low, high = np.full((rows, 4), np.nan), np.full((rows, 4), np.nan)
    east, west = np.full(rows, np.nan), np.full(rows, np.nan)
    data, starts, sizes, valid = _bytes_of(column)
    found, edges = _runs_of(column, data, starts, sizes, valid)
    for (dimensions, little, ring), at, offsets, counts in found.groups():
        points = _coordinates(data, offsets, counts, SIZES[dimensions], little)
        begins = np.cumsum(counts) - counts
        if ring:
            _check_rings(points, at, begins, counts)
        for place, values in zip(_PLACES[dimensions], points.T, strict=True):
            np.fmin.at(low[:, place], at, np.fmin.reduceat(values, begins))
            np.fmax.at(high[:, place], at, np.fmax.reduceat(values, begins))
        x = points[:, 0]
        np.fmin.at(east, at, np.fmin.reduceat(np.where(x >= 0, x, np.nan), begins))
        np.fmax.at(west, at, np.fmax.reduceat(np.where(x < 0, x, np.nan), begins))
    return Extents(low, high, east, west, edges)


def _bytes_of(column: pa.BinaryArray) -> tuple[Any, Any, Any, Any]:
    """The bytes of a column, where each value begins, how long it is, and which are no nulls."""
    _, ends, content = column.buffers()
    data = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    places = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return data, places[:-1], np.diff(places), valid


def _runs_of(column: pa.BinaryArray, data: Any, starts: Any, sizes: Any, valid: Any) -> tuple[_Runs, bool]:
    found = _Runs()
    edges = False
    done = ~valid
    plain = np.flatnonzero(valid & (sizes >= _HEADER + _COUNT))
    plain = plain[data[starts[plain]] == 1]
    codes = _integers(data, starts[plain] + 1)
    for dimensions, size in enumerate(SIZES):
        points = plain[(codes == 1000 * dimensions + 1) & (sizes[plain] == _HEADER + 8 * size)]
        found.add((dimensions, 1, False), points, starts[points] + _HEADER, np.ones(len(points), np.int64))
        done[points] = True
        for kind, skipped in ((2, _HEADER), (3, _HEADER + _COUNT)):
            some = plain[(codes == 1000 * dimensions + kind) & (sizes[plain] >= skipped + _COUNT)]
            if kind == 3:
                some = some[_integers(data, starts[some] + _HEADER) == 1]
            counts = _integers(data, starts[some] + skipped)
            fits = sizes[some] == skipped + _COUNT + counts * 8 * size
            some, counts = some[fits], counts[fits]
            found.add((dimensions, 1, kind == 3), some, starts[some] + skipped + _COUNT, counts)
            done[some] = True
            edges = edges or bool(len(some))
    walked: dict[_Form, list[tuple[int, int, int]]] = {}
    for row in np.flatnonzero(~done).tolist():
        try:
            for run in runs(column[row].as_py()):
                form = run.dimensions, run.little, run.ring
                walked.setdefault(form, []).append((row, int(starts[row]) + run.offset, run.points))
                edges = edges or run.edges
        except ValueError as error:
            raise NoShapeError(row, str(error)) from None
    for form, some_runs in walked.items():
        found.add(form, *np.array(some_runs, np.int64).T)
    return found, edges


def _integers(data: Any, offsets: Any) -> Any:
    """Little-endian unsigned integers of four bytes."""
    if not len(offsets):
        return np.empty(0, np.int64)
    return data[offsets[:, None] + np.arange(4)].copy().view("<u4").ravel().astype(np.int64)


def _coordinates(data: Any, offsets: Any, counts: Any, size: int, little: int) -> Any:
    """The coordinates of runs below one another, so many a row."""
    numbers = counts * size
    within = np.arange(int(numbers.sum())) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    windows = np.lib.stride_tricks.sliding_window_view(data, 8)
    chosen = windows[np.repeat(offsets, numbers) + 8 * within]
    return np.ascontiguousarray(chosen).view("<f8" if little else ">f8").reshape(-1, size).astype(np.float64)


def _check_rings(points: Any, rows: Any, begins: Any, counts: Any) -> None:
    first, last = points[begins, :2], points[begins + counts - 1, :2]
    open_ended = ((first != last) & ~(np.isnan(first) & np.isnan(last))).any(axis=1)
    for place in np.flatnonzero(open_ended | (counts < LEAST_RING))[:1]:
        try:
            check_ring(first[place].tolist(), last[place].tolist(), int(counts[place]))
        except ValueError as error:
            raise NoShapeError(int(rows[place]), str(error)) from None
