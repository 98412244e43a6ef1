"""How the JVM writes files of a format: their type, codec and settings, and what it counts for their metrics.

Source: Apache ORC, `OrcConf` and `TypeDescription.fromString`; Iceberg documentation, "Configuration" (`write.*`).
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
from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.spark.schemas import needs_python
from hms_iceberg.spark.writing.parquet_settings import parquet_settings
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
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.table_properties import ORC_BLOOM_FPP, ORC_STRATEGY, ORC_STRIPE_BYTES

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
    """How files are written."""

    codec: str  # the format's own name of it
    settings: dict[str, str]  # by the names that Hadoop's configuration has for them
    # the columns: of ORC, JSON of their type and of the attributes of each, by its number; of Avro, the schema; None of
    # Parquet, whose writer makes it of Spark's
    file_type: str | None = None


def file_settings(file_format: str, schema: Schema, written: Schema, properties: Mapping[str, str]) -> FileSettings:
    """The settings that a table's properties, with those of the write before them, ask for."""
    if file_format == "parquet":
        return FileSettings(*parquet_settings(schema, properties))
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

    It counts nulls and NaN besides; Parquet's footers tell of all but floats.
    """
    schema = metadata.schema()
    modes = metrics_modes(schema, properties, metadata.sort_order())
    floats = {id_ for id_, field in schema.index_by_id.items() if isinstance(field.field_type, (FloatType, DoubleType))}
    return {
        str(field_id): (mode.width or 0) if mode.bounds else -1
        for field_id, mode in modes.items()
        if mode.counts and (file_format != "parquet" or field_id in floats)
    }
