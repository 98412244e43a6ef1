"""PyIceberg's module path of single values as bytes: `hms_iceberg.spec.values.single_values`."""

from __future__ import annotations

from hms_iceberg.spec.values.single_values import from_bytes, to_bytes

__all__ = ["from_bytes", "to_bytes"]
