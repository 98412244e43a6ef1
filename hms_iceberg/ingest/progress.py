"""How far each table has got, and from where to read on.

Every commit carries the offsets of all partitions in each of its tables, and an event is applied to a table if its
offset is not below the table's own. So tables may differ: one without events for a while is behind, and one that was
rolled back is further behind. Reading begins where the first table needs it; the others leave out what they have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hms_iceberg.errors import EventsLostError
from hms_iceberg.ingest.records import Partition, Record, partition_name
from hms_iceberg.metastore import Identifier

logger = logging.getLogger(__name__)

Begin = Literal["earliest", "latest"]
Offsets = Mapping[str, int]
"""The next offset of each partition, by `partition_name`."""


@dataclass(frozen=True)
class Progress:
    """The offsets that each table has applied; a table that has none is not among them."""

    tables: Mapping[Identifier, Offsets]

    def has(self, identifier: Identifier, record: Record) -> bool:
        """Whether a table has an event already."""
        applied = self.tables.get(identifier)
        if applied is None:
            return False
        return record.offset < applied.get(partition_name((record.topic, record.partition)), 0)

    def after(self, identifier: Identifier, positions: Mapping[Partition, int]) -> dict[str, int]:
        """The offsets of a table that has all events before these positions: never below what it has already, since
        reading may have begun where another table needed it."""
        own = self.tables.get(identifier, {})
        return {**own, **{name: max(offset, own.get(name, 0)) for name, offset in named(positions).items()}}

    def behind(self, positions: Mapping[Partition, int]) -> set[Identifier]:
        """The tables that lack some of these offsets."""
        return {name for name, applied in self.tables.items() if dict(applied) != self.after(name, positions)}

    def moved(self, identifiers: set[Identifier], positions: Mapping[Partition, int]) -> Progress:
        """The progress after a commit of some tables."""
        return Progress({**self.tables, **{name: self.after(name, positions) for name in identifiers}})

    def start(
        self,
        partition: Partition,
        bounds: tuple[int, int],
        begin: Begin,
        accept_gap: bool,
        decides: Callable[[Identifier], bool],
    ) -> int:
        """The offset to read a partition from, of which the broker has `bounds` (first, behind the last); `decides`
        tells whether a table that has offsets makes this no first start. EventsLostError unless `accept_gap`."""
        low, high = bounds
        name = partition_name(partition)
        if not any(map(decides, self.tables)):
            return low if begin == "earliest" else high
        # A partition that a table does not know was added to the topic later; its first event has offset 0.
        offset, first = min((applied.get(name, 0), table) for table, applied in self.tables.items())
        what = (
            f"Table {'.'.join(first)} needs offset {offset:,} of topic {partition[0]}, partition {partition[1]}, next"
        )
        if offset > high:
            raise EventsLostError(
                f"{what}, and the topic ends at {high:,}: it was made anew, or has lost events. Read it under another "
                "--name."
            )
        if offset < low:
            lost = f"{what}, and the broker has deleted what is before {low:,}: {low - offset:,} offsets are lost"
            if not accept_gap:
                raise EventsLostError(
                    f"{lost}. Have the source send its rows again (Debezium: a snapshot), and read on with "
                    "--accept-gap. Let the topic keep events for longer than this may stand still (retention.ms)."
                )
            logger.warning("%s, which is accepted.", lost)
            return low
        return offset


def named(positions: Mapping[Partition, int]) -> dict[str, int]:
    """Positions under the names of their partitions."""
    return {partition_name(partition): offset for partition, offset in positions.items()}
