"""PyIceberg's door to Arrow schemas: `hms_iceberg.arrow.columns.schema`."""

from __future__ import annotations

from hms_iceberg.arrow.columns.schema import from_arrow as pyarrow_to_schema
from hms_iceberg.arrow.columns.schema import to_arrow as schema_to_pyarrow

__all__ = ["pyarrow_to_schema", "schema_to_pyarrow"]
