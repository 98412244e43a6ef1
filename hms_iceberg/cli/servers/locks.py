"""`hms-iceberg locks`: look at the metastore's locks, and take one away from a dead holder."""

from __future__ import annotations

from dataclasses import asdict

import click

from hms_iceberg.cli.catalog_options import catalog_options, open_catalog
from hms_iceberg.cli.output import OUTPUT_OPTION, Output
from hms_iceberg.cli.suggestions import SuggestingGroup


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

    Example: hms-iceberg locks list web
    """
    from hms_iceberg.hms.hive_metastore import hive_client
    from hms_iceberg.hms.locking import lock_admin

    namespace, _, table = (name or "").partition(".")
    with open_catalog(catalog_name, uri, properties) as catalog:
        found = lock_admin.list_locks(hive_client(catalog.metastore), namespace or None, table or None)
    if output == "json":
        told = [{**asdict(lock), "abandoned": lock_admin.is_abandoned(lock)} for lock in found]
        Output(output).json(told)
        return
    for lock in found:
        waiting = len(lock_admin.blocked_by(lock, found)) if lock.state == "acquired" else 0
        blocks = f", {waiting} waiting for it" if waiting else ""
        dead = ", ITS HOLDER IS DEAD" if lock_admin.is_abandoned(lock) else ""
        click.echo(f"{lock}{blocks}{dead}")
    for lock in filter(lock_admin.is_abandoned, found):
        click.echo(f"To release lock {lock.lock_id}, which nobody uses: hms-iceberg locks release {lock.lock_id}")
    if not found:
        click.echo("No locks.")


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
