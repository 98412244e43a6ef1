"""A write begins: how its rows become files."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from hms_iceberg.arrow.formats.content_files import format_name
from hms_iceberg.arrow.storage.data_locations import LocationRules
from hms_iceberg.encryption.encrypted_tables import is_encrypted
from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spark.nanoseconds import BIGINT, chosen, has_nanoseconds, shown_type
from hms_iceberg.spark.schemas import is_held
from hms_iceberg.spark.writing.distribution import Distribution, write_distribution
from hms_iceberg.spark.writing.file_settings import FileSettings, counted_columns, file_settings, is_left_to_python
from hms_iceberg.spark.writing.merge_schema import merged_columns, with_columns
from hms_iceberg.spark.writing.row_schema import Checks, RowSchema
from hms_iceberg.spark.writing.worker import write_job
from hms_iceberg.spark.writing.write_questions import BeginWrite, Decided
from hms_iceberg.spark.writing.write_settings import WriteSettings, output_spec_id
from hms_iceberg.spec.data_types import NANO_TIMESTAMPS, NestedType, VariantType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.spec.table_properties import (
    DATA_KEY_LENGTH,
    FILE_FORMAT,
    PARQUET_SHREDS,
    PARQUET_VARIANT_ROWS,
    TARGET_FILE_BYTES,
)
from hms_iceberg.spec.transforms.partition_transforms import UnknownTransform
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.workspace import refuse_previewed


def begin_write(question: Mapping[str, Any], metadata: TableMetadata, storage: Storage) -> dict[str, Any]:
    """Begins a write on the version that the query was resolved on: the `rules` for the bridge's class WriteRules, the
    `distribution` for Layouts, and what is `decided` for the commit."""
    asked = msgspec.convert(question, BeginWrite)
    columns = merged_columns(question, metadata)
    metadata = metadata if columns is None else with_columns(metadata, columns)
    settings = WriteSettings(asked.name, asked.options, asked.session, metadata.properties)
    schema, spec = metadata.schema(), metadata.spec_by_id(output_spec_id(settings, metadata))
    distribution = write_distribution(
        settings, schema, spec, metadata.sort_order(), has_functions=has_functions(asked, schema)
    )
    answer = begun(asked, settings, metadata, distribution, schema, storage)
    return {**answer, "decided": {**answer["decided"], "columns": msgspec.to_builtins(columns)}}


def has_functions(asked: BeginWrite, schema: Schema) -> bool:
    """Whether Spark can bring rows together by transforms: it knows their functions, none of numbers for times."""
    return asked.has_functions and not (chosen(asked.lacking_types) == BIGINT and has_nanoseconds(schema))


def begun(
    asked: BeginWrite,
    settings: WriteSettings,
    metadata: TableMetadata,
    distribution: Distribution,
    schema: Schema,
    storage: Storage,
) -> dict[str, Any]:
    """The answer of `begin_write` if the distribution of the rows is known."""
    refuse_previewed(metadata, settings.name)
    _check_held(asked, schema)
    properties = write_properties(settings)
    rows = RowSchema.of(asked.schema, schema, _checks(asked, settings))
    spec = metadata.spec_by_id(output_spec_id(settings, metadata))
    rules = write_rules(settings.name, metadata, schema, rows, [spec], properties, storage, asked.lacking_types)
    rules["fanout"] = distribution.fanout
    return {
        "rules": rules,
        "distribution": distribution.for_spark(),
        "decided": decided(asked, settings, metadata, distribution),
    }


def decided(
    asked: BeginWrite, settings: WriteSettings, metadata: TableMetadata, distribution: Distribution
) -> dict[str, Any]:
    """The choices that a write's commit keeps to: sort order, branch, properties, and when it began. They go to the
    bridge as JSON, and come back with the commit's question."""
    return msgspec.to_builtins(
        Decided(
            sort_order_id=_sort_order_id(settings, metadata, metadata.sort_order(), distribution),
            branch=settings.target_branch(asked.branch),
            properties=write_properties(settings),
            at=time.monotonic(),
        )
    )


def _checks(asked: BeginWrite, settings: WriteSettings) -> Checks:
    return Checks(
        asked.name,
        asked.case_sensitive,
        nullability=settings.switch("check-nullability", True, of_session=True),
        ordering=settings.switch("check-ordering", True, of_session=True),
        nanoseconds=chosen(asked.lacking_types),
    )


def _check_held(asked: BeginWrite, schema: Schema) -> None:
    nanoseconds = chosen(asked.lacking_types)
    for field_id, field in schema.index_by_id.items():
        kind = shown_type(field.field_type, nanoseconds)
        if not isinstance(kind, NestedType) and not is_held(kind, asked.lacking_types):
            raise UnsupportedError(
                f"Cannot write to the table {asked.name} from Spark: its column {schema.find_column_name(field_id)} "
                f"has the type {field.field_type}, which this Spark cannot hold. Write with the Python API."
            )


def write_properties(settings: WriteSettings) -> dict[str, str]:
    """The table's properties with what the write says before them."""
    properties = dict(settings.properties)
    given = {
        FILE_FORMAT.name: settings.text("write-format"),
        TARGET_FILE_BYTES.name: settings.text("target-file-size-bytes"),
    }
    properties.update({name: value for name, value in given.items() if value is not None})
    file_format = format_name(properties)
    for name in ("compression-codec", "compression-level", "compression-strategy"):
        value = settings.text(name, of_session=True)
        if value is not None:
            properties[f"write.{file_format}.{name}"] = value
    for each in (PARQUET_SHREDS, PARQUET_VARIANT_ROWS):
        value = settings.text(each.name.removeprefix("write.parquet."), of_session=True)
        if value is not None:
            properties[each.name] = value
    return properties


def _sort_order_id(
    settings: WriteSettings, metadata: TableMetadata, order: SortOrder, distribution: Distribution
) -> int:
    """The order that files are said to be in: the table's, if that is what is asked of Spark."""
    given = settings.number("output-sort-order-id")
    if given is None:
        return order.order_id if distribution.ordering else UNSORTED.order_id
    if given not in metadata.sort_orders_by_id:
        raise InvalidInputError(
            f"Cannot write to the table {settings.name}: it does not contain a sort order with the id {given}, which "
            "output-sort-order-id gives."
        )
    return given


def write_rules(
    table: str,
    metadata: TableMetadata,
    schema: Schema,
    rows: RowSchema,
    specs: list[PartitionSpec],
    properties: Mapping[str, str],
    storage: Storage,
    lacking_types: Collection[str] = (),
) -> dict[str, Any]:
    """How rows become files of one kind, for the bridge's class WriteRules. Rows without a partition go by the first
    spec; `properties` are the table's below those of the write."""
    file_format = format_name(properties)
    names = LocationRules.of(metadata.location, properties)
    written = Schema(*rows.fields, schema_id=schema.schema_id)
    in_python = is_left_to_python(file_format, written, lacking_types)
    settings = FileSettings("", {}) if in_python else file_settings(file_format, schema, written, properties)
    nanoseconds = chosen(lacking_types)
    has_variants = any(isinstance(field.field_type, VariantType) for field in written.fields)
    return {
        "schema": rows.rows,
        "file_schema": rows.files,
        "stored": rows.stored,
        "specs": [_spec_rules(table, spec, schema, rows, nanoseconds) for spec in specs],
        "spec_id": specs[0].spec_id,
        "target_size": TARGET_FILE_BYTES.of(properties),
        "fanout": True,
        "names": {
            "folder": names.folder,
            "context": names.context,
            "object_storage": names.object_storage,
            "partitioned_paths": names.partitioned_paths,
            "suffix": f".{file_format}",
        },
        "shred_by": PARQUET_VARIANT_ROWS.of(properties) if has_variants and PARQUET_SHREDS.of(properties) else 0,
        "key_bytes": int(DATA_KEY_LENGTH.of(properties)) if is_encrypted(properties) else 0,
        "format": file_format,
        "file_type": settings.file_type,
        "codec": settings.codec,
        "settings": settings.settings,
        "columns": counted_columns(file_format, metadata, properties),
        "job": write_job(file_format, written, metadata, properties, storage) if in_python else None,
        "footer": {"iceberg.schema": json.dumps(schema_to_json(written))},
    }


def _spec_rules(
    table: str, spec: PartitionSpec, schema: Schema, rows: RowSchema, nanoseconds: str | None
) -> dict[str, Any]:
    fields = [_field_rules(table, field, schema, rows, nanoseconds) for field in spec.fields]
    return {"spec_id": spec.spec_id, "fields": fields}


def _field_rules(
    table: str, field: PartitionField, schema: Schema, rows: RowSchema, nanoseconds: str | None
) -> dict[str, Any]:
    transform = field.transform
    if isinstance(transform, UnknownTransform):
        raise UnsupportedError(
            f"Cannot write to the table {table}: the transform {transform} of the partition field {field.name!r} is "
            "unknown to this version. Write with a newer version, or change the partition spec."
        )
    known = None if transform.is_void else schema.index_by_id.get(field.source_id)
    if known is None:
        return {"name": field.name, "transform": "void", "width": None, "path": [], "source": "unknown", "type": "void"}
    path = rows.path_to(schema, field.source_id)
    if path is None:
        return {"name": field.name, "transform": "void", "width": None, "path": [], "source": "unknown", "type": "void"}
    return {
        "name": field.name,
        "transform": transform.name,
        "width": transform.argument,
        "path": path,
        "source": str(known.field_type),
        "type": rows.type_of(path),
        "nanoseconds": nanoseconds if isinstance(known.field_type, NANO_TIMESTAMPS) else None,
    }
