"""System tables for Spark: ``select * from system.tables``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import NotAnIcebergTableError
from hms_iceberg.expressions.evaluate import evaluator
from hms_iceberg.maintenance.system import SYSTEM_TABLES, Selected, read_system_table, system_schema
from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spark.reading.arrow_parts import encoded_parts, written
from hms_iceberg.spark.reading.conditions import row_filter
from hms_iceberg.spark.reading.worker_files import for_spark
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spec.data_types import NestedField, StringType
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.needed_files.needed_by_others import everything_in

# What tables are chosen by before they are looked at: a condition on other columns leaves them all.
_NAMESPACE = Schema(NestedField(1, "namespace", StringType()))
_NAME = Schema(*_NAMESPACE.fields, NestedField(2, "table", StringType()))


class DescribeSystemTables(msgspec.Struct, frozen=True):
    """Asks for the columns of all system tables (`SystemTable`)."""


class SystemRows(msgspec.Struct, frozen=True):
    """The rows of a system table (`SystemScan`)."""

    catalog: int
    kind: str
    columns: list[str]  # those that the query uses
    filter: dict[str, Any]  # which rows; those that cannot match may be left out


def describe_system_tables() -> dict[str, Any]:
    """The `schemas` of the system tables in Spark's JSON, by name."""
    return {"schemas": {name: spark_schema(system_schema(name), f"system.{name}") for name in SYSTEM_TABLES}}


def system_rows(catalogs: OpenCatalogs, asked: SystemRows) -> dict[str, Any]:
    """The rows of a system table, in a file that the caller deletes; see `written`."""
    catalog, schema = catalogs.numbered(asked.catalog), system_schema(asked.kind)
    _refuse_to_hide(catalog, asked.kind)
    wanted = Schema(*(schema.find_field(name) for name in asked.columns))
    rows = read_system_table(catalog, asked.kind, selected_by(asked.filter))

    def encoded(part: pa.Table) -> Iterator[tuple[pa.Buffer, int]]:
        for batch in part.select(asked.columns).combine_chunks().to_batches():
            yield from encoded_parts(for_spark(batch, wanted))

    if not asked.columns:
        count = sum(each.num_rows for each in rows)
        return {"path": None, "parts": [[0, count]] if count else []}
    return written(map(encoded, rows))


def _refuse_to_hide(catalog: Catalog, kind: str) -> None:
    """Refuses to answer in the place of a table of the user's own that a catalog of Iceberg tables cannot read."""
    every = everything_in(catalog.metastore)
    for each in () if every is None else every.listed("system".__eq__, ("system", kind).__eq__):
        what = f"of kind {each.kind.value!r}" if each.kind else "not told of"
        raise NotAnIcebergTableError(
            f"Cannot read system.{kind} of catalog {catalog.name}: the metastore has something of that name ({what}), "
            "which this catalog does not read. Read it by the session's own catalog. To have what Iceberg tells of all "
            f"tables, rename it, or ask Python: hms_iceberg.maintenance.system_table(catalog, {kind!r})."
        )


def selected_by(condition: Mapping[str, Any]) -> Selected:
    """The tables that a condition on rows leaves, as far as it is about their names."""
    of_namespace, of_table = (evaluator(names, row_filter(condition, names)[0]) for names in (_NAMESPACE, _NAME))
    return Selected(lambda namespace: of_namespace((namespace,)), of_table)
