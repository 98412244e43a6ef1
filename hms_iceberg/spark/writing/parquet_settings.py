"""A table's properties as settings of Parquet's writer in the JVM.

Source: Iceberg documentation, "Configuration" (`write.parquet.*`); Parquet's `ParquetOutputFormat`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.arrow.formats.file_layout import FileLayout
from hms_iceberg.arrow.formats.parquet_writer import leaf_paths, parquet_codec
from hms_iceberg.spec.property_kinds import ColumnProperty, IntProperty
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import (
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


def parquet_settings(schema: Schema, properties: Mapping[str, str]) -> tuple[str, dict[str, str]]:
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
