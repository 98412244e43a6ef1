"""Changes of a table's properties, sort order, location, statistics files and encryption keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.encryption.encrypted_tables import is_encrypted, rotated_keys
from hms_iceberg.errors import CommitConflictError, InvalidInputError, UnknownColumnError
from hms_iceberg.spec.metadata.format_rules import split_properties
from hms_iceberg.spec.metadata.metadata_definition import (
    remove_properties,
    set_default_sort_order,
    set_location,
    set_properties,
)
from hms_iceberg.spec.metadata.metadata_snapshots import (
    remove_partition_statistics,
    remove_statistics,
    set_partition_statistics,
    set_statistics,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, changed
from hms_iceberg.spec.snapshots_and_refs import PartitionStatisticsFile, StatisticsFile, with_keys
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.spec.table_properties import check_properties
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform, Transform
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class SetProperties(Update):
    """Sets and removes table properties. Different keys commute; one that somebody else gave another value meanwhile is
    a conflict. The reserved key `format-version` upgrades the format."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        both = self.removals & self.updates.keys()
        if both:
            raise InvalidInputError(f"Cannot both set and remove the table properties {sorted(both)}. Do one of them.")
        check_properties(split_properties(self.updates)[0])
        if not all(isinstance(name, str) for name in self.removals):
            raise InvalidInputError(
                f"Cannot remove table properties: expected names, got {sorted(self.removals, key=str)}."
            )

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses keys that were changed concurrently to something else."""
        wanted: dict[str, str | None] = {**self.updates, **dict.fromkeys(self.removals)}
        for key, value in wanted.items():
            before, now = start.properties.get(key), base.properties.get(key)
            if now not in (before, value):
                raise CommitConflictError(
                    f"Cannot {'remove' if value is None else f'set to {value!r}'} the property {key!r} of ",
                    base.location,
                    f": it was {before!r} when this change was made, and a concurrent commit made it {now!r}. Refresh "
                    "the table and decide again.",
                )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the properties changed; the same object if nothing changes."""
        return remove_properties(set_properties(base, self.updates), self.removals)


@dataclass(frozen=True)
class SetLocation(Update):
    """Makes new files go to another base location; files that exist stay where they are."""

    location: str

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if another writer moved the table since."""
        if base.location not in (start.location, self.location):
            raise CommitConflictError(
                "Cannot set the location of ",
                start.location,
                f" to {self.location}: a concurrent commit set "
                f"it to {base.location}. Refresh the table and decide again.",
            )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        return set_location(base, self.location, workspace.now_ms())


@dataclass(frozen=True)
class SetStatistics(Update):
    """Registers a statistics file, in place of another one of the same snapshot."""

    file: StatisticsFile | PartitionStatisticsFile

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: statistics are advisory, the last writer wins."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        if isinstance(self.file, PartitionStatisticsFile):
            return set_partition_statistics(base, self.file, workspace.now_ms())
        return set_statistics(base, self.file, workspace.now_ms())


@dataclass(frozen=True)
class RemoveStatistics(Update):
    """Forgets the statistics file of a snapshot; nothing happens if there is none."""

    snapshot_id: int
    of_partitions: bool = False

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: statistics are advisory."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        remove = remove_partition_statistics if self.of_partitions else remove_statistics
        return remove(base, self.snapshot_id, workspace.now_ms())


@dataclass(frozen=True)
class SortKey:
    """One key of a sort order, its column by name."""

    source: str
    transform: Transform = IdentityTransform()  # noqa: RUF009  frozen and without state
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder | None = None


@dataclass(frozen=True)
class ReplaceSortOrder(Update):
    """Makes these keys the table's sort order; without keys the table is unsorted."""

    keys: tuple[SortKey, ...] = ()
    case_sensitive: bool = True

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if the order, or a column of the new one, was changed since `start`."""
        before, now = start.sort_order(), base.sort_order()
        if not now.same_as(before) and not now.same_as(self._order(base)):
            raise CommitConflictError(
                "Cannot replace the sort order of ",
                base.location,
                f": it was {before} when the change was "
                f"made, and a concurrent commit made it {now}. Refresh the table and decide again.",
            )
        for key in self.keys:
            try:
                field = start.schema().find_field(key.source, self.case_sensitive)
            except UnknownColumnError:
                continue  # a column of an earlier update of the transaction
            after = base.schema().index_by_id.get(field.field_id)
            if after is None or after.field_type != field.field_type:
                fate = "dropped it" if after is None else f"made it {after}"
                raise CommitConflictError(
                    "Cannot sort ",
                    base.location,
                    f" by {field}: a concurrent commit {fate}. Refresh the table and decide again.",
                )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the order as default; the same object if it is already."""
        return set_default_sort_order(base, self._order(base))

    def _order(self, metadata: TableMetadata) -> SortOrder:
        schema = metadata.schema()
        return SortOrder(
            *(
                SortField(schema.find_id(key.source, self.case_sensitive), key.transform, key.direction, key.null_order)
                for key in self.keys
            )
        )


@dataclass(frozen=True)
class RotateKeys(Update):
    """Encrypts the keys of all manifest lists by a new key, which the newest version of the table's key encrypts. No
    file but the metadata is written anew."""

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: the keys that came meanwhile are encrypted anew with the others."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the new key, and without those that it takes the place of."""
        if not is_encrypted(base.properties):
            raise InvalidInputError(f"Cannot rotate the keys of the table at {base.location}: it is not encrypted.")
        now = workspace.now_ms()
        known = base.encryption_keys
        keys = workspace.once(("keys", known), lambda: rotated_keys(known, base.properties, workspace, now))
        snapshots = tuple(with_keys(each, keys) for each in base.snapshots)
        return changed(base, now, encryption_keys=keys, snapshots=snapshots)
