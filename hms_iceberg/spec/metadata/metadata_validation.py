"""The rules that every version of a table's metadata keeps.

Source: Iceberg specification, "Table Metadata Fields", "Snapshots", "Snapshot References", "Row Lineage".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hms_iceberg.errors import CorruptMetadataError
from hms_iceberg.spec.metadata.table_metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot

# Machines that commit have clocks that differ a little.
CLOCK_TOLERANCE_MS = 60_000


def check_metadata(metadata: TableMetadata) -> None:
    """Refuse metadata that breaks a rule of the specification.

    Raises:
        CorruptMetadataError: the message names the rule.
    """
    _check_header(metadata)
    _check_current_ids(metadata)
    _check_snapshots(metadata)
    _check_refs(metadata)
    _check_logs(metadata)


def _check_header(metadata: TableMetadata) -> None:
    version = metadata.format_version
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise CorruptMetadataError(f"format version {version} is not one of {SUPPORTED_FORMAT_VERSIONS}")
    if not metadata.location:
        raise CorruptMetadataError("the table has no location")
    if version > 1 and not metadata.table_uuid:
        raise CorruptMetadataError(f"a table of format version {version} needs a 'table-uuid'")
    if version == 1 and metadata.last_sequence_number != 0:
        raise CorruptMetadataError(
            f"'last-sequence-number' is {metadata.last_sequence_number}, but tables of format version 1 have none"
        )
    if version > 2 and (metadata.next_row_id is None or metadata.next_row_id < 0):
        raise CorruptMetadataError(
            f"'next-row-id' is {metadata.next_row_id}, but a table of format version {version} needs one of 0 or more"
        )


def _check_unique(what: str, ids: Iterable[int | str]) -> None:
    twice = [each for each, times in Counter(ids).items() if times > 1]
    if twice:
        raise CorruptMetadataError(f"{what} {', '.join(map(str, twice))} is there more than once; ids must be unique")


def _check_current_ids(metadata: TableMetadata) -> None:
    _check_unique("schema", (schema.schema_id for schema in metadata.schemas))
    _check_unique("partition spec", (spec.spec_id for spec in metadata.partition_specs))
    _check_unique("sort order", (order.order_id for order in metadata.sort_orders))
    _check_unique("encryption key", (key.key_id for key in metadata.encryption_keys))
    for spec in metadata.partition_specs:
        _check_unique(f"in partition spec {spec.spec_id} field", (field.field_id for field in spec.fields))
        _check_unique(f"in partition spec {spec.spec_id} field", (field.name for field in spec.fields))
    for what, current, known in (
        ("current-schema-id", metadata.current_schema_id, metadata.schemas_by_id.keys()),
        ("default-spec-id", metadata.default_spec_id, metadata.specs_by_id.keys()),
        ("default-sort-order-id", metadata.default_sort_order_id, metadata.sort_orders_by_id.keys()),
    ):
        if current not in known:
            raise CorruptMetadataError(f"{what!r} is {current}, but the table only has {sorted(known)}")


def _check_snapshots(metadata: TableMetadata) -> None:
    _check_unique("snapshot", (snapshot.snapshot_id for snapshot in metadata.snapshots))
    for snapshot in metadata.snapshots:
        if snapshot.sequence_number > metadata.last_sequence_number:
            raise CorruptMetadataError(
                f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number}, higher than the "
                f"table's last, {metadata.last_sequence_number}"
            )
        if snapshot.manifest_list is None and snapshot.manifest_locations is None:
            raise CorruptMetadataError(f"snapshot {snapshot.snapshot_id} has neither manifest list nor manifests")
        _check_row_ids(snapshot)
    if metadata.current_snapshot_id is not None and metadata.current_snapshot() is None:
        raise CorruptMetadataError(
            f"'current-snapshot-id' is {metadata.current_snapshot_id}, but the table has no such snapshot"
        )


def _check_row_ids(snapshot: Snapshot) -> None:
    first, rows = snapshot.first_row_id, snapshot.added_rows
    if (first is not None and (first < 0 or rows is None)) or (rows is not None and rows < 0):
        raise CorruptMetadataError(
            f"snapshot {snapshot.snapshot_id} has 'first-row-id' {first} and 'added-rows' {rows}, but both must be 0 "
            "or more, and the first needs the second"
        )


def _check_refs(metadata: TableMetadata) -> None:
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.snapshots_by_id:
            raise CorruptMetadataError(
                f"reference {name!r} points at snapshot {ref.snapshot_id}, which the table does not have"
            )
    main = metadata.refs.get(MAIN_BRANCH)
    pointed = None if main is None else main.snapshot_id
    if pointed != metadata.current_snapshot_id:
        raise CorruptMetadataError(
            f"branch main points at snapshot {pointed}, but 'current-snapshot-id' is {metadata.current_snapshot_id}"
        )
    if main is not None and main.is_tag:
        raise CorruptMetadataError("reference 'main' is a tag, but it must be a branch")


def _check_logs(metadata: TableMetadata) -> None:
    for name, times in (
        ("snapshot-log", [entry.timestamp_ms for entry in metadata.snapshot_log]),
        ("metadata-log", [entry.timestamp_ms for entry in metadata.metadata_log]),
    ):
        for earlier, later in zip(times, [*times[1:], metadata.last_updated_ms], strict=False):
            if later - earlier < -CLOCK_TOLERANCE_MS:
                raise CorruptMetadataError(
                    f"{name!r} has an entry of {earlier} ms before one of {later} ms (or before 'last-updated-ms'); "
                    "entries must be in the order of time"
                )
