"""`hms-iceberg migrate --follow`: rounds that keep an Iceberg table up with a Hive table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.output import Output
from hms_iceberg.cli.progress_bar import progress_bars

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.migration import FollowRound, MigrationOptions


def keep_up(
    output: Output, catalog: Catalog, names: tuple[str, str], options: MigrationOptions, interval: float | None
) -> None:
    """Make rounds, and tell of each that changed something or failed.

    Args:
        output: tells of them.
        catalog: the catalog on whose metastore the tables are.
        names: the Hive table and the one that follows it.
        options: as of a migration.
        interval: seconds between rounds; None for a single one.
    """
    from hms_iceberg.migration import Follower, follow

    if interval is None:
        with progress_bars() as progress:
            found = Follower(catalog, *names, options=options, progress=progress).round()
        output.text(describe_round(found), dataclasses.asdict(found))
        return
    for found in follow(catalog, *names, interval=interval, options=options):
        if found.failure:
            click.echo(describe_round(found), err=True)
        elif found.added or found.removed or found.ended:
            output.text(describe_round(found), dataclasses.asdict(found))


def describe_round(found: FollowRound) -> str:
    """What a round did, in a line."""
    if found.ended:
        return f"{found.source} is an Iceberg table now; {found.target} follows no more, and can be dropped."
    if found.failure:
        return f"{found.target} was not brought up to date, and will be tried again: {found.failure}"
    waiting = f" {found.waiting} partitions are being written; the next round takes them." if found.waiting else ""
    return (
        f"{found.target} is up with {found.source}: {found.added:,} files added, {found.removed:,} removed, in "
        f"{found.seconds:.1f} s.{waiting}"
    )
