"""A version in the making: what the changes of one request have made of a table or a view so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata

LAST_ADDED = -1
"""The id by which a request names what it has just added, whose own id the server draws."""


@dataclass
class Added:
    """The ids that the changes of a request added last, by kind (`schema`, `partition spec` …)."""

    last: dict[str, int] = field(default_factory=dict)

    def resolve(self, kind: str, given: int) -> int:
        """The id; a request says -1 for the one of this kind that it added last."""
        if given != LAST_ADDED:
            return given
        if kind not in self.last:
            raise InvalidInputError(f"Cannot set the last added {kind}: the request has added none before.")
        return self.last[kind]


@dataclass
class PendingTable:
    """A table's metadata while changes of one request are applied; parts are checked together at the end only."""

    metadata: TableMetadata
    at_ms: int
    added: Added = field(default_factory=Added)
    snapshot_times: dict[int, int] = field(default_factory=dict)
    is_new: bool = False


@dataclass
class PendingView:
    metadata: ViewMetadata
    at_ms: int
    added: Added = field(default_factory=Added)
    version_times: dict[int, int] = field(default_factory=dict)
