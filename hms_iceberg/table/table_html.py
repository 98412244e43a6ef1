"""A table as notebooks show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hms_iceberg.errors import IcebergError
from hms_iceberg.metastore import Identifier
from hms_iceberg.notebook_html import folded, framed, heading, pairs_table, rows_table
from hms_iceberg.printable import printable_html
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec, partition_terms
from hms_iceberg.spec.schema import Schema, columns_html
from hms_iceberg.spec.snapshots_and_refs import Snapshot, SnapshotRef
from hms_iceberg.spec.values.datetimes import format_seconds

_SAMPLE_ROWS = 5
_SNAPSHOTS = 10
_LONGEST = 80


class ShownTable(Protocol):
    """The part of a table that is shown."""

    @property
    def metadata(self) -> TableMetadata: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    def name(self) -> Identifier: ...
    def schema(self) -> Schema: ...
    def spec(self) -> PartitionSpec: ...
    def current_snapshot(self) -> Snapshot | None: ...
    def snapshots(self) -> Sequence[Snapshot]: ...
    def refs(self) -> Mapping[str, SnapshotRef]: ...
    def scan(self, *, limit: int | None = None) -> Any: ...


def table_html(table: ShownTable) -> str:
    """A table: where it is, its columns, some of its rows, how it is partitioned, its snapshots and properties. Of
    data, only what the first few rows need is read; if that fails, the table is shown without them."""
    current = table.current_snapshot()
    facts = [
        ("location", table.metadata.location),
        ("format version", table.metadata.format_version),
        ("partitioned by", "; ".join(partition_terms(table.spec(), table.schema())) or "nothing"),
        (
            "current snapshot",
            "none" if current is None else f"{current.snapshot_id} ({format_seconds(current.timestamp_ms)} UTC)",
        ),
        *((key, value) for key, value in (current.summary.items() if current else ()) if key.startswith("total-")),
    ]
    return framed(
        heading(".".join(table.name())),
        pairs_table(facts),
        columns_html(table.schema()),
        folded(f"First {_SAMPLE_ROWS} rows", _sample(table), is_open=True),
        folded(f"Snapshots ({len(table.snapshots()):,})", _history(table)),
        folded("Properties", pairs_table(sorted(table.properties.items()))),
    )


def _sample(table: ShownTable) -> str:
    try:
        rows = table.scan(limit=_SAMPLE_ROWS).to_arrow()
    except (IcebergError, OSError) as error:
        return f"<p>{printable_html(error)}</p>"
    return rows_table(
        rows.column_names, zip(*(map(_short, column.to_pylist()) for column in rows.columns), strict=True)
    )


def _short(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _history(table: ShownTable) -> str:
    """The newest snapshots, with the branches and tags that name them."""
    refs: dict[int, list[str]] = {}
    for name, ref in table.refs().items():
        refs.setdefault(ref.snapshot_id, []).append(name)
    rows = (
        (
            each.snapshot_id,
            format_seconds(each.timestamp_ms),
            str(each.summary.operation or "") if each.summary else "",
            f"{int(each.summary.get('added-records', 0) or 0):,}" if each.summary else "",
            ", ".join(refs.get(each.snapshot_id, [])),
        )
        for each in sorted(table.snapshots(), key=lambda each: -each.timestamp_ms)[:_SNAPSHOTS]
    )
    return rows_table(("snapshot", "made at (UTC)", "operation", "rows added", "named"), rows)
