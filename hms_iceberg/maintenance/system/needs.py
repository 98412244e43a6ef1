"""`system.maintenance`: what the maintenance service would do, told by its dry run."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hms_iceberg.maintenance.service.service import Limits, MaintenanceService, Step
from hms_iceberg.maintenance.system.looking import Looking, Row, SystemTable, columns
from hms_iceberg.metastore import TableKind
from hms_iceberg.spec.data_types import LongType, StringType

COLUMNS = columns(
    ("action", StringType(), "what would be done; null if the table cannot be looked at"),
    ("why", StringType(), "what was found"),
    ("input_bytes", LongType(), "size of the files that would be read and written anew"),
)


def _read(looking: Looking, schema: pa.Schema) -> Iterator[pa.Table]:
    listed = [each for each in looking.listed() if each.kind in (TableKind.ICEBERG, None)]
    untold = [each for each in listed if each.error is not None]
    yield from looking.of_each(schema, untold, lambda each: ())
    names = [each.identifier for each in listed if each.error is None]
    service = MaintenanceService(looking.catalog, policies=looking.policies, limits=Limits(looking.threads))
    yield pa.Table.from_pylist(list(map(_row, service.run(dry_run=True, names=names).steps)), schema)


def _row(step: Step) -> Row:
    namespace, table = step.table.split(".", 1)
    name = {"namespace": namespace, "table": table}
    if not step.action:
        return name | {"error": step.result}
    return name | {"action": step.action, "why": step.why, "input_bytes": step.input_bytes}


MAINTENANCE = SystemTable(COLUMNS, _read)
