"""PyIceberg's door to schemas: `hms_iceberg.spec.schema`."""

from __future__ import annotations

from hms_iceberg.spec.schema import (
    Schema,
)
from hms_iceberg.spec.schema import (
    assign_fresh_ids as assign_fresh_schema_ids,
)

__all__ = [
    "Schema",
    "assign_fresh_schema_ids",
]
