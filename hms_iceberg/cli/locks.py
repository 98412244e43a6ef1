"""`hms-iceberg locks`: look at the metastore's locks, and take one away from a dead holder."""

from __future__ import annotations

import click

from hms_iceberg.cli.connection import catalog_options, open_catalog
from hms_iceberg.cli.groups import SuggestingGroup


@click.group(cls=SuggestingGroup)
def locks() -> None:
    """Look at the metastore's locks, and release one whose holder is dead."""


@locks.command("list")
@click.argument("name", metavar="[DB[.TABLE]]", required=False)
@catalog_options
def list_(name: str | None, catalog_name: str | None, uri: str | None, properties: tuple[str, ...]) -> None:
    """List locks: who holds them, for how long, when they last gave a sign of life, and who waits."""
    from hms_iceberg.hms import lock_admin
    from hms_iceberg.hms.metastore import hive_client

    namespace, _, table = (name or "").partition(".")
    with open_catalog(catalog_name, uri, properties) as catalog:
        found = lock_admin.list_locks(hive_client(catalog.metastore), namespace or None, table or None)
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
@click.option("--force", is_flag=True, help="Release it even if its holder may live, which may lose a commit.")
def release(lock_id: int, catalog_name: str | None, uri: str | None, properties: tuple[str, ...], force: bool) -> None:
    """Release the lock with this number; one whose holder may live only with --force."""
    from hms_iceberg.hms import lock_admin
    from hms_iceberg.hms.metastore import hive_client

    with open_catalog(catalog_name, uri, properties) as catalog:
        lock = lock_admin.release_lock(hive_client(catalog.metastore), lock_id, force=force)
    click.echo(f"Released: {lock}")
