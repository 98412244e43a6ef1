"""`hms-iceberg migrate` and `hms-iceberg rollback-migration`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.connection import catalog_options, key_values, open_catalog
from hms_iceberg.cli.output import OUTPUT_OPTION, Output

if TYPE_CHECKING:
    from hms_iceberg.migration import MigrationResult, RollbackResult
    from hms_iceberg.migration.progress import Progress

_STEPS_OF_SIZE = 1024


@click.command()
@click.argument("table", metavar="DB.TABLE")
@catalog_options
@OUTPUT_OPTION
@click.option("--dry-run", is_flag=True, help="Check everything and say what would be done; change nothing.")
@click.option("--backup-name", metavar="NAME", help="Name of the Hive table afterwards [default: TABLE_backup_].")
@click.option(
    "--timestamp-type",
    type=click.Choice(["timestamp", "timestamptz"]),
    help="What every Hive timestamp becomes [default: what the files hold].",
)
@click.option("--char-as-string", is_flag=True, help="Migrate char(n) columns as strings.")
@click.option("--include-subdirectories", is_flag=True, help="Migrate files below a partition's directory too.")
@click.option("--table-property", "table_properties", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@click.option("--threads", type=click.IntRange(1, 512), help="Directories or footers read at once.")
@click.option("--take-over", is_flag=True, help="Go on with a migration whose process is certainly dead.")
def migrate(
    table: str,
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    output: str,
    dry_run: bool,
    backup_name: str | None,
    timestamp_type: str | None,
    char_as_string: bool,
    include_subdirectories: bool,
    table_properties: tuple[str, ...],
    threads: int | None,
    take_over: bool,
) -> None:
    """Turn a Hive table into an Iceberg table, in place.

    No file is moved, copied or rewritten. The Hive table stays under the backup's name; dropping it never deletes data.
    After a crash, run the same command again: it finishes the migration, or undoes it and starts anew.

    Example: hms-iceberg migrate web.clicks --dry-run
    """
    from hms_iceberg import migration

    options = migration.MigrationOptions(
        backup_name=backup_name,
        timestamp_type=timestamp_type,
        char_as_string=char_as_string,
        include_subdirectories=include_subdirectories,
        properties=key_values(table_properties),
        take_over=take_over,
        **({} if threads is None else {"threads": threads}),
    )
    with open_catalog(catalog_name, uri, properties) as catalog, progress_bars() as progress:
        result = migration.migrate(catalog, table, options, dry_run=dry_run, progress=progress)
    Output(output).text(describe_migration(result), dataclasses.asdict(result))


@click.command("rollback-migration")
@click.argument("table", metavar="DB.TABLE")
@catalog_options
@OUTPUT_OPTION
@click.option("--backup-name", metavar="NAME", help="Name of the Hive table [default: TABLE_backup_].")
@click.option("--discard-changes", is_flag=True, help="Go back although the Iceberg table was changed since.")
@click.option("--take-over", is_flag=True, help="Undo a migration whose process is certainly dead.")
def rollback_migration(
    table: str,
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    output: str,
    backup_name: str | None,
    discard_changes: bool,
    take_over: bool,
) -> None:
    """Turn a migrated table back into the Hive table it was.

    Also undoes a migration that crashed. The Iceberg table's metadata is deleted; rows added to it are not in the Hive
    table.

    Example: hms-iceberg rollback-migration web.clicks
    """
    from hms_iceberg import migration

    with open_catalog(catalog_name, uri, properties) as catalog, progress_bars() as progress:
        result = migration.rollback(
            catalog,
            table,
            backup_name=backup_name,
            discard_changes=discard_changes,
            take_over=take_over,
            progress=progress,
        )
    Output(output).text(describe_rollback(result), dataclasses.asdict(result))


def describe_migration(result: MigrationResult) -> str:
    """What a migration did, in a few lines."""
    found = (
        f"{result.files:,} files ({human_size(result.bytes)}, {result.records:,} rows)"
        f"{f' in {result.partitions:,} partitions' if result.partitions else ''}"
    )
    if result.dry_run:
        return (
            f"{result.table} can be migrated: {found}. Nothing was changed.\n"
            f"The Hive table would stay as {result.backup}."
        )
    if result.already_done:
        return f"{result.table} is an Iceberg table already; the Hive table is {result.backup}."
    gap = f"Its name was unresolved for {result.unresolved_ms:.0f} ms.\n" if result.unresolved_ms else ""
    return (
        f"{result.table} is an Iceberg table: {found}, in {result.seconds:.1f} s. No file was moved.\n{gap}"
        f"The Hive table stays as {result.backup}. To go back: hms-iceberg rollback-migration {result.table}"
    )


def describe_rollback(result: RollbackResult) -> str:
    """What a way back did, in a few lines."""
    if result.files is None:
        return f"{result.table} is the Hive table it was; what an unfinished migration had left is gone."
    lost = f" {result.discarded_snapshots} snapshots were discarded." if result.discarded_snapshots else ""
    return f"{result.table} is the Hive table it was, with {result.files:,} files.{lost}"


def human_size(size: float) -> str:
    """Bytes as people read them: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _STEPS_OF_SIZE:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEPS_OF_SIZE
    return f"{size:.1f} TiB"


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
