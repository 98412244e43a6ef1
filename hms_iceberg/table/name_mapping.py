"""PyIceberg's module path of name mappings: `hms_iceberg.spec.field_mapping`."""

from __future__ import annotations

from hms_iceberg.spec.field_mapping import (
    MappedField,
    NameMapping,
)
from hms_iceberg.spec.field_mapping import (
    create_name_mapping as create_mapping_from_schema,
)
from hms_iceberg.spec.field_mapping import (
    name_mapping_from_json as parse_mapping_from_json,
)

__all__ = [
    "MappedField",
    "NameMapping",
    "create_mapping_from_schema",
    "parse_mapping_from_json",
]
