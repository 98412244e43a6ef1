"""How the JVM writes files of a format: their type, codec and settings, and what it counts for their metrics.

Source: Apache ORC, `OrcConf` and `TypeDescription.fromString`; Iceberg documentation, "Configuration" (`write.*`);
Parquet's `ParquetOutputFormat`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hms_iceberg.arrow.formats.avro.avro_blocks import avro_schema
from hms_iceberg.arrow.formats.avro.avro_writer import avro_codec
from hms_iceberg.arrow.formats.content_files import check_writable
from hms_iceberg.arrow.formats.file_layout import FileLayout
from hms_iceberg.arrow.formats.orc.orc_writer import bloom_columns, orc_attributes, orc_codec
from hms_iceberg.arrow.formats.parquet_writer import leaf_paths, parquet_codec
from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.spark.schemas import needs_python
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.property_kinds import ColumnProperty, IntProperty
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import (
    ORC_BLOOM_FPP,
    ORC_STRATEGY,
    ORC_STRIPE_BYTES,
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_BLOOM_NDV,
    PARQUET_CODEC_LEVEL,
    PARQUET_DICTIONARIES,
    PARQUET_DICTIONARY_BYTES,
    PARQUET_PAGE_BYTES,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_VERSION,
    PARQUET_ROW_GROUP_BYTES,
    PARQUET_ROW_GROUP_ROWS,
    PARQUET_ROWS_CHECK_MAX,
    PARQUET_ROWS_CHECK_MIN,
    PARQUET_STATISTICS,
)

_ORC_TYPES: Mapping[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "bigint",
    TimestampType: "timestamp",
    TimestamptzType: "timestamp with local time zone",
    StringType: "string",
    UUIDType: "binary",
    FixedType: "binary",
    BinaryType: "binary",
}


def is_left_to_python(file_format: str, written: Schema, lacking_types: Collection[str]) -> bool:
    """Whether files are written by Python beside the task: for nanoseconds, and shapes but in Parquet of Spark 4.3."""
    kinds = {type(field.field_type) for field in written.index_by_id.values()}
    has_shapes = not kinds.isdisjoint((GeometryType, GeographyType))
    return needs_python(written, lacking_types) or (has_shapes and file_format != "parquet")


@dataclass(frozen=True)
class FileSettings:
    codec: str  # the format's own name of it
    settings: dict[str, str]  # by the names that Hadoop's configuration has for them
    # the columns: of ORC, JSON of their type and of the attributes of each, by its number; of Avro, the schema; None of
    # Parquet, whose writer makes it of Spark's
    file_type: str | None = None


def file_settings(file_format: str, schema: Schema, written: Schema, properties: Mapping[str, str]) -> FileSettings:
    """The settings that a table's properties, with those of the write before them, ask for."""
    if file_format == "parquet":
        return FileSettings(*_parquet_settings(schema, properties))
    check_writable(file_format, written, properties)
    columns = FileLayout(written).schema
    if file_format == "avro":
        return FileSettings(avro_codec(properties), {}, json.dumps(avro_schema(columns)))
    codec = orc_codec(properties)
    settings = {
        "orc.compress": "NONE" if codec == "uncompressed" else codec.upper(),
        "orc.compression.strategy": ORC_STRATEGY.of(properties).upper(),
        "orc.stripe.size": str(ORC_STRIPE_BYTES.of(properties)),
        "orc.bloom.filter.columns": ",".join(bloom_columns(columns, properties)),
        "orc.bloom.filter.fpp": str(ORC_BLOOM_FPP.of(properties)),
    }
    attributes: list[dict[str, str]] = [{}]
    kind = _orc_type(columns.as_struct(), attributes)
    return FileSettings(codec, settings, json.dumps({"type": kind, "attributes": attributes}))


def _orc_type(kind: IcebergType, attributes: list[dict[str, str]]) -> str:
    """The text of ORC's type; the attributes of what is in it are added in the order of ORC's numbers."""

    def child(field: NestedField) -> str:
        attributes.append(orc_attributes(field))
        return _orc_type(field.field_type, attributes)

    if isinstance(kind, StructType):
        return f"struct<{','.join(f'`{field.name}`:{child(field)}' for field in kind.fields)}>"
    if isinstance(kind, (ListType, MapType)):
        name = "array" if isinstance(kind, ListType) else "map"
        return f"{name}<{','.join(map(child, kind.children()))}>"
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    return _ORC_TYPES[type(kind)]


def counted_columns(file_format: str, metadata: TableMetadata, properties: Mapping[str, str]) -> dict[str, int]:
    """By field id, how many characters or bytes of its least and greatest value the JVM keeps; 0 for all, -1 for none.
    It counts nulls and NaN besides; Parquet's footers tell of all but floats."""
    schema = metadata.schema()
    modes = metrics_modes(schema, properties, metadata.sort_order())
    floats = {id_ for id_, field in schema.index_by_id.items() if isinstance(field.field_type, (FloatType, DoubleType))}
    return {
        str(field_id): (mode.width or 0) if mode.bounds else -1
        for field_id, mode in modes.items()
        if mode.counts and (file_format != "parquet" or field_id in floats)
    }


_NUMBERS: Mapping[str, IntProperty] = {
    "parquet.block.size": PARQUET_ROW_GROUP_BYTES,
    "parquet.block.row.count.limit": PARQUET_ROW_GROUP_ROWS,
    "parquet.page.size": PARQUET_PAGE_BYTES,
    "parquet.page.row.count.limit": PARQUET_PAGE_ROWS,
    "parquet.dictionary.page.size": PARQUET_DICTIONARY_BYTES,
    "parquet.page.size.row.check.min": PARQUET_ROWS_CHECK_MIN,
    "parquet.page.size.row.check.max": PARQUET_ROWS_CHECK_MAX,
    "parquet.bloom.filter.max.bytes": PARQUET_BLOOM_MAX_BYTES,
}
_OF_COLUMNS: Mapping[str, ColumnProperty] = {
    "parquet.bloom.filter.enabled#": PARQUET_BLOOM_ENABLED,
    "parquet.bloom.filter.fpp#": PARQUET_BLOOM_FPP,
    "parquet.bloom.filter.expected.ndv#": PARQUET_BLOOM_NDV,
    "parquet.enable.dictionary#": PARQUET_DICTIONARIES,
    "parquet.column.statistics.enabled#": PARQUET_STATISTICS,
}
_CODECS = {"none": "UNCOMPRESSED", "lz4": "LZ4_RAW"}
_ZLIB_LEVELS = (
    "NO_COMPRESSION",
    "BEST_SPEED",
    "TWO",
    "THREE",
    "FOUR",
    "FIVE",
    "SIX",
    "SEVEN",
    "EIGHT",
    "BEST_COMPRESSION",
)


def _parquet_settings(schema: Schema, properties: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Parquet's name of the codec, and settings by Hadoop's names of them; the write's properties go first."""
    settings = {name: str(each.of(properties)) for name, each in _NUMBERS.items()}
    settings["parquet.writer.version"] = PARQUET_PAGE_VERSION.of(properties)
    codec = parquet_codec(properties)
    if PARQUET_CODEC_LEVEL.name in properties:
        settings.update(_level(codec, PARQUET_CODEC_LEVEL.of(properties)))
    settings.update(_of_columns(schema, properties))
    return _CODECS.get(codec, codec.upper()), settings


def _level(codec: str, level: int) -> dict[str, str]:
    if codec == "zstd":
        return {"parquet.compression.codec.zstd.level": str(level)}
    if codec == "gzip":
        if not 0 <= level < len(_ZLIB_LEVELS):
            raise PARQUET_CODEC_LEVEL.wrong(str(level), "0 to 9 for gzip")
        return {"zlib.compress.level": _ZLIB_LEVELS[level]}
    return {"compression.brotli.quality": str(level)} if codec == "brotli" else {}


def _of_columns(schema: Schema, properties: Mapping[str, str]) -> dict[str, str]:
    asked = [(name, *found) for name, each in _OF_COLUMNS.items() for found in each.of_columns(properties)]
    if not asked:
        return {}
    paths = dict(leaf_paths(schema, FileLayout(schema)))
    found = ((name, paths.get(column), text) for name, column, text in asked)
    return {f"{name}{path}": value.strip() for name, path, value in found if path is not None}
