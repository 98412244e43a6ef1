"""Folding a type: one function for the structure, to which the caller gives one for each kind of type.

What a type becomes by what is nested in it, its name or JSON in another system above all, is written as a fold. A walk
that needs to know where it is, or goes along values or another type, is written out where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, StructType

T = TypeVar("T")


def fold_type(
    kind: IcebergType,
    *,
    leaf: Callable[[IcebergType], T],
    struct: Callable[[StructType, Sequence[T]], T],
    list: Callable[[ListType, T], T],
    map: Callable[[MapType, T, T], T],
) -> T:
    """Applies one function for each kind of type, from the leaves up.

    Args:
        kind: the type.
        leaf: the result of a type that is not nested: a primitive one, or a variant.
        struct: the result of a struct, from the results of its fields' types in their order.
        list: the result of a list, from that of its elements' type.
        map: the result of a map, from those of its keys' and of its values' type.
    """

    if not kind.is_nested:  # as most columns, for which the function below would be made in vain
        return leaf(kind)

    def fold(each: IcebergType) -> T:
        if not each.is_nested:
            return leaf(each)
        if isinstance(each, StructType):
            return struct(each, [fold(field.field_type) for field in each.fields])
        if isinstance(each, ListType):
            return list(each, fold(each.element_type))
        assert isinstance(each, MapType)
        return map(each, fold(each.key_type), fold(each.value_type))

    return fold(kind)
