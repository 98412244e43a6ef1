"""Commands that maintain one table: `hms-iceberg rewrite-data-files db.table` and the like."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from hms_iceberg.cli.catalog_options import Command, key_values, on_table
from hms_iceberg.cli.output import Output, say, shown, warn

if TYPE_CHECKING:
    from hms_iceberg.table.table import Table


def options_option(command: Command) -> Command:
    """Adds `-o KEY=VALUE`, an option of Apache Iceberg's action."""
    return click.option(
        "-o",
        "--option",
        "options",
        multiple=True,
        metavar="KEY=VALUE",
        help="Apache Iceberg's, such as rewrite-all=true.",
    )(command)


def backup_option(command: Command) -> Command:
    """Adds `--keep-backup`, about the files of the Hive table that a table was before its migration."""
    text = "Whether files stay that the original Hive table of a migration needs, the way back [they do]."
    return click.option("--keep-backup/--give-up-backup", default=True, help=text)(command)


@click.command("rewrite-data-files")
@on_table
@options_option
@click.option("--strategy", type=click.Choice(["binpack", "sort"]), default="binpack", show_default=True)
@click.option("--sort-order", help='For sort: "id desc nulls last, bucket(4, name)" or "zorder(a, b)".')
@click.option("--where", help="Only files that may hold matching rows.")
@click.option("--branch", default="main", show_default=True)
@click.option("--dry-run", is_flag=True, help="Only plan.")
def rewrite_data_files(table: Table, out: Output, options: tuple[str, ...], dry_run: bool, **choices: Any) -> None:
    """Replace data files by fewer, larger or better sorted ones with the same rows.

    Example: hms-iceberg rewrite-data-files web.visits --strategy sort --sort-order "zorder(day, page)"
    """
    result = table.maintenance.rewrite_data_files(options=key_values(options), dry_run=dry_run, **choices)
    plan = result.plan
    planned = {"groups": len(plan.groups), "input_files": plan.input_files, "input_bytes": plan.input_bytes}
    if dry_run:
        text = f"Would rewrite {plan.input_files} of {plan.files_total} files ({plan.input_bytes:,} bytes) in"
        out.result(f"{text} {len(plan.groups)} groups into about {plan.output_files}.", **planned)
        return
    counts = {field.name: getattr(result, field.name) for field in dataclasses.fields(result) if field.name != "plan"}
    out.result(
        f"Rewrote {result.rewritten_data_files_count} data files ({result.rewritten_bytes_count:,} bytes) into "
        f"{result.added_data_files_count}; {result.removed_delete_files_count} delete files went.",
        **counts,
    )
    warn(result.failures)


@click.command("convert-equality-deletes")
@on_table
@options_option
@click.option("--branch", default="main", show_default=True)
@click.option("--dry-run", is_flag=True, help="Only look for them.")
def convert_equality_deletes(table: Table, out: Output, options: tuple[str, ...], dry_run: bool, branch: str) -> None:
    """Turn equality deletes into position deletes (format version 2) or deletion vectors (3).

    Example: hms-iceberg convert-equality-deletes web.visits
    """
    result = table.maintenance.convert_equality_deletes(options=key_values(options), dry_run=dry_run, branch=branch)
    files = sum(len(group.items) for group in result.groups)
    if dry_run:
        out.result(f"Would convert {files} equality delete files.", files=files)
        return
    out.result(
        f"Converted {result.converted_equality_delete_files_count} equality delete files into "
        f"{result.added_delete_files_count} of positions.",
        converted_equality_delete_files_count=result.converted_equality_delete_files_count,
        added_delete_files_count=result.added_delete_files_count,
        failures=result.failures,
    )
    warn(result.failures)


@click.command("rewrite-position-deletes")
@on_table
@options_option
@click.option("--where", help="Only partitions that may hold matching rows.")
@click.option("--dry-run", is_flag=True, help="Only plan.")
def rewrite_position_deletes(
    table: Table, out: Output, options: tuple[str, ...], where: str | None, dry_run: bool
) -> None:
    """Put position deletes together, on format version 3 into deletion vectors.

    Example: hms-iceberg rewrite-position-deletes web.visits -o rewrite-all=true
    """
    result = table.maintenance.rewrite_position_delete_files(options=key_values(options), where=where, dry_run=dry_run)
    files = sum(len(group.items) for group in result.groups)
    if dry_run:
        out.result(f"Would rewrite {files} position delete files.", files=files)
        return
    counts = {field.name: getattr(result, field.name) for field in dataclasses.fields(result) if field.name != "groups"}
    text = f"Rewrote {result.rewritten_delete_files_count} position delete files into"
    out.result(f"{text} {result.added_delete_files_count}.", **counts)
    warn(result.failures)


@click.command("remove-dangling-deletes")
@on_table
def remove_dangling_deletes(table: Table, out: Output) -> None:
    """Remove delete files that apply to nothing any more.

    Example: hms-iceberg remove-dangling-deletes web.visits
    """
    removed = table.maintenance.remove_dangling_deletes()
    files = [file.file_path for file in removed]
    out.result(f"Removed {len(files)} delete files from the table.", removed_delete_files=files)


@click.command("rotate-keys")
@on_table
def rotate_keys(table: Table, out: Output) -> None:
    """Give an encrypted table a new key between its own and those of its files. Only metadata is written.

    Example: hms-iceberg rotate-keys web.visits
    """
    table.maintenance.rotate_keys()
    count = sum(each.key_id is not None for each in table.snapshots())
    out.result(
        f"The keys of {count} manifest lists are encrypted by a new key.", rotated_manifest_list_keys_count=count
    )


@click.command("rewrite-manifests")
@on_table
@click.option("--spec-id", type=int, help="The partition spec whose manifests are written [the current one].")
@click.option("--sort-by", multiple=True, help="A partition field to sort by first; may be repeated.")
def rewrite_manifests(table: Table, out: Output, spec_id: int | None, sort_by: tuple[str, ...]) -> None:
    """Write manifests anew, sorted by partition and of the target size.

    Example: hms-iceberg rewrite-manifests web.visits
    """
    result = table.maintenance.rewrite_manifests(spec_id=spec_id, sort_by=sort_by or None)
    text = f"{result.rewritten_manifests_count} manifests became {result.added_manifests_count}."
    out.result(text, **dataclasses.asdict(result))


@click.command("rewrite-table-path")
@on_table
@click.option("--source-prefix", required=True, help="What the table's paths begin with.")
@click.option("--target-prefix", required=True, help="What takes its place.")
@click.option("--start-version", help="A metadata file's name: only what came after it.")
@click.option("--end-version", help="A metadata file's name: only what came before it, and itself.")
@click.option("--staging-location", help="An empty folder for the files that are written [one beside the metadata].")
def rewrite_table_path(table: Table, out: Output, **choices: Any) -> None:
    """Write metadata with other paths, and a list of the files to copy: what is copied so is the table elsewhere.

    Example: hms-iceberg rewrite-table-path web.visits --source-prefix s3://old/web --target-prefix s3://new/web
    """
    result = table.maintenance.rewrite_table_path(**choices)
    values = {name: value for name, value in dataclasses.asdict(result).items() if name != "copies"}
    text = f"Copy the {len(result.copies)} files of {result.file_list_location}, then register"
    out.result(f"{text} {result.latest_version}.", **values)


@click.command("expire-snapshots")
@on_table
@click.option("--older-than", help="A time such as 2026-01-31T12:00:00; by default the table's history.expire.*.")
@click.option("--retain-last", type=click.IntRange(1), help="Snapshots that every branch keeps.")
@click.option("--snapshot-id", "snapshot_ids", type=int, multiple=True, help="A further snapshot; may be repeated.")
@backup_option
@click.option("--clean-expired-metadata", is_flag=True, help="Also drop schemas and specs that nothing refers to.")
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
def expire_snapshots(table: Table, out: Output, **choices: Any) -> None:
    """Remove old snapshots, and delete the files that only they need.

    Example: hms-iceberg expire-snapshots web.visits --older-than 2026-01-31 --retain-last 10
    """
    from hms_iceberg.maintenance import expire_snapshots as expire

    result = expire(table, **choices)
    files = len(result.files.all())
    verb = "Would expire" if choices["dry_run"] else "Expired"
    out.result(
        f"{verb} {len(result.snapshot_ids)} snapshots; {files} files are needed no more, {result.deleted} deleted.",
        snapshot_ids=result.snapshot_ids,
        unneeded_files=files,
        deleted=result.deleted,
        left=result.left,
        kept=result.kept,
    )
    if not out.is_json:
        for who, count in Counter(result.kept.values()).items():
            say(f"Left alone: {count} files that {who} needs.", err=True)
    warn(tuple(f"{location}: {reason}" for location, reason in result.left.items()))


@click.command("remove-orphan-files")
@on_table
@click.option("--older-than", help="Only files last changed before; by default three days ago.")
@click.option("--nobody-writes", is_flag=True, help="Nobody writes to the table: files of today are orphans too.")
@click.option("--location", help="The folder to search [default: the table's].")
@backup_option
@click.option("--prefix-mismatch-mode", type=click.Choice(["error", "ignore", "delete"]), default="error")
@click.option("--equal-schemes", multiple=True, metavar="NAMES=NAME", help="Such as s3a,s3n=s3; may be repeated.")
@click.option("--equal-authorities", multiple=True, metavar="NAMES=NAME", help="Such as nn1:8020,nn2:8020=nn.")
@click.option("--dry-run", is_flag=True, help="Only find them.")
def remove_orphan_files(
    table: Table, out: Output, equal_schemes: tuple[str, ...], equal_authorities: tuple[str, ...], **choices: Any
) -> None:
    """Delete files below a table's folder that nothing of the table names.

    Example: hms-iceberg remove-orphan-files web.visits --dry-run
    """
    result = table.maintenance.remove_orphan_files(
        equal_schemes=key_values(equal_schemes) or None, equal_authorities=key_values(equal_authorities), **choices
    )
    if not out.is_json:
        for location in result.locations if choices["dry_run"] else ():
            say(shown(location))
        for folder in result.other_tables:
            say(f"Left alone: {folder} holds another table.", err=True)
    out.result(
        f"{len(result.locations)} orphan files ({result.bytes:,} bytes), {result.deleted} deleted.",
        **dataclasses.asdict(result),
    )
    warn(tuple(f"{location}: {reason}" for location, reason in result.left.items()))


@click.command("compute-table-stats")
@on_table
@click.option("--snapshot-id", type=int)
@click.option("--column", "columns", multiple=True, help="By default all of primitive types; may be repeated.")
def compute_table_stats(table: Table, out: Output, snapshot_id: int | None, columns: tuple[str, ...]) -> None:
    """Count the distinct values of columns, for planners that read such statistics.

    Example: hms-iceberg compute-table-stats web.visits --column page
    """
    file = table.maintenance.compute_table_stats(snapshot_id=snapshot_id, columns=columns or None)
    path = None if file is None else file.statistics_path
    out.result(f"Wrote {path}." if path else "The table is empty.", statistics_file=path)


@click.command("compute-partition-stats")
@on_table
@click.option("--snapshot-id", type=int)
def compute_partition_stats(table: Table, out: Output, snapshot_id: int | None) -> None:
    """Write statistics of the partitions of a snapshot.

    Example: hms-iceberg compute-partition-stats web.visits
    """
    file = table.maintenance.compute_partition_stats(snapshot_id=snapshot_id)
    path = None if file is None else file.statistics_path
    out.result(f"Wrote {path}." if path else "The table is empty.", statistics_file=path)
