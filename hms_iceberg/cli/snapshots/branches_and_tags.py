"""`hms-iceberg list-refs`, `branch` and `tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hms_iceberg.cli.catalog_options import Duration, on_table
from hms_iceberg.cli.output import Output
from hms_iceberg.cli.snapshots.history import snapshot_named
from hms_iceberg.cli.suggestions import SuggestingGroup

if TYPE_CHECKING:
    from hms_iceberg.spec.snapshots_and_refs import SnapshotRef
    from hms_iceberg.table.table import Table

_COLUMNS = ("name", "type", "snapshot_id", "max_ref_age_ms", "min_snapshots_to_keep", "max_snapshot_age_ms")
_SNAPSHOT = click.option("--snapshot", metavar="SNAPSHOT", help="An id, a branch or a tag [default: the current one].")
_MAX_REF_AGE = click.option("--max-age", type=Duration(), help="After so long it expires itself: 90d [never].")


@click.command("list-refs")
@on_table
@click.option("--type", "kind", type=click.Choice(["branch", "tag"], case_sensitive=False), help="Only these.")
def list_refs(table: Table, out: Output, kind: str | None) -> None:
    """List branches and tags, and how long they and their snapshots are kept.

    Example: hms-iceberg list-refs web.visits
    """
    _list(table, out, kind)


@click.group(cls=SuggestingGroup)
def branch() -> None:
    """Create, remove and list branches.

    Example: hms-iceberg branch create web.visits audit
    """


@click.group(cls=SuggestingGroup)
def tag() -> None:
    """Create, remove and list tags.

    Example: hms-iceberg tag create web.visits year-end
    """


@branch.command("create")
@on_table
@click.argument("name")
@_SNAPSHOT
@_MAX_REF_AGE
@click.option("--keep-snapshots", type=click.IntRange(1), help="So many of its snapshots never expire.")
@click.option("--max-snapshot-age", type=Duration(), help="How old its snapshots may become: 7d.")
def create_branch(
    table: Table,
    out: Output,
    name: str,
    snapshot: str | None,
    max_age: float | None,
    keep_snapshots: int | None,
    max_snapshot_age: float | None,
) -> None:
    """Create a branch.

    Example: hms-iceberg branch create web.visits audit --snapshot 4231363255180114125
    """
    snapshot_id = None if snapshot is None else snapshot_named(table, snapshot)
    change = table.manage_snapshots()
    change.create_branch(snapshot_id, name, _ms(max_age), _ms(max_snapshot_age), keep_snapshots).commit()
    _made(table, out, name)


@tag.command("create")
@on_table
@click.argument("name")
@_SNAPSHOT
@_MAX_REF_AGE
def create_tag(table: Table, out: Output, name: str, snapshot: str | None, max_age: float | None) -> None:
    """Create a tag.

    Example: hms-iceberg tag create web.visits year-end --max-age 365d
    """
    snapshot_id = None if snapshot is None else snapshot_named(table, snapshot)
    table.manage_snapshots().create_tag(snapshot_id, name, _ms(max_age)).commit()
    _made(table, out, name)


@branch.command("remove")
@on_table
@click.argument("name")
def remove_branch(table: Table, out: Output, name: str) -> None:
    """Remove a branch; its snapshots stay until they expire.

    Example: hms-iceberg branch remove web.visits audit
    """
    table.manage_snapshots().remove_branch(name).commit()
    out.text(f"Removed branch: {name}", {"removed": name, "type": "branch"})


@tag.command("remove")
@on_table
@click.argument("name")
def remove_tag(table: Table, out: Output, name: str) -> None:
    """Remove a tag.

    Example: hms-iceberg tag remove web.visits year-end
    """
    table.manage_snapshots().remove_tag(name).commit()
    out.text(f"Removed tag: {name}", {"removed": name, "type": "tag"})


@branch.command("list")
@on_table
def list_branches(table: Table, out: Output) -> None:
    """List branches.

    Example: hms-iceberg branch list web.visits
    """
    _list(table, out, "branch")


@tag.command("list")
@on_table
def list_tags(table: Table, out: Output) -> None:
    """List tags.

    Example: hms-iceberg tag list web.visits
    """
    _list(table, out, "tag")


def _list(table: Table, out: Output, kind: str | None) -> None:
    rows = []
    for name, ref in sorted(table.refs().items()):
        if kind is None or ref.snapshot_ref_type.value == kind:
            kept = (ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
            shown = kept if out.is_json else _retention(table, ref)
            rows.append((name, ref.snapshot_ref_type.value, ref.snapshot_id, *shown))
    out.rows(_COLUMNS, rows)


def _retention(table: Table, ref: SnapshotRef) -> tuple[object, object, object]:
    """How long a ref is kept: its own setting or the table's; `forever`, and `N/A` for settings that a tag does not
    have."""
    from hms_iceberg.spec.table_properties import MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP

    age = "forever" if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    if not ref.is_branch:
        return age, "N/A", "N/A"
    keep = ref.min_snapshots_to_keep or MIN_SNAPSHOTS_TO_KEEP.of(table.properties)
    return age, keep, ref.max_snapshot_age_ms or MAX_SNAPSHOT_AGE_MS.of(table.properties)


def _made(table: Table, out: Output, name: str) -> None:
    ref = table.refs()[name]
    kind = ref.snapshot_ref_type.value
    out.text(
        f"Created {kind}: {name} at snapshot {ref.snapshot_id}",
        {"created": name, "type": kind, "snapshot_id": ref.snapshot_id},
    )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
