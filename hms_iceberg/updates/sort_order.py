"""Replacing the order that rows are sorted in when they are written."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.errors import CommitConflictError, UnknownColumnError
from hms_iceberg.spec.metadata.metadata_changes import set_default_sort_order
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partition_transforms import IdentityTransform, Transform
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


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
                f"Cannot replace the sort order of the table at {base.location}: it was {before} when the change was "
                f"made, and a concurrent commit made it {now}. Refresh the table and decide again."
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
                    f"Cannot sort the table at {base.location} by {field}: a concurrent commit {fate}. Refresh the "
                    "table and decide again."
                )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the order as default; the same object if it is already.

        Raises:
            UnknownColumnError: a column does not exist.
            InvalidSortOrderError: a column's type cannot be sorted or transformed so.
        """
        order = self._order(base)
        if order.same_as(base.sort_order()):
            return base
        return set_default_sort_order(base, order)

    def _order(self, metadata: TableMetadata) -> SortOrder:
        schema = metadata.schema()
        return SortOrder(
            *(
                SortField(schema.find_id(key.source, self.case_sensitive), key.transform, key.direction, key.null_order)
                for key in self.keys
            )
        )
