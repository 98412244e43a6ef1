"""A storage that interrupts its user at a chosen step, and the table of disrepair that maintenance is tried on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import duckdb
import pyarrow as pa

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from tests.support.hdfs_path import copy_files, copy_folder
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, rows
from tests.support.tables import QUICK


class Killed(BaseException):
    """The process is gone: whoever catches it finds no storage any more."""


class InterruptingStorage(ArrowStorage):
    """Local files. Before the step `at`, which is the making or deleting of a file, `then` is called once.

    Attributes:
        steps: how many there were.
        at: the step; None for none.
        then: what happens; a `Killed` that it raises is raised by everything that is tried afterwards, too.
    """

    def __init__(self, at: int | None = None, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.steps = 0
        self.at = at
        self.then = then
        self._mutex = threading.RLock()
        self._dead = False

    def open_output(self, location: str) -> BinaryIO:
        """A new file."""
        self._step()
        return super().open_output(location)

    def delete(self, location: str) -> None:
        """Removes a file."""
        self._step()
        super().delete(location)

    def read(self, location: str) -> bytes:
        """The whole object."""
        self._check()
        return super().read(location)

    def _step(self) -> None:
        with self._mutex:
            self._check()
            self.steps += 1
            if self.steps - 1 == self.at:
                try:
                    self.then()
                except Killed:
                    self._dead = True
                    raise

    def _check(self) -> None:
        if self._dead:
            raise Killed


class Disrepair:
    """A table with small files, deletes of every kind, some of which delete nothing, and a stray file.

    The rows are kept in DuckDB as well, by the same changes in SQL.

    Args:
        folder: where it is.
        version: of its format; version 3 is upgraded, so that it has position delete files.
    """

    def __init__(self, folder: Path, version: int) -> None:
        self.location = folder / "table"
        self._known: dict[tuple[str, ...], list[str]] = {}
        self._backup = folder / "backup"
        self._sql: list[str] = ["create table t (id bigint, city varchar, amount int)"]
        self.sql: list[str] = []
        properties = {**QUICK, **MERGE_ON_READ, "format-version": "2"}
        FileSystemTables().create(SCHEMA, str(self.location), BY_CITY, properties=properties)
        self._damage(self.opened(), version)
        self._sql, self.sql = [*self._sql, *self.sql], []
        self.stray = self.location / "data" / "lost.parquet"
        self.stray.write_bytes(b"lost")
        copy_folder(self.location, self._backup)

    def _damage(self, table: Table, version: int) -> None:
        for start in (0, 10, 20):
            append(self, table, *range(start, start + 4))
            append(self, table, *range(start + 100, start + 104), city="Ulm")
        append(self, table, 200, 201, city="Rom")
        delete_rows(self, table, 1, 101, 200)
        delete_rows(self, table, 2, 20, 120)
        delete_keys(self, table, 3, 12)
        delete_keys(self, table, 103, city="Ulm")
        delete_keys(self, table, 999)  # there is no such row
        table.delete("city = 'Rom'")
        self.sql.append("delete from t where city = 'Rom'")
        table.set_properties({"write.delete.granularity": "partition"})
        if version == 3:
            table.upgrade_table_version(3)
            delete_rows(self, table, 21)

    def opened(self, storage: ArrowStorage | None = None) -> Table:
        """The table as a process of its own holds it."""
        return FileSystemTables(storage=storage).load(str(self.location))

    def restore(self) -> None:
        """Puts everything back as it was."""
        kept = {path.relative_to(self._backup) for path in self._backup.rglob("*") if path.is_file()}
        there = {path.relative_to(self.location) for path in self.location.rglob("*") if path.is_file()}
        for path in there - kept:
            (self.location / path).unlink()
        changed = {path for path in kept if path.name == "version-hint.text"}  # no other file ever does
        copy_files((self._backup / path, self.location / path) for path in (kept - there) | changed)
        self.sql.clear()

    def expected(self) -> list[str]:
        """The rows as DuckDB has them."""
        statements = (*self._sql, *self.sql)
        if statements not in self._known:
            with duckdb.connect() as database:
                for statement in statements:
                    database.execute(statement)
                found = database.execute("select * from t")
                names = [column[0] for column in found.description]
                self._known[statements] = sorted(repr(dict(zip(names, row, strict=True))) for row in found.fetchall())
        return self._known[statements]

    def found(self) -> list[str]:
        """The rows of the table."""
        return sorted(map(repr, self.opened().scan().to_arrow().to_pylist()))


def append(case: Disrepair, table: Table, *ids: int, city: str = "Bonn") -> None:
    """New rows."""
    table.append(rows(*ids, city=city))
    case.sql += [f"insert into t (id, city, amount) values ({each}, '{city}', {each * 2})" for each in ids]


def delete_rows(case: Disrepair, table: Table, *ids: int) -> None:
    """Deletes by position."""
    chosen = f"id in ({', '.join(map(str, ids))})"
    table.delete(chosen)
    case.sql.append(f"delete from t where {chosen}")


def delete_keys(case: Disrepair, table: Table, *ids: int, city: str = "Bonn") -> None:
    """Deletes by key."""
    with table.new_row_delta() as delta:
        keys = pa.table({"id": pa.array(ids, pa.int64()), "city": [city] * len(ids)})
        delta.delete_equal(keys, columns=["id", "city"])
    case.sql.append(f"delete from t where city = '{city}' and id in ({', '.join(map(str, ids))})")


def merge(case: Disrepair, table: Table) -> None:
    """Changes one row and brings another one."""
    table.upsert(pa.concat_tables([rows(11, amount=-1), rows(300)]), join_cols=["id"])
    case.sql.append("update t set amount = -1 where id = 11")
    case.sql.append("insert into t (id, city, amount) values (300, 'Bonn', 600)")


def add_column(case: Disrepair, table: Table) -> None:
    """A column more."""
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    case.sql.append("alter table t add column note varchar")


def overwrite_partition(case: Disrepair, table: Table) -> None:
    """Other rows for one city."""
    table.overwrite(rows(500, city="Ulm"), "city = 'Ulm'")
    case.sql += ["delete from t where city = 'Ulm'", "insert into t (id, city, amount) values (500, 'Ulm', 1000)"]


# What others may do meanwhile, by name.
CHANGES: dict[str, Callable[[Disrepair, Table], None]] = {
    "append": lambda case, table: append(case, table, 400, 401),
    "delete rows": lambda case, table: delete_rows(case, table, 10, 110),
    "delete keys": lambda case, table: delete_keys(case, table, 13),
    "merge": merge,
    "add a column": add_column,
    "overwrite a partition": overwrite_partition,
}
