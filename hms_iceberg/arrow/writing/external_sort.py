"""Rows that do not fit into memory: kept on disk by partition, or sorted in runs that are merged."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from hms_iceberg.arrow.rows.partition_split import grouped
from hms_iceberg.arrow.rows.row_order import RowOrder
from hms_iceberg.errors import StorageError
from hms_iceberg.private_files import temporary_folder


@contextmanager
def room_for(what: str, otherwise: str = "") -> Iterator[None]:
    """Runs a block that writes to a temporary folder; its errors name the folder and the remedy."""
    try:
        yield
    except OSError as error:
        also = f", or {otherwise}" if otherwise else ""
        raise StorageError(
            f"Cannot keep {what} in the temporary folder {_folder()}: {error}. Let TMPDIR name a folder with room for "
            f"the rows that are written{also}."
        ) from error


def _folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:  # there is none in which anything can be written
        return os.environ.get("TMPDIR", "/tmp")


_BATCH_ROWS = 131_072
# For a range of keys, whole batches of every run are in memory, and a large table has many runs.
_RUN_BATCH_BYTES = 256 * 1024
_SORTED = "rows that are sorted"

# Where rows begin in a run: the number of a batch, and of a row in it.
_Place = tuple[int, int]
_START: _Place = (0, 0)


@contextmanager
def sorted_parts(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    order: RowOrder,
    memory_bytes: int,
    parts: int = 1,
    readers: int = 1,
) -> Iterator[list[Iterable[pa.RecordBatch]]]:
    """All rows in order, in consecutive parts of about as many rows each, `readers` of which are read side by side
    while the context is open. Rows beyond `memory_bytes` become sorted runs in the machine's temporary folder, merged
    one range of keys after the other."""
    sort = _Sort(schema, order)
    with room_for(_SORTED):
        folder = temporary_folder("sort")
    try:
        runs, rest = sort.spilled(batches, folder, memory_bytes)
        yield sort.merged(runs, memory_bytes // readers, parts) if runs else sort.sliced(rest, parts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Sort:
    def __init__(self, schema: pa.Schema, order: RowOrder) -> None:
        self._schema = schema
        self._order = order

    def spilled(
        self, batches: Iterable[pa.RecordBatch], folder: Path, memory_bytes: int
    ) -> tuple[list[_SortedRun], list[pa.RecordBatch]]:
        """Sorted runs, or the rows if they fit into memory; one run is sorted while the next is read."""
        runs: list[_SortedRun] = []
        sorting: Future[_SortedRun] | None = None
        waiting: list[pa.RecordBatch] = []
        size = 0
        with ThreadPoolExecutor(1, thread_name_prefix="iceberg-sort") as background:
            for batch in batches:
                waiting.append(batch)
                size += batch.nbytes
                if size > memory_bytes // 3:  # sorting copies the rows of another run
                    if sorting is not None:
                        runs.append(sorting.result())
                    sorting = background.submit(self._spill, waiting, folder / f"{len(runs)}.arrow")
                    waiting, size = [], 0
            if sorting is None:
                return [], waiting
            runs.append(sorting.result())
        if waiting:
            runs.append(self._spill(waiting, folder / f"{len(runs)}.arrow"))
        return runs, []

    def sliced(self, batches: list[pa.RecordBatch], parts: int) -> list[Iterable[pa.RecordBatch]]:
        rows = self._in_order(batches)
        size = -(-rows.num_rows // parts)
        return [rows.slice(part * size, size).to_batches(max_chunksize=_BATCH_ROWS) for part in range(parts)]

    def merged(self, runs: list[_SortedRun], memory_bytes: int, parts: int) -> list[Iterable[pa.RecordBatch]]:
        """The parts of all runs, of which so many bytes each are in memory at once."""
        marks = self._in_order([run.middles for run in runs]).combine_chunks().to_batches()[0]
        # A range is in memory as it is read, as it is sorted, and as it waits to be written.
        step = max(1, marks.num_rows * memory_bytes // (4 * sum(run.bytes for run in runs)))
        begins = [marks.num_rows * part // parts for part in range(parts + 1)]
        places = [[run.cut(marks.slice(at, 1), self._order)[0] for run in runs] for at in begins[1:-1]]
        places = [[_START] * len(runs), *places, [run.end for run in runs]]
        bounds = [[marks.slice(at, 1) for at in range(*ends)[step::step]] for ends in pairwise(begins)]
        return [self._merge(runs, places[part], bounds[part], places[part + 1]) for part in range(parts)]

    def _merge(
        self, runs: list[_SortedRun], starts: Sequence[_Place], bounds: list[pa.RecordBatch], stops: Sequence[_Place]
    ) -> Iterator[pa.RecordBatch]:
        """Rows between two bounds are sorted together; those equal to a bound, which may be many, need no sorting."""
        for bound in bounds:
            cuts = [run.cut(bound, self._order) for run in runs]
            begins = [min(below, stop) for (below, _), stop in zip(cuts, stops, strict=True)]
            yield from self._between(runs, starts, begins)
            ends = [min(upto, stop) for (_, upto), stop in zip(cuts, stops, strict=True)]
            for run, start, begin, end in zip(runs, starts, begins, ends, strict=True):
                yield from run.rows(max(begin, start), end)
            starts = ends
        yield from self._between(runs, starts, stops)

    def _between(
        self, runs: list[_SortedRun], starts: Sequence[_Place], ends: Sequence[_Place]
    ) -> Iterator[pa.RecordBatch]:
        parts = [part for run, start, end in zip(runs, starts, ends, strict=True) for part in run.rows(start, end)]
        if parts:
            yield from self._in_order(parts).to_batches(max_chunksize=_BATCH_ROWS)

    def _spill(self, batches: list[pa.RecordBatch], path: Path) -> _SortedRun:
        return _SortedRun(path, self._in_order(batches))

    def _in_order(self, batches: list[pa.RecordBatch]) -> pa.Table:
        return self._order.sort(pa.Table.from_batches(batches, self._schema))


class _SortedRun:
    """Sorted rows in a file, read if they are asked for."""

    def __init__(self, path: Path, rows: pa.Table) -> None:
        batches = rows.to_batches(max_chunksize=max(1, _RUN_BATCH_BYTES * rows.num_rows // max(rows.nbytes, 1)))
        with room_for(_SORTED), pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        self._path = str(path)
        self.firsts = pa.concat_batches([batch.take([0]) for batch in batches])
        self.middles = pa.concat_batches([batch.take([batch.num_rows // 2]) for batch in batches])
        self.bytes = rows.nbytes
        self.end = (len(batches), 0)

    def cut(self, row: pa.RecordBatch, order: RowOrder) -> tuple[_Place, _Place]:
        """The first row that is not below a given row, and the first that is above it."""
        numbers = _ranks(row, [self.firsts], order)
        with self._opened() as batches:
            ranks = {number: _ranks(row, [batches.get_batch(number - 1)], order) for number in set(numbers) if number}
        below, upto = [(number - 1, ranks[number][at]) if number else _START for at, number in enumerate(numbers)]
        return below, upto

    def rows(self, start: _Place, end: _Place) -> Iterator[pa.RecordBatch]:
        """The rows from one place to another."""
        if start >= end:
            return
        with self._opened() as batches:
            for number in range(start[0], end[0] + (end[1] > 0)):
                first = start[1] if number == start[0] else 0
                batch = batches.get_batch(number)
                stop = end[1] if number == end[0] else batch.num_rows
                if first < stop:
                    yield batch.slice(first, stop - first)

    @contextmanager
    def _opened(self) -> Iterator[pa.RecordBatchFileReader]:
        """The file, for one reader; it is read and not mapped, as mapped pages count as memory of the process."""
        with pa.OSFile(self._path, "rb") as file, pa.ipc.open_file(file) as reader:
            yield reader


def _ranks(row: pa.RecordBatch, ordered: list[pa.RecordBatch], order: RowOrder) -> tuple[int, int]:
    """The numbers of ordered rows that are below a row, and that are not above it."""
    count = sum(batch.num_rows for batch in ordered)
    positions = order.positions(order.keys([row, *ordered, row]))
    below, upto = (positions == 0).arg_true()[0], (positions == count + 1).arg_true()[0]
    return int(below), int(upto) - 1


# Each share is written in pieces, one for every batch that comes in.
_SHARES = 64


class PartitionSpill:
    """Keeps rows, beyond `memory_bytes` in a temporary file without a name, and gives them back in shares that hold all
    rows of some partitions; each `level` deals the partitions out anew."""

    def __init__(self, memory_bytes: int, level: int) -> None:
        self._memory_bytes = memory_bytes
        self._level = level
        self._held: list[tuple[pa.RecordBatch, Any]] = []
        self._bytes = 0
        self._file: BinaryIO | None = None
        self._schema: pa.Schema | None = None
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(_SHARES)]

    def add(self, batch: pa.RecordBatch, partitions: Sequence[Any], codes: Any) -> None:
        """Adds rows, whose partitions are told apart by their `repr`; `codes` numbers each row's partition."""
        dealt = np.array(
            [crc32(repr(each).encode()) // _SHARES**self._level % _SHARES for each in partitions], np.uint8
        )
        self._held.append((batch, dealt[codes]))
        self._bytes += batch.nbytes
        if self._bytes <= self._memory_bytes:
            return
        self._write()

    def _write(self) -> None:
        with room_for("rows of many partitions", otherwise="sort them by partition before"):
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="hms-iceberg-partitions-")  # noqa: SIM115
            while self._held:
                batch, shares = self._held.pop(0)
                self._schema = batch.schema
                for pieces, rows in zip(self._pieces, grouped(batch, shares, _SHARES), strict=True):
                    if rows.num_rows:
                        start = self._file.tell()
                        self._file.write(memoryview(rows.serialize()))
                        pieces.append((start, self._file.tell() - start))
            self._file.flush()

    def shares(self) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """Bytes of the rows of each share, and the rows in the order in which they came; nothing is kept afterwards."""
        if self._file is None:
            held, self._held = self._held, []
            yield self._bytes, (batch for batch, _ in held)
            return
        self._write()
        for pieces in self._pieces:
            yield sum(size for _, size in pieces), self._read(pieces)

    def _read(self, pieces: list[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        assert self._file is not None
        for start, size in pieces:
            yield pa.ipc.read_record_batch(pa.py_buffer(os.pread(self._file.fileno(), size, start)), self._schema)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
