"""Rows of more partitions than files can be open at once: kept until all have come, on disk if memory is too small."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from hms_iceberg.arrow.rows.partition_split import grouped
from hms_iceberg.arrow.writing.temporary_folder import room_for

# Each share is written in pieces, one for every batch that comes in.
_SHARES = 64


class PartitionSpill:
    """Keeps rows, and gives them back in shares that each hold all rows of some of the partitions.

    What does not fit into memory is kept in a file without a name in the machine's temporary folder, uncompressed.

    Args:
        memory_bytes: rows that are kept in memory.
        level: how many spills the rows come through; each deals the partitions out anew.
    """

    def __init__(self, memory_bytes: int, level: int) -> None:
        self._memory_bytes = memory_bytes
        self._level = level
        self._held: list[tuple[pa.RecordBatch, Any]] = []
        self._bytes = 0
        self._file: BinaryIO | None = None
        self._schema: pa.Schema | None = None
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(_SHARES)]

    def add(self, batch: pa.RecordBatch, partitions: Sequence[Any], codes: Any) -> None:
        """Takes rows in.

        Args:
            batch: the rows.
            partitions: values whose `repr` tells the partitions apart.
            codes: numpy array of the number of each row's partition.

        Raises:
            StorageError: the temporary folder has no room.
        """
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
        """Bytes of the rows of each share, and the rows in the order in which they came; nothing is kept afterwards.

        Raises:
            StorageError: the temporary folder has no room.
        """
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
        """Gives the temporary file up."""
        if self._file is not None:
            self._file.close()
