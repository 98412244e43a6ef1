"""Tables of real files on a metastore in memory, for tests that write and read rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.metastore import Identifier
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.transaction import Created, Transaction
from hms_iceberg.transaction.workspace import read_version
from hms_iceberg.updates.machinery.manifest_files import entries_of, manifest_list_of
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.tables import QUICK, SCHEMA, check_snapshot

NAME: Identifier = ("db", "events")
CITIES = ("Oslo", "Rome", None)
MODES = ("copy-on-write", "merge-on-read")
ROW_ARROW = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string()), pa.field("amount", pa.int32())]
)


def create(
    folder: Path,
    version: int = 2,
    mode: str | None = None,
    schema: Schema = SCHEMA,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    **properties: str,
) -> Table:
    """An empty table below a folder; `mode` is that of all three operations; properties with `_` for `.` and `-`
    may also be given by `properties={...}`."""
    metastore, storage = InMemoryMetastore(), ArrowStorage()
    metastore.create_namespace(NAME[0], {})
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")} if mode else {}
    metadata = new_table_metadata(
        schema,
        spec,
        sort_order,
        location=f"{folder}/events",
        properties={**QUICK, **modes, **properties},
        format_version=version,
    )
    committed = Transaction(NAME, Created(metadata), metastore, storage).commit()
    return Table(NAME, committed, metastore, storage)


def other_writer(table: Table) -> Table:
    """The same table as another writer holds it."""
    version = read_version(table.metastore.load(NAME).metadata_location, table.storage)
    return Table(NAME, version, table.metastore, table.storage)


def row(key: int, **other: Any) -> dict[str, Any]:
    """One row of the schema of `tests.support.tables`."""
    return {"id": key, "city": CITIES[key % 3], "amount": key * 2, **other}


def arrow(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table."""
    return pa.Table.from_pylist([dict(each) for each in rows], schema=ROW_ARROW)


def numbered(start: int, stop: int) -> pa.Table:
    """The rows of these keys."""
    return arrow(row(key) for key in range(start, stop))


def rows_of(table: Table, *columns: str, branch: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table by id."""
    scan = table.scan()
    if branch is not None:
        scan = scan.use_ref(branch)
    found: list[dict[str, Any]] = (scan.select(*columns) if columns else scan).to_arrow().to_pylist()
    return sorted(found, key=lambda each: (each["id"], repr(each)))


def ids(table: Table) -> list[int]:
    """The keys of all rows, ascending."""
    return sorted(table.scan().select("id").to_arrow()["id"].to_pylist())


def live(table: Table) -> list[DataFile]:
    """All live files of the current snapshot, deletes included."""
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    return [entry.data_file for manifest in manifests for entry in entries_of(manifest, table.storage) if entry.is_live]


def check(table: Table) -> None:
    """Checks every snapshot's summary and manifest list, and that no file of the table is an orphan."""
    referenced = set()
    for snapshot in table.snapshots():
        check_snapshot(table.metadata, snapshot, table.storage)  # type: ignore[arg-type]
        for manifest in manifest_list_of(snapshot, table.storage):
            referenced |= {entry.data_file.file_path for entry in entries_of(manifest, table.storage)}
    assert data_files_on_disk(table) <= referenced, "files that no snapshot knows"


def data_files_on_disk(table: Table) -> set[str]:
    """Locations of all files below the table's data folder."""
    return {info.location for info in table.storage.list(f"{table.location()}/data")}
