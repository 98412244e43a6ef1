"""Events as the broker has them, and the changes of tables that they stand for.

There may be a million of them: they are structs of msgspec, which are made in a fraction of a dataclass's time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

from hms_iceberg.ingest.values.source_types import SourceType

Partition = tuple[str, int]
"""A topic, and the number of one of its partitions."""


def partition_name(partition: Partition) -> str:
    """The name under which a table keeps the offset of a partition, such as `shop.orders-0`."""
    return f"{partition[0]}-{partition[1]}"


def place_of(topic: str, partition: int, offset: int) -> str:
    return f"topic {topic}, partition {partition}, offset {offset}"


class Record(msgspec.Struct, frozen=True):
    """An event as it is in its topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")

    def __str__(self) -> str:
        return place_of(self.topic, self.partition, self.offset)


class Operation(Enum):
    """The way in which an event changes a table."""

    INSERT = "insert"  # a row is new; where there is a key, it takes the place of that of its key if it is repeated
    UPSERT = "upsert"  # the row takes the place of that of its key
    DELETE = "delete"  # the row of a key goes
    TOMBSTONE = "tombstone"  # the row of a key goes, if there is one: compaction may have left nothing else of a delete
    TRUNCATE = "truncate"  # all rows go


class Part(msgspec.Struct, frozen=True):
    """A struct of an event: its values as they were decoded, and their types, unless only the values tell them."""

    values: Mapping[str, Any]
    types: Mapping[str, SourceType] | None = None


class Change(msgspec.Struct, frozen=True):
    """An event's operation on a row (of a delete, what is known of it), before its table is known; `key` is empty
    unless it is a struct, and a table's name may be made of `facts`."""

    operation: Operation
    row: Part
    key: Part
    facts: Mapping[str, Any]


class EventProblem(Exception):
    """Says why an event is no change of a table, and what to do."""
