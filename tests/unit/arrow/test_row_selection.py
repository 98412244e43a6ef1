"""Rows of a batch that are taken of columns, of all kinds, beside what Python's own lists give."""

from __future__ import annotations

from decimal import Decimal
from itertools import compress

import numpy as np
import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.nested import RowSelection

ROWS = 1000
COLUMNS = [
    pa.nulls(ROWS),
    pa.array([True, None] * (ROWS // 2)),
    pa.array(range(ROWS)),
    pa.array([None if row % 3 else -row for row in range(ROWS)], pa.int32()),
    pa.array([Decimal("-1.10"), None] * (ROWS // 2)),
    pa.array([b"\x00\xff", None] * (ROWS // 2), pa.binary(2)),
    pa.array([None if row % 5 == 0 else "x" * (row % 7) for row in range(ROWS)]),
    pa.array(["a", None] * (ROWS // 2)).dictionary_encode(),
    pa.array([None if row % 7 == 0 else {"a": row, "b": None} for row in range(ROWS)]),
    pa.array([None if row % 5 == 0 else [row, None] * (row % 3) for row in range(ROWS)]),
    pa.array([None if row % 4 == 0 else [("k", row)] for row in range(ROWS)], pa.map_(pa.string(), pa.int64())),
]


@pytest.mark.parametrize("part", [0, 0.01, 0.5, 0.9, 0.99, 1])
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_the_chosen_rows_are_taken_of_a_column_whether_they_are_many_or_few(column: pa.Array, part: float) -> None:
    chosen = np.random.default_rng(1).random(ROWS) < part
    selection = RowSelection(chosen)
    assert selection.rows == chosen.sum()
    for each in (column, pa.concat_arrays([column.slice(0, 1), column]).slice(1)):
        assert selection.of(each).to_pylist() == list(compress(each.to_pylist(), chosen))
