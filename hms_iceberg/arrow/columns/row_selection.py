"""Some rows of a batch, taken of one column after the other."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# With fewer gaps, runs of rows are copied sooner than row after row.
_FEWEST_GAPS = 0.02


class RowSelection:
    """Rows of a batch.

    Args:
        chosen: a numpy array of booleans, which is not changed any more.

    Attributes:
        rows: how many are chosen.
    """

    def __init__(self, chosen: Any) -> None:
        self._chosen = chosen
        self.rows = int(np.count_nonzero(chosen))

    def of(self, column: pa.Array) -> pa.Array:
        """The chosen rows of a column of the batch."""
        if self.rows > len(column) * (1 - _FEWEST_GAPS):
            return column.filter(self._mask)
        return pc.take(column, self._numbers, boundscheck=False)  # up to ten times as fast as a filter

    @cached_property
    def _mask(self) -> pa.BooleanArray:
        return pa.array(self._chosen)

    @cached_property
    def _numbers(self) -> pa.Array:
        return pa.array(np.flatnonzero(self._chosen).astype(np.uint32))  # half the bytes to go through, a column each
