"""The events that one commit takes: rows by table, dead letters, and where the reader is behind them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hms_iceberg.ingest.dead_letters import DeadLetter
from hms_iceberg.ingest.table_rows import TableRows
from hms_iceberg.metastore import Identifier
from hms_iceberg.table import Table


@dataclass
class TablePart:
    """The part of a commit that changes one table, at the version that it had when its first event came."""

    table: Table
    rows: TableRows
    is_truncated: bool = False  # all rows go; a batch that does so has no other event of the table


@dataclass
class Batch:
    """Collects events until they are committed."""

    parts: dict[Identifier, TablePart] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)
    events: int = 0
    bytes: int = 0
    repeated: int = 0  # events that their table had already
    is_closed: bool = False  # takes no more events

    @property
    def changes_something(self) -> bool:
        """Whether there is anything to commit but offsets."""
        return bool(self.letters) or any(part.is_truncated or len(part.rows) for part in self.parts.values())
