"""The settings of an ingestion, and the observer that is told of its progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hms_iceberg.errors import IcebergError
from hms_iceberg.ingest.progress import Begin
from hms_iceberg.ingest.routing import TableTemplate
from hms_iceberg.ingest.table_rows import Rules


@dataclass(frozen=True)
class Settings:
    """The topics to read, the tables that they go to, and the rules by which they do."""

    topics: tuple[str, ...]
    table: TableTemplate
    name: str  # of the reader, under which the tables keep its offsets; it must stay the same
    kafka: Mapping[str, str]
    registry: Mapping[str, str] = field(default_factory=dict)
    format: str = "debezium-json"  # one of `envelopes.FORMATS`
    operation_column: str | None = None  # the field of a plain value that says what happens to its row
    rules: Rules = field(default_factory=Rules)
    create: bool = False  # whether tables that are missing are made
    dead_letters: str | None = None  # the table of events that are no changes; without one, such an event is an error
    begin: Begin = "earliest"  # where to read from at the very first start
    accept_gap: bool = False  # whether to read on behind events that the broker has deleted
    every_seconds: float = 10.0  # how long a batch collects events
    max_rows: int = 100_000  # the most events of a batch, and `max_bytes` the most bytes of them
    max_bytes: int = 64 * 1024**2
    quiet_seconds: float = 600.0  # so often a table without events gets the others' offsets: a restart reads less then
    look_for_partitions_seconds: float = 60.0


@dataclass(frozen=True)
class BatchReport:
    """A batch that was committed."""

    rows: Mapping[str, int]  # changes by table
    dead_letters: int  # events that went to their table
    repeated: int  # events that their table had already, and that were left out therefore
    offsets: Mapping[str, int]  # the next offset of each partition
    lag: int  # events that the topics have behind them, as far as the broker has told
    seconds: float  # how long the commit took


class Observer(Protocol):
    """Is told what happens; by the thread that ingests."""

    def batch(self, report: BatchReport) -> None:
        """A batch was committed."""

    def reading(self, lag: int, at_hand: int) -> None:
        """Events are read, or waited for: so many are not committed, and so many of these are at hand."""

    def failure(self, error: IcebergError) -> None:
        """Something failed that may be better in a while; it is tried again."""
