"""Sorting more rows than fit into memory: sorted runs on disk, merged range by range."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from hms_iceberg.arrow.rows.row_order import RowOrder

_BATCH_ROWS = 131_072
_RUN_BATCH_ROWS = 16_384


def sorted_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: RowOrder, memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """All rows in order.

    Rows that do not fit are kept as sorted runs in the temporary folder of the machine, which needs room for them, and
    then merged one range of keys after the other, so that memory holds one range at a time.

    Args:
        batches: the rows.
        schema: their columns.
        order: how to sort.
        memory_bytes: about how many bytes of rows are kept in memory at once.

    Yields:
        Batches; none is empty.
    """
    with tempfile.TemporaryDirectory(prefix="hms-iceberg-sort-") as folder:
        runs: list[_Run] = []
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size > memory_bytes // 2:  # sorting copies them
                runs.append(_Run(Path(folder, f"{len(runs)}.arrow"), _in_order(waiting, schema, order)))
                waiting, size = [], 0
        if not runs:
            yield from _in_order(waiting, schema, order).to_batches(max_chunksize=_BATCH_ROWS)
            return
        if waiting:
            runs.append(_Run(Path(folder, f"{len(runs)}.arrow"), _in_order(waiting, schema, order)))
        del waiting
        yield from _merged(runs, schema, order, memory_bytes)


def _in_order(batches: list[pa.RecordBatch], schema: pa.Schema, order: RowOrder) -> pa.Table:
    return order.sort(pa.Table.from_batches(batches, schema))


class _Run:
    """Sorted rows in a file, read if they are asked for."""

    def __init__(self, path: Path, rows: pa.Table) -> None:
        batches = rows.to_batches(max_chunksize=_RUN_BATCH_ROWS)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        self.firsts = [batch.take([0]) for batch in batches]
        self.bytes = rows.nbytes
        # Read and not mapped: pages of a mapped file count as memory of the process.
        self._batches = pa.ipc.open_file(pa.OSFile(str(path), "rb"))
        self._count = len(batches)

    def cut(self, row: pa.RecordBatch, order: RowOrder, after: bool) -> tuple[int, int]:
        """Where the rows begin that are not below another row, or those above it: a batch's number, a row in it."""
        number = _rank(row, self.firsts, order, after)
        if number == 0:
            return 0, 0
        return number - 1, _rank(row, [self._batches.get_batch(number - 1)], order, after)

    def rows(self, start: tuple[int, int], end: tuple[int, int] | None) -> Iterator[pa.RecordBatch]:
        """The rows from one place to another; to the end where there is none."""
        last = (self._count, 0) if end is None else end
        for number in range(start[0], min(last[0] + 1, self._count)):
            first = start[1] if number == start[0] else 0
            batch = self._batches.get_batch(number)
            stop = last[1] if number == last[0] else batch.num_rows
            if first < stop:
                yield batch.slice(first, stop - first)


def _rank(row: pa.RecordBatch, ordered: list[pa.RecordBatch], order: RowOrder, after: bool) -> int:
    """How many of the ordered rows are below a row, or equal to it as well."""
    count = sum(batch.num_rows for batch in ordered)
    positions = order.positions(order.keys([*ordered, row] if after else [row, *ordered]))
    return int((positions == (count if after else 0)).arg_true()[0])


def _merged(runs: list[_Run], schema: pa.Schema, order: RowOrder, memory_bytes: int) -> Iterator[pa.RecordBatch]:
    """Rows between two bounds are sorted together; those equal to a bound, which may be many, need no sorting."""
    firsts = order.sort(pa.Table.from_batches([row for run in runs for row in run.firsts], schema))
    # A range is in memory as it is read, as it is sorted, and as it waits to be written.
    step = max(1, firsts.num_rows * memory_bytes // (4 * sum(run.bytes for run in runs)))
    starts: list[tuple[int, int]] = [(0, 0)] * len(runs)
    for at in [*range(step, firsts.num_rows, step), None]:
        if at is None:
            yield from _between(runs, starts, [None] * len(runs), schema, order)
            return
        bound = firsts.slice(at, 1).combine_chunks().to_batches()[0]
        begins = [run.cut(bound, order, after=False) for run in runs]
        if any(begin > start for start, begin in zip(starts, begins, strict=True)):
            yield from _between(runs, starts, begins, schema, order)
        ends = [run.cut(bound, order, after=True) for run in runs]
        for run, begin, start, end in zip(runs, begins, starts, ends, strict=True):
            yield from run.rows(max(begin, start), end)
        starts = ends


def _between(
    runs: list[_Run],
    starts: Sequence[tuple[int, int]],
    ends: Sequence[tuple[int, int] | None],
    schema: pa.Schema,
    order: RowOrder,
) -> Iterator[pa.RecordBatch]:
    parts = [part for run, start, end in zip(runs, starts, ends, strict=True) for part in run.rows(start, end)]
    if parts:
        yield from _in_order(parts, schema, order).to_batches(max_chunksize=_BATCH_ROWS)
