"""The changes between two versions, and the requirements for them, as a client sends them to a REST catalog.

The requirements are those of Apache Iceberg's clients. Source: Iceberg's REST protocol, `TableUpdate` and
`TableRequirement`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.changes.pending import LAST_ADDED
from hms_iceberg.spec.changes.requirements import ASSERT_CREATE
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata, view_version_to_json
from hms_iceberg.spec.partitions.partition_specs import spec_to_json
from hms_iceberg.spec.schema_json import schema_to_json
from hms_iceberg.spec.snapshots_and_refs import (
    encryption_key_to_json,
    partition_statistics_to_json,
    ref_to_json,
    snapshot_to_json,
    statistics_to_json,
)
from hms_iceberg.spec.sort_orders import sort_order_to_json

Json = dict[str, Any]


def table_updates(base: TableMetadata | None, new: TableMetadata) -> list[Json]:
    """The REST updates that turn `base` into `new`, or that define the table if there is none."""
    updates: list[Json] = []
    if base is None:
        updates.append({"action": "assign-uuid", "uuid": new.table_uuid})
    if base is None or base.format_version != new.format_version:
        updates.append({"action": "upgrade-format-version", "format-version": new.format_version})
    if base is None or base.location != new.location:
        updates.append({"action": "set-location", "location": new.location})
    updates += _lost_refs(base, new)
    updates += _definition(base, new)
    updates += _properties(dict(base.properties) if base else {}, new.properties)
    updates += _snapshots(base, new)
    updates += _files(base, new)
    updates += _lost_definitions(base, new)
    return updates


def table_requirements(base: TableMetadata | None, updates: Iterable[Json]) -> list[Json]:
    """The requirements that the server must check before it applies `updates` to `base`."""
    if base is None:
        return [{"type": ASSERT_CREATE}]
    requirements: dict[str, Json] = {}

    def require(kind: str, **members: object) -> None:
        body = {key.replace("_", "-"): value for key, value in members.items()}
        requirements.setdefault(f"{kind} {members.get('ref', '')}", {"type": kind, **body})

    if base.table_uuid is not None:
        require("assert-table-uuid", uuid=base.table_uuid)
    for update in updates:
        action = update["action"]
        if action in ("set-snapshot-ref", "remove-snapshot-ref"):
            ref = base.refs.get(update["ref-name"])
            require("assert-ref-snapshot-id", ref=update["ref-name"], snapshot_id=ref.snapshot_id if ref else None)
        elif action == "add-schema":
            require("assert-last-assigned-field-id", last_assigned_field_id=base.last_column_id)
        elif action in ("set-current-schema", "remove-schemas"):
            require("assert-current-schema-id", current_schema_id=base.current_schema_id)
        elif action == "add-spec":
            require("assert-last-assigned-partition-id", last_assigned_partition_id=base.last_partition_id)
        elif action in ("set-default-spec", "remove-partition-specs"):
            require("assert-default-spec-id", default_spec_id=base.default_spec_id)
        elif action == "set-default-sort-order":
            require("assert-default-sort-order-id", default_sort_order_id=base.default_sort_order_id)
    return list(requirements.values())


def view_updates(base: ViewMetadata, new: ViewMetadata) -> list[Json]:
    """The REST updates that turn one view into another; UnsupportedError if several versions are new."""
    updates: list[Json] = []
    if base.location != new.location:
        updates.append({"action": "set-location", "location": new.location})
    updates += _properties(dict(base.properties), new.properties)
    schemas = {schema.schema_id for schema in base.schemas}
    versions = {version.version_id for version in base.versions}
    added = [version for version in new.versions if version.version_id not in versions]
    if len(added) > 1:
        raise UnsupportedError("A view in a REST catalog gets one version at a time. Commit them one after the other.")
    for version in added:
        schema = next(each for each in new.schemas if each.schema_id == version.schema_id)
        body = view_version_to_json(version)
        if version.schema_id not in schemas:
            updates.append({"action": "add-schema", "schema": schema_to_json(schema)})
            body["schema-id"] = LAST_ADDED
        updates.append({"action": "add-view-version", "view-version": body})
    if base.current_version_id != new.current_version_id:
        number = LAST_ADDED if added else new.current_version_id
        updates.append({"action": "set-current-view-version", "view-version-id": number})
    return updates


def _definition(base: TableMetadata | None, new: TableMetadata) -> list[Json]:
    """Schemas, specs and orders that are new, and which of them are the current ones."""
    updates: list[Json] = []
    for action, setter, member, name, values, known, current, before in (
        (
            "add-schema",
            "set-current-schema",
            "schema",
            "schema-id",
            [(schema.schema_id, schema_to_json(schema)) for schema in new.schemas],
            base.schemas_by_id.keys() if base else (),
            new.current_schema_id,
            base.current_schema_id if base else None,
        ),
        (
            "add-spec",
            "set-default-spec",
            "spec",
            "spec-id",
            [(spec.spec_id, spec_to_json(spec)) for spec in new.partition_specs],
            base.specs_by_id.keys() if base else (),
            new.default_spec_id,
            base.default_spec_id if base else None,
        ),
        (
            "add-sort-order",
            "set-default-sort-order",
            "sort-order",
            "sort-order-id",
            [(order.order_id, sort_order_to_json(order)) for order in new.sort_orders],
            base.sort_orders_by_id.keys() if base else (),
            new.default_sort_order_id,
            base.default_sort_order_id if base else None,
        ),
    ):
        added = sorted((each for each in values if each[0] not in known), key=lambda each: each[0] == current)
        updates += [{"action": action, member: value} for _, value in added]
        if current != before:
            is_last = bool(added) and added[-1][0] == current  # whose id the server draws
            updates.append({"action": setter, name: LAST_ADDED if is_last else current})
    return updates


def _properties(before: dict[str, str], after: Any) -> list[Json]:
    updates: list[Json] = []
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    gone = sorted(before.keys() - after.keys())
    if changed:
        updates.append({"action": "set-properties", "updates": changed})
    if gone:
        updates.append({"action": "remove-properties", "removals": gone})
    return updates


def _lost_refs(base: TableMetadata | None, new: TableMetadata) -> list[Json]:
    gone = [] if base is None else sorted(base.refs.keys() - new.refs.keys())
    return [{"action": "remove-snapshot-ref", "ref-name": name} for name in gone]


def _snapshots(base: TableMetadata | None, new: TableMetadata) -> list[Json]:
    known = base.snapshots_by_id.keys() if base else set()
    added = [snapshot for snapshot in new.snapshots if snapshot.snapshot_id not in known]
    updates: list[Json] = [{"action": "add-snapshot", "snapshot": snapshot_to_json(snapshot)} for snapshot in added]
    for name, ref in new.refs.items():
        if base is None or base.refs.get(name) != ref:
            updates.append({"action": "set-snapshot-ref", "ref-name": name, **ref_to_json(ref)})
    gone = sorted(known - new.snapshots_by_id.keys())
    if gone:
        updates.append({"action": "remove-snapshots", "snapshot-ids": gone})
    return updates


def _files(base: TableMetadata | None, new: TableMetadata) -> list[Json]:
    updates: list[Json] = []
    statistics = {file.snapshot_id: file for file in base.statistics} if base else {}
    partitions = {file.snapshot_id: file for file in base.partition_statistics} if base else {}
    for file in new.statistics:
        if statistics.pop(file.snapshot_id, None) != file:
            body = statistics_to_json(file)
            updates.append({"action": "set-statistics", "snapshot-id": file.snapshot_id, "statistics": body})
    for each in new.partition_statistics:
        if partitions.pop(each.snapshot_id, None) != each:
            body = partition_statistics_to_json(each)
            updates.append({"action": "set-partition-statistics", "partition-statistics": body})
    for action, left in (("remove-statistics", statistics), ("remove-partition-statistics", partitions)):
        for snapshot_id in left:
            if snapshot_id in new.snapshots_by_id:  # those of a snapshot that goes, go with it
                updates.append({"action": action, "snapshot-id": snapshot_id})
    before = {key.key_id: key for key in base.encryption_keys} if base else {}
    for key in new.encryption_keys:
        known = before.pop(key.key_id, None)
        if known not in (None, key):  # a server keeps what it has of an id
            updates.append({"action": "remove-encryption-key", "key-id": key.key_id})
        if known != key:
            updates.append({"action": "add-encryption-key", "encryption-key": encryption_key_to_json(key)})
    updates += [{"action": "remove-encryption-key", "key-id": key_id} for key_id in before]
    return updates


def _lost_definitions(base: TableMetadata | None, new: TableMetadata) -> list[Json]:
    if base is None:
        return []
    updates: list[Json] = []
    specs = sorted(base.specs_by_id.keys() - new.specs_by_id.keys())
    schemas = sorted(base.schemas_by_id.keys() - new.schemas_by_id.keys())
    if specs:
        updates.append({"action": "remove-partition-specs", "spec-ids": specs})
    if schemas:
        updates.append({"action": "remove-schemas", "schema-ids": schemas})
    return updates
