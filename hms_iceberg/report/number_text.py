"""Numbers as people read them."""

from __future__ import annotations

from hms_iceberg.report.portrait import Bin
from hms_iceberg.spec.partitions.partition_specs import transform_term
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortOrder

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(count: int) -> str:
    step = max(count.bit_length() - 1, 0) // 10
    value = count / 1024**step
    return f"{value:.0f} {_UNITS[step]}" if step == 0 or value >= 100 else f"{value:.3g} {_UNITS[step]}"


def number(count: int | None) -> str:
    """A count with its thousands apart; nothing if it is not known."""
    return "" if count is None else f"{count:,}"


def files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def size_limits(found: Bin) -> str:
    """The limits of a bin of sizes, such as `1 - 4 MiB`."""
    if found.low == 0:
        return f"< {size(found.high)}"
    if found.high >= 2**60:
        return f">= {size(found.low)}"
    return f"{size(found.low)} - {size(found.high)}"


def count_limits(found: Bin) -> str:
    """The limits of a bin of counts, such as `3 - 4`."""
    if found.high >= 2**31:
        return f">= {found.low}"
    return str(found.low) if found.high == found.low + 1 else f"{found.low} - {found.high - 1}"


def sort_fields(order: SortOrder, schema: Schema) -> tuple[str, ...]:
    """The keys that a table is sorted by, such as `id desc nulls-last`."""
    return tuple(
        f"{transform_term(str(field.transform), field.source_id, schema)} {field.direction} {field.null_order}"
        for field in order.fields
    )
