"""The changes of tables that a request may ask for, one entry a kind, and what they make of a table's metadata.

Source: Iceberg's REST protocol, `TableUpdate`; where it is silent, the behaviour of Iceberg's Java implementation.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hms_iceberg.errors import CommitConflictError, CommitFailedError, CorruptFileError, InvalidInputError
from hms_iceberg.spec.changes.pending import PendingTable
from hms_iceberg.spec.changes.reading import integers, read_by_kind, text_map, texts
from hms_iceberg.spec.json_model import JsonObject
from hms_iceberg.spec.metadata.format_rules import check_format_version
from hms_iceberg.spec.metadata.metadata_changes import (
    add_encryption_key,
    add_schema,
    add_snapshot,
    add_sort_order,
    add_spec,
    assign_uuid,
    remove_encryption_key,
    remove_partition_statistics,
    remove_properties,
    remove_ref,
    remove_schemas,
    remove_snapshots,
    remove_specs,
    remove_statistics,
    set_location,
    set_partition_statistics,
    set_properties,
    set_ref,
    set_statistics,
    upgrade_format_version,
)
from hms_iceberg.spec.metadata.metadata_definition import (
    stripped_location,
    with_schema,
    with_sort_order,
    with_spec,
)
from hms_iceberg.spec.metadata.metadata_json import (
    encryption_key_from_json,
    partition_statistics_from_json,
    ref_from_json,
    snapshot_from_json,
    statistics_from_json,
)
from hms_iceberg.spec.metadata.table_metadata import DEFAULT_FORMAT_VERSION, TableMetadata, check_metadata
from hms_iceberg.spec.partitions.partition_fields import carry_field_ids
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, check_spec, spec_from_fields_json
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.spec.sort_orders import UNSORTED, check_sort_order, sort_order_from_json

Step = Callable[[PendingTable], None]


@dataclass(frozen=True)
class TableChange:
    """One change as a request asks for it: its kind, and what it does."""

    kind: str
    step: Step


def read_table_changes(data: Any) -> tuple[TableChange, ...]:
    """The changes that parsed JSON stands for.

    Raises:
        InvalidInputError: it is no list of changes, or one of them is not known or cannot be read.
    """
    return tuple(TableChange(kind, step) for kind, step in read_by_kind(data, "update", "action", _CHANGES))


def changed_table(changes: Sequence[TableChange], base: TableMetadata, at_ms: int) -> TableMetadata:
    """The metadata after changes; the same object if they change nothing.

    Raises:
        InvalidInputError: a change cannot be made.
        CommitConflictError: a snapshot was made for a version that is not the newest any more.
    """
    pending = PendingTable(base, at_ms)
    _apply(changes, pending)
    new = pending.metadata
    if new is base or replace(new, last_updated_ms=base.last_updated_ms) == base:
        return base
    _check_definition(new, base)
    return replace(new, last_updated_ms=max(new.last_updated_ms, at_ms)) if not pending.snapshot_times else new


def new_table(changes: Sequence[TableChange], at_ms: int) -> TableMetadata:
    """The metadata of a table that did not exist, out of the changes that define it.

    Raises:
        InvalidInputError: a change cannot be made, or something that a table needs is missing.
    """
    pending = PendingTable(_nothing(at_ms), at_ms, is_new=True)
    _apply([each for each in changes if each.kind in _DEFINING], pending)
    start = pending.metadata
    missing = [
        what
        for what, there in (("a schema", start.schemas), ("a location", start.location))
        if not there or start.current_schema_id < 0
    ]
    if missing:
        raise InvalidInputError(f"Cannot create a table: the request does not set {' and '.join(missing)}.")
    specs = start.partition_specs or (UNPARTITIONED,)
    orders = start.sort_orders or (UNSORTED,)
    pending.metadata = start = replace(
        start,
        table_uuid=start.table_uuid or str(uuid.uuid4()),
        partition_specs=specs,
        default_spec_id=specs[0].spec_id if start.default_spec_id < 0 else start.default_spec_id,
        sort_orders=orders,
        default_sort_order_id=orders[0].order_id if start.default_sort_order_id < 0 else start.default_sort_order_id,
    )
    _check_definition(start, None)
    pending.is_new = False
    _apply([each for each in changes if each.kind not in _DEFINING], pending)
    return pending.metadata


def _nothing(at_ms: int) -> TableMetadata:
    return TableMetadata(
        format_version=DEFAULT_FORMAT_VERSION,
        table_uuid=None,
        location="",
        last_updated_ms=at_ms,
        last_column_id=0,
        schemas=(),
        current_schema_id=-1,
        partition_specs=(),
        default_spec_id=-1,
        sort_orders=(),
        default_sort_order_id=-1,
    )


def _apply(changes: Sequence[TableChange], pending: PendingTable) -> None:
    for change in changes:
        try:
            change.step(pending)
        except CommitFailedError as error:
            # Stale numbers are part of the request: to apply it again is of no use, the client must make it anew.
            raise CommitConflictError(str(error)) from error
        except CorruptFileError as error:
            raise InvalidInputError(f"Cannot apply the update {change.kind!r}: {error}.") from error


def _check_definition(new: TableMetadata, base: TableMetadata | None) -> None:
    try:
        check_metadata(new)
    except CorruptFileError as error:
        raise InvalidInputError(f"The request makes no valid table: {error}.") from error
    schema, spec, order = new.schema(), new.spec(), new.sort_order()
    if base is None or (base.schema(), base.spec()) != (schema, spec):
        check_spec(spec, schema, kept=spec.field_ids if base is not None else ())
    if base is None or (base.schema(), base.sort_order()) != (schema, order):
        check_sort_order(order, schema)


# --------------------------------------------------------------------------------------------- definition


def _assign_uuid(body: JsonObject) -> Step:
    given = body.text("uuid")
    try:
        table_uuid = str(uuid.UUID(given))
    except ValueError as error:
        raise InvalidInputError(f"'uuid' of {body.what}: expected a UUID, got {given!r}.") from error

    def step(pending: PendingTable) -> None:
        known = pending.metadata.table_uuid
        if known is not None and known.lower() != table_uuid:
            raise InvalidInputError(f"Cannot give the table another UUID: it is {known}, and {table_uuid} was asked.")
        if pending.is_new:
            pending.metadata = replace(pending.metadata, table_uuid=table_uuid)
        elif known is None:
            pending.metadata = assign_uuid(pending.metadata, table_uuid, pending.at_ms)

    return step


def _upgrade(body: JsonObject) -> Step:
    version = body.integer("format-version")

    def step(pending: PendingTable) -> None:
        if pending.is_new:
            check_format_version(version)
            next_row_id = 0 if version > 2 else None
            pending.metadata = replace(pending.metadata, format_version=version, next_row_id=next_row_id)
        else:
            pending.metadata = upgrade_format_version(pending.metadata, version, pending.at_ms)

    return step


def _add_schema(body: JsonObject) -> Step:
    schema = schema_from_json(body.data.get("schema"))

    def step(pending: PendingTable) -> None:
        metadata = pending.metadata
        if pending.is_new:
            last = max(metadata.last_column_id, schema.highest_field_id)
            metadata = replace(metadata, schemas=with_schema(metadata, schema)[0], last_column_id=last)
        else:
            metadata = add_schema(metadata, schema, pending.at_ms)
        pending.metadata = metadata
        pending.added.last["schema"] = next(each.schema_id for each in metadata.schemas if each.same_as(schema))

    return step


def _set_schema(body: JsonObject) -> Step:
    given = body.integer("schema-id")

    def step(pending: PendingTable) -> None:
        schema_id = pending.added.resolve("schema", given)
        pending.metadata.schema_by_id(schema_id)
        pending.metadata = replace(pending.metadata, current_schema_id=schema_id)

    return step


def _add_spec(body: JsonObject) -> Step:
    data = JsonObject(body.data.get("spec"), "the partition spec")
    spec = spec_from_fields_json(data.data.get("fields"))
    is_numbered = all("field-id" in each for each in data.sequence("fields"))

    def step(pending: PendingTable) -> None:
        metadata, new = pending.metadata, spec
        if pending.is_new:
            last = max(metadata.last_partition_id, new.last_assigned_field_id)
            metadata = replace(metadata, partition_specs=with_spec(metadata, new)[0], last_partition_id=last)
        else:
            if not is_numbered:
                specs = metadata.partition_specs
                new = carry_field_ids(metadata.format_version, metadata.spec(), specs, new, metadata.last_partition_id)
            metadata = add_spec(metadata, new, pending.at_ms)
        pending.metadata = metadata
        known = (each.spec_id for each in metadata.partition_specs if each.compatible_with(new))
        pending.added.last["partition spec"] = next(known)

    return step


def _set_spec(body: JsonObject) -> Step:
    given = body.integer("spec-id")

    def step(pending: PendingTable) -> None:
        spec_id = pending.added.resolve("partition spec", given)
        pending.metadata.spec_by_id(spec_id)
        pending.metadata = replace(pending.metadata, default_spec_id=spec_id)

    return step


def _add_order(body: JsonObject) -> Step:
    order = sort_order_from_json(body.data.get("sort-order"))

    def step(pending: PendingTable) -> None:
        metadata = pending.metadata
        if pending.is_new:
            metadata = replace(metadata, sort_orders=with_sort_order(metadata, order)[0])
        else:
            metadata = add_sort_order(metadata, order, pending.at_ms)
        pending.metadata = metadata
        pending.added.last["sort order"] = next(each.order_id for each in metadata.sort_orders if each.same_as(order))

    return step


def _set_order(body: JsonObject) -> Step:
    given = body.integer("sort-order-id")

    def step(pending: PendingTable) -> None:
        order_id = pending.added.resolve("sort order", given)
        pending.metadata.sort_order_by_id(order_id)
        pending.metadata = replace(pending.metadata, default_sort_order_id=order_id)

    return step


def _set_location(body: JsonObject) -> Step:
    location = body.text("location")

    def step(pending: PendingTable) -> None:
        if pending.is_new:
            pending.metadata = replace(pending.metadata, location=stripped_location(location))
        else:
            pending.metadata = set_location(pending.metadata, location, pending.at_ms)

    return step


def _set_properties(body: JsonObject) -> Step:
    updates = text_map(body, "updates", "updated")

    def step(pending: PendingTable) -> None:
        if pending.is_new:
            pending.metadata = replace(pending.metadata, properties={**pending.metadata.properties, **updates})
        else:
            pending.metadata = set_properties(pending.metadata, updates, pending.at_ms)

    return step


def _remove_properties(body: JsonObject) -> Step:
    names = texts(body, "removals", "removed")
    return _through(lambda pending: remove_properties(pending.metadata, names, pending.at_ms))


def _through(change: Callable[[PendingTable], TableMetadata]) -> Step:
    def step(pending: PendingTable) -> None:
        pending.metadata = change(pending)

    return step


# ------------------------------------------------------------------------------------ snapshots, references


def _add_snapshot(body: JsonObject) -> Step:
    snapshot = snapshot_from_json(body.data.get("snapshot"))

    def step(pending: PendingTable) -> None:
        pending.metadata = add_snapshot(pending.metadata, snapshot, branch=None)
        pending.snapshot_times[snapshot.snapshot_id] = snapshot.timestamp_ms

    return step


def _set_ref(body: JsonObject) -> Step:
    name = body.text("ref-name")
    ref = ref_from_json(body.data, name)

    def step(pending: PendingTable) -> None:
        at_ms = pending.snapshot_times.get(ref.snapshot_id, pending.at_ms)
        pending.metadata = set_ref(pending.metadata, name, ref, at_ms)

    return step


def _remove_ref(body: JsonObject) -> Step:
    name = body.text("ref-name")

    def step(pending: PendingTable) -> None:
        if name in pending.metadata.refs:
            pending.metadata = remove_ref(pending.metadata, name, pending.at_ms)

    return step


def _remove_snapshots(body: JsonObject) -> Step:
    ids = set(integers(body, "snapshot-ids"))

    def step(pending: PendingTable) -> None:
        # As in Apache Iceberg: references to what goes, go with it.
        for name, ref in pending.metadata.refs.items():
            if ref.snapshot_id in ids:
                pending.metadata = remove_ref(pending.metadata, name, pending.at_ms)
        pending.metadata = remove_snapshots(pending.metadata, ids, pending.at_ms)

    return step


# ---------------------------------------------------------------------------------------------- the others


def _set_statistics(body: JsonObject) -> Step:
    file = statistics_from_json(body.data.get("statistics"))
    return _through(lambda pending: set_statistics(pending.metadata, file, pending.at_ms))


def _remove_statistics(body: JsonObject) -> Step:
    snapshot_id = body.integer("snapshot-id")
    return _through(lambda pending: remove_statistics(pending.metadata, snapshot_id, pending.at_ms))


def _set_partition_statistics(body: JsonObject) -> Step:
    file = partition_statistics_from_json(body.data.get("partition-statistics"))
    return _through(lambda pending: set_partition_statistics(pending.metadata, file, pending.at_ms))


def _remove_partition_statistics(body: JsonObject) -> Step:
    snapshot_id = body.integer("snapshot-id")
    return _through(lambda pending: remove_partition_statistics(pending.metadata, snapshot_id, pending.at_ms))


def _remove_specs(body: JsonObject) -> Step:
    ids = set(integers(body, "spec-ids"))
    return _through(lambda pending: remove_specs(pending.metadata, ids, pending.at_ms))


def _remove_schemas(body: JsonObject) -> Step:
    ids = set(integers(body, "schema-ids"))
    return _through(lambda pending: remove_schemas(pending.metadata, ids, pending.at_ms))


def _add_key(body: JsonObject) -> Step:
    key = encryption_key_from_json(body.data.get("encryption-key"))
    return _through(lambda pending: add_encryption_key(pending.metadata, key, pending.at_ms))


def _remove_key(body: JsonObject) -> Step:
    key_id = body.text("key-id")
    return _through(lambda pending: remove_encryption_key(pending.metadata, key_id, pending.at_ms))


_DEFINING = {
    "assign-uuid",
    "upgrade-format-version",
    "add-schema",
    "set-current-schema",
    "add-spec",
    "set-default-spec",
    "add-sort-order",
    "set-default-sort-order",
    "set-location",
    "set-properties",
}

_CHANGES: dict[str, Callable[[JsonObject], Step]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade,
    "add-schema": _add_schema,
    "set-current-schema": _set_schema,
    "add-spec": _add_spec,
    "set-default-spec": _set_spec,
    "add-sort-order": _add_order,
    "set-default-sort-order": _set_order,
    "add-snapshot": _add_snapshot,
    "set-snapshot-ref": _set_ref,
    "remove-snapshots": _remove_snapshots,
    "remove-snapshot-ref": _remove_ref,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "set-statistics": _set_statistics,
    "remove-statistics": _remove_statistics,
    "set-partition-statistics": _set_partition_statistics,
    "remove-partition-statistics": _remove_partition_statistics,
    "remove-partition-specs": _remove_specs,
    "remove-schemas": _remove_schemas,
    "add-encryption-key": _add_key,
    "remove-encryption-key": _remove_key,
}
