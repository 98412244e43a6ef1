"""PyIceberg's module path of common types."""

from __future__ import annotations

from hms_iceberg.metastore import (
    Identifier,
)
from hms_iceberg.spec.manifests.manifest_values import (
    Record,
)

__all__ = [
    "Identifier",
    "Record",
]
