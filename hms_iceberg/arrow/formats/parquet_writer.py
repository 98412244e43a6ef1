"""Writing one Parquet data file: options from table properties, row groups of bounded size, counts of NaN.

Source: Iceberg documentation, "Configuration" (``write.parquet.*``); Iceberg specification, "Appendix A" (Parquet).
"""

from __future__ import annotations

import inspect
import json
import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.nested import struct_children
from hms_iceberg.arrow.columns.variant_shredding import shredded_batch, with_shredded_variants
from hms_iceberg.arrow.formats.file_layout import HELD_BYTES, ContentOutput, FileLayout
from hms_iceberg.arrow.formats.parquet_encryption import encryption
from hms_iceberg.arrow.formats.parquet_footer import NamingOutput, has_no_name, unnamed_types
from hms_iceberg.arrow.metrics.batch_metrics import SHAPES, BatchMetrics
from hms_iceberg.arrow.metrics.file_footer import FileFooter
from hms_iceberg.arrow.metrics.footer_metrics import MetricsMode, data_file_from_parquet
from hms_iceberg.arrow.metrics.variant_bounds import leaves_with_nan
from hms_iceberg.encryption.file_keys import FileKey
from hms_iceberg.errors import ConfigurationError, UnsupportedError
from hms_iceberg.spec.data_types import (
    DoubleType,
    FloatType,
    IcebergType,
    NestedType,
    StructType,
    VariantType,
    leaf_positions,
)
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.property_kinds import ColumnProperty
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.table_properties import (
    FILE_FORMAT,
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_BLOOM_NDV,
    PARQUET_CODEC,
    PARQUET_CODEC_LEVEL,
    PARQUET_DICTIONARIES,
    PARQUET_DICTIONARY_BYTES,
    PARQUET_PAGE_BYTES,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_VERSION,
    PARQUET_ROW_GROUP_ROWS,
    PARQUET_STATISTICS,
)
from hms_iceberg.storage import Storage

# Rows that are looked at, as a whole and in runs.
_SAMPLE_ROWS, _RUN_ROWS, _LEAST_ROWS = 20_000, 1_000, 2_000
# What a dictionary and the numbers into it may take of the bytes of plain values, which compress better.
_MOST_BYTES = 0.6
# Smaller growth is chance.
_LEAST_GROWTH = 0.1
# Spreads the upper half of a decimal's digits over the lower one.
_ODD = 0x5851F42D4C957F2D
_BLOOM_FPP = 0.01  # as Apache Iceberg has it


@dataclass(frozen=True, slots=True)
class Repetition:
    """A model of how a column repeats values of `value_bytes`: `rows` draw evenly from `population` values, which grow
    with a power of the number of rows (0: they stay, 1: ever new ones)."""

    population: float
    rows: int
    growth: float
    value_bytes: float

    def distinct(self, rows: int) -> float:
        return _expected(self.population * max(1.0, rows / self.rows) ** self.growth, rows)


def repetitions(schema: Schema, rows: Sequence[pa.RecordBatch]) -> dict[str, Repetition]:
    """The repetition in each column of sample rows that follow one another; of few rows nothing is said."""
    count = sum(batch.num_rows for batch in rows)
    if count < _LEAST_ROWS:
        return {}
    sample = pa.concat_batches(_middle(rows, max(count - _SAMPLE_ROWS, 0) // 2, _SAMPLE_ROWS))
    return {
        field.name: _repetition(column)
        for field, column in zip(schema.fields, sample.columns, strict=True)
        if field.field_type.is_primitive
    }


def _middle(batches: Iterable[pa.RecordBatch], start: int, rows: int) -> Iterator[pa.RecordBatch]:
    """The `rows` rows of batches from row `start` on."""
    for batch in batches:
        part = batch.slice(min(start, batch.num_rows), rows)
        start -= min(start, batch.num_rows)
        rows -= part.num_rows
        if part.num_rows:
            yield part


def with_useful_dictionaries(
    options: Mapping[str, Any], schema: Schema, layout: FileLayout, repeated: Mapping[str, Repetition], rows: int
) -> Mapping[str, Any]:
    """The options with no dictionary for columns that hardly repeat a value in the rows of one dictionary. Their
    dictionaries would take more than they save, or grow over the limit and be given up."""
    if options["use_dictionary"] is not True:
        return options
    paths = dict(leaf_paths(schema, layout))
    for name, each in repeated.items():
        distinct = each.distinct(rows)
        dictionary = distinct * each.value_bytes
        numbers = rows * math.log2(max(distinct, 2)) / 8
        too_large = dictionary > options["dictionary_pagesize_limit"]
        if too_large or dictionary + numbers > _MOST_BYTES * rows * each.value_bytes:
            paths.pop(name, None)
    return {**options, "use_dictionary": list(paths.values()) or False}


def _repetition(sample: pa.Array) -> Repetition:
    codes = _codes(sample.drop_null())
    runs = len(sample) // _RUN_ROWS
    of_run = len(codes) // runs
    population = _population_of(codes.reshape(1, -1))
    within_run = _population_of(codes[: runs * of_run].reshape(runs, of_run))
    spread = math.log(population / within_run, runs) if 0 < within_run < population else 0.0
    growth = min(spread, 1.0) if spread > _LEAST_GROWTH else 0.0
    return Repetition(population, len(sample), growth, sample.nbytes / len(sample))


def _codes(values: pa.Array) -> Any:
    """A number for each of some values without nulls, the same for equal ones, and another for nearly all others."""
    for kind in (pa.int64(), pa.int32()):
        if pa.types.is_primitive(values.type) and values.type.bit_width == kind.bit_width:
            return values.view(kind).to_numpy()
    if pa.types.is_decimal128(values.type):
        low, high = np.frombuffer(values.buffers()[1], "<i8", 2 * len(values), 16 * values.offset).reshape(-1, 2).T
        return low ^ high * _ODD
    return values.dictionary_encode().indices.to_numpy()


def _population_of(samples: Any) -> float:
    """An estimate of how many distinct codes a column has in all, from samples of one length."""
    count, length = samples.shape
    if not samples.size:
        return 0.0
    ordered = np.sort(samples, axis=1)
    return _population(length, 1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1]) / count)


def _population(sample: float, distinct: float) -> float:
    """The number of values of which `distinct` differ in a sample: `distinct = n * (1 - exp(-sample / n))`."""
    low, high = float(distinct), sample * 1000.0
    if not distinct or _expected(high, sample) <= distinct:
        return high
    while high - low > low / 100:
        middle = (low + high) / 2
        low, high = (middle, high) if _expected(middle, sample) < distinct else (low, middle)
    return high


def _expected(population: float, rows: float) -> float:
    """The number of different values that rows drawn from a population have."""
    return -population * math.expm1(-rows / population) if population else 0.0


logger = logging.getLogger(__name__)

_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "brotli": "brotli",
    "uncompressed": "none",
    "none": "none",
}


# Arrow's reader refuses schemas that are deeper than this.
_MOST_LEVELS = 100


class ParquetContentWriter:
    """Writes plain batches of a table's columns to one new Parquet file. `shred_by` rows tell which parts of variants
    get columns of their own; with 0 none do. A column so deep that the file could not be read is refused."""

    def __init__(
        self,
        storage: Storage,
        location: str,
        layout: FileLayout,
        schema: Schema,
        options: Mapping[str, Any],
        modes: Mapping[int, MetricsMode],
        shred_by: int = 0,
        key: FileKey | None = None,
    ) -> None:
        _check_levels(schema)
        if key is not None:
            _check_encryptable(schema)
            options = {**options, "encryption_properties": encryption(key)}
        self._key = key
        self.location = location
        self._nan_counts: Counter[int] = Counter()
        self._nan_leaves: set[int] = set()
        self._storage = storage
        self._modes = modes
        self._layout = layout
        self._schema = schema
        self._floats = [
            (field.field_id, places)
            for field, places in leaf_positions(schema.fields)
            if isinstance(field.field_type, (FloatType, DoubleType))
        ]
        self._shapes = BatchMetrics(schema, modes, SHAPES)  # of which pyarrow's footers count no nulls
        self._output = ContentOutput(storage, location)
        self._footers: list[pq.FileMetaData] = []
        self._last_column_bytes = 0
        try:
            unnamed = unnamed_types(layout.schema)
            self._naming = NamingOutput(self._output.stream, unnamed) if unnamed else None
            self._options = options
            self._shred_by = shred_by if _has_variants(layout.schema) else 0
            self._arrow = layout.arrow
            self._writer = None if self._shred_by else self._opened()
        except BaseException:
            self.abandon()
            raise

    def _opened(self) -> pq.ParquetWriter:
        sink = self._output.stream if self._naming is None else self._naming
        writer = pq.ParquetWriter(sink, self._arrow, metadata_collector=self._footers, **self._options)
        writer.add_key_value_metadata({"iceberg.schema": json.dumps(schema_to_json(self._schema))})
        return writer

    @property
    def size(self) -> int:
        return self._output.size

    @property
    def held(self) -> int:
        """Bytes of memory that the open file keeps after a group was written, about: Arrow lets the last column's
        values, pages and dictionary go only when the next group begins."""
        return HELD_BYTES + 3 * self._last_column_bytes

    def write_row_group(self, batches: list[pa.RecordBatch]) -> None:
        for field_id, path in self._floats:
            self._nan_counts[field_id] += sum(_count_nan(batch, path) for batch in batches)
        for batch in batches:
            self._shapes.add(batch)
        rows = [self._layout.lay_out(batch) for batch in batches]
        if self._writer is None:
            self._arrow, self._options = with_shredded_variants(self._arrow, self._options, rows, self._shred_by)
            self._writer = self._opened()
        if self._arrow is not self._layout.arrow:
            rows = [shredded_batch(batch, self._arrow) for batch in rows]
            self._nan_leaves.update(*map(leaves_with_nan, rows))
        table = pa.Table.from_batches(rows, self._arrow)
        self._last_column_bytes = table.column(table.num_columns - 1).nbytes if table.num_columns else 0
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self, **fields: Any) -> DataFile:
        """Finishes the file and makes it visible; `fields` are members of its entry that the writer cannot know."""
        marks = _delete_marks(fields.get("content", DataFileContent.DATA), fields.get("equality_ids") or ())
        try:
            self._writer = self._writer or self._opened()
            self._writer.add_key_value_metadata(marks)
            if self._naming is not None:
                self._naming.hold_end()
            self._writer.close()
            if self._naming is not None:
                self._naming.write_end()
            size = self._output.close()
        except BaseException:
            self.abandon()
            raise
        if self._key is not None:
            fields["key_metadata"] = self._key.of_length(size).encode()
        return data_file_from_parquet(
            self._storage,
            self.location,
            self._schema,
            modes=self._modes,
            size=size,
            footer=FileFooter(self._footers[0]),
            nan_counts=self._nan_counts,
            counted=self._shapes.result(),
            nan_leaves=self._nan_leaves,
            **fields,
        )

    def abandon(self) -> None:
        writer: pq.ParquetWriter | None = getattr(self, "_writer", None)
        if writer is not None:
            with suppress(Exception):  # otherwise it would finish itself when it is collected, into a closed output
                writer.close()
        self._output.abandon()


def _delete_marks(content: DataFileContent, equality_ids: Iterable[int]) -> dict[str, str]:
    """Footer entries that Apache Iceberg writes into delete files, from which a lost manifest can be rebuilt."""
    if content is DataFileContent.POSITION_DELETES:
        return {"delete-type": "position"}
    if content is DataFileContent.EQUALITY_DELETES:
        return {"delete-type": "equality", "delete-field-ids": ", ".join(map(str, equality_ids))}
    return {}


def parquet_options(schema: Schema, layout: FileLayout, properties: Mapping[str, str]) -> dict[str, Any]:
    codec = parquet_codec(properties)
    leaves = dict(leaf_paths(schema, layout))
    options: dict[str, Any] = {
        "version": "2.6",
        "store_schema": False,
        "store_decimal_as_integer": True,
        "compression": codec,
        "data_page_size": PARQUET_PAGE_BYTES.of(properties),
        "max_rows_per_page": PARQUET_PAGE_ROWS.of(properties),
        "dictionary_pagesize_limit": PARQUET_DICTIONARY_BYTES.of(properties),
        "data_page_version": "1.0" if PARQUET_PAGE_VERSION.of(properties) == "v1" else "2.0",
        "write_page_index": True,
        "write_page_checksum": True,
        "use_dictionary": _enabled(leaves, properties, PARQUET_DICTIONARIES),
        "write_statistics": _enabled(leaves, properties, PARQUET_STATISTICS, _unordered(schema)),
        "bloom_filter_options": _bloom_filters(leaves, properties),
    }
    if PARQUET_CODEC_LEVEL.name in properties and codec in ("zstd", "gzip", "brotli"):
        options["compression_level"] = PARQUET_CODEC_LEVEL.of(properties)
    return {name: value for name, value in options.items() if value is not None and name in _known_options()}


def parquet_codec(properties: Mapping[str, str]) -> str:
    """The codec that a table's properties name, as pyarrow calls it."""
    name = PARQUET_CODEC.of(properties)
    codec = _CODECS.get(name.strip().lower())
    if codec is None:
        raise PARQUET_CODEC.wrong(name, f"one of {', '.join(_CODECS)}")
    return codec


@lru_cache(maxsize=1)
def _known_options() -> frozenset[str]:
    """The options that the installed pyarrow has; those it lacks only tune."""
    known = frozenset(inspect.signature(pq.ParquetWriter.__init__).parameters)
    return known | {"data_page_size"}  # passed on through **options


def _unordered(schema: Schema) -> list[str]:
    """The columns of shapes that pyarrow takes for bytes, whose order means nothing."""
    names = ((schema.find_column_name(field_id), each.field_type) for field_id, each in schema.index_by_id.items())
    return [name for name, kind in names if name and kind.is_primitive and has_no_name(kind)]


def _enabled(
    leaves: Mapping[str, str], properties: Mapping[str, str], switch: ColumnProperty, off: Sequence[str] = ()
) -> bool | list[str]:
    switched_off = {
        *(leaves.get(column) for column, text in switch.of_columns(properties) if text.strip().lower() == "false"),
        *map(leaves.get, off),
    }
    if not switched_off - {None}:
        return True
    return [path for path in leaves.values() if path not in switched_off] or False


def _bloom_filters(leaves: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, Any] | None:
    """Pyarrow holds the filters of all row groups until the file is closed, each of 64 MiB unless it is told for how
    many values."""
    filters: dict[str, Any] = {}
    for column, text in PARQUET_BLOOM_ENABLED.of_columns(properties):
        path = leaves.get(column)
        if path is None or text.strip().lower() != "true":
            continue
        try:
            rate = float(properties.get(PARQUET_BLOOM_FPP.name + column) or _BLOOM_FPP)
            distinct = int(properties.get(PARQUET_BLOOM_NDV.name + column) or PARQUET_ROW_GROUP_ROWS.of(properties))
        except ValueError as error:
            raise ConfigurationError(f"A bloom filter property of column {column!r} is no number: {error}.") from error
        if not 0 < rate < 1:
            raise ConfigurationError(f"{PARQUET_BLOOM_FPP.name}{column} is {rate}, but has to be between 0 and 1.")
        filters[path] = {"fpp": rate, "ndv": max(1, min(distinct, _most_distinct(rate, properties)))}
    return filters or None


def _most_distinct(rate: float, properties: Mapping[str, str]) -> int:
    """How many values a split-block filter of the largest size may have at a rate of wrong answers (Parquet's
    specification, `BloomFilter.md`: eight bits of a block are set for each)."""
    return int(-PARQUET_BLOOM_MAX_BYTES.of(properties) * math.log(1 - rate ** (1 / 8)))


def leaf_paths(schema: Schema, layout: FileLayout) -> Iterator[tuple[str, str]]:
    """The table's dotted name and the file's dotted path of each leaf."""
    for field_id, field in layout.schema.index_by_id.items():
        if field.field_type.is_nested:
            continue
        ids = [field_id, *layout.schema.ancestor_ids(field_id)][::-1]
        parts: list[str] = []
        for each in ids:
            parent = layout.schema.parent_ids.get(each)
            kind = None if parent is None else layout.schema.find_type(parent)
            repeated = kind is not None and not isinstance(kind, StructType)
            middle = (
                [] if not repeated else ["list" if layout.schema.find_field(each).name == "element" else "key_value"]
            )
            parts += [*middle, layout.schema.find_field(each).name]
        name = schema.find_column_name(field_id)
        assert name is not None
        if isinstance(field.field_type, VariantType):
            for part in ("metadata", "value"):
                yield f"{name}.{part}", ".".join((*parts, part))
        else:
            yield name, ".".join(parts)


def _has_variants(schema: Schema) -> bool:
    return any(isinstance(field.field_type, VariantType) for field in schema.index_by_id.values())


def _count_nan(batch: pa.RecordBatch, path: tuple[int, ...]) -> int:
    array = batch.column(path[0])
    for position in path[1:]:
        array = struct_children(array)[position] if not array.null_count else pc.struct_field(array, [position])
    return pc.sum(pc.is_nan(array)).as_py() or 0


def _check_encryptable(schema: Schema) -> None:
    for field_id, each in schema.index_by_id.items():
        if has_no_name(each.field_type):
            raise UnsupportedError(
                f"Cannot write column {schema.find_column_name(field_id)!r}: files of type {each.field_type} cannot be "
                f"encrypted here. Keep it in a table that is not encrypted."
            )


def _check_levels(schema: Schema) -> None:
    for field in schema.fields:
        levels = 1 + _levels(field.field_type)
        if levels > _MOST_LEVELS:
            raise UnsupportedError(
                f"Cannot write column {field.name!r}: it makes a Parquet schema of {levels} levels, of which at most "
                f"{_MOST_LEVELS} can be read (a struct makes one, a list or map two). Write ORC or Avro files instead: "
                f"'{FILE_FORMAT.name}'."
            )


def _levels(kind: IcebergType) -> int:
    """The levels of a Parquet schema that a type makes, the leaf included."""
    if not isinstance(kind, NestedType):
        return 2 if isinstance(kind, VariantType) else 1
    below = max((_levels(child.field_type) for child in kind.children()), default=0)
    return below + (1 if isinstance(kind, StructType) else 2)
