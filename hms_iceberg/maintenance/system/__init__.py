"""All tables of a catalog, told of as tables: `tables`, `snapshots`, `files_health`, `locks` and `maintenance`.

A table that cannot be told of is a row with its `error`, and never the end of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.service.service import Limits, MaintenanceService, Step
from hms_iceberg.maintenance.system import files_health, locks, tables
from hms_iceberg.maintenance.system.request import Row, Selected, SystemTable, SystemTableRequest, columns
from hms_iceberg.maintenance_policy import Policies
from hms_iceberg.metastore import TableKind
from hms_iceberg.scan.metadata_tables.history_tables import SNAPSHOTS
from hms_iceberg.spec.data_types import BooleanType, LongType, StringType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.table import Table

__all__ = ["SYSTEM_TABLES", "Selected", "read_system_table", "system_schema", "system_table"]


def _snapshots(request: SystemTableRequest, schema: pa.Schema) -> Iterator[pa.Table]:
    return request.of_each_table(schema, _snapshots_of)


def _snapshots_of(table: Table) -> Iterator[Row]:
    current = table.metadata.current_snapshot_id
    for row in table.inspect.snapshots().to_pylist():
        yield row | {"is_current": row["snapshot_id"] == current}


def _needs(request: SystemTableRequest, schema: pa.Schema) -> Iterator[pa.Table]:
    """The steps of a dry run of the maintenance service."""
    listed = [each for each in request.listed() if each.kind in (TableKind.ICEBERG, None)]
    untold = [each for each in listed if each.error is not None]
    yield from request.of_each(schema, untold, lambda each: ())
    names = [each.identifier for each in listed if each.error is None]
    service = MaintenanceService(request.catalog, policies=request.policies, limits=Limits(request.threads))
    yield pa.Table.from_pylist(list(map(_step, service.run(dry_run=True, names=names).steps)), schema)


def _step(step: Step) -> Row:
    namespace, table = step.table.split(".", 1)
    name = {"namespace": namespace, "table": table}
    if not step.action:
        return name | {"error": step.result}
    return name | {"action": step.action, "why": step.why, "input_bytes": step.input_bytes}


SYSTEM_TABLES: Mapping[str, SystemTable] = {
    "tables": tables.TABLES,
    "snapshots": SystemTable(
        columns(*SNAPSHOTS.fields, ("is_current", BooleanType(), "whether it is the table's current one")), _snapshots
    ),
    "files_health": files_health.FILES_HEALTH,
    "locks": locks.LOCKS,
    "maintenance": SystemTable(
        columns(
            ("action", StringType(), "what would be done; null if the table cannot be looked at"),
            ("why", StringType(), "what was found"),
            ("input_bytes", LongType(), "size of the files that would be read and written anew"),
        ),
        _needs,
    ),
}


def system_table(
    catalog: Catalog,
    name: str,
    patterns: Sequence[str] = ("*",),
    policies: Policies | None = None,
    threads: int = 8,
) -> pa.Table:
    """A system table: what is told of all tables of a catalog.

    `tables` has a row for each table and view of any kind, by the metastore's rows alone. The others look into each
    Iceberg table: `snapshots` has a row for each snapshot, `files_health` one for each table with the sizes and deletes
    of its files, and `maintenance` one for each action that the maintenance service would take. `locks` has the
    metastore's locks.

    Args:
        catalog: the catalog. One that is not on a Hive Metastore has each table loaded.
        name: which of them.
        patterns: which tables, such as `web.*`.
        policies: the policies of the service; unless given, those of the file that the catalog's property
            `maintenance-policy` names, or the default one.
        threads: how many tables are looked at side by side.

    Returns:
        the rows, by namespace and table. Those of tables that cannot be read have an `error`, and nulls for the rest.

    Raises:
        InvalidInputError: there is no system table of that name.
        ConfigurationError: the policy file cannot be read.
        MetastoreError: the tables or the locks cannot be listed.
    """
    empty = to_arrow(system_schema(name), field_ids=False).empty_table()
    parts = read_system_table(catalog, name, Selected.by_patterns(patterns), policies, threads)
    return pa.concat_tables([empty, *parts])


def read_system_table(
    catalog: Catalog, name: str, selected: Selected, policies: Policies | None = None, threads: int = 8
) -> Iterator[pa.Table]:
    """The rows of a system table in parts, as they are told; see `system_table`."""
    request = SystemTableRequest(catalog, selected, policies or Policies.of_catalog(catalog.properties), threads)
    yield from SYSTEM_TABLES[name].read(request, to_arrow(system_schema(name), field_ids=False))


def system_schema(name: str) -> Schema:
    """The columns of a system table.

    Raises:
        InvalidInputError: there is none of that name.
    """
    if name not in SYSTEM_TABLES:
        raise InvalidInputError(f"No system table {name!r}: expected one of {', '.join(SYSTEM_TABLES)}.")
    return SYSTEM_TABLES[name].schema
