"""The JSON of changes and requirements: what a client asks for leads a server to the same table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.spec.changes.differences import table_requirements, table_updates
from hms_iceberg.spec.changes.requirements import check_all, read_table_requirements
from hms_iceberg.spec.changes.table_changes import changed_table, new_table, read_table_changes
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.metadata.metadata_definition import (
    new_table_metadata,
    set_current_schema,
    set_default_sort_order,
    set_default_spec,
    set_location,
    set_properties,
    upgrade_format_version,
)
from hms_iceberg.spec.metadata.metadata_snapshots import (
    add_snapshot,
    remove_ref,
    remove_snapshots,
    set_ref,
    set_statistics,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import (
    Operation,
    Snapshot,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    Summary,
)
from hms_iceberg.spec.sort_orders import SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "city", StringType()))
WIDER = Schema(*SCHEMA.fields, NestedField(3, "amount", LongType()), schema_id=1)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
BY_BUCKET = PartitionSpec(*BY_CITY.fields, PartitionField(1, 1001, BucketTransform(8), "id_bucket"), spec_id=1)


UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


def table() -> TableMetadata:
    location, properties = "s3://bucket/table", {"owner": "me"}
    return new_table_metadata(SCHEMA, BY_CITY, location=location, properties=properties, table_uuid=UUID)


def snapshot(number: int, parent: int | None = None) -> Snapshot:
    return Snapshot(
        number,
        parent,
        number,
        1_700_000_000_000 + number,
        f"s3://bucket/{number}.avro",
        None,
        Summary(Operation.APPEND),
    )


def history() -> TableMetadata:
    """A table of two snapshots, a branch, a tag and statistics."""
    metadata = add_snapshot(add_snapshot(table(), snapshot(1)), snapshot(2, 1))
    metadata = set_ref(metadata, "first", SnapshotRef(1, SnapshotRefType.TAG, max_ref_age_ms=5))
    metadata = set_ref(metadata, "side", SnapshotRef(1, SnapshotRefType.BRANCH, 3))
    return set_statistics(metadata, StatisticsFile(2, "s3://bucket/stats.puffin", 100, 10, ()))


CHANGES = {
    "a new table": (None, history()),
    "a new table without rows": (None, table()),
    "nothing": (history(), history()),
    "snapshots": (table(), history()),
    "properties": (history(), replace(set_properties(history(), {"a": "b"}), properties={"a": "b"})),
    "another location": (history(), set_location(history(), "s3://bucket/elsewhere")),
    "format": (history(), upgrade_format_version(history(), 3)),
    "schema": (history(), set_current_schema(history(), WIDER)),
    "spec": (history(), set_default_spec(history(), BY_BUCKET)),
    "order": (history(), set_default_sort_order(history(), SortOrder(SortField(1, IdentityTransform()), order_id=1))),
    "references": (history(), remove_ref(remove_ref(history(), "first"), "side")),
    "expiry": (
        history(),
        remove_snapshots(remove_ref(remove_ref(history(), "first"), "side"), {1}),
    ),
    "all rows go": (history(), remove_ref(history(), "main")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_client_asks_for_makes_the_same_table_on_the_server(name: str) -> None:
    base, new = CHANGES[name]
    updates = table_updates(base, new)
    creates, requirements = read_table_requirements(table_requirements(base, updates))
    changes = read_table_changes(updates)
    assert creates == (base is None)
    if base is None:
        made = new_table(changes, new.last_updated_ms)
    else:
        check_all(requirements, base)
        made = changed_table(changes, base, new.last_updated_ms)
    logless = {"last_updated_ms": 0, "snapshot_log": (), "last_column_id": 0}
    assert replace(made, **logless) == replace(new, **logless)
    assert made.last_column_id == new.last_column_id
    assert {entry.snapshot_id for entry in made.snapshot_log} <= {each.snapshot_id for each in new.snapshots}


def test_a_requirement_fails_if_somebody_else_was_first() -> None:
    base, newer = history(), set_current_schema(set_default_spec(history(), BY_BUCKET), WIDER)
    moved = set_ref(newer, "main", SnapshotRef(1))
    for new in (
        set_current_schema(base, WIDER),
        set_default_spec(base, BY_BUCKET),
        set_ref(base, "main", SnapshotRef(1)),
    ):
        asked = table_requirements(base, table_updates(base, new))
        with pytest.raises(CommitConflictError, match="Requirement failed"):
            check_all(read_table_requirements(asked)[1], moved)
        check_all(read_table_requirements(asked)[1], set_properties(base, {"of": "somebody else"}))


@pytest.mark.parametrize(
    "updates",
    [
        "none",
        [1],
        [{}],
        [{"action": 5}],
        [{"action": "drop-everything"}],
        [{"action": "add-snapshot"}],
        [{"action": "add-snapshot", "snapshot": {"snapshot-id": "1"}}],
        [{"action": "add-schema", "schema": {"type": "struct"}}],
        [{"action": "set-current-schema", "schema-id": 99}],
        [{"action": "set-current-schema", "schema-id": -1}],
        [{"action": "set-properties", "updates": {"a": 1}}],
        [{"action": "set-location", "location": ""}],
        [{"action": "remove-snapshots", "snapshot-ids": ["x"]}],
        [{"action": "remove-schemas", "schema-ids": [0]}],
        [{"action": "assign-uuid", "uuid": "not one"}],
        [{"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}],
        [{"action": "upgrade-format-version", "format-version": 1}],
        [{"action": "upgrade-format-version", "format-version": 99}],
    ],
)
def test_changes_that_cannot_be_are_refused(updates: object) -> None:
    with pytest.raises(InvalidInputError):
        changed_table(read_table_changes(updates), history(), 1)


def test_a_snapshot_made_for_an_older_version_is_a_conflict_that_the_client_resolves() -> None:
    late = table_updates(table(), add_snapshot(table(), snapshot(1)))
    with pytest.raises(CommitConflictError, match="sequence number"):
        changed_table(
            read_table_changes(
                [{**late[0], "snapshot": {**late[0]["snapshot"], "snapshot-id": 7, "parent-snapshot-id": 1}}]
            ),
            history(),
            1,
        )


def test_a_table_needs_a_schema_and_a_location() -> None:
    with pytest.raises(InvalidInputError, match="a schema and a location"):
        new_table(read_table_changes([{"action": "set-properties", "updates": {}}]), 1)
