"""PyIceberg's module path of sort orders: `hms_iceberg.spec.sort_orders`."""

from __future__ import annotations

from hms_iceberg.spec.sort_orders import (
    INITIAL_SORT_ORDER_ID,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
)
from hms_iceberg.spec.sort_orders import (
    UNSORTED as UNSORTED_SORT_ORDER,
)
from hms_iceberg.spec.sort_orders import (
    UNSORTED_ORDER_ID as UNSORTED_SORT_ORDER_ID,
)

__all__ = [
    "INITIAL_SORT_ORDER_ID",
    "UNSORTED_SORT_ORDER",
    "UNSORTED_SORT_ORDER_ID",
    "NullOrder",
    "SortDirection",
    "SortField",
    "SortOrder",
]
