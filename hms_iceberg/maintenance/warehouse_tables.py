"""All tables of a catalog at a glance, told by the metastore's rows alone: sizes, ages, what is small.

A Hive Metastore tells the summary of a table's current snapshot in the row, so that ten thousand tables take a few
calls and no file is read. In depth, each table is loaded and the policy asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase

import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import IcebergError
from hms_iceberg.maintenance.service.assessment import needs_of
from hms_iceberg.maintenance.service.policy import Policies
from hms_iceberg.metastore import Identifier, TableRow
from hms_iceberg.table.needed.others import table_rows_of
from hms_iceberg.table.table import Table

_SECOND = 1000
# Who writes it writes the other parameters too; tables of others, such as PyIceberg's, are loaded.
_COUNT = "snapshot-count"


@dataclass(frozen=True)
class TableAtAGlance:
    """Facts of a table at a glance.

    Attributes:
        table: its name.
        location: its folder.
        rows: how many rows its data files have.
        data_files, delete_files: how many there are.
        bytes: size of all its files, in bytes.
        average_file_bytes: of its data files; None without any.
        snapshots: how many it has.
        snapshot_id: the current one; None without any.
        committed_ms: when that was made, in milliseconds since 1970.
        age_seconds: how long ago that was.
        needs: what the policy would do, only if asked for in depth.
        error: why the table could not be read, if so.
    """

    table: str
    location: str = ""
    rows: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    bytes: int | None = None
    average_file_bytes: int | None = None
    snapshots: int | None = None
    snapshot_id: int | None = None
    committed_ms: int | None = None
    age_seconds: float | None = None
    needs: tuple[str, ...] | None = None
    error: str | None = None


SCHEMA = pa.schema(
    [
        *(("table", pa.string()), ("location", pa.string()), ("rows", pa.int64()), ("data_files", pa.int64())),
        *(("delete_files", pa.int64()), ("bytes", pa.int64()), ("average_file_bytes", pa.int64())),
        *(("snapshots", pa.int64()), ("snapshot_id", pa.int64()), ("committed_ms", pa.int64())),
        *(("age_seconds", pa.float64()), ("needs", pa.list_(pa.string())), ("error", pa.string())),
    ]
)


def warehouse_tables(
    catalog: Catalog,
    patterns: Sequence[str] = ("*",),
    policies: Policies | None = None,
    threads: int = 8,
) -> pa.Table:
    """All Iceberg tables of a catalog, one a row; columns are the attributes of `TableAtAGlance`.

    Args:
        catalog: the catalog. One that is not on a Hive Metastore has each table loaded.
        patterns: which tables, such as `web.*`.
        policies: given, each table is loaded and told with what it needs by its policy.
        threads: how many tables are loaded at once.

    Returns:
        the tables, by name.

    Raises:
        MetastoreError: the tables cannot be listed.
    """
    found = [
        each for each in _named(catalog) if any(fnmatchcase(".".join(each.identifier), pattern) for pattern in patterns)
    ]

    def told(row: TableRow) -> TableAtAGlance:
        name = ".".join(row.identifier)
        if policies is None and _COUNT in row.properties:
            return _of_row(row)
        try:
            table = catalog.load_table(row.identifier)
            glance = _of_table(name, table)
            if policies is None:
                return glance
            policy = policies.of(name, table.properties)
            return replace(glance, needs=tuple(f"{each.action}: {each.why}" for each in needs_of(table, policy)))
        except IcebergError as error:  # one table's damage is never another's
            return TableAtAGlance(name, row.location, error=f"{type(error).__name__}: {error}")

    with ThreadPoolExecutor(threads, thread_name_prefix="iceberg-glance") as pool:
        rows = sorted(pool.map(told, found), key=lambda each: each.table)
    return pa.Table.from_pylist([asdict(each) for each in rows], schema=SCHEMA)


def _named(catalog: Catalog) -> Iterator[TableRow]:
    rows = table_rows_of(catalog.metastore)
    if rows is not None:
        yield from (each for each in rows.rows() if each.is_iceberg)
        return
    identifiers: list[Identifier] = [
        each for namespace in catalog.list_namespaces() for each in catalog.list_tables(namespace)
    ]
    yield from (TableRow(each, "", is_iceberg=True) for each in identifiers)


def _of_row(row: TableRow) -> TableAtAGlance:
    given = row.properties
    summary = given.get("current-snapshot-summary", "")
    try:
        totals = json.loads(summary) if summary else {}
    except ValueError:  # one that was too long for the metastore is cut
        totals = {}
    return _glance(
        ".".join(row.identifier),
        row.location,
        {**{key: given.get(key) for key in ("numFiles", "numRows", "totalSize", _COUNT)}, **totals},
        _number(given.get("current-snapshot-id")),
        _number(given.get("current-snapshot-timestamp-ms")),
    )


def _of_table(name: str, table: Table) -> TableAtAGlance:
    current = table.current_snapshot()
    return _glance(
        name,
        table.location(),
        {**(dict(current.summary or {}) if current else {}), _COUNT: str(len(table.metadata.snapshots))},
        current.snapshot_id if current else None,
        current.timestamp_ms if current else None,
    )


def _glance(
    name: str, location: str, told: dict[str, str | None], snapshot_id: int | None, committed_ms: int | None
) -> TableAtAGlance:
    files = _number(told.get("total-data-files") or told.get("numFiles"))
    size = _number(told.get("total-files-size") or told.get("totalSize"))
    age = None if committed_ms is None else time.time() - committed_ms / _SECOND
    return TableAtAGlance(
        table=name,
        location=location,
        rows=_number(told.get("total-records") or told.get("numRows")),
        data_files=files,
        delete_files=_number(told.get("total-delete-files")),
        bytes=size,
        average_file_bytes=size // files if files and size is not None else None,
        snapshots=_number(told.get(_COUNT)),
        snapshot_id=snapshot_id,
        committed_ms=committed_ms,
        age_seconds=age,
    )


def _number(text: object) -> int | None:
    told = str(text) if text is not None else ""
    return int(told) if told.removeprefix("-").isdigit() else None
