"""The columns that events need: of what type, and what becomes of a column whose values need a wider one."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from hms_iceberg.spec.data_types import (
    BooleanType,
    DoubleType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    NestedType,
    StringType,
    StructType,
)
from hms_iceberg.spec.promotion import can_promote


def type_of_value(value: Any) -> IcebergType | None:
    """The type of a column for a value without a type of its own; None if it cannot be told (a null, an empty list)."""
    if isinstance(value, bool):
        return BooleanType()
    if isinstance(value, int):
        return LongType()
    if isinstance(value, (float, Decimal)):
        return DoubleType()
    if isinstance(value, str):
        return StringType()
    if isinstance(value, dict):
        found = {name: type_of_value(each) for name, each in value.items()}
        known = [(name, kind) for name, kind in found.items() if kind is not None]
        return StructType(*(NestedField(n, name, kind) for n, (name, kind) in enumerate(known, 1))) if known else None
    if isinstance(value, list):
        element: IcebergType | None = None
        for each in value:
            element = widened(element, type_of_value(each), 2)
        return None if element is None else ListType(1, element, False)
    return None


def widened(old: IcebergType | None, new: IcebergType | None, format_version: int) -> IcebergType | None:
    """The type for values of both: the wider one, a struct with the fields of both; the old one if there is none. None
    stands for no type yet."""
    if old is None or new is None:
        return new if old is None else old
    if old == new:
        return old
    if isinstance(old, StructType) and isinstance(new, StructType):
        return StructType(*_fields(old.fields, new.fields, format_version))
    if isinstance(old, NestedType) and type(old) is type(new) and not isinstance(old, MapType):
        return old.with_children(list(_fields(old.children(), new.children(), format_version)))
    if isinstance(old, LongType) and isinstance(new, DoubleType):
        return old
    return new if can_promote(old, new, format_version) else old


def _fields(old: Iterable[NestedField], new: Iterable[NestedField], format_version: int) -> Iterable[NestedField]:
    """The old fields, widened, and the new ones, which rows lack and are optional therefore."""
    others = {each.name: each for each in new}
    known = set()
    for each in old:
        known.add(each.name)
        other = others.get(each.name)
        kind = each.field_type if other is None else widened(each.field_type, other.field_type, format_version)
        assert kind is not None
        yield NestedField(each.field_id, each.name, kind, each.required, each.doc)
    yield from (
        NestedField(each.field_id, each.name, each.field_type) for name, each in others.items() if name not in known
    )
