"""Output of results and progress: tables on a terminal, whole lines with tabs in pipes, or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from hms_iceberg.printable import printable, printable_json, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

    from hms_iceberg.migration.migration_progress import Progress


Command = TypeVar("Command", bound=Callable[..., Any])
FORM = "hms_iceberg.output"
"""Where a context of click has the form of the output."""

# A column of longer values may be folded to this width; if not even that fits, rows are shown one below the other.
_LEAST_WIDTH = 20
_GAP = 2


def inherited(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """The value of an option, or the one that was given before the command's name: `hms-iceberg --uri … list`."""
    root = ctx.find_root()
    before = root.params.get(param.name or "") if root is not ctx else None
    if isinstance(value, tuple):
        return (*(before or ()), *value)
    return before if value is None else value


def output_form(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The form of the output that was asked for, if any; noted for errors too."""
    form: str | None = inherited(ctx, param, value)
    ctx.meta[FORM] = form
    return form


OUTPUT_OPTION = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    callback=lambda ctx, param, value: output_form(ctx, param, value) or "text",
    help="How the result is told.  [default: text]",
)


def log_options(default: str) -> Callable[[Command], Command]:
    """Adds `--log-format` and `--log-level` to a command, with a default level."""

    def decorated(command: Command) -> Command:
        levels = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False)
        level = click.option("--log-level", type=levels, default=default, show_default=True, help="What is logged.")
        forms = click.Choice(["text", "json"])
        form = click.option("--log-format", type=forms, default="text", show_default=True, help="A line of the log.")
        return level(form(command))

    return decorated


def warn(failures: tuple[str, ...]) -> None:
    """Prints on standard error which groups failed, and ends with exit code 1 if any did."""
    for failure in failures:
        say(f"Not done: {failure}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def shown(value: Any, null: str = "") -> str:
    """A value on one line, without characters that a terminal would obey; `null` for a missing value."""
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list, tuple)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return printable(str(value))


def say(text: str = "", *, err: bool = False) -> None:
    """Prints lines, on standard error with `err`, without characters that a terminal would obey."""
    click.echo(printable_lines(text), err=err)


def say_over(text: str) -> None:
    """Replaces the line that was printed so before, on a terminal's standard error; nothing clears the line."""
    click.echo(f"\r\x1b[K{printable(text)}", nl=False, err=True)


@dataclass(frozen=True)
class Output:
    """Prints results, in the form `text` or `json`."""

    form: str = "text"

    @property
    def is_json(self) -> bool:
        return self.form == "json"

    def json(self, data: Any) -> None:
        """Prints a line of JSON."""
        say(printable_json(json.dumps(data, default=str, ensure_ascii=False)))

    def text(self, text: str, data: Any) -> None:
        """Prints a text; as JSON, the data of the text."""
        if self.is_json:
            self.json(data)
        else:
            say(text)

    def result(self, text: str, **values: Any) -> None:
        """Prints a result as a line, or its values as JSON."""
        self.text(text, values)

    def names(self, names: Iterable[str]) -> None:
        """Prints names, one a line."""
        if self.is_json:
            self.json(list(names))
            return
        for name in names:
            say(shown(name))

    def pairs(self, values: Mapping[str, Any], data: Any = None) -> None:
        """Prints values by name; a list has a line for each value. `data` is another form of them for JSON."""
        if self.is_json:
            self.json(values if data is None else data)
        elif on_terminal():
            _pairs_on_terminal(values)
        else:
            for name, value in values.items():
                for line in _lines(value):
                    say(f"{shown(name)}\t{line}")

    def rows(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], null: str = "") -> None:
        """Prints a table: column names, then rows. `null` is printed for values that are missing."""
        if self.is_json:
            self.json([dict(zip(columns, row, strict=True)) for row in rows])
        elif on_terminal():
            _rows_on_terminal(columns, [list(row) for row in rows], null)
        else:
            say("\t".join(map(shown, columns)))
            for row in rows:
                say("\t".join(shown(value, null) for value in row))


def console() -> Console:
    """Standard output as a terminal of its width, without colours if `NO_COLOR` is set."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    return Console(highlight=False, markup=False, emoji=False, color_system=None if plain else "auto")


def _lines(value: Any) -> list[str]:
    return [shown(each) for each in value] if isinstance(value, (list, tuple)) else [shown(value)]


def _pairs_on_terminal(values: Mapping[str, Any], on: Console | None = None) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(overflow="fold", style="bold", max_width=32)
    grid.add_column(overflow="fold")
    for name, value in values.items():
        grid.add_row(Text(shown(name)), Text("\n".join(_lines(value))))
    (on or console()).print(grid)


def _rows_on_terminal(columns: Sequence[str], rows: list[list[Any]], null: str) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    screen, columns = console(), list(map(shown, columns))
    cells = [[shown(value, null) for value in row] for row in rows]
    longest = [max((cell_len(row[index]) for row in cells), default=0) for index in range(len(columns))]
    least = [max(cell_len(name), min(width, _LEAST_WIDTH)) for name, width in zip(columns, longest, strict=True)]
    if sum(least) + _GAP * (len(columns) - 1) > screen.width:
        for number, row in enumerate(cells, start=1):
            screen.print(Text(f"--- {number}"), style="dim")
            _pairs_on_terminal(dict(zip(columns, row, strict=True)), screen)
        return
    gaps = _GAP * (len(columns) - 1)
    fits = sum(map(max, longest, map(cell_len, columns))) + gaps <= screen.width
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for index, name in enumerate(columns):
        is_number = bool(rows) and all(_is_number(row[index]) for row in rows)
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(Text(name), overflow="fold", justify=justify, min_width=None if fits else least[index])
    for row in cells:
        table.add_row(*map(Text, row))
    screen.print(table)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """A progress bar for each stage, on standard error; none if that is not a terminal."""
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with bars.Progress(*columns, console=console, disable=not console.is_terminal) as display:
        tasks: dict[str, bars.TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = display.add_task(stage, total=total)
            display.update(tasks[stage], completed=done, total=total)

        yield show


def counted(count: int, noun: str) -> str:
    """A number of things in words: `1 file`, `1,200 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
