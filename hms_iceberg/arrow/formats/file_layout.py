"""The columns of a data file as they are written: names that every reader takes, ids, and no column of nulls only.

Source: Iceberg specification, "Appendix A: Format-specific Requirements".
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import child_fields, to_arrow
from hms_iceberg.arrow.columns.nested import children_of, conform, with_children
from hms_iceberg.arrow.formats.parquet_footer import has_no_name
from hms_iceberg.arrow.metrics.batch_metrics import BatchMetrics
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.encryption.gcm_stream import EncryptedOutput
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import (
    BinaryType,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    NestedType,
    StructType,
    UnknownType,
    leaves,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage


class FileLayout:
    """The layout of the columns of a table in a file."""

    def __init__(self, schema: Schema) -> None:
        self._table = schema
        self.schema = Schema(*_file_fields(schema.fields, ""), schema_id=schema.schema_id)
        self.arrow = to_arrow(Schema(*map(_plain_if_unnamed, self.schema.fields))).remove_metadata()
        self._drops = _has_unknown(schema.as_struct())

    def lay_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A plain batch of the table's columns as the file's columns."""
        columns = [
            _without_unknown(column, field.field_type) if self._drops else column
            for column, field in zip(batch.columns, self._table.fields, strict=True)
            if not isinstance(field.field_type, UnknownType)
        ]
        conformed = [conform(column, field.type) for column, field in zip(columns, self.arrow, strict=True)]
        return pa.RecordBatch.from_arrays(conformed, schema=self.arrow)


def sanitized(name: str) -> str:
    """A column name as Java writes it for Avro: characters other than letters, digits and `_` become `_x` and their
    UTF-16 number (`my_x20col`), and a leading digit gets a `_`."""
    units = name.encode("utf-16-be", "surrogatepass")
    characters = [chr(int.from_bytes(units[at : at + 2], "big")) for at in range(0, len(units), 2)]
    return "".join(_sanitized(character, at_start=not at) for at, character in enumerate(characters))


def _sanitized(character: str, at_start: bool) -> str:
    if character == "_" or character.isalpha():
        return character
    if character.isdecimal():
        return f"_{character}" if at_start else character
    return f"_x{ord(character):X}"


def _file_fields(fields: tuple[NestedField, ...], prefix: str) -> list[NestedField]:
    return [
        replace(field, name=sanitized(field.name), field_type=_file_type(field.field_type, prefix + field.name))
        for field in fields
        if not isinstance(field.field_type, UnknownType)
    ]


def _file_type(kind: IcebergType, path: str) -> IcebergType:
    if isinstance(kind, StructType):
        fields = _file_fields(kind.fields, path + ".")
        if not fields:
            raise UnsupportedError(f"Cannot write column {path!r}: Parquet has no form for a struct without fields.")
        return StructType(*fields)
    if isinstance(kind, NestedType):
        below = [(child, _known(child.field_type, path), f"{path}.{child.name}") for child in kind.children()]
        return kind.with_children([replace(child, field_type=_file_type(of, name)) for child, of, name in below])
    return kind


def _plain_if_unnamed(field: NestedField) -> NestedField:
    """A column whose shapes are bytes to a writer that cannot name their type."""
    kind = field.field_type
    if isinstance(kind, NestedType):
        return replace(field, field_type=kind.with_children([_plain_if_unnamed(each) for each in kind.children()]))
    is_shape = isinstance(kind, (GeometryType, GeographyType))
    return replace(field, field_type=BinaryType()) if is_shape and has_no_name(kind) else field


def _known(kind: IcebergType, path: str) -> IcebergType:
    if isinstance(kind, UnknownType):
        raise UnsupportedError(f"Cannot write column {path!r}: lists and maps of type unknown have no form in files.")
    return kind


def _has_unknown(kind: IcebergType) -> bool:
    return any(isinstance(each, UnknownType) for each in leaves(kind))


def _without_unknown(array: pa.Array, kind: IcebergType) -> pa.Array:
    """The array without columns of type unknown, at any depth."""
    if not isinstance(kind, NestedType) or not _has_unknown(kind):
        return array
    kept = [
        (_without_unknown(child, known.field_type), field)
        for child, known, field in zip(children_of(array), kind.children(), child_fields(array.type), strict=True)
        if not isinstance(known.field_type, UnknownType)
    ]
    return with_children(array, [child for child, _ in kept], [field for _, field in kept])


_PIECE_BYTES = 256 * 1024
# Memory of an open output, and of what encodes into it.
HELD_BYTES = _PIECE_BYTES + 64 * 1024


class ContentOutput:
    """A file that is written in large pieces, and appears when it is closed; `key` encrypts the whole of it."""

    def __init__(self, storage: Storage, location: str, key: FileKey | None = None) -> None:
        output = storage.open_output(location)
        self._output: Any = output if key is None else EncryptedOutput(output, key)
        self.stream = pa.BufferedOutputStream(pa.PythonFile(self._output, mode="w"), _PIECE_BYTES)

    @property
    def size(self) -> int:
        return int(self.stream.tell())

    def close(self) -> int:
        """Makes the file visible; returns its size in bytes."""
        self.stream.flush()
        size = self._output.finish() if isinstance(self._output, EncryptedOutput) else self._output.tell()
        self._output.close()
        return int(size)

    def abandon(self) -> None:
        with suppress(Exception):  # otherwise the stream would write on when it is collected
            self.stream.flush()
        abandon = getattr(self._output, "abandon", None)
        if abandon is not None:
            abandon()
        else:
            self._output.__exit__(RuntimeError, RuntimeError("abandoned"), None)


class MeasuredWriter:
    """Counts metrics from the batches that it writes, for formats without usable statistics. Subclasses open the
    output, write the rows, and say in `_finish` how the file ends."""

    file_format: str
    _output: ContentOutput

    def __init__(
        self,
        storage: Storage,
        location: str,
        layout: FileLayout,
        modes: Mapping[int, MetricsMode],
        key: FileKey | None = None,
    ) -> None:
        self.location = location
        self._key = key
        self._storage = storage
        self._layout = layout
        self._metrics = BatchMetrics(layout.schema, modes)
        self._rows = 0

    def _measured(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the table's columns as the file's columns, after it was counted."""
        laid_out = self._layout.lay_out(batch)
        self._metrics.add(laid_out)
        self._rows += laid_out.num_rows
        return laid_out

    def close(self, **fields: Any) -> DataFile:
        """Finishes the file and makes it visible; `fields` are members of its entry that the writer cannot know."""
        try:
            self._finish()
            size = self._output.close()
        except BaseException:
            self.abandon()
            raise
        return DataFile(
            file_path=self.location,
            file_format=self.file_format,
            record_count=self._rows,
            file_size_in_bytes=size,
            split_offsets=self._split_offsets(size),
            key_metadata=None if self._key is None else self._key.of_length(size).encode(),
            **self._metrics.result().as_fields(),
            **fields,
        )

    def _finish(self) -> None:
        """Writes what is still held, and the file's end."""

    def _split_offsets(self, size: int) -> tuple[int, ...] | None:
        """Offsets where the file of this many bytes can be split; None if it does not say."""
        return None

    def abandon(self) -> None:
        self._output.abandon()
