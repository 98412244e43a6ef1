"""`hms-iceberg metastore` and `locks`: an embedded Hive Metastore, and the locks of any metastore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import catalog_options, open_catalog
from hms_iceberg.cli.output import OUTPUT_OPTION, Output, say
from hms_iceberg.cli.suggestions import SuggestingGroup

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog

_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of its database and log. Default: hms_iceberg/metastore in your data folder (~/.local/share).",
)


@click.group(cls=SuggestingGroup)
def metastore() -> None:
    """Start, stop and look at an embedded Hive Metastore.

    It is the real Hive Metastore 2.3 out of PySpark's jars, on loopback, for development and tests.

    Example: hms-iceberg metastore start
    """


@metastore.command()
@_DATA_DIR
@click.option("--warehouse", help="Folder or URI of its warehouse. Default: `warehouse` in the data folder.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="TCP port. Default: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; it asks no password.")
@OUTPUT_OPTION
def start(data_dir: Path | None, warehouse: str | None, port: int, host: str, output: str) -> None:
    """Start a metastore that runs until `stop`.

    Example: hms-iceberg metastore start --port 9083
    """
    from hms_iceberg.hms.embedded import detached

    before = detached.status(data_dir)
    status = detached.start(data_dir, warehouse, port, host)
    if output == "json":
        Output(output).json(asdict(status))
        return
    say(f"{'Already running' if before.running else 'Started'}: {status.uri} (process {status.pid})")
    say(f"Warehouse: {status.warehouse}")
    say(f"Data:      {status.data_dir}")
    say(f'Python:    load_catalog("default", uri="{status.uri}")')
    say(f"Spark:     --conf spark.hadoop.hive.metastore.uris={status.uri}")


@metastore.command()
@_DATA_DIR
@OUTPUT_OPTION
def stop(data_dir: Path | None, output: str) -> None:
    """Stop the metastore; its data stay.

    Example: hms-iceberg metastore stop
    """
    from hms_iceberg.hms.embedded import detached

    stopped = detached.stop(data_dir)
    Output(output).text("Stopped." if stopped else "No metastore was running.", {"stopped": stopped})


@metastore.command()
@_DATA_DIR
@click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
@OUTPUT_OPTION
@click.pass_context
def status(ctx: click.Context, data_dir: Path | None, as_json: bool, output: str) -> None:
    """Say whether it runs and where; the exit code is 3 if it does not.

    Example: hms-iceberg metastore status --json
    """
    from hms_iceberg.hms.embedded import detached

    found = detached.status(data_dir)
    if as_json or output == "json":
        Output("json").json(asdict(found))
    elif found.running:
        state = "answers" if found.answering else "does not answer yet"
        say(f"Running: {found.uri} (process {found.pid}), {state}")
        say(f"Warehouse: {found.warehouse}")
        say(f"Data:      {found.data_dir}")
    else:
        say(f"Not running (data folder {found.data_dir}).")
    if not found.running:
        ctx.exit(3)


@click.group(cls=SuggestingGroup)
def locks() -> None:
    """Look at the metastore's locks, and release one whose holder is dead.

    Example: hms-iceberg locks list web.visits
    """


@locks.command("list")
@click.argument("name", metavar="[DB[.TABLE]]", required=False)
@catalog_options
@OUTPUT_OPTION
def list_(
    name: str | None, catalog_name: str | None, uri: str | None, properties: tuple[str, ...], output: str
) -> None:
    """List locks: who holds them, for how long, when they last gave a sign of life, and who waits.

    Commits to several tables that were left unfinished follow, which have no lock any more.

    Example: hms-iceberg locks list web
    """
    from hms_iceberg.hms.hive_metastore import hive_client
    from hms_iceberg.hms.locking import lock_admin

    namespace, _, table = (name or "").partition(".")
    with open_catalog(catalog_name, uri, properties) as catalog:
        found = lock_admin.list_locks(hive_client(catalog.metastore), namespace or None, table or None)
        unfinished = [] if output == "json" else list(_unfinished(catalog, namespace or None, table or None))
    if output == "json":
        rows = [{**asdict(lock), "abandoned": lock_admin.is_abandoned(lock)} for lock in found]
        Output(output).json(rows)
        return
    for lock in found:
        waiting = len(lock_admin.blocked_by(lock, found)) if lock.state == "acquired" else 0
        blocks = f", {waiting} waiting for it" if waiting else ""
        dead = ", ITS HOLDER IS DEAD" if lock_admin.is_abandoned(lock) else ""
        say(f"{lock}{blocks}{dead}")
    for lock in filter(lock_admin.is_abandoned, found):
        say(f"To release lock {lock.lock_id}, which nobody uses: hms-iceberg locks release {lock.lock_id}")
    if not found:
        say("No locks.")
    for line in unfinished:
        say(line)


def _unfinished(catalog: Catalog, namespace: str | None, table: str | None) -> Iterator[str]:
    """Lines that tell of the transactions on several tables that have moved a table and are not finished."""
    from hms_iceberg.hms.rows.transaction_marks import FINISHED_BY, Mark
    from hms_iceberg.table.needed_files.needed_by_others import table_rows_of

    rows = table_rows_of(catalog.metastore)
    for row in () if rows is None else rows.rows(namespace):
        mark = Mark.of(row.properties) if row.is_iceberg and table in (None, row.identifier[1]) else None
        if mark is not None and mark.unfinished is not None:
            yield f"{row}: {mark.unfinished}. {FINISHED_BY}"


@locks.command()
@click.argument("lock_id", type=int)
@catalog_options
@OUTPUT_OPTION
@click.option("--force", is_flag=True, help="Release it even if its holder may live, which may lose a commit.")
def release(
    lock_id: int, catalog_name: str | None, uri: str | None, properties: tuple[str, ...], output: str, force: bool
) -> None:
    """Release the lock with this number; one whose holder may live only with --force.

    Example: hms-iceberg locks release 17
    """
    from hms_iceberg.hms.hive_metastore import hive_client
    from hms_iceberg.hms.locking import lock_admin

    with open_catalog(catalog_name, uri, properties) as catalog:
        lock = lock_admin.release_lock(hive_client(catalog.metastore), lock_id, force=force)
    Output(output).text(f"Released: {lock}", asdict(lock))
