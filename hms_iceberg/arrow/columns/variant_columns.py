"""Columns of variants between Arrow, Python values and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.arrow.columns.nested import combine, struct_children
from hms_iceberg.errors import TypeMismatchError
from hms_iceberg.spec.data_types import VariantType
from hms_iceberg.spec.variant.variant import Variant


def variants(column: pa.Array | pa.ChunkedArray) -> list[Variant | None]:
    """The values of a column.

    Args:
        column: of type variant as scans return it: a struct of ``metadata`` and ``value``.

    Raises:
        TypeMismatchError: it is no column of variants.
    """
    array = combine(column)
    if not pa.types.is_struct(array.type) or {field.name for field in array.type} != {"metadata", "value"}:
        raise TypeMismatchError(f"Cannot take variants from a column of type {array.type}: expected a variant column.")
    places = [array.type.get_field_index(name) for name in ("metadata", "value")]
    children = struct_children(array)
    metadata, values = (children[place].to_pylist() for place in places)
    return [
        Variant(names, value) if valid else None
        for names, value, valid in zip(metadata, values, array.is_valid().to_pylist(), strict=True)
    ]


def variants_to_python(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as Python values; nulls and null variants are None.

    Args:
        column: see `variants`.

    Raises:
        InvalidInputError: a value is damaged.
    """
    return [None if each is None else each.to_python() for each in variants(column)]


def variants_to_json(column: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """The values of a column as JSON text; nulls stay nulls.

    Args:
        column: see `variants`.

    Raises:
        InvalidInputError: a value is damaged.
    """
    return pa.array([None if each is None else each.to_json() for each in variants(column)], pa.string())


def variant_column(values: Iterable[Variant | None]) -> pa.StructArray:
    """A column of variants, as scans return it.

    Args:
        values: the variants; None for null.
    """
    rows = [None if each is None else {"metadata": each.metadata, "value": each.value} for each in values]
    return pa.array(rows, to_arrow_type(VariantType(), field_ids=False))
