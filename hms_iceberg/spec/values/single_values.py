"""Stored values in all their forms: bytes, JSON, Python objects and truncated bounds.

Stored values: bool; int for int, long, date (days), time and timestamps (micro- or nanoseconds); float; str; uuid.UUID;
bytes; decimal.Decimal at the type's scale.
"""

from __future__ import annotations

from hms_iceberg.spec.values.binary_values import (
    DECIMAL_CONTEXT,
    decimal_to_bytes,
    decimal_value,
    from_bytes,
    integer_to_bytes,
    point_from_bytes,
    point_to_bytes,
    to_bytes,
    unscaled_value,
)
from hms_iceberg.spec.values.json_values import INT_RANGE, LONG_RANGE, from_json, to_json
from hms_iceberg.spec.values.python_values import from_python
from hms_iceberg.spec.values.truncation import bounds_to_bytes, truncate_lower, truncate_upper

__all__ = [
    "DECIMAL_CONTEXT",
    "INT_RANGE",
    "LONG_RANGE",
    "bounds_to_bytes",
    "decimal_to_bytes",
    "decimal_value",
    "from_bytes",
    "from_json",
    "from_python",
    "integer_to_bytes",
    "point_from_bytes",
    "point_to_bytes",
    "to_bytes",
    "to_json",
    "truncate_lower",
    "truncate_upper",
    "unscaled_value",
]
