"""How far long work is, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hms_iceberg.migration.migration_progress import Progress


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
