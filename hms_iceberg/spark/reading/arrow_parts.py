"""Rows that cross to the bridge as Arrow, in a file that only this user can read, in parts that fit into tasks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

PART_BYTES = 6_000_000  # of Arrow: more of them are read by several tasks
_TASK_BYTES = 800_000  # compressed: Spark warns of tasks that are larger than a megabyte


def written(encoded: Iterable[Iterable[tuple[pa.Buffer, int]]]) -> dict[str, Any]:
    """Writes parts, with the numbers of their rows, into a file that the caller deletes: its `path` and `parts`. Of
    each part the answer tells how many bytes and how many rows it has."""
    handle, path = tempfile.mkstemp(prefix="hms-iceberg-", suffix=".arrows")
    try:
        with os.fdopen(handle, "wb") as file:
            parts = [[file.write(data), rows] for some in encoded for data, rows in some]
    except BaseException:
        os.unlink(path)  # made above under a random name, which only the answer would tell
        raise
    return {"path": path, "parts": parts}


def encoded_parts(batch: pa.RecordBatch) -> Iterator[tuple[pa.Buffer, int]]:
    """Rows as several parts if there are many."""
    part_rows = max(1, batch.num_rows * PART_BYTES // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, part_rows):
        yield from encoded_part(batch.slice(start, part_rows))


def encoded_part(part: pa.RecordBatch) -> Iterator[tuple[pa.Buffer, int]]:
    """Rows as Arrow streams in Zstandard that are small enough for a task."""
    raw = pa.BufferOutputStream()
    with pa.ipc.new_stream(raw, part.schema) as stream:
        stream.write_batch(part)
    encoded = pa.Codec("zstd", compression_level=1).compress(raw.getvalue())
    if encoded.size <= _TASK_BYTES or part.num_rows == 1:
        yield encoded, part.num_rows
        return
    half = part.num_rows // 2
    yield from encoded_part(part.slice(0, half))
    yield from encoded_part(part.slice(half))
