"""What a notebook shows of a table, a schema, a snapshot or a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from hms_iceberg.report.words import partition_fields, time

if TYPE_CHECKING:
    from hms_iceberg.spec.schema import Schema
    from hms_iceberg.spec.snapshots_and_refs import Snapshot
    from hms_iceberg.table.readable import ReadableTable
    from hms_iceberg.table.reading.scan import TableScan


def table_html(table: ReadableTable) -> str:
    """A table: where it is, its columns, how it is partitioned, and its current snapshot. No file is read."""
    current = table.current_snapshot()
    facts = [
        ("location", table.metadata.location),
        ("format version", table.metadata.format_version),
        ("partitioned by", "; ".join(partition_fields(table.spec(), table.schema())) or "nothing"),
        (
            "current snapshot",
            "none" if current is None else f"{current.snapshot_id} ({time(current.timestamp_ms)} UTC)",
        ),
        *((key, value) for key, value in (current.summary.items() if current else ()) if key.startswith("total-")),
    ]
    return f"<b>{escape('.'.join(table.name()))}</b>{_pairs(facts)}{schema_html(table.schema())}"


def schema_html(schema: Schema) -> str:
    """The columns of a schema."""
    keys = set(schema.identifier_field_ids)
    rows = (
        (
            field.field_id,
            field.name,
            field.field_type,
            "required" if field.required else "",
            "identifier" if field.field_id in keys else "",
            field.doc or "",
        )
        for field in schema.fields
    )
    return _table(("id", "column", "type", "", "", "comment"), rows)


def snapshot_html(snapshot: Snapshot) -> str:
    """A snapshot and its summary."""
    facts = [
        ("snapshot", snapshot.snapshot_id),
        ("parent", "none" if snapshot.parent_snapshot_id is None else snapshot.parent_snapshot_id),
        ("made at", f"{time(snapshot.timestamp_ms)} UTC"),
        *sorted(snapshot.summary.items()),
    ]
    return _pairs(facts)


def scan_html(scan: TableScan) -> str:
    """What a scan would read: the snapshot, the filter and the columns. No file is read."""
    snapshot = scan.snapshot()
    facts = [
        ("snapshot", "none" if snapshot is None else snapshot.snapshot_id),
        ("filter", str(scan.row_filter)),
        ("limit", "none" if scan.limit is None else scan.limit),
    ]
    return f"{_pairs(facts)}{schema_html(scan.projection())}"


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    lines = "".join(f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>" for name, value in pairs)
    return f"<table>{lines}</table>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    heading = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{lines}</tbody></table>"
