"""`system.snapshots`: the snapshots of all tables, with the columns of each table's own metadata table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hms_iceberg.maintenance.system.looking import Looking, Row, SystemTable, columns
from hms_iceberg.scan.metadata_tables.history_tables import SNAPSHOTS
from hms_iceberg.spec.data_types import BooleanType
from hms_iceberg.table.table import Table


def _read(looking: Looking, schema: pa.Schema) -> Iterator[pa.Table]:
    return looking.of_each_table(schema, _of_table)


def _of_table(table: Table) -> Iterator[Row]:
    current = table.metadata.current_snapshot_id
    for row in table.inspect.snapshots().to_pylist():
        yield row | {"is_current": row["snapshot_id"] == current}


SNAPSHOTS_OF_TABLES = SystemTable(
    columns(*SNAPSHOTS.fields, ("is_current", BooleanType(), "whether it is the table's current one")), _read
)
