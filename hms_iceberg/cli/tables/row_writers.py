"""Writes rows as JSON, JSON lines, CSV, Arrow and Parquet, batch by batch; each writer returns the number of rows."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from hms_iceberg.cli.tables.row_values import is_text_in_csv, json_values, text_type
from hms_iceberg.errors import StorageError
from hms_iceberg.printable import printable_json

Write = Callable[[pa.RecordBatchReader, BinaryIO], int]


def write_json(rows: pa.RecordBatchReader, to: BinaryIO) -> int:
    """Writes a JSON array of objects."""
    count = 0
    for line in _json_lines(rows):
        to.write(b",\n" if count else b"[")
        to.write(line)
        count += 1
    to.write(b"]\n" if count else b"[]\n")
    return count


def write_json_lines(rows: pa.RecordBatchReader, to: BinaryIO) -> int:
    """Writes an object of JSON a line."""
    count = 0
    for line in _json_lines(rows):
        to.write(line + b"\n")
        count += 1
    return count


def write_csv(rows: pa.RecordBatchReader, to: BinaryIO) -> int:
    """Writes CSV with the columns' names; text is quoted, and null is empty without quotes.

    Types that CSV has no form for (lists, maps, structs) are JSON; binary is text of hexadecimal digits.
    """
    from pyarrow import csv

    schema = pa.schema([(field.name, _csv_type(field.type)) for field in rows.schema])
    count = 0
    with csv.CSVWriter(to, schema) as writer:
        for batch in rows:
            columns = [_csv_column(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            count += batch.num_rows
    return count


def write_arrow(rows: pa.RecordBatchReader, to: BinaryIO) -> int:
    """Writes an Arrow stream, which is read from files and pipes alike."""
    return _written(rows, pa.ipc.new_stream(to, rows.schema))


def write_arrow_file(rows: pa.RecordBatchReader, to: BinaryIO) -> int:
    return _written(rows, pa.ipc.new_file(to, rows.schema))


def write_parquet(rows: pa.RecordBatchReader, to: BinaryIO) -> int:
    """Writes a Parquet file."""
    import pyarrow.parquet as pq

    return _written(rows, pq.ParquetWriter(to, rows.schema, compression="zstd"))


def _written(rows: pa.RecordBatchReader, writer: Any) -> int:
    count = 0
    with writer:
        for batch in rows:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


WRITERS: dict[str, Write] = {
    "json": write_json,
    "jsonl": write_json_lines,
    "csv": write_csv,
    "arrow": write_arrow,
    "parquet": write_parquet,
}


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears, or takes the place of another, when it is complete."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with part.open("xb") as stream:
            yield stream
        os.replace(part, path)
    except OSError as error:
        if error.filename is not None:
            raise
        raise StorageError(f"Cannot write {path}: {error}. Nothing was left there.") from error
    finally:
        part.unlink(missing_ok=True)


def standard_output() -> BinaryIO:
    """Standard output, for bytes."""
    return sys.stdout.buffer


def _json_lines(rows: pa.RecordBatchReader) -> Iterator[bytes]:
    names = rows.schema.names
    for batch in rows:
        for values in zip(*map(json_values, batch.columns), strict=True):
            yield printable_json(json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)).encode()


def _csv_type(kind: pa.DataType) -> pa.DataType:
    if is_text_in_csv(kind):
        return pa.string()
    return text_type(kind)


def _csv_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not is_text_in_csv(column.type):
        return column if column.type == kind else column.cast(kind)
    return pa.array([_csv_text(value) for value in json_values(column)], kind)


def _csv_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
