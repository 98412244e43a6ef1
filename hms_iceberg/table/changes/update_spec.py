"""Builders of changes of partition spec and sort order, with PyIceberg's names."""

from __future__ import annotations

from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform, Transform, parse_transform
from hms_iceberg.table.changes.pending import PendingChange, StartedChange
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.partition_spec import (
    AddPartitionField,
    PartitionChange,
    PartitionSpecUpdate,
    RemovePartitionField,
    RenamePartitionField,
)
from hms_iceberg.updates.table_settings import ReplaceSortOrder, SortKey


class UpdateSpec(PendingChange):
    """Changes the partition spec for data that is written from now on.

    Each method that adds a step returns this object, so that calls can be chained.

    >>> with table.update_spec() as update:
    ...     update.add_field("ts", DayTransform(), "day")
    ...     update.remove_field("city")
    """

    def __init__(self, started: StartedChange, case_sensitive: bool = True) -> None:
        super().__init__(started)
        self._changes: tuple[PartitionChange, ...] = ()
        self._case_sensitive = case_sensitive

    def _updates(self) -> list[Update]:
        return [PartitionSpecUpdate(self._changes, self._case_sensitive)] if self._changes else []

    def _add(self, change: PartitionChange) -> UpdateSpec:
        changes = (*self._changes, change)
        self._preview(PartitionSpecUpdate(changes, self._case_sensitive))
        self._changes = changes
        return self

    def apply(self) -> PartitionSpec:
        """The spec that the changes would make; nothing is committed."""
        return self._preview(PartitionSpecUpdate(self._changes, self._case_sensitive)).spec()

    def add_field(
        self, source_column_name: str, transform: Transform | str, partition_field_name: str | None = None
    ) -> UpdateSpec:
        """Partitions by a transform (`DayTransform()`, `"bucket[16]"`) of a column.

        Args:
            source_column_name: the column; a nested one with dots.
            transform: a transform, or its text.
            partition_field_name: the name of the partition field; None makes one of column and
                transform.

        Raises:
            InvalidPartitionSpecError: the transform does not fit, or there is such a field already.
            InvalidInputError: the transform's text cannot be read, or there is no such column.
        """
        return self._add(AddPartitionField(source_column_name, _transform(transform), partition_field_name))

    def add_identity(self, source_column_name: str) -> UpdateSpec:
        """Partitions by a column itself."""
        return self.add_field(source_column_name, IdentityTransform())

    def remove_field(self, name: str) -> UpdateSpec:
        """Stops partitioning by a field."""
        return self._add(RemovePartitionField(name))

    def rename_field(self, name: str, new_name: str) -> UpdateSpec:
        """Renames a field.

        Args:
            name: the name of a partition field.
            new_name: a name that no column and no other partition field has.

        Raises:
            InvalidPartitionSpecError: there is no such field, or the new name is taken.
        """
        return self._add(RenamePartitionField(name, new_name))


class UpdateSortOrder(PendingChange):
    """Sets the sort order of data that is written from now on: the given keys, in their order, replace the present
    ones.

    Each method that adds a key returns this object, so that calls can be chained.
    """

    def __init__(self, started: StartedChange, case_sensitive: bool = True) -> None:
        super().__init__(started)
        self._keys: tuple[SortKey, ...] = ()
        self._case_sensitive = case_sensitive

    def _updates(self) -> list[Update]:
        return [ReplaceSortOrder(self._keys, self._case_sensitive)]

    def apply(self) -> SortOrder:
        """The order that the keys would make; nothing is committed."""
        return self._preview(ReplaceSortOrder(self._keys, self._case_sensitive)).sort_order()

    def _add(self, key: SortKey) -> UpdateSortOrder:
        keys = (*self._keys, key)
        self._preview(ReplaceSortOrder(keys, self._case_sensitive))
        self._keys = keys
        return self

    def asc(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        null_order: NullOrder = NullOrder.NULLS_LAST,
    ) -> UpdateSortOrder:
        """Adds an ascending key; nulls come last by default, as in PyIceberg.

        Args:
            source_column_name: the column; a nested one with dots.
            transform: the transform to sort by; the column itself by default.
            null_order: whether nulls come first or last.

        Raises:
            InvalidInputError: no such column, or a transform that cannot be read or does not fit it.
        """
        return self._add(SortKey(source_column_name, _transform(transform), SortDirection.ASC, null_order))

    def desc(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        null_order: NullOrder = NullOrder.NULLS_LAST,
    ) -> UpdateSortOrder:
        """Adds a descending key.

        Args:
            source_column_name: the column; a nested one with dots.
            transform: what is sorted by; the column itself by default.
            null_order: whether nulls come first or last.

        Raises:
            InvalidInputError: no such column, or a transform that cannot be read or does not fit it.
        """
        return self._add(SortKey(source_column_name, _transform(transform), SortDirection.DESC, null_order))


def _transform(transform: Transform | str | None) -> Transform:
    if transform is None:
        return IdentityTransform()
    return parse_transform(transform) if isinstance(transform, str) else transform
