"""Bounds of the fields of variants: one object of normalized paths and values, as manifests hold it.

Source: Apache Iceberg specification, "Bounds for Variant" and "Appendix D: Single-value serialization".
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.spec.variant.layout import fields_of, metadata_bytes, names_of, object_bytes, split_bytes


def bounds_object(values: Mapping[str, bytes]) -> bytes:
    """The bound of a column of variants: the bounds of its fields, as bytes of variants' values, by normalized path."""
    paths = sorted(values, key=str.encode)
    return metadata_bytes(paths) + object_bytes(range(len(paths)), [values[path] for path in paths])


def field_bounds(bound: bytes) -> dict[str, bytes]:
    """The bounds of fields in a bound of a column of variants, by normalized path; none if the bytes are no bound."""
    try:
        metadata, value = split_bytes(bound)
        return fields_of(value, names_of(metadata))
    except (ValueError, IndexError):
        return {}
