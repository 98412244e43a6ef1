"""`system.tables`: all tables at a glance, by the metastore's rows alone.

A Hive Metastore tells the summary of a table's current snapshot in the row, so that ten thousand tables take a few
calls and no file is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from hms_iceberg.maintenance.system.request import Row, SystemTable, SystemTableRequest, columns
from hms_iceberg.metastore import ListedTable, TableKind
from hms_iceberg.spec.data_types import DoubleType, LongType, StringType, TimestamptzType
from hms_iceberg.table.needed_files.named_files import METADATA_LOCATION
from hms_iceberg.table.table import Table

# Who writes it writes the other parameters too; tables of others, such as PyIceberg's, are loaded.
_COUNT = "snapshot-count"
_OF_HIVE = ("numRows", "numFiles", "totalSize")

COLUMNS = columns(
    ("kind", StringType(), "iceberg, iceberg view, hive, or hive view; null if the metastore does not tell"),
    ("location", StringType(), "its folder"),
    ("rows", LongType(), "rows of its data files, deleted ones included"),
    ("data_files", LongType(), "how many data files it has"),
    ("delete_files", LongType(), "how many delete files and deletion vectors it has"),
    ("position_deletes", LongType(), "rows that its position deletes and vectors name"),
    ("equality_deletes", LongType(), "rows of its equality delete files"),
    ("bytes", LongType(), "size of all its files"),
    ("average_file_bytes", LongType(), "that by the number of its data files"),
    ("snapshots", LongType(), "how many it has"),
    ("snapshot_id", LongType(), "the current one"),
    ("committed_at", TimestamptzType(), "when that was made"),
    ("age_seconds", DoubleType(), "how long ago that was"),
)


def _read(request: SystemTableRequest, schema: pa.Schema) -> Iterator[pa.Table]:
    def rows_of(each: ListedTable) -> Iterator[Row]:
        if each.kind is TableKind.ICEBERG and not {_COUNT, METADATA_LOCATION} <= each.properties.keys():
            yield _of_table(request.catalog.load_table(each.identifier))
        else:
            yield _of_row(each.properties)

    return request.of_each(schema, request.listed(), rows_of)


def _of_row(given: Mapping[str, str]) -> Row:
    summary = given.get("current-snapshot-summary", "")
    try:
        totals = json.loads(summary) if summary else {}
    except ValueError:  # one that was too long for the metastore is cut
        totals = {}
    return _glance(
        {**{key: given.get(key) for key in (*_OF_HIVE, _COUNT)}, **totals},
        _number(given.get("current-snapshot-id")),
        _number(given.get("current-snapshot-timestamp-ms")),
    )


def _of_table(table: Table) -> Row:
    current = table.current_snapshot()
    found = _glance(
        {**(dict(current.summary or {}) if current else {}), _COUNT: str(len(table.metadata.snapshots))},
        current.snapshot_id if current else None,
        current.timestamp_ms if current else None,
    )
    return found | {"location": table.location()}


def _glance(summary: Mapping[str, Any], snapshot_id: int | None, committed_ms: int | None) -> Row:
    rows, files, size = (
        _number(summary.get(of_iceberg) or summary.get(of_hive))
        for of_iceberg, of_hive in zip(("total-records", "total-data-files", "total-files-size"), _OF_HIVE, strict=True)
    )
    committed = None if committed_ms is None else datetime.fromtimestamp(committed_ms / 1000, timezone.utc)
    return {
        "rows": rows,
        "data_files": files,
        "delete_files": _number(summary.get("total-delete-files")),
        "position_deletes": _number(summary.get("total-position-deletes")),
        "equality_deletes": _number(summary.get("total-equality-deletes")),
        "bytes": size,
        "average_file_bytes": size // files if files and size is not None else None,
        "snapshots": _number(summary.get(_COUNT)),
        "snapshot_id": snapshot_id,
        "committed_at": committed,
        "age_seconds": None if committed_ms is None else time.time() - committed_ms / 1000,
    }


def _number(text: object) -> int | None:
    digits = str(text) if text is not None else ""
    return int(digits) if digits.removeprefix("-").isdecimal() else None


TABLES = SystemTable(COLUMNS, _read)
