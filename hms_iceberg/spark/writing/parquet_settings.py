"""A table's properties as settings of Parquet's writer in the JVM.

Source: Iceberg documentation, "Configuration" (`write.parquet.*`); Parquet's `ParquetOutputFormat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.arrow.formats.file_layout import FileLayout
from hms_iceberg.arrow.formats.parquet_writer import CODEC_LEVEL, leaf_paths, parquet_codec
from hms_iceberg.errors import ConfigurationError
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import int_property

_PREFIX = "write.parquet."
_NUMBERS: Mapping[str, tuple[str, int]] = {
    "parquet.block.size": ("row-group-size-bytes", 128 * 1024 * 1024),
    "parquet.block.row.count.limit": ("row-group-limit", 1_048_576),
    "parquet.page.size": ("page-size-bytes", 1024 * 1024),
    "parquet.page.row.count.limit": ("page-row-limit", 20_000),
    "parquet.dictionary.page.size": ("dict-size-bytes", 2 * 1024 * 1024),
    "parquet.page.size.row.check.min": ("row-group-check-min-record-count", 100),
    "parquet.page.size.row.check.max": ("row-group-check-max-record-count", 10_000),
    "parquet.bloom.filter.max.bytes": ("bloom-filter-max-bytes", 1024 * 1024),
}
_OF_COLUMNS: Mapping[str, str] = {
    "bloom-filter-enabled.column.": "parquet.bloom.filter.enabled#",
    "bloom-filter-fpp.column.": "parquet.bloom.filter.fpp#",
    "bloom-filter-ndv.column.": "parquet.bloom.filter.expected.ndv#",
    "dict-encoding-enabled.column.": "parquet.enable.dictionary#",
    "stats-enabled.column.": "parquet.column.statistics.enabled#",
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


@dataclass(frozen=True)
class ParquetSettings:
    """How Parquet files are written.

    Args:
        codec: Parquet's name of the codec.
        settings: by the names that Hadoop's configuration has for them.
    """

    codec: str
    settings: dict[str, str]


def parquet_settings(schema: Schema, properties: Mapping[str, str]) -> ParquetSettings:
    """The settings that a table's properties ask for.

    Args:
        schema: the columns of the files.
        properties: the table's properties, with those of the write before them.

    Raises:
        ConfigurationError: a property has a value that cannot be used.
    """
    settings = {
        name: str(int_property(properties, (_PREFIX + key, default))) for name, (key, default) in _NUMBERS.items()
    }
    version = properties.get(f"{_PREFIX}page-version", "v1").strip().lower()
    if version not in ("v1", "v2"):
        raise ConfigurationError(f"Table property {_PREFIX}page-version is {version!r}, expected v1 or v2.")
    settings["parquet.writer.version"] = version
    codec = parquet_codec(properties)
    level = properties.get(CODEC_LEVEL)
    if level is not None:
        settings.update(_level(codec, int_property(properties, (CODEC_LEVEL, 3))))
    settings.update(_of_columns(schema, properties))
    return ParquetSettings(_CODECS.get(codec, codec.upper()), settings)


def _level(codec: str, level: int) -> dict[str, str]:
    if codec == "zstd":
        return {"parquet.compression.codec.zstd.level": str(level)}
    if codec == "gzip":
        if not 0 <= level < len(_ZLIB_LEVELS):
            raise ConfigurationError(f"Table property {CODEC_LEVEL} is {level}, expected 0 to 9 for gzip.")
        return {"zlib.compress.level": _ZLIB_LEVELS[level]}
    return {"compression.brotli.quality": str(level)} if codec == "brotli" else {}


def _of_columns(schema: Schema, properties: Mapping[str, str]) -> dict[str, str]:
    asked = [
        (key, kind, name) for key in properties for kind, name in _OF_COLUMNS.items() if key.startswith(_PREFIX + kind)
    ]
    if not asked:
        return {}
    paths = dict(leaf_paths(schema, FileLayout(schema)))
    found = ((name, paths.get(key[len(_PREFIX + kind) :]), properties[key]) for key, kind, name in asked)
    return {f"{name}{path}": value.strip() for name, path, value in found if path is not None}
