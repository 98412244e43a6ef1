"""The changes of tables that a request may ask for, one entry a kind, and what they make of a table's metadata.

Source: Iceberg's REST protocol, `TableUpdate`; where it is silent, the behaviour of Iceberg's Java implementation.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hms_iceberg.errors import CommitConflictError, CommitFailedError, CorruptFileError, InvalidInputError
from hms_iceberg.spec.changes.pending import PendingTable
from hms_iceberg.spec.changes.requirements import integers, read_by_kind, text_map, texts
from hms_iceberg.spec.json_model import JsonObject
from hms_iceberg.spec.metadata.format_rules import check_format_version
from hms_iceberg.spec.metadata.metadata_definition import (
    add_schema,
    add_sort_order,
    add_spec,
    assign_uuid,
    remove_properties,
    remove_schemas,
    remove_specs,
    set_location,
    set_properties,
    stripped_location,
    upgrade_format_version,
    with_schema,
    with_sort_order,
    with_spec,
)
from hms_iceberg.spec.metadata.metadata_snapshots import (
    add_encryption_key,
    add_snapshot,
    remove_encryption_key,
    remove_partition_statistics,
    remove_ref,
    remove_snapshots,
    remove_statistics,
    set_partition_statistics,
    set_ref,
    set_statistics,
)
from hms_iceberg.spec.metadata.table_metadata import DEFAULT_FORMAT_VERSION, TableMetadata, check_metadata
from hms_iceberg.spec.partitions.partition_fields import carry_field_ids
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, check_spec, spec_from_fields_json
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.spec.snapshots_and_refs import (
    Snapshot,
    encryption_key_from_json,
    partition_statistics_from_json,
    ref_from_json,
    snapshot_from_json,
    statistics_from_json,
)
from hms_iceberg.spec.sort_orders import UNSORTED, check_sort_order, sort_order_from_json

Step = Callable[[PendingTable], None]
Value = TypeVar("Value")


@dataclass(frozen=True)
class TableChange:
    """A change that a request asks for: its kind, and the function that makes it."""

    kind: str
    step: Step


def read_table_changes(data: Any) -> tuple[TableChange, ...]:
    return tuple(TableChange(kind, step) for kind, step in read_by_kind(data, "update", "action", _CHANGES))


def added_snapshots(data: Any) -> tuple[Snapshot, ...]:
    """The snapshots that changes add, as parsed JSON that `read_table_changes` takes."""
    return tuple(snapshot_from_json(each["snapshot"]) for each in data if each["action"] == "add-snapshot")


def changed_table(changes: Sequence[TableChange], base: TableMetadata, at_ms: int) -> TableMetadata:
    """The metadata after the changes; the same object if they change nothing."""
    pending = PendingTable(base, at_ms)
    _apply(changes, pending)
    new = pending.metadata
    if new is base or replace(new, last_updated_ms=base.last_updated_ms) == base:
        return base
    _check_definition(new, base)
    return replace(new, last_updated_ms=max(new.last_updated_ms, at_ms)) if not pending.snapshot_times else new


def new_table(changes: Sequence[TableChange], at_ms: int) -> TableMetadata:
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


def _with_version(metadata: TableMetadata, version: int) -> TableMetadata:
    check_format_version(version)
    return replace(metadata, format_version=version, next_row_id=0 if version > 2 else None)


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


# ---------------------------------------------------------------------------------------- what many changes do


def _change(
    read: Callable[[JsonObject], Value],
    change: Callable[[TableMetadata, Value, int], TableMetadata],
    define: Callable[[TableMetadata, Value], TableMetadata] | None = None,
) -> Callable[[JsonObject], Step]:
    """An entry of the table of changes: `read` parses the request; `define` serves tables that are being made, None if
    alike."""

    def entry(body: JsonObject) -> Step:
        value = read(body)

        def step(pending: PendingTable) -> None:
            if pending.is_new and define is not None:
                pending.metadata = define(pending.metadata, value)
            else:
                pending.metadata = change(pending.metadata, value, pending.at_ms)

        return step

    return entry


def _choice(
    what: str, key: str, field: str, by_id: Callable[[TableMetadata, int], object]
) -> Callable[[JsonObject], Step]:
    """An entry that makes one of several schemas, specs or orders current; -1 in the request is the one added last."""

    def entry(body: JsonObject) -> Step:
        given = body.integer(key)

        def step(pending: PendingTable) -> None:
            chosen = pending.added.resolve(what, given)
            by_id(pending.metadata, chosen)
            change: dict[str, Any] = {field: chosen}
            pending.metadata = replace(pending.metadata, **change)

        return step

    return entry


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
    "upgrade-format-version": _change(
        lambda body: body.integer("format-version"), upgrade_format_version, define=_with_version
    ),
    "add-schema": _add_schema,
    "set-current-schema": _choice("schema", "schema-id", "current_schema_id", TableMetadata.schema_by_id),
    "add-spec": _add_spec,
    "set-default-spec": _choice("partition spec", "spec-id", "default_spec_id", TableMetadata.spec_by_id),
    "add-sort-order": _add_order,
    "set-default-sort-order": _choice(
        "sort order", "sort-order-id", "default_sort_order_id", TableMetadata.sort_order_by_id
    ),
    "add-snapshot": _add_snapshot,
    "set-snapshot-ref": _set_ref,
    "remove-snapshots": _remove_snapshots,
    "remove-snapshot-ref": _remove_ref,
    "set-location": _change(
        lambda body: body.text("location"),
        set_location,
        define=lambda metadata, location: replace(metadata, location=stripped_location(location)),
    ),
    "set-properties": _change(
        lambda body: text_map(body, "updates", "updated"),
        set_properties,
        define=lambda metadata, new: replace(metadata, properties={**metadata.properties, **new}),
    ),
    "remove-properties": _change(lambda body: texts(body, "removals", "removed"), remove_properties),
    "set-statistics": _change(lambda body: statistics_from_json(body.data.get("statistics")), set_statistics),
    "remove-statistics": _change(lambda body: body.integer("snapshot-id"), remove_statistics),
    "set-partition-statistics": _change(
        lambda body: partition_statistics_from_json(body.data.get("partition-statistics")), set_partition_statistics
    ),
    "remove-partition-statistics": _change(lambda body: body.integer("snapshot-id"), remove_partition_statistics),
    "remove-partition-specs": _change(lambda body: set(integers(body, "spec-ids")), remove_specs),
    "remove-schemas": _change(lambda body: set(integers(body, "schema-ids")), remove_schemas),
    "add-encryption-key": _change(
        lambda body: encryption_key_from_json(body.data.get("encryption-key")), add_encryption_key
    ),
    "remove-encryption-key": _change(lambda body: body.text("key-id"), remove_encryption_key),
}
