"""Looking at the columns of a filter before the others are read.

Statistics rule out a row group if the values they bound cannot match. If they cannot tell (an unsorted key, say)
it may still pay to decode the filter's columns alone: if no row matches, the rest of the row group is never read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import pyarrow as pa

from hms_iceberg.arrow.formats.parquet_reader import RowRange
from hms_iceberg.arrow.formats.readers import ContentReader

# Columns of the filter are decoded twice if something matches, so they must be a small part of what is read.
_SMALL_PART = 0.25
_TRIES_WITHOUT_SUCCESS = 4
# Most row groups that match do so early, and nothing is decoded behind the first batch that does.
_BATCH_ROWS = 1 << 15


class Prefilter:
    """Decides for one scan whether row groups are looked at in two steps, and learns whether that pays."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tries = 0
        self._successes = 0

    def rules_out(
        self,
        reader: ContentReader,
        rows: RowRange,
        filter_leaves: Sequence[int],
        all_leaves: Sequence[int],
        matches: Callable[[pa.RecordBatch], bool],
        use_threads: bool,
    ) -> bool:
        """Whether certainly no row of a range matches; False also if it is not worth finding out.

        Args:
            reader: the open file.
            rows: the range.
            filter_leaves: leaves that the filter needs.
            all_leaves: leaves that the scan needs.
            matches: whether any row of a batch of the filter's leaves matches.
            use_threads: whether columns are decoded in parallel.
        """
        small = reader.bytes_of(rows, filter_leaves)
        if not filter_leaves or small > _SMALL_PART * reader.bytes_of(rows, all_leaves) or self._given_up():
            return False
        found = any(matches(batch) for _, batch in reader.read(rows, filter_leaves, _BATCH_ROWS, use_threads))
        with self._lock:
            self._tries += 1
            self._successes += not found
        return not found

    def _given_up(self) -> bool:
        with self._lock:
            return self._tries >= _TRIES_WITHOUT_SUCCESS * (1 + self._successes)
