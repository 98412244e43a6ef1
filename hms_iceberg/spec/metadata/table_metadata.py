"""Table metadata: all that a table is, at one version.

Source: Iceberg specification, "Table Metadata Fields", "Point in Time Reads".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from hms_iceberg.errors import CorruptMetadataError, InvalidInputError
from hms_iceberg.spec.field_mapping import NAME_MAPPING_PROPERTY, NameMapping, name_mapping_from_json
from hms_iceberg.spec.json_model import JsonModel
from hms_iceberg.spec.partitions.partition_specs import PARTITION_FIELD_ID_START, UNPARTITIONED, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import (
    INITIAL_SEQUENCE_NUMBER,
    MAIN_BRANCH,
    MetadataLogEntry,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)
from hms_iceberg.spec.sort_orders import UNSORTED, SortOrder
from hms_iceberg.spec.statistics_files import EncryptionKey, PartitionStatisticsFile, StatisticsFile

SUPPORTED_FORMAT_VERSIONS = (1, 2, 3)
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
