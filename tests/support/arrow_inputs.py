"""Arrow arrays in every layout of the format, each beside its values in plain Python."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.timezone.utc
Given = tuple[pa.Array, list[Any]]  # an array, and its values

_NUMBERS = [3, None, -7, 0]
_TEXTS = ["a text of more than twelve bytes", None, "", "ü"]
_TIMES = [dt.datetime(2020, 1, 2, 3, 4, 5), None, dt.datetime(1960, 2, 3, 4, 5, 6), dt.datetime(1970, 1, 1)]
_DATES = [dt.date(2020, 1, 2), None, dt.date(1960, 2, 3), dt.date(9999, 12, 31)]
_CLOCK = [dt.time(1, 2, 3), None, dt.time(), dt.time(23, 59, 59)]
_MONEY = [Decimal("1.50"), None, Decimal("-9999.99"), Decimal("0.00")]
_IDS = [uuid.UUID(int=1), None, uuid.UUID(int=2**128 - 1), uuid.UUID(int=3)]


def plain_leaves() -> dict[str, Given]:
    """Arrays of every type that is not nested and that a table can hold, with a null in each."""
    units = ("s", "ms", "us", "ns")
    zones = (None, "UTC", "+05:30", "Europe/Berlin")
    points = {None: _TIMES, "UTC": [each and each.replace(tzinfo=UTC) for each in _TIMES]}
    kinds: list[tuple[pa.DataType, list[Any]]] = [
        (pa.bool_(), [True, None, False, True]),
        *((kind, _NUMBERS) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *((kind, [3, None, 0, 200]) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
        *((kind, [1.5, None, math.nan, -math.inf]) for kind in (pa.float16(), pa.float32(), pa.float64())),
        *((make(6, 2), _MONEY) for make in (pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256)),
        *((kind, _TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
        *(
            (kind, [None if each is None else each.encode() for each in _TEXTS])
            for kind in (pa.binary(), pa.large_binary(), pa.binary_view())
        ),
        (pa.binary(2), [b"ab", None, b"\0\0", b"\xff\xff"]),
        *((kind, _DATES) for kind in (pa.date32(), pa.date64())),
        *((kind, _CLOCK) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))),
        *((pa.timestamp(unit, zone), points[zone and "UTC"]) for unit in units for zone in zones),
        (pa.json_(pa.string_view()), ['{"a": 1}', None, "[]", "null"]),
        (pa.null(), [None] * 4),
    ]
    found = {str(kind): (pa.array(values, kind), values) for kind, values in kinds}
    found["uuid"] = (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([each and each.bytes for each in _IDS], pa.binary(16))),
        _IDS,
    )
    found["bool8"] = (
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0, 5], pa.int8())),
        [True, None, False, True],
    )
    return found


# Each layout is made of four values, and has four rows.


def _dictionary(given: Given) -> Given:
    array, values = given  # with nulls in the dictionary, and values that none points at
    made = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 3, 0], pa.int8()).slice(0, 4), array)
    return made, [values[2], None, values[1], values[3]]


def _large_dictionary(given: Given) -> Given:
    array, values = given
    made = pa.DictionaryArray.from_arrays(pa.array([0, 3, 3, 1, 2], pa.uint64()).slice(1), array)
    return made, [values[3], values[3], values[1], values[2]]


def _runs(given: Given) -> Given:
    array, values = given
    made = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4, 9], pa.int16()), array)
    return made.slice(1, 4), values


def _list(given: Given) -> Given:
    array, values = given
    made = pa.ListArray.from_arrays(pa.array([0, 1, 2, 2, 4, 4], pa.int32()), array).slice(1)
    return made, [values[1:2], [], values[2:], []]


def _list_hiding(given: Given) -> Given:
    array, values = given
    offsets, mask = pa.array([0, 1, 3, 4, 4], pa.int64()), pa.array([False, True, False, False])
    return pa.LargeListArray.from_arrays(offsets, array, mask=mask), [values[:1], None, values[3:], []]


def _view(given: Given, large: bool = False) -> Given:
    """Ranges that overlap, go back, leave gaps, and hide behind a null."""
    array, values = given
    index = pa.int64() if large else pa.int32()
    kind = pa.LargeListViewArray if large else pa.ListViewArray
    mask = pa.array([False, False, True, False, False, False])
    made = kind.from_arrays(pa.array([3, 2, 0, 0, 1, 4], index), pa.array([1, 2, 4, 2, 2, 0], index), array, mask=mask)
    return made.slice(1, 4), [values[2:4], None, values[0:2], values[1:3]]


def _large_view(given: Given) -> Given:
    return _view(given, large=True)


def _fixed(given: Given) -> Given:
    array, values = given
    wide = pa.concat_arrays([array, array, array.slice(0, 2)])
    made = pa.FixedSizeListArray.from_arrays(wide, 2, mask=pa.array([False, True, False, False, False]))
    return made.slice(1), [None, values[:2], values[2:], values[:2]]


def _struct(given: Given) -> Given:
    """A null struct over fields that have values there; fields of which one begins later than the other."""
    array, values = given
    fields = [pa.field("x", array.type), pa.field("n", pa.int32())]
    numbers = pa.array(range(5), pa.int32()).slice(1)
    hidden = pa.array([False, False, True, False])
    made = pa.StructArray.from_arrays([array, numbers], fields=fields, mask=hidden)
    return made, [None if place == 2 else {"x": value, "n": place + 1} for place, value in enumerate(values)]


def _map(given: Given) -> Given:
    """A map whose entries begin later than their keys and values, with a key twice."""
    array, values = given
    fields = [pa.field("key", pa.string_view(), False), pa.field("value", array.type)]
    keys = pa.array(["0", "1", "1", "3"], pa.string_view())
    entries = pa.StructArray.from_arrays([keys, array], fields=fields).slice(1)
    offsets = pa.array([0, 2, 2, 3, 3], pa.int32()).buffers()[1]
    made = pa.Array.from_buffers(pa.map_(*fields), 4, [None, offsets], children=[entries])
    return made, [[("1", values[1]), ("1", values[2])], [], [("3", values[3])], []]


LAYOUTS: dict[str, Callable[[Given], Given]] = {
    "plain": lambda given: given,
    "dictionary": _dictionary,
    "dictionary of large index": _large_dictionary,
    "runs": _runs,
    "list": _list,
    "large list with hidden values": _list_hiding,
    "list view": _view,
    "large list view": _large_view,
    "fixed list": _fixed,
    "struct": _struct,
    "map": _map,
}


def comparable(value: Any) -> Any:
    """Values of Arrow in any layout as ones that are equal if they say the same."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(each) for each in value]
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dt.datetime):
        return dt.datetime.isoformat(value.astimezone(UTC) if value.tzinfo else value)
    return value.bytes if isinstance(value, uuid.UUID) else value
