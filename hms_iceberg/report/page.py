"""Pictures of tables as one HTML page that needs nothing else: its style and script are inside of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from hms_iceberg.printable import printable_lines
from hms_iceberg.report.number_text import count_limits, files, number, size, size_limits
from hms_iceberg.report.portrait import Failure, SnapshotPoint, TablePortrait
from hms_iceberg.report.snapshot_graph import Placed, placed
from hms_iceberg.spec.values.datetimes import format_seconds

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_SNAPSHOTS = 200
_LANE, _ROW = 16, 26  # Pixels between the lanes and the rows of the graph.
_WIDTH, _HEIGHT = 600, 120  # Pixels of a chart over time; the page scales it.


@dataclass(frozen=True)
class Bar:
    """A bar of a chart: its name, the label behind it, and its length in percent of the longest."""

    name: str
    label: str
    percent: float


@dataclass(frozen=True)
class Curve:
    """A chart over time: its name, its line and the area below it as SVG paths, and its two ends in words."""

    name: str
    line: str
    area: str
    first: str
    last: str


def html_page(title: str, made_ms: int, tables: Sequence[TablePortrait], failures: Sequence[Failure] = ()) -> str:
    """An HTML page with the pictures of tables, the largest first.

    Args:
        title: the page's heading.
        made_ms: when it was made, in milliseconds from 1970-01-01 UTC.
        tables: the tables.
        failures: tables of which there is no picture, and why.
    """
    largest = sorted(tables, key=lambda each: (-each.data_bytes, each.name))
    template = page_templates().get_template("page.html")
    return template.render(title=title, made_ms=made_ms, tables=largest, failures=failures)


@lru_cache(maxsize=1)
def page_templates() -> Environment:
    """The templates of the pages, with their filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hms_iceberg.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=lambda value: printable_lines(value) if type(value) is str else value,
    )
    environment.filters.update(number=number, size=size, time=format_seconds)
    environment.globals.update(
        graph=_graph,
        curves=_curves,
        size_bars=lambda table: _bars(
            [(size_limits(each), number(each.count), each.count) for each in table.file_sizes]
        ),
        delete_bars=lambda table: _bars(
            [(count_limits(each), number(each.count), each.count) for each in table.deletes_per_file]
        ),
        partition_bars=lambda table: _bars(
            [(each.name, f"{size(each.bytes)}, {files(each.files)}", each.bytes) for each in table.partitions]
        ),
    )
    return environment


def _bars(bars: Sequence[tuple[str, str, int]]) -> list[Bar]:
    most = max((length for _, _, length in bars), default=0) or 1
    return [Bar(name, label, round(100 * length / most, 2)) for name, label, length in bars]


@dataclass(frozen=True)
class Node:
    """A snapshot in the graph: where its circle is, and the line to the snapshot that it was made from."""

    snapshot: SnapshotPoint
    x: int
    y: int
    path: str


@dataclass(frozen=True)
class Graph:
    """A drawing of a table's snapshots, a node a row from above, in pixels."""

    nodes: tuple[Node, ...]
    width: int
    row: int
    left_out: int


def _graph(table: TablePortrait) -> Graph:
    places = placed(table.snapshots[:MOST_SNAPSHOTS])
    nodes = tuple(_node(row, each, places) for row, each in enumerate(places))
    width = max((node.x for node in nodes), default=0) + _LANE
    return Graph(nodes, width, _ROW, max(len(table.snapshots) - MOST_SNAPSHOTS, 0))


def _node(row: int, each: Placed, places: Sequence[Placed]) -> Node:
    x, y = _center(row, each.lane)
    if each.parent_row is None:
        return Node(each.snapshot, x, y, "")
    to_x, to_y = _center(each.parent_row, places[each.parent_row].lane)
    bend = f" V {to_y - _ROW} C {x} {to_y - _ROW // 2}, {to_x} {to_y - _ROW // 2}, {to_x} {to_y}"
    return Node(each.snapshot, x, y, f"M {x} {y}{f' V {to_y}' if x == to_x else bend}")


def _center(row: int, lane: int) -> tuple[int, int]:
    return _LANE // 2 + lane * _LANE, _ROW // 2 + row * _ROW


def _curves(table: TablePortrait) -> list[Curve]:
    lineage = [each for each in reversed(table.snapshots) if each.is_current]
    rows = [(each.timestamp_ms, each.total_rows) for each in lineage if each.total_rows is not None]
    sizes = [(each.timestamp_ms, each.total_bytes) for each in lineage if each.total_bytes is not None]
    curves = []
    for name, points, text_of in (("Rows", rows, number), ("Bytes", sizes, size)):
        if len(points) > 1:
            line = _steps(points)
            curves.append(
                Curve(
                    name,
                    f"M {line}",
                    f"M 0,{_HEIGHT} L {line} L {_WIDTH},{_HEIGHT} Z",
                    f"{format_seconds(points[0][0])}: {text_of(points[0][1])}",
                    f"{format_seconds(points[-1][0])}: {text_of(points[-1][1])}",
                )
            )
    return curves


def _steps(points: Sequence[tuple[int, int]]) -> str:
    """Points of a stepped line: the value stays level from one commit to the next."""
    first, last = points[0][0], points[-1][0]
    most = max(value for _, value in points) or 1
    span = (last - first) or 1
    found: list[str] = []
    before = None
    for moment, value in points:
        x = (moment - first) * _WIDTH / span
        y = _HEIGHT - value * (_HEIGHT - 4) / most
        found += [] if before is None else [f"{x:.1f},{before:.1f}"]
        found.append(f"{x:.1f},{y:.1f}")
        before = y
    return " ".join(found)
