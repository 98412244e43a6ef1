"""Writing one ORC data file: field ids as type attributes, metrics counted on the way.

Source: Iceberg specification, "Appendix A: Format-specific Requirements" (ORC); Iceberg documentation,
"Configuration" (``write.orc.*``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import ORC_FIELD_ID_KEY, child_fields, nested_arrow_type, to_arrow_type
from hms_iceberg.arrow.columns.nested import children_of, conform, with_children
from hms_iceberg.arrow.formats.file_layout import HELD_BYTES, ContentOutput, FileLayout, MeasuredWriter
from hms_iceberg.arrow.formats.orc.orc_early_times import EarlyTimes
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode
from hms_iceberg.arrow.storage.arrow_storage import open_for_arrow
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import (
    MICRO_TIMESTAMPS,
    TIMESTAMPS,
    FixedType,
    IcebergType,
    LongType,
    NestedField,
    NestedType,
    PrimitiveType,
    TimeType,
    UUIDType,
    leaves,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import (
    ORC_BLOOM_COLUMNS,
    ORC_BLOOM_FPP,
    ORC_CODEC,
    ORC_STRATEGY,
    ORC_STRIPE_BYTES,
)
from hms_iceberg.storage import Storage

_CODECS = {
    "zlib": "zlib",
    "gzip": "zlib",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zstd",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
# The last microsecond that nanoseconds since 1970 hold in 64 bits.
_LAST_MICROS = (2**63 - 1) // 1_000
_PIECE_BYTES = 256 * 1024


class OrcContentWriter(MeasuredWriter):
    file_format = "ORC"

    def __init__(
        self,
        storage: Storage,
        location: str,
        layout: FileLayout,
        properties: Mapping[str, str],
        modes: Mapping[int, MetricsMode],
    ) -> None:
        super().__init__(storage, location, layout, modes)
        self._pending = 0
        self._schema = pa.schema([_orc_field(field) for field in layout.schema.fields])
        options = _options(layout.schema, properties)
        self._output = ContentOutput(storage, location)
        # Files with timestamps are finished elsewhere first: what pyarrow stores of early ones is made anew.
        self._early = EarlyTimes() if _has_timestamps(layout.schema) else None
        self._draft: IO[bytes] | None = None
        try:
            self._sink = self._output.stream
            if self._early is not None:
                self._draft = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the writer
                self._sink = pa.BufferedOutputStream(pa.PythonFile(self._draft, mode="w"), _PIECE_BYTES)
            self._writer = orc.ORCWriter(self._sink, **options)
        except BaseException:
            self.abandon()
            raise

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    @property
    def held(self) -> int:
        """About how many bytes of memory the open file takes: the rows of the unfinished stripe."""
        return HELD_BYTES + self._pending

    def write_row_group(self, batches: list[pa.RecordBatch]) -> None:
        """Writes batches; the ORC library decides where a stripe ends."""
        laid_out = [self._as_orc(self._measured(batch)) for batch in batches]
        rows, size = pa.Table.from_batches(laid_out, self._schema), self.size
        self._writer.write(rows)
        self._pending = rows.nbytes + (self._pending if self.size == size else 0)

    def _as_orc(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for column, field in zip(batch.columns, self._layout.schema.fields, strict=True):
            _check_timestamps(column, field.field_type, field.name)
        columns = [
            _as_orc(column, field.field_type, wanted.type)
            for column, field, wanted in zip(batch.columns, self._layout.schema.fields, self._schema, strict=True)
        ]
        made = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return made if self._early is None else self._early.kept(made)

    def _finish(self) -> None:
        if not self._rows:
            self._writer.write(self._schema.empty_table())
        self._writer.close()
        if self._draft is None or self._early is None:
            return
        # The file was finished elsewhere; it is brought to its place.
        self._sink.flush()
        size = self._draft.tell()
        if self._early:
            for piece in self._early.put_into(self._draft, size, self.location):
                self._output.stream.write(piece)
        else:
            self._draft.seek(0)
            while piece := self._draft.read(_PIECE_BYTES):
                self._output.stream.write(piece)
        self._draft.close()

    def _split_offsets(self, size: int) -> tuple[int, ...] | None:
        """Offsets of the stripes, read from the finished file, since the ORC library decides where stripes end."""
        if not self._rows:
            return None
        with open_for_arrow(self._storage, self.location) as file:
            return tuple(stripe.offset for stripe in OrcLayout(file, size, self.location).stripes)

    def abandon(self) -> None:
        if hasattr(self, "_writer"):
            with suppress(Exception):
                self._writer.close()
        if self._draft is not None:
            with suppress(Exception):  # otherwise the stream would write on when it is collected
                self._sink.flush()
            self._draft.close()
        super().abandon()


def with_stripes_below(properties: Mapping[str, str], held_bytes: int) -> Mapping[str, str]:
    """Properties of files that are open side by side: each keeps a stripe in memory until it is whole, all together
    `held_bytes`."""
    name, least = ORC_STRIPE_BYTES.name, 256 * 1024
    return {**properties, name: str(min(ORC_STRIPE_BYTES.of(properties), max(held_bytes, least)))}


def orc_codec(properties: Mapping[str, str]) -> str:
    """The codec that the table's properties ask for: `zlib`, `snappy`, `lz4`, `zstd` or `uncompressed`."""
    codec = ORC_CODEC.of(properties)
    found = _CODECS.get(codec.strip().lower())
    if found is None:
        raise ORC_CODEC.wrong(codec, f"one of {', '.join(_CODECS)}")
    return found


def bloom_columns(schema: Schema, properties: Mapping[str, str]) -> list[str]:
    asked = {name.strip() for name in ORC_BLOOM_COLUMNS.of(properties).split(",")}
    return [field.name for field in schema.fields if field.name in asked]


def _options(schema: Schema, properties: Mapping[str, str]) -> dict[str, Any]:
    bloom = bloom_columns(schema, properties)
    positions = [position for position, field in enumerate(schema.fields, 1) if field.name in bloom]
    return {
        "compression": orc_codec(properties),
        "compression_strategy": ORC_STRATEGY.of(properties),
        "stripe_size": ORC_STRIPE_BYTES.of(properties),
        "bloom_filter_columns": positions or None,
        "bloom_filter_fpp": ORC_BLOOM_FPP.of(properties),
    }


# ------------------------------------------------------------------------------------------------ columns


def _has_timestamps(schema: Schema) -> bool:
    return any(isinstance(each, TIMESTAMPS) for each in leaves(schema.as_struct()))


def orc_attributes(field: NestedField) -> dict[str, str]:
    """Iceberg's attributes of a column, such as its field id, which ORC's type does not tell."""
    kind = field.field_type
    attributes = {ORC_FIELD_ID_KEY.decode(): str(field.field_id), "iceberg.required": str(field.required).lower()}
    if isinstance(kind, TimeType):
        attributes["iceberg.long-type"] = "TIME"
    elif isinstance(kind, UUIDType):
        attributes["iceberg.binary-type"] = "UUID"
    elif isinstance(kind, FixedType):
        attributes |= {"iceberg.binary-type": "FIXED", "iceberg.length": str(kind.length)}
    elif isinstance(kind, TIMESTAMPS):
        attributes["iceberg.timestamp-unit"] = "MICROS" if isinstance(kind, MICRO_TIMESTAMPS) else "NANOS"
    return attributes


def _orc_field(field: NestedField) -> pa.Field:
    """The column in a form that pyarrow's ORC writer takes: types that ORC lacks by their storage type."""
    return pa.field(field.name, _orc_type(field.field_type), field.optional, metadata=orc_attributes(field))


def _is_counted(kind: IcebergType) -> bool:
    """Whether values are integers that ORC has no type of their own for, such as the microseconds of a time."""
    has_bits = isinstance(kind, PrimitiveType) and kind.integer_bits == 64
    return has_bits and not isinstance(kind, (LongType, *TIMESTAMPS))


def _orc_type(kind: IcebergType) -> pa.DataType:
    if isinstance(kind, NestedType):
        return nested_arrow_type(kind, [_orc_field(child) for child in kind.children()])
    if _is_counted(kind):
        return pa.int64()
    if isinstance(kind, (UUIDType, FixedType)):
        return pa.binary()
    return to_arrow_type(kind, field_ids=False, extensions=False)


def _as_orc(array: pa.Array, kind: IcebergType, wanted: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if _is_counted(kind):
        return array.view(pa.int64())
    if isinstance(kind, (UUIDType, FixedType)):
        return array.cast(pa.binary())
    array = conform(array, wanted)
    return _marked(array) if pa.types.is_nested(wanted) else array


def _marked(array: pa.Array) -> pa.Array:
    """A copy, no slice at any level, with the nulls of each struct marked even if there are none: otherwise pyarrow's
    ORC writer loses nulls within structs, or takes the values of other rows."""
    kind = array.type
    array = array.take(pa.array(np.arange(len(array))))
    if pa.types.is_struct(kind):
        children = [_marked(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return with_children(array, [_marked(child) for child in children_of(array)], child_fields(kind))
    return array


def _check_timestamps(array: pa.Array, kind: IcebergType, path: str, nested: bool = False) -> None:
    """Refuses times that could not be read again: pyarrow's ORC reader holds nanoseconds, and what is beyond them can
    be decoded in top-level columns only."""
    if isinstance(kind, NestedType):
        for child, field in zip(children_of(array), kind.children(), strict=True):
            _check_timestamps(child, field.field_type, f"{path}.{field.name}", True)
    elif isinstance(kind, TIMESTAMPS):
        values = array.view(pa.int64()).drop_null()
        if nested and isinstance(kind, MICRO_TIMESTAMPS) and len(values):
            found = pc.min_max(values)
            if found["min"].as_py() < -_LAST_MICROS or found["max"].as_py() > _LAST_MICROS:
                raise _unwritable(
                    path, "a time outside of 1677 to 2262, which can be read from top-level columns of ORC files only"
                )


def _unwritable(path: str, holds: str) -> UnsupportedError:
    return UnsupportedError(
        f"Cannot write column {path!r} to an ORC file: it has {holds}. Set write.format.default to parquet or avro."
    )
