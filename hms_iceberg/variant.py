"""Values of type variant: a column's values as Python values and JSON, and back."""

from __future__ import annotations

from hms_iceberg.arrow.columns.variant_columns import variant_column, variants, variants_to_json, variants_to_python
from hms_iceberg.spec.variant.building import parse_json, variant_of
from hms_iceberg.spec.variant.variant import Variant

__all__ = [
    "Variant",
    "parse_json",
    "variant_column",
    "variant_of",
    "variants",
    "variants_to_json",
    "variants_to_python",
]
