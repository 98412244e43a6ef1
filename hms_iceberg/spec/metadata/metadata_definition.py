"""Changes of what a table is: new tables, replaced tables, schemas, partition specs, sort orders, properties, version.

Pure functions from metadata to new, checked metadata; `at_ms` is the time of a change in milliseconds since 1970, now
by default. Changes of snapshots and references are in `metadata_snapshots`. Source: Iceberg specification, "Schema
Evolution", "Partition Evolution", "Table Metadata Fields"; where it is silent, the behaviour of Iceberg's Java
implementation.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any

from hms_iceberg.errors import InvalidInputError, UnsupportedError
from hms_iceberg.spec.metadata.format_rules import (
    NEW_TABLE_PROPERTIES,
    check_format_version,
    check_schema_version,
    split_properties,
)
from hms_iceberg.spec.metadata.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    TableMetadata,
    changed,
    check_metadata,
    now_ms,
)
from hms_iceberg.spec.partitions.partition_fields import carry_field_ids
from hms_iceberg.spec.partitions.partition_specs import (
    PARTITION_FIELD_ID_START,
    UNPARTITIONED,
    PartitionSpec,
    assign_fresh_spec_ids,
    check_spec,
)
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.spec.sort_orders import (
    INITIAL_SORT_ORDER_ID,
    UNSORTED,
    SortOrder,
    assign_fresh_sort_order_ids,
    check_sort_order,
)

# ------------------------------------------------------------------------------------------- new tables


def new_table_metadata(
    schema: Schema,
    partition_spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    location: str = "",
    properties: Mapping[str, Any] | None = None,
    format_version: int | None = None,
    table_uuid: str | None = None,
    at_ms: int | None = None,
) -> TableMetadata:
    """The metadata of a new table without data. Column, partition field and order ids are assigned anew.

    Args:
        schema: the columns.
        partition_spec: the partitioning, by the ids of `schema`.
        sort_order: the sort order, by the ids of `schema`.
        location: the table's base location.
        properties: table properties; `format-version` among them is used if `format_version` is not given.
        format_version: 1, 2 (the default) or 3.
        table_uuid: the table's UUID; a new one by default.
        at_ms: the time of creation in milliseconds from 1970-01-01 UTC; now by default.

    Raises:
        UnsupportedError: the format version is not supported.
        InvalidInputError: schema, spec, sort order or properties are not valid, or do not fit together.
    """
    kept, asked = split_properties(properties or {})
    version = format_version or asked or DEFAULT_FORMAT_VERSION
    check_format_version(version)
    fresh_schema = assign_fresh_ids(schema).with_schema_id(0)
    check_schema_version(fresh_schema, version)
    fresh_spec = assign_fresh_spec_ids(partition_spec, schema, fresh_schema)
    check_spec(fresh_spec, fresh_schema)
    _check_writable(fresh_spec)
    fresh_order = assign_fresh_sort_order_ids(sort_order, schema, fresh_schema)
    check_sort_order(fresh_order, fresh_schema)
    metadata = TableMetadata(
        format_version=version,
        table_uuid=table_uuid or str(uuid.uuid4()),
        location=stripped_location(location),
        last_updated_ms=now_ms() if at_ms is None else at_ms,
        last_column_id=fresh_schema.highest_field_id,
        schemas=(fresh_schema,),
        current_schema_id=0,
        partition_specs=(fresh_spec,),
        default_spec_id=0,
        last_partition_id=fresh_spec.last_assigned_field_id,
        sort_orders=(fresh_order,),
        default_sort_order_id=fresh_order.order_id,
        properties={**NEW_TABLE_PROPERTIES, **kept},
        next_row_id=0 if version > 2 else None,
    )
    check_metadata(metadata)
    return metadata


def stripped_location(location: str) -> str:
    """The location without slashes at its end; an empty one is refused."""
    stripped = location if location.endswith("://") else location.rstrip("/")
    if not stripped:
        raise InvalidInputError(f"Invalid table location {location!r}: expected a path or a URI")
    return stripped


def replace_table_metadata(
    metadata: TableMetadata,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    location: str | None = None,
    properties: Mapping[str, Any] | None = None,
    format_version: int | None = None,
    at_ms: int | None = None,
) -> TableMetadata:
    """The metadata after a table was replaced: no current data, all history. Columns of a present name keep its id,
    properties add to the present ones, spec and sort order use the ids of `schema`."""
    kept, asked = split_properties(properties or {})
    new = upgrade_format_version(metadata, format_version or asked or metadata.format_version, at_ms)
    refs = {name: ref for name, ref in new.refs.items() if name != "main"}
    new = changed(new, at_ms, refs=refs, current_snapshot_id=None)
    ids = count(new.last_column_id + 1)
    fresh_schema = assign_fresh_ids(schema, ids.__next__, base=new.schema())
    fresh_spec = assign_fresh_spec_ids(spec, schema, fresh_schema)
    fresh_order = assign_fresh_sort_order_ids(sort_order, schema, fresh_schema)
    fresh_spec = carry_field_ids(new.format_version, new.spec(), new.partition_specs, fresh_spec, new.last_partition_id)
    # The new schema, spec and order are set together: one alone need not fit what was there before.
    schemas, schema_id = with_schema(new, fresh_schema)
    check_spec(fresh_spec, fresh_schema, allow_missing_source=True)
    check_sort_order(fresh_order, fresh_schema)
    specs, spec_id = with_spec(new, fresh_spec)
    orders, order_id = with_sort_order(new, fresh_order)
    return changed(
        new,
        at_ms,
        schemas=schemas,
        current_schema_id=schema_id,
        last_column_id=max(new.last_column_id, fresh_schema.highest_field_id),
        partition_specs=specs,
        default_spec_id=spec_id,
        last_partition_id=max(new.last_partition_id, fresh_spec.last_assigned_field_id),
        sort_orders=orders,
        default_sort_order_id=order_id,
        location=new.location if location is None else stripped_location(location),
        properties={**new.properties, **NEW_TABLE_PROPERTIES, **kept},
    )


# ---------------------------------------------------------------------------------------------- schemas


def with_schema(metadata: TableMetadata, schema: Schema) -> tuple[tuple[Schema, ...], int]:
    """The schemas with one more under the next free id, and its id; unchanged if it is there already."""
    check_schema_version(schema, metadata.format_version)
    for known in metadata.schemas:
        if known.same_as(schema):
            return metadata.schemas, known.schema_id
    new_id = max(metadata.schemas_by_id, default=-1) + 1
    return (*metadata.schemas, schema.with_schema_id(new_id)), new_id


def add_schema(metadata: TableMetadata, schema: Schema, at_ms: int | None = None) -> TableMetadata:
    """The metadata with one more schema under the next free id; unchanged if it is there already."""
    schemas, _ = with_schema(metadata, schema)
    if schemas is metadata.schemas and schema.highest_field_id <= metadata.last_column_id:
        return metadata
    last_column_id = max(metadata.last_column_id, schema.highest_field_id)
    return changed(metadata, at_ms, schemas=schemas, last_column_id=last_column_id)


def set_current_schema(metadata: TableMetadata, schema: Schema | int, at_ms: int | None = None) -> TableMetadata:
    """The metadata with another current schema, added if it is new; partition spec and sort order must fit it."""
    if isinstance(schema, Schema):
        metadata = add_schema(metadata, schema, at_ms)
        schema = next(known.schema_id for known in metadata.schemas if known.same_as(schema))
    new_schema = metadata.schema_by_id(schema)
    if schema == metadata.current_schema_id:
        return metadata
    check_spec(metadata.spec(), new_schema, kept=metadata.spec().field_ids)
    check_sort_order(metadata.sort_order(), new_schema)
    return changed(metadata, at_ms, current_schema_id=schema)


def remove_schemas(metadata: TableMetadata, schema_ids: set[int], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some schemas; the current one is refused."""
    if metadata.current_schema_id in schema_ids:
        raise InvalidInputError(f"Cannot remove schema {metadata.current_schema_id}: it is the table's current schema")
    kept = tuple(schema for schema in metadata.schemas if schema.schema_id not in schema_ids)
    return metadata if len(kept) == len(metadata.schemas) else changed(metadata, at_ms, schemas=kept)


# ------------------------------------------------------------------------------------------------ specs


def _check_writable(spec: PartitionSpec) -> None:
    if spec.has_unknown_transforms:
        names = ", ".join(str(field.transform) for field in spec.fields)
        raise UnsupportedError(f"Cannot write with partition spec {spec.spec_id}: a transform of {names} is not known")


def with_spec(metadata: TableMetadata, spec: PartitionSpec) -> tuple[tuple[PartitionSpec, ...], int]:
    """The specs with one more under the next free id, and its id; unchanged if an equivalent one is there."""
    for known in metadata.partition_specs:
        if known.compatible_with(spec):
            return metadata.partition_specs, known.spec_id
    if metadata.format_version == 1:
        ids = [field.field_id for field in spec.fields]
        if ids != list(range(PARTITION_FIELD_ID_START, PARTITION_FIELD_ID_START + len(ids))):
            raise InvalidInputError(
                f"Partition field ids {ids} are not sequential from {PARTITION_FIELD_ID_START}, which tables of format "
                "version 1 need; upgrade the table to format version 2 first"
            )
    new_id = max(metadata.specs_by_id, default=-1) + 1
    return (*metadata.partition_specs, PartitionSpec(*spec.fields, spec_id=new_id)), new_id


def add_spec(metadata: TableMetadata, spec: PartitionSpec, at_ms: int | None = None) -> TableMetadata:
    """The metadata with one more partition spec under the next free id; unchanged if an equivalent one is there."""
    specs, _ = with_spec(metadata, spec)
    if specs is metadata.partition_specs:
        return metadata
    check_spec(spec, metadata.schema(), kept=metadata.spec().field_ids)
    _check_writable(spec)
    last = max(metadata.last_partition_id, spec.last_assigned_field_id)
    return changed(metadata, at_ms, partition_specs=specs, last_partition_id=last)


def set_default_spec(metadata: TableMetadata, spec: PartitionSpec | int, at_ms: int | None = None) -> TableMetadata:
    """The metadata with another default partition spec, added if it is new."""
    if isinstance(spec, PartitionSpec):
        metadata = add_spec(metadata, spec, at_ms)
        spec = next(known.spec_id for known in metadata.partition_specs if known.compatible_with(spec))
    wanted = metadata.spec_by_id(spec)
    check_spec(wanted, metadata.schema(), kept=wanted.field_ids)
    return metadata if spec == metadata.default_spec_id else changed(metadata, at_ms, default_spec_id=spec)


def remove_specs(metadata: TableMetadata, spec_ids: set[int], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some partition specs; the default one is refused."""
    if metadata.default_spec_id in spec_ids:
        raise InvalidInputError(f"Cannot remove partition spec {metadata.default_spec_id}: it is the default one")
    kept = tuple(spec for spec in metadata.partition_specs if spec.spec_id not in spec_ids)
    return metadata if len(kept) == len(metadata.partition_specs) else changed(metadata, at_ms, partition_specs=kept)


# ----------------------------------------------------------------------------------------------- orders


def with_sort_order(metadata: TableMetadata, order: SortOrder) -> tuple[tuple[SortOrder, ...], int]:
    """The orders with one more under the next free id, and its id; unchanged if it is there already."""
    for known in metadata.sort_orders:
        if known.same_as(order):
            return metadata.sort_orders, known.order_id
    if order.is_unsorted:
        return (*metadata.sort_orders, UNSORTED), UNSORTED.order_id
    new_id = max(INITIAL_SORT_ORDER_ID, max(metadata.sort_orders_by_id, default=0) + 1)
    return (*metadata.sort_orders, SortOrder(*order.fields, order_id=new_id)), new_id


def add_sort_order(metadata: TableMetadata, order: SortOrder, at_ms: int | None = None) -> TableMetadata:
    """The metadata with one more sort order under the next free id; unchanged if it is there already."""
    orders, order_id = with_sort_order(metadata, order)
    if orders is metadata.sort_orders:
        return metadata
    check_sort_order(SortOrder(*order.fields, order_id=order_id), metadata.schema())
    return changed(metadata, at_ms, sort_orders=orders)


def set_default_sort_order(metadata: TableMetadata, order: SortOrder | int, at_ms: int | None = None) -> TableMetadata:
    """The metadata with another default sort order, added if it is new."""
    if isinstance(order, SortOrder):
        metadata = add_sort_order(metadata, order, at_ms)
        order = next(known.order_id for known in metadata.sort_orders if known.same_as(order))
    check_sort_order(metadata.sort_order_by_id(order), metadata.schema())
    return (
        metadata if order == metadata.default_sort_order_id else changed(metadata, at_ms, default_sort_order_id=order)
    )


# ----------------------------------------------------------------------------------------------- others


def upgrade_format_version(metadata: TableMetadata, format_version: int, at_ms: int | None = None) -> TableMetadata:
    """The metadata in a newer format version; snapshots stay as they are."""
    check_format_version(format_version)
    if format_version < metadata.format_version:
        raise InvalidInputError(
            f"Cannot downgrade the table at {metadata.location} from format version {metadata.format_version} to "
            f"{format_version}"
        )
    if format_version == metadata.format_version:
        return metadata
    return changed(
        metadata,
        at_ms,
        format_version=format_version,
        table_uuid=metadata.table_uuid or str(uuid.uuid4()),
        next_row_id=0 if format_version > 2 else None,
    )


def set_location(metadata: TableMetadata, location: str, at_ms: int | None = None) -> TableMetadata:
    """The metadata with another base location for new files; files that exist stay where they are."""
    new_location = stripped_location(location)
    return metadata if new_location == metadata.location else changed(metadata, at_ms, location=new_location)


def assign_uuid(metadata: TableMetadata, table_uuid: str | None = None, at_ms: int | None = None) -> TableMetadata:
    """The metadata with a UUID, if an old v1 table has none or another one is given."""
    if metadata.table_uuid is not None and table_uuid in (None, metadata.table_uuid):
        return metadata
    return changed(metadata, at_ms, table_uuid=table_uuid or str(uuid.uuid4()))


def set_properties(metadata: TableMetadata, updates: Mapping[str, Any], at_ms: int | None = None) -> TableMetadata:
    """The metadata with properties set; `format-version` among them upgrades the table."""
    texts, version = split_properties(updates)
    if version is not None:
        metadata = upgrade_format_version(metadata, version, at_ms)
    properties = {**metadata.properties, **texts}
    return metadata if properties == metadata.properties else changed(metadata, at_ms, properties=properties)


def remove_properties(metadata: TableMetadata, names: Collection[str], at_ms: int | None = None) -> TableMetadata:
    """The metadata without some properties; names that it does not have are ignored."""
    properties = {name: value for name, value in metadata.properties.items() if name not in set(names)}
    return metadata if properties == metadata.properties else changed(metadata, at_ms, properties=properties)
