"""Sort orders: how rows are sorted within files, and their JSON.

Source: Iceberg specification, "Sorting", and Appendix C, "Sort Orders".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from hms_iceberg.errors import InvalidSortOrderError
from hms_iceberg.printable import printable
from hms_iceberg.spec.json_model import JsonModel, set_json_form
from hms_iceberg.spec.partitions.partition_specs import sources_from_json
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    IdentityTransform,
    Transform,
    UnknownTransform,
    parse_transform,
)

UNSORTED_ORDER_ID = 0
INITIAL_SORT_ORDER_ID = 1


class SortDirection(str, Enum):
    """Ascending or descending."""

    ASC = "asc"
    DESC = "desc"

    def __str__(self) -> str:
        return self.value


class NullOrder(str, Enum):
    """The position of nulls, whatever the direction."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class SortField(JsonModel):
    """A key of a sort order.

    Args:
        source_id: id of the source column; the first one if a transform takes several.
        transform: what makes the key of the column's values, or its text.
        direction: ascending (the default) or descending.
        null_order: where nulls go; by default first when ascending and last when descending.
        source_ids: ids of all source columns, for a transform with several arguments (format v3).
    """

    source_id: int
    transform: Transform = IdentityTransform()  # noqa: RUF009  frozen and without state
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder | None = None
    source_ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.transform, str):
            object.__setattr__(self, "transform", parse_transform(self.transform))
        object.__setattr__(self, "direction", SortDirection(self.direction))
        default = NullOrder.NULLS_FIRST if self.direction is SortDirection.ASC else NullOrder.NULLS_LAST
        object.__setattr__(self, "null_order", default if self.null_order is None else NullOrder(self.null_order))
        if self.source_ids is not None:
            object.__setattr__(self, "source_ids", tuple(self.source_ids))

    def satisfies(self, other: SortField) -> bool:
        """True if values sorted by this key are sorted by the other one too."""
        return (
            self.source_id == other.source_id
            and self.source_ids == other.source_ids
            and self.direction is other.direction
            and self.null_order is other.null_order
            and self.transform.satisfies_order_of(other.transform)
        )

    def __str__(self) -> str:
        sources = ", ".join(map(str, self.source_ids or (self.source_id,)))
        return printable(f"{self.transform}({sources}) {self.direction} {self.null_order}")


@dataclass(frozen=True, init=False)
class SortOrder(JsonModel):
    """The sort keys of a table, in order; order id 0 is the unsorted one, without fields."""

    fields: tuple[SortField, ...]
    order_id: int

    def __init__(self, *fields: SortField, order_id: int | None = None) -> None:
        if order_id is None:
            order_id = INITIAL_SORT_ORDER_ID if fields else UNSORTED_ORDER_ID
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "order_id", order_id)

    @property
    def is_unsorted(self) -> bool:
        """True for an order without fields."""
        return not self.fields

    def check_compatible(self, schema: Schema) -> None:
        """Refuses an order that cannot be used with a schema; see `check_sort_order`."""
        check_sort_order(self, schema)

    def same_as(self, other: SortOrder) -> bool:
        """True if the fields are equal, whatever the order ids."""
        return self.fields == other.fields

    def satisfies(self, other: SortOrder) -> bool:
        """True if rows in this order are in the other order too."""
        if len(self.fields) < len(other.fields):
            return False
        return all(mine.satisfies(theirs) for mine, theirs in zip(self.fields, other.fields, strict=False))

    def __str__(self) -> str:
        return "[" + "".join(f"\n  {field}" for field in self.fields) + ("\n]" if self.fields else "]")

    def __repr__(self) -> str:
        return f"SortOrder({', '.join([*map(repr, self.fields), f'order_id={self.order_id}'])})"


UNSORTED = SortOrder(order_id=UNSORTED_ORDER_ID)


def check_sort_order(order: SortOrder, schema: Schema) -> None:
    if order.is_unsorted != (order.order_id == UNSORTED_ORDER_ID):
        raise InvalidSortOrderError(
            f"Invalid sort order {order.order_id} with {len(order.fields)} fields: id 0 is the order without fields"
        )
    for field in order.fields:
        for source_id in field.source_ids or (field.source_id,):
            source = schema.index_by_id.get(source_id)
            if source is None:
                raise InvalidSortOrderError(f"Invalid sort field {field}: the schema has no column with id {source_id}")
            if not source.field_type.is_primitive or not field.transform.can_transform(source.field_type):
                raise InvalidSortOrderError(
                    f"Invalid sort field {field}: column {schema.find_column_name(source_id)!r} of type "
                    f"{source.field_type} cannot be sorted by {field.transform}"
                )
        if isinstance(field.transform, UnknownTransform):
            raise InvalidSortOrderError(f"Invalid sort field {field}: the transform is not known")


def assign_fresh_sort_order_ids(order: SortOrder, old_schema: Schema, fresh_schema: Schema) -> SortOrder:
    """The sort order for a schema whose columns were renumbered."""
    if order.is_unsorted:
        return UNSORTED

    def fresh(source_id: int) -> int:
        name = old_schema.find_column_name(source_id)
        if name is None or name not in fresh_schema.index_by_name:
            raise InvalidSortOrderError(f"Invalid sort order: the schema has no column with id {source_id}")
        return fresh_schema.index_by_name[name]

    def renumbered(field: SortField) -> SortField:
        several = None if field.source_ids is None else tuple(fresh(each) for each in field.source_ids)
        return replace(field, source_id=fresh(field.source_id), source_ids=several)

    return SortOrder(*map(renumbered, order.fields), order_id=INITIAL_SORT_ORDER_ID)


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    return {"order-id": order.order_id, "fields": [field_to_json(field) for field in order.fields]}


def field_to_json(field: SortField) -> dict[str, Any]:
    several = field.source_ids is not None and len(field.source_ids) != 1
    source: dict[str, Any] = {"source-ids": list(field.source_ids or ())} if several else {"source-id": field.source_id}
    return {
        "transform": str(field.transform),
        **source,
        "direction": str(field.direction),
        "null-order": str(field.null_order),
    }


def sort_order_from_json(data: Any) -> SortOrder:
    order_id = data.get("order-id") if isinstance(data, Mapping) else None
    fields = data.get("fields") if isinstance(data, Mapping) else None
    if isinstance(order_id, bool) or not isinstance(order_id, int) or not isinstance(fields, list):
        raise InvalidSortOrderError(f"Cannot read a sort order from {data!r}: expected 'order-id' and 'fields'")
    return SortOrder(*map(field_from_json, fields), order_id=order_id)


def field_from_json(data: Any) -> SortField:
    if not isinstance(data, Mapping) or not isinstance(data.get("transform"), str):
        raise InvalidSortOrderError(f"Cannot read a sort field from {data!r}: expected an object with a 'transform'")
    source_id, source_ids = sources_from_json(data)
    if source_id is None:
        raise InvalidSortOrderError(
            f"Cannot read a sort field from {dict(data)!r}: expected a number 'source-id' or a list 'source-ids'"
        )
    try:
        direction = SortDirection(str(data.get("direction")).lower())
        null_order = NullOrder(str(data.get("null-order")).lower())
    except ValueError as error:
        raise InvalidSortOrderError(
            f"Cannot read a sort field from {dict(data)!r}: 'direction' must be asc or desc, 'null-order' must be "
            "nulls-first or nulls-last"
        ) from error
    return SortField(source_id, parse_transform(data["transform"]), direction, null_order, source_ids)


set_json_form(SortField, field_to_json, field_from_json)
set_json_form(SortOrder, sort_order_to_json, sort_order_from_json)
