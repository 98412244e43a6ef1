"""Rows as users have them: Arrow's tables and streams, and frames of pandas, polars and others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hms_iceberg.errors import InvalidInputError, SchemaMismatchError, TypeMismatchError
from hms_iceberg.lazy import was_left_behind

if TYPE_CHECKING:
    import pandas as pd

_BATCH_ROWS = 1_048_576

# pyarrow.Table, RecordBatch or RecordBatchReader, an iterable of batches, or anything with __arrow_c_stream__.
ArrowInput = Any


def batches_of(data: ArrowInput) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """The batches of anything that can be written, and their schema. A named index of a pandas frame is a column; an
    unnamed one is told by `arrow_schema.unnamed_index`."""
    if _is_pandas(data):
        data = _of_pandas(data)
    elif was_left_behind(data) and hasattr(data, "get_columns"):
        data = pa.table({column.name: pa.chunked_array(column) for column in data.get_columns()})
    if isinstance(data, pa.RecordBatch):
        return [data], data.schema
    if isinstance(data, pa.Table):
        return data.to_batches(max_chunksize=_BATCH_ROWS), data.schema
    if isinstance(data, pa.RecordBatchReader):
        return data, data.schema
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowException as error:  # such as of polars' 128-bit integers
            raise TypeMismatchError(
                f"Cannot write {type(data).__name__}: pyarrow has no type for one of its columns ({error}). Cast that "
                "column first."
            ) from error
        return reader, reader.schema
    if isinstance(data, Iterable):
        iterator: Iterator[Any] = iter(data)
        first = next(iterator, None)
        if isinstance(first, pa.RecordBatch):
            return _chain(first, iterator), first.schema
        if first is None:
            raise InvalidInputError("Cannot write an empty iterable: its columns are unknown. Pass a pyarrow.Table.")
    raise TypeMismatchError(
        f"Cannot write {type(data).__name__}: expected a pyarrow.Table, RecordBatch or RecordBatchReader, batches, or "
        f"any object with __arrow_c_stream__ (polars, DuckDB, pandas)."
    )


def schema_of(data: ArrowInput | pa.Schema) -> pa.Schema:
    """The columns of anything that can be written; see `batches_of`."""
    return data if isinstance(data, pa.Schema) else batches_of(data)[1]


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _is_pandas(data: ArrowInput) -> bool:
    """Whether it is a frame of pandas, and not one that says itself what it is in Arrow."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return False
    return getattr(type(data), "__arrow_c_stream__", None) is getattr(pandas.DataFrame, "__arrow_c_stream__", None)


def _of_pandas(frame: pd.DataFrame) -> pa.Table:
    for level, name in enumerate(frame.index.names):
        if name is None or name not in frame.columns:
            continue
        column = frame[name]
        if column.ndim == 1 and not frame.index.get_level_values(level).equals(sys.modules["pandas"].Index(column)):
            raise SchemaMismatchError(
                f"Cannot write a frame of pandas that has both a column and an index {name!r}, whose values differ. "
                "Rename one of them, or leave the index out (reset_index(drop=True))."
            )
    try:
        return pa.Table.from_pandas(frame, preserve_index=True)
    except pa.ArrowException as error:
        raise TypeMismatchError(
            f"Cannot write a frame of pandas: {'; '.join(map(str, error.args))}. Give the column one type first."
        ) from error
    except ValueError as error:  # columns of one name
        raise SchemaMismatchError(f"Cannot write a frame of pandas: {error}. Keep one of them.") from error
