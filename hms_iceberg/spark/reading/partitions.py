"""Partitions for Spark: `show partitions`, and `describe` of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.scan.metadata_tables import MetadataRequest, metadata_table
from hms_iceberg.spark.read_questions import ListPartitions
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

_NULLS = ("null", "__HIVE_DEFAULT_PARTITION__")


def list_partitions(metadata: TableMetadata, storage: Storage, asked: ListPartitions) -> dict[str, Any]:
    """The partitions that have files in a snapshot, by their paths (`city=Ulm/ts_day=2026-01-31`). Each has its `path`,
    `spec_id`, `records`, `files`, `bytes`, `delete_files` and `changed_ms`."""
    request = MetadataRequest(metadata, storage, asked.snapshot_id, asked.metadata_location)
    fields = {field.field_id: field.name for field in request.partition_type.fields}
    if not fields:
        raise InvalidInputError(f"The Iceberg table {asked.name} is not partitioned, so it has no partitions to show.")
    wanted = _wanted(asked, fields)
    found = []
    for row in metadata_table("partitions", request).frame.iter_rows(named=True):
        spec = metadata.spec_by_id(row["spec_id"])
        schema = metadata.schema_for_spec(spec)
        values = [row["partition"].get(fields.get(field.field_id)) for field in spec.fields]
        if wanted.items() <= _texts(spec, schema, values).items():
            found.append(_told(row, spec.partition_to_path(values, schema)))
    return {"partitions": sorted(found, key=lambda each: each["path"])}


def _wanted(asked: ListPartitions, fields: Mapping[int, str]) -> dict[int, str]:
    """The texts of the values that were asked for, by field id."""
    by_name = {name.lower(): field_id for field_id, name in fields.items()}
    wanted: dict[int, str] = {}
    for name, value in asked.partition.items():
        if name.lower() not in by_name:
            raise InvalidInputError(
                f"The Iceberg table {asked.name} has no partition field {name!r}: it has "
                f"{', '.join(sorted(fields.values()))}. A hidden partition has a name of its own, such as ts_day."
            )
        wanted[by_name[name.lower()]] = _NULLS[0] if value is None or value in _NULLS else value
    return wanted


def _texts(spec: PartitionSpec, schema: Schema, values: list[Any]) -> dict[int, str]:
    sources = {field.field_id: schema.index_by_id.get(field.source_id) for field in spec.fields}
    texts: dict[int, str] = {}
    for field, value in zip(spec.fields, values, strict=True):
        source = sources[field.field_id]
        texts[field.field_id] = (
            _NULLS[0] if value is None or source is None else field.transform.to_human_string(source.field_type, value)
        )
    return texts


def _told(row: Mapping[str, Any], path: str) -> dict[str, Any]:
    changed = row["last_updated_at"]
    return {
        "path": path,
        "spec_id": row["spec_id"],
        "records": row["record_count"],
        "files": row["file_count"],
        "bytes": row["total_data_file_size_in_bytes"],
        "delete_files": row["position_delete_file_count"] + row["equality_delete_file_count"],
        "changed_ms": None if changed is None else changed // 1000,
    }
