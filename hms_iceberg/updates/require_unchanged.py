"""What a transaction has read and found nothing to change in: it may have written something else because of that."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.updates.machinery.conflicts import Concurrent
from hms_iceberg.updates.machinery.content import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RequireUnchanged(Update):
    """Changes nothing, and refuses the other changes of its transaction if rows of a filter changed meanwhile.

    A transaction of such updates alone is a read, which is never refused.

    Attributes:
        row_filter: the rows that were read.
        branch: where.
        case_sensitive: whether the filter names columns in their case.
    """

    row_filter: BooleanExpression
    branch: str = MAIN_BRANCH
    case_sensitive: bool = True

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses if rows that may match the filter were added, removed or deleted."""
        head = parent_on(start, self.branch)
        concurrent = Concurrent.between(
            head.snapshot_id if head else None,
            base,
            self.branch,
            reader,
            "commit, after a read without a match, to",
            self.case_sensitive,
        )
        concurrent.check_nothing_read_changed(self.row_filter)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata as it is."""
        return base
