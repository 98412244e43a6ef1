"""The picture of a table on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from hms_iceberg.printable import printable
from hms_iceberg.report.number_text import count_limits, files, number, size, size_limits
from hms_iceberg.report.portrait import Bin, SnapshotPoint, TablePortrait
from hms_iceberg.report.snapshot_graph import drawn, placed
from hms_iceberg.spec.values.datetimes import format_seconds

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as Grid

_GAP = 2
_NARROW = 60  # columns, below which little of a picture is on the screen at once
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = str.maketrans("●│├┴┼─╯▁▂▃▄▅▆▇█", "*||++-'..::==##")


def print_portrait(portrait: TablePortrait, console: Console, most_snapshots: int = 20) -> None:
    """Prints the picture of a table.

    Args:
        portrait: the table.
        console: where to.
        most_snapshots: how many snapshots the graph shows, the newest.
    """
    for heading, picture in _pictures(portrait, console, most_snapshots):
        if heading:
            console.print()
            console.print(heading, style="bold")
        console.print(picture)


def _pictures(portrait: TablePortrait, console: Console, most_snapshots: int) -> Iterable[tuple[str, RenderableType]]:
    advice = "What would help", _advice(portrait, console)
    if portrait.advice and console.width < _NARROW:
        yield advice
    yield "", _facts(portrait)
    if portrait.snapshots:
        more = len(portrait.snapshots) - most_snapshots
        newest = f" (the newest {most_snapshots} of {len(portrait.snapshots)})" if more > 0 else ""
        yield f"Snapshots{newest}", _graph(portrait.snapshots[:most_snapshots], console)
    lineage = [each for each in reversed(portrait.snapshots) if each.is_current]
    if len(lineage) > 1:
        yield "Over time", _over_time(lineage, console)
    if portrait.file_sizes:
        yield "Data files by size", _histogram(portrait.file_sizes, size_limits, console)
    if portrait.delete_files:
        yield "Data files by delete files that apply", _histogram(portrait.deletes_per_file, count_limits, console)
    if portrait.partitions:
        shown = len(portrait.partitions)
        largest = f" (the largest {shown} of {portrait.partition_count})" if shown < portrait.partition_count else ""
        yield (
            f"Partitions by size{largest}",
            _bars(
                [(each.name, each.bytes, f"{size(each.bytes)}, {files(each.files)}") for each in portrait.partitions],
                console,
            ),
        )
    if portrait.advice and console.width >= _NARROW:
        yield advice


def _advice(portrait: TablePortrait, console: Console) -> Grid:
    if console.width >= _NARROW:
        return _pairs((each.command, each.why) for each in portrait.advice)
    grid = _grid()
    grid.add_column(overflow="fold")
    for each in portrait.advice:
        grid.add_row(_text(each.why))
        grid.add_row(_text(f"  {each.command}"))
    return grid


def _facts(portrait: TablePortrait) -> Grid:
    kinds = (
        (portrait.position_delete_files, "of positions"),
        (portrait.deletion_vectors, "deletion vectors"),
        (portrait.equality_delete_files, "of keys"),
    )
    deletes = ", ".join(f"{number(count)} {kind}" for count, kind in kinds if count) or "none"
    return _pairs(
        [
            ("Table", f"{portrait.name} (format version {portrait.format_version})"),
            ("Location", portrait.location),
            ("Updated", f"{format_seconds(portrait.updated_ms)} UTC"),
            ("Rows", f"{number(portrait.rows)}, of which {number(portrait.deleted_positions)} are deleted by position"),
            ("Data files", f"{number(portrait.data_files)}, {size(portrait.data_bytes)}"),
            ("Delete files", deletes),
            ("Partitioned by", "; ".join(portrait.partitioned_by) or "nothing"),
            ("Sorted by", "; ".join(portrait.sorted_by) or "nothing"),
        ]
    )


def _pairs(pairs: Iterable[tuple[str, str]]) -> Grid:
    grid = _grid()
    grid.add_column(overflow="fold", style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(_text(name), _text(value))
    return grid


def _graph(snapshots: Sequence[SnapshotPoint], console: Console) -> Grid:
    grid = _grid()
    grid.add_column(no_wrap=True, style="cyan")
    has_times = console.width >= _NARROW  # where not all has room, ids are of more use
    for style in ("", "dim", "") if has_times else ("", ""):
        grid.add_column(no_wrap=True, style=style)
    grid.add_column(justify="right")
    grid.add_column(overflow="fold", style="bold")
    for line, snapshot in drawn(placed(snapshots)):
        cells = _cells(snapshot, has_times) if snapshot is not None else ()
        grid.add_row(_text(_plain(line, console)), *map(_text, cells))
    return grid


def _cells(snapshot: SnapshotPoint, has_times: bool) -> tuple[str, ...]:
    change = "".join(
        f"{sign}{number(count)} " for sign, count in (("+", snapshot.added_rows), ("-", snapshot.deleted_rows)) if count
    )
    minute = (format_seconds(snapshot.timestamp_ms)[:-3],) if has_times else ()
    return str(snapshot.snapshot_id), *minute, snapshot.operation or "", change.strip(), ", ".join(snapshot.refs)


def _over_time(lineage: Sequence[SnapshotPoint], console: Console) -> Grid:
    grid = _grid()
    for style in ("dim", "cyan", ""):
        grid.add_column(no_wrap=True, style=style)
    width = max(console.width - 40, 10)
    for name, text_of, values in (
        ("rows", number, [each.total_rows for each in lineage]),
        ("bytes", size, [each.total_bytes for each in lineage]),
    ):
        known = [each for each in values if each is not None]
        if known:
            grid.add_row(name, _plain(sparkline(known, width), console), f"{text_of(known[0])} to {text_of(known[-1])}")
    return grid


def sparkline(values: Sequence[int], width: int) -> str:
    """Values as one line of blocks of eight heights; too many values are thinned out evenly."""
    step = max(1, -(-len(values) // width))
    shown = values[::-1][::step][::-1]
    most = max(shown) or 1
    return "".join(_BLOCKS[round(each * (len(_BLOCKS) - 1) / most)] for each in shown)


def _histogram(bins: Sequence[Bin], limits: Callable[[Bin], str], console: Console) -> Grid:
    return _bars([(limits(each), each.count, number(each.count)) for each in bins], console)


def _bars(bars: Sequence[tuple[str, int, str]], console: Console) -> Grid:
    """Bars of a length each, with a name before and a text behind."""
    names = max(len(name) for name, _, _ in bars)
    room = max(console.width - min(names, console.width // 2) - max(len(label) for _, _, label in bars) - 2 * _GAP, 5)
    most = max(length for _, length, _ in bars) or 1
    grid = _grid()
    grid.add_column(overflow="fold", style="dim", justify="right", max_width=console.width // 2)
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(no_wrap=True)
    for name, length, label in bars:
        blocks = "█" * max(round(length * room / most), 1 if length else 0)
        grid.add_row(_text(name), _plain(blocks, console), label)
    return grid


def _plain(text: str, console: Console) -> str:
    """A drawing in characters that the terminal has."""
    return text.translate(_ASCII) if console.options.ascii_only else text


def _grid() -> Grid:
    from rich.table import Table

    return Table.grid(padding=(0, _GAP, 0, 0))


def _text(text: str) -> RenderableType:
    """Text that is shown as it is, without characters that a terminal would obey."""
    from rich.text import Text

    return Text(printable(text))
