"""Random histories of events beside SQLite, which replays them one by one; PyIceberg appends between."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from hms_iceberg.metastore import TablePointer
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from tests.support.row_tables import NAME, check, create, other_writer

DAY = dt.date(2024, 2, 27)
NOON = dt.datetime(1969, 12, 31, 12, 0, 0, 123456)
TEXTS = ["", "ä", "a\u0308", "𝄞", "Z", "z", " ", "\x00", "日本", "a" * 40]
KEYS: dict[str, tuple[IcebergType, Callable[[int], Any]]] = {
    "long": (LongType(), lambda n: n * 2**40 - 7),
    "int": (IntegerType(), lambda n: n - 5),
    "string": (
        StringType(),
        lambda n: TEXTS[n % 10] * (1 + n // 10),
    ),
    "decimal": (DecimalType(20, 3), lambda n: Decimal(n - 6).scaleb(-3) * 10 ** (n % 5)),
    "date": (DateType(), lambda n: DAY + dt.timedelta(days=n)),
    "timestamp": (TimestampType(), lambda n: NOON + dt.timedelta(microseconds=n * 77_777_777_777)),
    "timestamptz": (
        TimestamptzType(),
        lambda n: NOON.replace(tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=n),
    ),
    "time": (TimeType(), lambda n: dt.time(n % 24, 0, 0, n)),
    "binary": (BinaryType(), lambda n: bytes([255 - n]) * (n % 3) + bytes([n])),
    "fixed": (FixedType(3), lambda n: bytes([200 + n, n, 0])),
    "uuid": (UUIDType(), lambda n: uuid.UUID(int=n << 100)),
    "double": (DoubleType(), lambda n: float(n) / 3 - 2),
}
WAYS = [
    (version, file_format, mode)
    for version in (1, 2, 3)
    for file_format in ("parquet", "orc", "avro")
    for mode in (("auto",) if version == 1 else ("merge-on-read", "copy-on-write", "auto"))
]


class Model:
    """SQLite with one row for each key; values are texts, since it has neither NaN nor nested ones."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("create table t (key text primary key, row text, at int)")
        self._db.execute("create table seen (key text primary key, at int)")

    def insert(self, key: str, row: str, at: int | None) -> None:
        self._db.execute("insert into t values (?, ?, ?)", (key, row, at))

    def begin_call(self) -> None:
        self._db.execute("delete from seen")

    def replay(self, key: str, is_delete: bool, row: str, at: int) -> None:
        newer = "select 1 from {} where key = ? and at > ?"
        if any(self._db.execute(newer.format(table), (key, at)).fetchone() for table in ("t", "seen")):
            return
        self._db.execute("insert or replace into seen values (?, ?)", (key, at))
        self._db.execute("delete from t where key = ?", (key,))
        if not is_delete:
            self._db.execute("insert into t values (?, ?, ?)", (key, row, at))

    def rows(self) -> list[str]:
        return [row for (row,) in self._db.execute("select row from t order by row")]

    def has(self, key: str) -> bool:
        return self._db.execute("select 1 from t where key = ?", (key,)).fetchone() is not None


class History:
    """One table and its model, with the choices of a seed."""

    def __init__(self, folder: Path, version: int, file_format: str, mode: str, seed: int) -> None:
        self.random = random.Random(seed)
        names = list(KEYS)
        chosen = [names[seed % len(names)], *self.random.sample(names, self.random.choice([0, 0, 1]))]
        self._kinds = [KEYS[name] for name in dict.fromkeys(chosen)]
        self.keys = [f"k{place}" for place in range(len(self._kinds))]
        fields = [
            NestedField(place + 1, name, kind, required=self.random.random() < 0.5)
            for place, (name, (kind, _)) in enumerate(zip(self.keys, self._kinds, strict=True))
        ]
        self.schema = Schema(
            *fields,
            NestedField(10, "v", DoubleType()),
            NestedField(11, "s", StringType()),
            NestedField(12, "l", ListType(13, LongType(), element_required=False)),
            NestedField(14, "b", BooleanType()),
            NestedField(15, "at", LongType()),
        )
        specs = [UNPARTITIONED, PartitionSpec(PartitionField(11, 1000, IdentityTransform(), "s"))]
        if not isinstance(self._kinds[0][0], DoubleType):
            specs.append(PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "k0_bucket")))
        self._is_parquet = file_format == "parquet"
        self.table = create(
            folder,
            version,
            schema=self.schema,
            spec=specs[seed % len(specs)],
            **{"write.format.default": file_format},
        )
        self._mode = mode
        self.model = Model()
        self._at = 0
        self._folder = folder

    def _row(self, number: int, at: int) -> dict[str, Any]:
        pick = self.random.choice
        row = {name: make(number) for name, (_, make) in zip(self.keys, self._kinds, strict=True)}
        values = {
            "v": pick([None, float("nan"), 1.5, -0.5, float("inf")]),
            "s": pick([None, "x", "y ä", ""]),
            "l": pick([None, [], [1, None, 3]]),
            "b": pick([None, True, False]),
        }
        return {**row, **values, "at": at}

    def _key(self, row: dict[str, Any]) -> str:
        return repr([row[name] for name in self.keys])

    def _arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        schema = self.table.schema().as_arrow()
        data = [{key: each.bytes if isinstance(each, uuid.UUID) else each for key, each in row.items()} for row in rows]
        plain = pa.schema([field.with_nullable(True) for field in schema])
        table = pa.Table.from_pylist(data, plain)
        return table.cast(schema)

    def append(self) -> None:
        """Somebody else appends rows of new keys: PyIceberg, where it can write the format version."""
        rows = [self._row(number, self.random.randrange(50)) for number in self.random.sample(range(24), 6)]
        rows = list({self._key(row): row for row in rows if not self.model.has(self._key(row))}.values())
        if not rows:
            return
        for row in rows:
            self.model.insert(self._key(row), _text(row), row["at"])
        data = self._arrow(rows)
        if self.table.format_version == 3 or not self._is_parquet:
            other_writer(self.table).append(data)
            return
        peer = SqlCatalog("peer", uri="sqlite:///:memory:", warehouse=str(self._folder))
        peer.create_namespace(NAME[0])
        table = peer.register_table(NAME, self.table.metastore.load(NAME).metadata_location)
        table.append(data)
        pointer = TablePointer(NAME, table.metadata_location, {}, table.location())
        self.table.metastore._rows[NAME] = pointer  # type: ignore[attr-defined]

    def apply(self) -> None:
        """Applies some events in one call, most of them anew in the next."""
        events = []
        for _ in range(self.random.randrange(0, 40)):
            self._at += self.random.choice([0, 1, 2])
            at = max(0, self._at - self.random.choice([0, 0, 0, 5, 30]))
            row = self._row(self.random.randrange(24), at)
            is_delete = self.random.random() < 0.3
            operation = self.random.choice(["d", "DELETE"] if is_delete else ["c", "u", "Insert", "upsert"])
            if is_delete:
                row = {**row, "v": None, "s": None, "l": None, "b": None}
            events.append((row, operation, is_delete))
        events += self.random.sample(events, len(events) // 4)
        self.model.begin_call()
        for row, _, is_delete in events:
            self.model.replay(self._key(row), is_delete, _text(row), row["at"])
        data = self._arrow([row for row, _, _ in events])
        data = data.append_column("op", pa.array([operation for _, operation, _ in events], pa.string()))
        source = data if self.random.random() < 0.5 else data.to_reader(max_chunksize=7)
        options = {"keys": self.keys, "operation": "op", "order": "at", "mode": self._mode}
        self.table.apply_changes(source, **options)

    def compare(self) -> None:
        """Compares whole tables; PyIceberg reads it too, where it knows the formats."""
        newest = other_writer(self.table)
        assert sorted(map(_text, _python(newest.scan().to_arrow()))) == self.model.rows()
        check(newest)
        if self._is_parquet and newest.format_version < 3:
            from pyiceberg.table import StaticTable

            peer = StaticTable.from_metadata(newest.metadata_location).scan().to_arrow()
            assert sorted(map(_text, _python(peer))) == self.model.rows()


def _python(rows: pa.Table) -> list[dict[str, Any]]:
    return rows.to_pylist()


def _text(row: dict[str, Any]) -> str:
    """A row as a text: equal texts are equal rows, whatever the scale of a decimal or the type of a uuid."""
    shown = {}
    for name, value in row.items():
        if isinstance(value, Decimal):
            value = format(value, ".3f")
        elif isinstance(value, dt.datetime) and value.tzinfo is not None:
            value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        elif isinstance(value, bytes) and len(value) == 16:
            value = uuid.UUID(bytes=value)
        shown[name] = value
    return repr(shown)


@pytest.mark.parametrize(("version", "file_format", "mode"), WAYS)
def test_a_table_that_follows_events_is_what_sqlite_makes_of_them(
    tmp_path: Path, version: int, file_format: str, mode: str
) -> None:
    history = History(tmp_path, version, file_format, mode, seed=WAYS.index((version, file_format, mode)))
    for _ in range(2):
        history.append()
        history.apply()
        history.apply()
        history.compare()
