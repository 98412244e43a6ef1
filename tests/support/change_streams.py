"""Random change streams of several tables, and what SQLite makes of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.kafka import Event, json_event

Row = tuple[int, int | None, str | None]


@dataclass(frozen=True)
class ChangeStream:
    """Events of tables by partition; a key is always in the same one. A few are no events at all."""

    tables: tuple[str, ...]
    partitions: tuple[tuple[Event, ...], ...]

    @classmethod
    def random(cls, seed: int, tables: tuple[str, ...], partitions: int, events: int, keys: int) -> ChangeStream:
        """A stream of so many events a partition, on so many keys a table and partition."""
        draw = Random(seed)
        found: list[tuple[Event, ...]] = []
        for partition in range(partitions):
            made: list[Event] = []
            for number in range(events):
                table = tables[number % len(tables)]
                key = draw.randrange(keys) * partitions + partition
                made.append(_event(draw, table, key))
            found.append(tuple(made))
        return cls(tables, tuple(found))

    def replayed(self, offsets: Mapping[int, int]) -> tuple[dict[str, list[Row]], int]:
        """The rows of each table after the events before these offsets, by SQLite, and how many were none."""
        bad = 0
        database = sqlite3.connect(":memory:")
        for table in self.tables:
            database.execute(f"create table {table} (id integer primary key, n integer, note text)")
        for partition, offset in offsets.items():
            for _, value in self.partitions[partition][:offset]:
                bad += not _apply(database, value)
        rows = {each: database.execute(f"select * from {each} order by id").fetchall() for each in self.tables}
        database.close()
        return rows, bad


def _event(draw: Random, table: str, key: int) -> Event:
    kind = draw.choices(("u", "c", "d", "bad"), (5, 2, 2, 0.2))[0]
    if kind == "bad":
        return (b"x", b"no event")
    row = {
        "id": key,
        "n": draw.choice([None, draw.randrange(1000)]),
        "note": draw.choice([None, "x" * draw.randrange(9)]),
    }
    before, after = (row, None) if kind == "d" else (None, row)
    return json_event({"before": before, "after": after, "op": kind, "source": {"table": table}}, {"id": key})


def _apply(database: sqlite3.Connection, value: bytes | None) -> bool:
    """Applies an event as SQLite does; False if it is none."""
    try:
        event: dict[str, Any] = json.loads(value or b"")
    except ValueError:
        return False
    table = event["source"]["table"]
    if event["op"] == "d":
        database.execute(f"delete from {table} where id = ?", (event["before"]["id"],))
    else:
        row = event["after"]
        database.execute(f"insert or replace into {table} values (?, ?, ?)", (row["id"], row["n"], row["note"]))
    return True
