"""Copies a Hive table without Spark: the rows are always the same, so that crashes can be tested step by step."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import from_arrow
from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.schema import Schema

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "k": pa.array([0, 0, 1], pa.int32())})


class FixedRows:
    """See `hms_iceberg.migration.rewrite.CopyRows`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def schema(self, table: str) -> Schema:
        """The columns of the rows."""
        return from_arrow(ROWS.schema)

    def copy(self, source: str, target: str, snapshot_properties: Mapping[str, str]) -> None:
        """Appends the rows."""
        self._catalog.load_table(target).append(ROWS, snapshot_properties=dict(snapshot_properties))
