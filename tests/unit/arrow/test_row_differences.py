from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.rows.row_identity import differs, key_frame

NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"),
    [
        (pa.int64(), [1, 2, None, None], [1, 3, None, 4], [False, True, False, True]),
        (pa.float64(), [NAN, NAN, 0.0, None], [NAN, 1.0, -0.0, NAN], [False, True, False, True]),
        (pa.string(), ["a", "b"], ["a", None], [False, True]),
        (pa.binary(2), [b"ab", b"ab"], [b"ab", b"ac"], [False, True]),
        (pa.bool_(), [True, False], [True, True], [False, True]),
        (pa.decimal128(5, 2), [Decimal("1.00")], [Decimal("1.01")], [True]),
        (pa.timestamp("us", tz="UTC"), [dt.datetime(2020, 1, 1)], [dt.datetime(2020, 1, 1)], [False]),
        (pa.list_(pa.int32()), [[1], [], None, [1, 2]], [[1], [None], [], [2, 1]], [False, True, True, True]),
        (pa.list_(pa.float64()), [[NAN], [1.0, 2.0], [3.0]], [[NAN], [1.0, 2.0], [4.0]], [False, False, True]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)], [("a", 1)]], [[("a", 1)], [("b", 1)]], [False, True]),
        (
            pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))]),
            [{"x": 1, "y": [1]}, {"x": 1, "y": [1]}, None, {"x": None, "y": None}],
            [{"x": 1, "y": [1]}, {"x": 1, "y": [2]}, None, None],
            [False, True, False, True],
        ),
    ],
)
def test_rows_differ_where_their_values_do(kind: pa.DataType, left: Any, right: Any, expected: list[bool]) -> None:
    one, other = pa.array(left, kind), pa.array(right, kind)
    assert differs(one, other).tolist() == expected
    assert differs(other, one).tolist() == expected
    assert not differs(one, one).any()
    # Slices compare their own values, not those of the arrays around them.
    padding = pa.array([left[0]], kind)
    sliced = pa.concat_arrays([padding, one, padding]).slice(1, len(one))
    assert differs(sliced, other).tolist() == expected


def test_uuids_are_compared_by_their_bytes() -> None:
    storage = pa.array([b"a" * 16, b"b" * 16], pa.binary(16))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    assert differs(uuids, storage).tolist() == [False, False]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float32(), [0.0, -0.0]),
        (pa.float64(), [NAN, -NAN]),
        (pa.decimal128(30, 2), [Decimal("1.00"), Decimal("1")]),
        (pa.string(), [None, None]),
        (pa.binary(2), [b"ab", b"ab"]),
        (pa.time64("us"), [dt.time(1), dt.time(1)]),
    ],
)
def test_equal_keys_are_equal_in_a_frame(kind: pa.DataType, values: list[Any]) -> None:
    chunked = pa.chunked_array([pa.array(values[:1], kind), pa.array(values[1:], kind)])
    assert key_frame([chunked, pa.array([1, 1])]).is_duplicated().all()
