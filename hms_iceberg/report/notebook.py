"""The HTML that notebooks show of a catalog, a table, a schema, a partition spec, a snapshot or a scan.

The style is inside of what is shown, and its colours are those of the report in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hms_iceberg.catalog.catalog import CATALOG_HTML
from hms_iceberg.errors import IcebergError
from hms_iceberg.printable import printable_html
from hms_iceberg.report.words import number, partition_fields, time
from hms_iceberg.spec.partitions.partition_specs import SPEC_HTML
from hms_iceberg.spec.schema import SCHEMA_HTML
from hms_iceberg.spec.snapshots_and_refs import SNAPSHOT_HTML
from hms_iceberg.table.readable import TABLE_HTML
from hms_iceberg.table.reading.scan import SCAN_HTML

if TYPE_CHECKING:
    from hms_iceberg.catalog import Catalog
    from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
    from hms_iceberg.spec.schema import Schema
    from hms_iceberg.spec.snapshots_and_refs import Snapshot
    from hms_iceberg.table.readable import ReadableTable
    from hms_iceberg.table.reading.scan import TableScan


_STYLE = """<style>
.hms-iceberg table { border-collapse: collapse; margin: .25rem 0 .75rem; }
.hms-iceberg th, .hms-iceberg td { padding: .2rem .75rem .2rem 0; text-align: left; vertical-align: top; }
.hms-iceberg thead th { border-bottom: 1px solid #8884; }
.hms-iceberg tbody th { color: #5b6b7b; font-weight: normal; }
.hms-iceberg summary { cursor: pointer; color: #1f77b4; }
@media (prefers-color-scheme: dark) {
  .hms-iceberg tbody th { color: #9aa9b8; } .hms-iceberg summary { color: #6cb6ec; }
}
</style>"""
_SAMPLE_ROWS = 5
_SNAPSHOTS = 10
_TABLES = 50
_LONGEST = 80


def catalog_html(catalog: Catalog) -> str:
    """A catalog: where it is, its namespaces, and tables of theirs. The metastore is asked."""
    rows: list[tuple[str, str]] = []
    try:
        for namespace in catalog.list_namespaces():
            tables = sorted(name[-1] for name in catalog.list_tables(namespace))
            more = f" and {len(tables) - _TABLES:,} more" if len(tables) > _TABLES else ""
            rows.append((".".join(namespace), ", ".join(tables[:_TABLES]) + more))
        shown = _table(("namespace", "Iceberg tables"), rows)
    except IcebergError as error:
        shown = f"<p>{printable_html(error)}</p>"
    facts = [("uri", catalog.properties.get("uri", "")), ("warehouse", catalog.properties.get("warehouse", ""))]
    return _framed(f"<b>{printable_html(catalog.name)}</b>{_pairs(each for each in facts if each[1])}{shown}")


def table_html(table: ReadableTable) -> str:
    """A table: where it is, its columns, some of its rows, how it is partitioned, its snapshots and properties.

    Of data, only what the first few rows need is read; if that fails, the table is shown without them.
    """
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
    parts = [
        f"<b>{printable_html('.'.join(table.name()))}</b>{_pairs(facts)}",
        _columns(table.schema()),
        _folded(f"First {_SAMPLE_ROWS} rows", _sample(table), is_open=True),
        _folded(f"Snapshots ({len(table.snapshots()):,})", _history(table)),
        _folded("Properties", _pairs(sorted(table.properties.items()))),
    ]
    return _framed("".join(parts))


def spec_html(spec: PartitionSpec) -> str:
    rows = (
        (each.field_id, each.name, each.transform, ", ".join(map(str, each.source_ids or (each.source_id,))))
        for each in spec.fields
    )
    return _framed(
        _table(("id", "partition field", "transform", "of column id"), rows) if spec.fields else "unpartitioned"
    )


def schema_html(schema: Schema) -> str:
    return _framed(_columns(schema))


def _columns(schema: Schema) -> str:
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
    facts = [
        ("snapshot", snapshot.snapshot_id),
        ("parent", "none" if snapshot.parent_snapshot_id is None else snapshot.parent_snapshot_id),
        ("made at", f"{time(snapshot.timestamp_ms)} UTC"),
        *sorted(snapshot.summary.items()),
    ]
    return _framed(_pairs(facts))


def scan_html(scan: TableScan) -> str:
    """Shows what a scan would read: the snapshot, the filter and the columns. No file is read."""
    snapshot = scan.snapshot()
    facts = [
        ("snapshot", "none" if snapshot is None else snapshot.snapshot_id),
        ("filter", str(scan.row_filter)),
        ("limit", "none" if scan.limit is None else scan.limit),
    ]
    return _framed(f"{_pairs(facts)}{_columns(scan.projection())}")


def _sample(table: ReadableTable) -> str:
    try:
        rows = table.scan(limit=_SAMPLE_ROWS).to_arrow()
    except (IcebergError, OSError) as error:
        return f"<p>{printable_html(error)}</p>"
    return _table(rows.column_names, zip(*(map(_short, column.to_pylist()) for column in rows.columns), strict=True))


def _short(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _history(table: ReadableTable) -> str:
    """The newest snapshots, with the branches and tags that name them."""
    refs: dict[int, list[str]] = {}
    for name, ref in table.refs().items():
        refs.setdefault(ref.snapshot_id, []).append(name)
    rows = (
        (
            each.snapshot_id,
            time(each.timestamp_ms),
            str(each.summary.operation or "") if each.summary else "",
            number(int(each.summary.get("added-records", 0) or 0)) if each.summary else "",
            ", ".join(refs.get(each.snapshot_id, [])),
        )
        for each in sorted(table.snapshots(), key=lambda each: -each.timestamp_ms)[:_SNAPSHOTS]
    )
    return _table(("snapshot", "made at (UTC)", "operation", "rows added", "named"), rows)


def _framed(shown: str) -> str:
    return f'<div class="hms-iceberg">{_STYLE}{shown}</div>'


def _folded(heading: str, shown: str, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{printable_html(heading)}</summary>{shown}</details>"


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    lines = "".join(
        f"<tr><th>{printable_html(name)}</th><td>{printable_html(value)}</td></tr>" for name, value in pairs
    )
    return f"<table>{lines}</table>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    heading = "".join(f"<th>{printable_html(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{printable_html(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{lines}</tbody></table>"


CATALOG_HTML.set(catalog_html)
SPEC_HTML.set(spec_html)
TABLE_HTML.set(table_html)
SCAN_HTML.set(scan_html)
SCHEMA_HTML.set(schema_html)
SNAPSHOT_HTML.set(snapshot_html)
