"""What is read and where it goes, and what is told of it."""

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
    """What is read, where it goes, and how.

    Attributes:
        topics: the topics.
        table: the table of an event; see `TableTemplate`.
        name: under which the tables keep the offsets. What reads on after it must have the same.
        kafka: settings of librdkafka.
        registry: settings of the schema registry's client, for Avro.
        format: what events are; one of `envelopes.FORMATS`.
        operation_column: the field of a plain value that says what happens to its row.
        rules: how events become rows.
        create: whether tables that are missing are made.
        dead_letters: the table of events that are no changes; without one, such an event is an error.
        begin: where to read from at the very first start.
        accept_gap: whether to read on behind events that the broker has deleted.
        every_seconds: how long a batch collects events.
        max_rows, max_bytes: how many events, and bytes of events, a batch has at most.
    """

    topics: tuple[str, ...]
    table: TableTemplate
    name: str
    kafka: Mapping[str, str]
    registry: Mapping[str, str] = field(default_factory=dict)
    format: str = "debezium-json"
    operation_column: str | None = None
    rules: Rules = field(default_factory=Rules)
    create: bool = False
    dead_letters: str | None = None
    begin: Begin = "earliest"
    accept_gap: bool = False
    every_seconds: float = 10.0
    max_rows: int = 100_000
    max_bytes: int = 64 * 1024**2


@dataclass(frozen=True)
class BatchReport:
    """A batch that was committed.

    Attributes:
        rows: changes by table.
        dead_letters: events that went to their table.
        repeated: events that their table had already, and that were left out therefore.
        offsets: the next offset of each partition.
        lag: events that the topics have behind them, as far as the broker has told.
        seconds: how long the commit took.
    """

    rows: Mapping[str, int]
    dead_letters: int
    repeated: int
    offsets: Mapping[str, int]
    lag: int
    seconds: float


class Observer(Protocol):
    """Is told what happens; by the thread that ingests."""

    def batch(self, report: BatchReport) -> None:
        """A batch was committed."""

    def reading(self, lag: int, at_hand: int) -> None:
        """Events are read, or waited for: so many are not committed, and so many of these are at hand."""

    def failure(self, error: IcebergError) -> None:
        """Something failed that may be better in a while; it is tried again."""
