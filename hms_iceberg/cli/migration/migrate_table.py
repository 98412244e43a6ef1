"""`hms-iceberg migrate` and `hms-iceberg rollback-migration`."""

from __future__ import annotations

import dataclasses
import time
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import Duration, catalog_options, complete_table, key_values, naming, open_catalog
from hms_iceberg.cli.metrics import metrics_at, metrics_options
from hms_iceberg.cli.migration.spark import MigrationMethods, spark_for, spark_options
from hms_iceberg.cli.migration.warehouse import WarehouseMigration, follow_rounds
from hms_iceberg.cli.output import OUTPUT_OPTION, Output, counted, progress_bars

if TYPE_CHECKING:
    from hms_iceberg.migration import MigrationResult, RollbackResult

_STARTING = "Starting Spark"
LEVEL = click.Choice(["counts", "sums", "rows"])
Kept = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("tables", metavar="DB.TABLE…", shell_complete=complete_table, nargs=-1)
@catalog_options
@OUTPUT_OPTION
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave tables of such names out; may be repeated.")
@click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Tables side by side.")
@click.option(
    "--plan", "plan_file", type=Kept, metavar="FILE", help="Keep the plan of many tables here, or take it up."
)
@click.option("--html", type=Kept, metavar="FILE", help="Write the state of every table as a page.")
@click.option("--accept-choices", is_flag=True, help="Migrate tables with the choices that the plan found for them.")
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
@click.option("--rewrite", is_flag=True, help="Copy tables that cannot stay where they are, with Spark.")
@click.option(
    "--verify", "level", type=LEVEL, help="Compare rows before the switch, with Spark; a difference stops it."
)
@click.option(
    "--follow",
    "follower",
    metavar="DB.TABLE",
    help="Do not migrate yet: keep an Iceberg table of this name up with the Hive table.",
)
@click.option("--interval", type=Duration(), default="60s", show_default=True, help="Between rounds of --follow.")
@click.option("--once", is_flag=True, help="One round of --follow.")
@metrics_options("Where Prometheus finds /metrics while this runs, and the probe /health.")
@spark_options
def migrate(
    tables: tuple[str, ...],
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    output: str,
    exclude: tuple[str, ...],
    jobs: int,
    plan_file: Path | None,
    html: Path | None,
    accept_choices: bool,
    dry_run: bool,
    backup_name: str | None,
    table_properties: tuple[str, ...],
    threads: int | None,
    rewrite: bool,
    level: str | None,
    follower: str | None,
    interval: float,
    once: bool,
    spark_settings: tuple[str, ...],
    metrics_port: int | None,
    metrics_host: str,
    **choices: Any,
) -> None:
    """Turn Hive tables into Iceberg tables, in place.

    No file is moved, copied or rewritten, but for tables that can only be copied (--rewrite). The Hive table stays
    under the backup's name; dropping it never deletes data. After a crash, run the same command again: it finishes the
    migration, or undoes it and starts anew.

    In names, * and ? stand for anything. Of many tables a plan is made first, which --plan keeps in a file; the same
    command goes on with it if it stopped. One table's failure is not another's.

    Example: hms-iceberg migrate web.clicks --dry-run

    With --follow, the Hive table stays what it is, and every round takes what changed in it into an Iceberg table over
    the same files. It ends once the Hive table is migrated.

    Example: hms-iceberg migrate 'web.*' 'sales.fact_*' --exclude 'web.tmp_*' --plan plan.json --jobs 4

    Example: hms-iceberg migrate web.clicks --follow web.clicks_iceberg --interval 5m
    """
    from hms_iceberg import migration

    options = migration.MigrationOptions(
        backup_name=backup_name,
        properties=key_values(table_properties),
        **choices,
    )
    if threads is not None:
        options = dataclasses.replace(options, threads=threads)
    many = len(tables) != 1 or plan_file is not None or html is not None or exclude or set(tables[0]) & set("*?[")
    if not tables and (plan_file is None or not plan_file.exists()):
        raise click.UsageError("Name a table, a pattern such as 'web.*', or the --plan of an earlier run.")
    if many and backup_name is not None:
        raise click.UsageError("--backup-name is for one table; of many, each backup has its table's name.")
    if follower is not None:
        if many or dry_run or rewrite or level is not None:
            raise click.UsageError("--follow is for one table, and neither checks, copies nor verifies it.")
        with (
            open_catalog(catalog_name, uri, properties) as catalog,
            naming(follower),
            metrics_at(metrics_host, metrics_port),
        ):
            follow_rounds(Output(output), catalog, (tables[0], follower), options, None if once else interval)
        return
    with (
        open_catalog(catalog_name, uri, properties) as catalog,
        metrics_at(metrics_host, metrics_port),
        spark_for(catalog, (rewrite or level is not None) and not dry_run, spark_settings) as spark,
    ):
        methods = MigrationMethods(spark, level, rewrite)
        if many:
            WarehouseMigration(catalog, options, jobs, Output(output), methods, plan_file, html).migrate(
                tables, exclude, dry_run, accept_choices
            )
            return
        with progress_bars() as progress, naming(tables[0], catalog, of_hive=True):
            result = methods.migrate(catalog, tables[0], options, dry_run=dry_run, progress=progress)
        Output(output).text(describe_migration(result), dataclasses.asdict(result))


@click.command()
@click.argument("table", metavar="DB.TABLE", shell_complete=complete_table)
@click.option("--against", required=True, metavar="DB.TABLE", help="The Hive table, such as the backup.")
@click.option("--level", type=LEVEL, default="sums", show_default=True, help="How they are compared.")
@spark_options
@catalog_options
@OUTPUT_OPTION
def verify(
    table: str,
    against: str,
    level: str,
    spark_settings: tuple[str, ...],
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    output: str,
) -> None:
    """Compare an Iceberg table with a Hive table, which Spark reads.

    counts: rows, and nulls as the metadata tell them. sums: per column sums, least and greatest values and a checksum
    that does not depend on the order. rows: every row. This program reads the Iceberg table, in Spark's Python workers
    if rows are compared. Ends with code 1 if they differ.

    Example: hms-iceberg verify web.clicks --against web.clicks_backup_
    """
    from hms_iceberg.migration.verify import verify as compare
    from hms_iceberg.spark.migration.hive_reader import SparkHiveReader

    with (
        open_catalog(catalog_name, uri, properties) as catalog,
        progress_bars() as progress,
        naming(table, catalog),
        ExitStack() as stack,
    ):
        progress(_STARTING, 0, 1)
        spark = stack.enter_context(spark_for(catalog, True, spark_settings))
        progress(_STARTING, 1, 1)
        result = compare(against, catalog.load_table(table), level, SparkHiveReader(spark), progress)
    same = f"{table} holds what {against} holds ({level}): {result.rows:,} rows, in {result.seconds:.1f} s."
    unlike = "\n  - ".join([f"{table} and {against} differ ({level}):", *result.differences])
    Output(output).text(same if result.is_equal else unlike, dataclasses.asdict(result))
    if not result.is_equal:
        raise click.exceptions.Exit(1)


@click.command("rollback-migration")
@click.argument("table", metavar="DB.TABLE", shell_complete=complete_table)
@catalog_options
@OUTPUT_OPTION
@click.option("--backup-name", metavar="NAME", help="Name of the Hive table [default: TABLE_backup_].")
@click.option("--discard-changes", is_flag=True, help="Go back although the Iceberg table was changed since.")
@click.option(
    "--as-hive", is_flag=True, help="Copy what was appended since into the Hive table, so that no row is lost."
)
@click.option("--take-over", is_flag=True, help="Undo a migration whose process is certainly dead.")
@click.option("--dry-run", is_flag=True, help="Say whether there is a way back, and for how long; change nothing.")
def rollback_migration(
    table: str,
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    output: str,
    backup_name: str | None,
    discard_changes: bool,
    as_hive: bool,
    take_over: bool,
    dry_run: bool,
) -> None:
    """Turn a migrated table back into the Hive table it was.

    Also undoes a migration that crashed. The Iceberg table's metadata is deleted; rows added to it are in the Hive
    table only with --as-hive, which is refused if rows were deleted or changed, or columns, partition spec or file
    format.

    Example: hms-iceberg rollback-migration web.clicks
    """
    from hms_iceberg import migration

    with open_catalog(catalog_name, uri, properties) as catalog, progress_bars() as progress, naming(table):
        result = migration.rollback(
            catalog,
            table,
            backup_name=backup_name,
            discard_changes=discard_changes,
            as_hive=as_hive,
            take_over=take_over,
            dry_run=dry_run,
            progress=progress,
        )
    Output(output).text(describe_rollback(result), dataclasses.asdict(result))


def describe_migration(result: MigrationResult) -> str:
    """A few lines about a migration."""
    from hms_iceberg.migration.warehouse.warehouse_plan import human_size

    where = f" in {counted(result.partitions, 'partition')}" if result.partitions else ""
    found = f"{counted(result.files, 'file')} ({human_size(result.bytes)}, {counted(result.records, 'row')}){where}"
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
    """A few lines about a rollback, or its dry run."""
    if result.dry_run:
        return _describe_way_back(result)
    if result.files is None:
        return f"{result.table} is the Hive table it was; what an unfinished migration had left is gone."
    lost = f" {result.discarded_snapshots} snapshots were discarded." if result.discarded_snapshots else ""
    kept = f", {result.appended_files:,} of them appended since its migration" if result.appended_files else ""
    return f"{result.table} is the Hive table it was, with {counted(result.files, 'file')}{kept}.{lost}"


def _describe_way_back(result: RollbackResult) -> str:
    if result.files is None:
        return f"A migration of {result.table} was not finished, and can be undone. Nothing was changed."
    lost = f" {result.discarded_snapshots} snapshots would be discarded." if result.discarded_snapshots else ""
    kept = f", {result.appended_files:,} of them appended since its migration" if result.appended_files else ""
    text = f"{result.table} can be the Hive table again that it was, with {counted(result.files, 'file')}{kept}.{lost}"
    stay = f"Maintenance by this package keeps them as long as {result.backup} is there."
    if result.left_over and result.safe_until_ms is not None:
        ended = result.safe_until_ms <= int(time.time() * 1000)
        since = "at any time" if ended else f"from {_utc(result.safe_until_ms)} on"
        stay += (
            f" {result.left_over:,} of them are not in the Iceberg table's present version: other engines' expiry of "
            f"snapshots, and ours with maintenance.keep-backups=false, may delete them {since}; then there is no way "
            "back."
        )
    return f"{text}\n{stay} Nothing was changed."


def _utc(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
