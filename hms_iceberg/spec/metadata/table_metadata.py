"""Table metadata: all that a table is, at one version, and the rules that every version keeps."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import CorruptMetadataError, InvalidInputError
from hms_iceberg.spec.field_mapping import NAME_MAPPING_PROPERTY, NameMapping, name_mapping_from_json
from hms_iceberg.spec.json_model import JsonModel
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import (
    INITIAL_SEQUENCE_NUMBER,
    MAIN_BRANCH,
    EncryptionKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
)
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)
PREVIEWED_FORMAT_VERSION = 4
"""Read if that is asked for, never written: the specification's draft may still change."""
DEFAULT_FORMAT_VERSION = 2


@dataclass(frozen=True)
class TableMetadata(JsonModel):
    """One version of a table; the fields are those of the specification.

    `current_snapshot_id` is None for a table without data; `table_uuid` only in old v1 tables.
    """

    _json_home: ClassVar[str] = "hms_iceberg.spec.metadata.metadata_json"
    format_version: int
    table_uuid: str | None
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int = 0
    partition_specs: tuple[PartitionSpec, ...] = (UNPARTITIONED,)
    default_spec_id: int = 0
    last_partition_id: int = PARTITION_FIELD_ID_START - 1
    sort_orders: tuple[SortOrder, ...] = (UNSORTED,)
    default_sort_order_id: int = 0
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    last_sequence_number: int = INITIAL_SEQUENCE_NUMBER
    current_snapshot_id: int | None = None
    snapshots: tuple[Snapshot, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    refs: dict[str, SnapshotRef] = field(default_factory=dict, hash=False)
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int | None = None
    encryption_keys: tuple[EncryptionKey, ...] = ()

    # ------------------------------------------------------------------------------ schema, spec, order

    @cached_property
    def schemas_by_id(self) -> dict[int, Schema]:
        """All schemas by their id."""
        return {schema.schema_id: schema for schema in self.schemas}

    @cached_property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """All partition specs by their id."""
        return {spec.spec_id: spec for spec in self.partition_specs}

    @cached_property
    def sort_orders_by_id(self) -> dict[int, SortOrder]:
        """All sort orders by their id."""
        return {order.order_id: order for order in self.sort_orders}

    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """The schema with this id; raises InvalidInputError if the table has none."""
        schema = self.schemas_by_id.get(schema_id)
        if schema is None:
            raise self._unknown("schema", schema_id, self.schemas_by_id)
        return schema

    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.spec_by_id(self.default_spec_id)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """The partition spec with this id; raises InvalidInputError if the table has none."""
        spec = self.specs_by_id.get(spec_id)
        if spec is None:
            raise self._unknown("partition spec", spec_id, self.specs_by_id)
        return spec

    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return self.sort_order_by_id(self.default_sort_order_id)

    def sort_order_by_id(self, order_id: int) -> SortOrder:
        """The sort order with this id; raises InvalidInputError if the table has none."""
        order = self.sort_orders_by_id.get(order_id)
        if order is None:
            raise self._unknown("sort order", order_id, self.sort_orders_by_id)
        return order

    def _unknown(self, what: str, wanted: int, known: Mapping[int, object]) -> InvalidInputError:
        ids = ", ".join(map(str, sorted(known)))
        return InvalidInputError(f"The table at {self.location} has no {what} with id {wanted}; it has {ids}")

    def name_mapping(self) -> NameMapping | None:
        """The mapping of the property `schema.name-mapping.default`, or None if it is not set.

        Raises:
            InvalidInputError: the property's value cannot be read.
        """
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        return None if text is None else name_mapping_from_json(text)

    # ---------------------------------------------------------------------------------------- snapshots

    @cached_property
    def snapshots_by_id(self) -> dict[int, Snapshot]:
        """All snapshots by their id."""
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    def next_sequence_number(self) -> int:
        """The sequence number of the next snapshot; 0 in v1 tables."""
        return self.last_sequence_number + 1 if self.format_version > 1 else INITIAL_SEQUENCE_NUMBER

    def current_snapshot(self) -> Snapshot | None:
        """The snapshot that the table shows, or None if it has no data."""
        return None if self.current_snapshot_id is None else self.snapshots_by_id.get(self.current_snapshot_id)

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with this id, or None."""
        return self.snapshots_by_id.get(snapshot_id)

    def snapshot_by_name(self, name: str | None) -> Snapshot | None:
        """The snapshot that a branch or tag points at (None: main), or None if there is no such reference."""
        if name is None or name == MAIN_BRANCH:
            return self.current_snapshot()
        ref = self.refs.get(name)
        return None if ref is None else self.snapshots_by_id.get(ref.snapshot_id)

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot | None:
        """The snapshot that was current at a time (milliseconds from 1970-01-01 UTC), by the snapshot log.

        None if the log does not reach back so far, or the snapshot has expired.
        """
        for entry in reversed(self.snapshot_log):
            if entry.timestamp_ms <= timestamp_ms:
                return self.snapshots_by_id.get(entry.snapshot_id)
        return None

    def ancestors_of(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """A snapshot and its ancestors, newest first, as far as they have not expired.

        Raises:
            CorruptMetadataError: a snapshot is its own ancestor.
        """
        seen: set[int] = set()
        while snapshot_id is not None and (snapshot := self.snapshots_by_id.get(snapshot_id)) is not None:
            if snapshot_id in seen:
                raise CorruptMetadataError(
                    f"The metadata of the table at {self.location} is corrupt: "
                    f"snapshot {snapshot_id} is its own ancestor"
                )
            seen.add(snapshot_id)
            yield snapshot
            snapshot_id = snapshot.parent_snapshot_id

    def schema_for_snapshot(self, snapshot: Snapshot) -> Schema:
        """The schema of the time when a snapshot was made; the current one if the snapshot does not say."""
        return self.schema() if snapshot.schema_id is None else self.schema_by_id(snapshot.schema_id)

    def schema_for_spec(self, spec: PartitionSpec) -> Schema:
        """A schema that has the source columns of a partition spec, so that its partition values have types.

        The current one if it has them; otherwise, as columns may have been dropped since, the newest that does.
        """
        sources = {
            source
            for field in spec.fields
            if not field.transform.is_void
            for source in (field.source_ids or (field.source_id,))
        }
        newest_first = sorted(self.schemas, key=lambda schema: schema.schema_id, reverse=True)
        for schema in (self.schema(), *newest_first):
            if all(schema.has_field(source) for source in sources):
                return schema
        return self.schema()


# Machines that commit have clocks that differ a little.
CLOCK_TOLERANCE_MS = 60_000


def check_metadata(metadata: TableMetadata, *, preview: bool = False) -> None:
    """Refuses metadata that breaks a rule of the specification; CorruptMetadataError names the rule."""
    _check_header(metadata, preview)
    _check_current_ids(metadata)
    _check_snapshots(metadata)
    _check_refs(metadata)
    _check_logs(metadata)


def _check_header(metadata: TableMetadata, preview: bool) -> None:
    version = metadata.format_version
    if version not in SUPPORTED_FORMAT_VERSIONS and not (preview and version == PREVIEWED_FORMAT_VERSION):
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


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def changed(metadata: TableMetadata, at_ms: int | None = None, **changes: Any) -> TableMetadata:
    """The metadata with members replaced, checked, and a last-updated time (now by default) that never goes back."""
    last_updated_ms = max(metadata.last_updated_ms, now_ms() if at_ms is None else at_ms)
    new = replace(metadata, last_updated_ms=last_updated_ms, **changes)
    check_metadata(new)
    return new
