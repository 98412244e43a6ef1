"""Reads rows of Parquet, Arrow, CSV and JSON files, batch by batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from hms_iceberg.cli.tables.row_values import count_type, from_json, is_text_in_csv
from hms_iceberg.errors import InvalidInputError, SchemaMismatchError, TypeMismatchError

FORMATS = ("parquet", "arrow", "csv", "json", "jsonl")
STANDARD_INPUT = Path("-")
_ENDINGS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_ARROW_MAGIC = b"ARROW1"
_JSON_ROWS = 50_000


def format_of(path: Path, given: str | None = None, option: str = "--format") -> str:
    """The format of a file: the given one, or that of its name's ending; `option` is named in the error."""
    if given is not None:
        return given
    found = _ENDINGS.get(path.suffix.lower())
    if found is None:
        raise InvalidInputError(
            f"Cannot tell the format of {path} by its name; expected an ending of {', '.join(_ENDINGS)}. Give {option}."
        )
    return found


def read_batches(path: Path, schema: pa.Schema, given: str | None = None, null: str = "") -> Iterator[pa.RecordBatch]:
    """The rows of a file (`-` is standard input) for the columns of `schema`, whose types text gets; `null` is the
    unquoted text for null in CSV."""
    kind = format_of(path, given)
    try:
        with _opened(path) as stream:
            yield from _batches(stream, kind, schema, null)
    except (SchemaMismatchError, TypeMismatchError) as error:
        raise error.with_message(f"Cannot read {path} as {kind}: {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, (InvalidInputError, BrokenPipeError)):
            raise
        raise InvalidInputError(f"Cannot read {path} as {kind}: {error}") from error


def schema_of_file(path: Path) -> pa.Schema:
    """The columns of a file; those of CSV and JSON as Arrow guesses them."""
    kind = format_of(path)
    try:
        if kind == "parquet":
            return pq.read_schema(path)
        with path.open("rb") as stream:
            if kind == "arrow":
                return _arrow_reader(stream).schema
            if kind == "csv":
                return csv.open_csv(stream).schema
        rows = list(islice(_json_objects(BytesIO(path.read_bytes())), 1000))
        return pa.Table.from_pylist(json.loads(json.dumps(rows, default=float))).schema
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"Cannot read the columns of {path}: {error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with path.open("rb") as stream:
        yield stream


def _batches(stream: BinaryIO, kind: str, schema: pa.Schema, null: str) -> Iterator[pa.RecordBatch]:
    if kind == "parquet":
        source = stream if stream.seekable() else BytesIO(stream.read())
        yield from pq.ParquetFile(source).iter_batches()
    elif kind == "arrow":
        yield from _arrow_reader(stream)
    elif kind == "csv":
        yield from _csv_batches(stream, schema, null)
    else:
        yield from _json_batches(stream, schema)


def _arrow_reader(stream: BinaryIO) -> Any:
    """A reader of an Arrow file or of an Arrow stream, whichever it is."""
    if not stream.seekable():
        return pa.ipc.open_stream(stream)
    begin = stream.read(len(_ARROW_MAGIC))
    stream.seek(0)
    if begin != _ARROW_MAGIC:
        return pa.ipc.open_stream(stream)
    reader = pa.ipc.open_file(stream)
    return pa.RecordBatchReader.from_batches(
        reader.schema, (reader.get_batch(index) for index in range(reader.num_record_batches))
    )


def _csv_batches(stream: BinaryIO, schema: pa.Schema, null: str) -> Iterator[pa.RecordBatch]:
    """Batches of CSV; columns of types that CSV has no form for are read as text of JSON; see `row_values`."""
    as_json = {field.name: field.type for field in schema if is_text_in_csv(field.type)}
    types = {field.name: pa.string() if field.name in as_json else field.type for field in schema}
    options = csv.ConvertOptions(
        column_types=types, null_values=[null], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    for batch in csv.open_csv(stream, convert_options=options):
        columns = [
            _from_csv_text(column, as_json[name], name) if name in as_json else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _from_csv_text(column: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    nested = pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType)
    texts = column.to_pylist()
    if nested:
        texts = [None if text is None else _parsed(text) for text in texts]
    return _array(texts, kind, name)


def _json_batches(stream: BinaryIO, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    objects = _json_objects(stream)
    types = {field.name: field.type for field in schema}
    while rows := list(islice(objects, _JSON_ROWS)):
        for row in rows:
            unknown = row.keys() - types.keys()
            if unknown:
                raise SchemaMismatchError(
                    f"The table has no columns {sorted(unknown)}; it has {', '.join(types)}. Add them to the table or "
                    "leave them out."
                )
        columns = [_array([row.get(name) for row in rows], kind, name) for name, kind in types.items()]
        yield pa.RecordBatch.from_arrays(columns, names=list(types))


def _json_objects(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """The objects of lines, or of one array."""
    lines = (line for line in stream if line.strip())
    first = next(lines, None)
    if first is None:
        return
    if first.lstrip().startswith(b"["):
        found = _parsed(first + b"".join(lines))
        yield from map(_object, found)
        return
    yield _object(_parsed(first))
    for line in lines:
        yield _object(_parsed(line))


def _parsed(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeMismatchError(f'A row of JSON is an object, such as {{"id": 1}}; found {value!r:.100}.')
    return value


def _array(values: list[Any], kind: pa.DataType, name: str) -> pa.Array:
    """Values of JSON as a column of a type."""
    convert = from_json(kind, name)
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    found = pa.array([convert(value) for value in values], count_type(storage))
    found = found if found.type == storage else found.cast(storage)
    return pa.ExtensionArray.from_storage(kind, found) if isinstance(kind, pa.BaseExtensionType) else found
