"""Column metrics of ORC files from their tails, as manifests hold them.

Source: Apache ORC specification v1, "Column Statistics"; Iceberg specification, "Data File Fields".
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.legacy_calendar import GREGORIAN_DAYS
from hms_iceberg.arrow.columns.projection import FileLeaf
from hms_iceberg.arrow.formats.orc.orc_layout import CHAR, UTC_NAMES, OrcLayout, message
from hms_iceberg.arrow.metrics.footer_metrics import NONE, ColumnMetrics, MetricsMode
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import bounds_to_bytes, from_python

_VALUES, _INTS, _DOUBLES, _TEXTS, _DECIMALS, _DATES, _TIMESTAMPS, _BYTES_ON_DISK = 1, 2, 3, 4, 6, 7, 9, 11
_DAY_MILLIS = 86_400_000
# What nanoseconds since 1970 can hold, in milliseconds.
_NANO_MILLIS = (1 << 63) // 1_000_000


def metrics_from_tail(
    layout: OrcLayout, leaves: Sequence[FileLeaf], schema: Schema, modes: Mapping[int, MetricsMode]
) -> ColumnMetrics:
    """Metrics of an ORC file; fields in lists and maps have sizes only, a column without statistics has none."""
    metrics = ColumnMetrics()
    columns = layout.leaf_columns()
    times = Counter(leaf.field_id for leaf in leaves)
    for leaf in leaves:
        known = None if leaf.field_id is None else schema.index_by_id.get(leaf.field_id)
        if leaf.field_id is None or known is None or times[leaf.field_id] > 1 or leaf.index >= len(columns):
            continue
        mode = modes.get(leaf.field_id, NONE)
        found = layout.statistics(columns[leaf.index])
        if not mode.counts or found is None:
            continue
        if _BYTES_ON_DISK in found:
            metrics.column_sizes[leaf.field_id] = int(found[_BYTES_ON_DISK][-1])
        values = int(found.get(_VALUES, [-1])[-1])
        if leaf.repeated or not 0 <= values <= layout.rows:
            continue
        metrics.value_counts[leaf.field_id] = layout.rows
        metrics.null_value_counts[leaf.field_id] = layout.rows - values
        if layout.merges_texts_wrongly and isinstance(known.field_type, StringType):
            continue
        if mode.bounds and layout.kind(columns[leaf.index]) != CHAR:  # whose statistics may lack the padding
            _add_bounds(metrics, leaf.field_id, known.field_type, leaf.type, found, mode.width)
    return metrics


def _add_bounds(
    metrics: ColumnMetrics,
    field_id: int,
    kind: IcebergType,
    arrow: pa.DataType,
    found: dict[int, list[Any]],
    width: int | None,
) -> None:
    bounds = _bounds(kind, found)
    if bounds is not None and not (pa.types.is_decimal(arrow) and not isinstance(kind, DecimalType)):
        lower, upper = bounds_to_bytes(kind, *bounds, width)
        metrics.lower_bounds[field_id] = lower
        if upper is not None:
            metrics.upper_bounds[field_id] = upper


def _bounds(kind: IcebergType, found: dict[int, list[Any]]) -> tuple[Any, Any] | None:
    """The least and the greatest value, or values beyond them; None if the statistics do not tell."""
    if isinstance(kind, (IntegerType, LongType)):
        return _pair(found, _INTS, 1, _signed)
    if isinstance(kind, DateType):
        return _pair(found, _DATES, 1, _signed)
    if isinstance(kind, (FloatType, DoubleType)):
        return _doubles(found)
    if isinstance(kind, DecimalType):
        return _decimals(kind, found)
    if isinstance(kind, StringType):
        return _pair(found, _TEXTS, 1, bytes.decode) or _pair(found, _TEXTS, 4, bytes.decode)
    if isinstance(kind, MICRO_TIMESTAMPS):
        millis = timestamp_range(found)
        return None if millis is None else ((millis[0] - 1) * 1000, (millis[1] + 1) * 1000 + 999)
    return None


def timestamp_range(found: dict[int, list[Any]]) -> tuple[int, int] | None:
    """The least and the greatest timestamp of a column in milliseconds, cut off; None if nothing tells."""
    return _pair(found, _TIMESTAMPS, 3, _signed)


def date_range(found: dict[int, list[Any]]) -> tuple[int, int] | None:
    """The least and the greatest date of a column in days; None if nothing tells."""
    return _pair(found, _DATES, 1, _signed)


def problems_of(layout: OrcLayout, of_iceberg: bool) -> list[str]:
    """Why readers of Iceberg would return other values of a file than its writer meant, or none. In files that Iceberg
    wrote days are proleptic, whatever Java's writer says of them."""
    problems = []
    for column in layout.leaf_columns():
        found = layout.statistics(column) or {}
        days, millis = date_range(found), timestamp_range(found)
        julian = (days and days[0] < GREGORIAN_DAYS) or (millis and millis[0] < GREGORIAN_DAYS * _DAY_MILLIS)
        if julian and not layout.is_proleptic and not of_iceberg:
            problems.append(
                "holds days before 1582-10-15, counted in the Julian calendar, in which no reader of Iceberg counts"
            )
        elif millis and max(-millis[0], millis[1]) >= _NANO_MILLIS:
            zones = {layout.footer(stripe).timezone for stripe in layout.stripes} - UTC_NAMES
            if zones:
                problems.append(
                    f"holds timestamps outside of 1677 to 2262 that were written in time zone {min(zones)}, and such "
                    "ones are read in UTC only"
                )
    return problems


def _pair(found: dict[int, list[Any]], number: int, first: int, decode: Any) -> tuple[Any, Any] | None:
    """Two related statistics of a column, such as minimum and maximum; None if one is missing."""
    if number not in found:
        return None
    fields = message(found[number][-1])
    if first not in fields or first + 1 not in fields:
        return None
    try:
        return decode(fields[first][-1]), decode(fields[first + 1][-1])
    except UnicodeDecodeError:
        return None


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _doubles(found: dict[int, list[Any]]) -> tuple[float, float] | None:
    pair = _pair(found, _DOUBLES, 1, lambda raw: struct.unpack("<d", raw)[0])
    if pair is None or math.isnan(pair[0]) or math.isnan(pair[1]):
        return None
    return pair[0] or -0.0, pair[1] or 0.0  # -0.0 comes before 0.0


def _decimals(kind: DecimalType, found: dict[int, list[Any]]) -> tuple[Any, Any] | None:
    pair = _pair(found, _DECIMALS, 1, lambda raw: Decimal(raw.decode()))
    try:
        return None if pair is None else (from_python(kind, pair[0]), from_python(kind, pair[1]))
    except InvalidInputError:
        return None
