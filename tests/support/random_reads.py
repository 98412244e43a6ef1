"""Random tables with a history in Python, beside the same history in DuckDB.

Columns are of flat types and of structs, lists and maps of any, with nulls at each level; schemas change, rows go by
either mode of deletes, and files are of all formats and of several row groups.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import duckdb
import polars as pl
import pyarrow as pa

from hms_iceberg.catalog import Catalog
from hms_iceberg.table import Table

Test = tuple[str, str]  # as a filter, and in DuckDB's SQL
EPOCH = dt.datetime(1970, 1, 1)
NULLS = 0.15
UUID_BYTES = pa.binary(16)
TEXTS = ("", "a", "ab", "é", "z\u07ff", "\U0001f600", "it''s")
SPECIAL = (math.nan, -0.0, 0.0, math.inf, -math.inf)


@dataclass(frozen=True)
class Kind:
    """A type of a column: what Arrow and DuckDB call it, and the parts of a nested one: a struct's fields by name, or
    ``element``, or ``key`` and ``value``."""

    name: str
    arrow: pa.DataType
    sql: str
    parts: tuple[tuple[str, Kind], ...] = ()

    def with_uuids(self, given: pa.DataType) -> pa.DataType:
        """The type with UUIDs as they are handed over: pyarrow makes no nested ones, and DuckDB knows none of its."""
        if self.parts:
            return _nested(self.name, [(name, kind.with_uuids(given)) for name, kind in self.parts])
        return given if self.name == "uuid" else self.arrow

    def value(self, random: Random, few: bool) -> Any:
        """A value as DuckDB takes it; of `few` different ones."""
        if random.random() < NULLS:
            return None
        if self.name == "struct":
            return {name: kind.value(random, few) for name, kind in self.parts}
        if self.name == "list":
            return [self.parts[0][1].value(random, few) for _ in range(random.randint(0, 3))]
        if self.name == "map":
            keys = dict.fromkeys(_flat(self.parts[0][1].name, random, True) for _ in range(random.randint(0, 3)))
            return [(key, self.parts[1][1].value(random, few)) for key in keys]
        return _flat(self.name, random, few)

    def ours(self, value: Any) -> Any:
        """The value as we take it."""
        if value is None or not (self.parts or self.name == "uuid"):
            return value
        if self.name == "struct":
            return {name: kind.ours(value[name]) for name, kind in self.parts}
        if self.name == "list":
            return [self.parts[0][1].ours(each) for each in value]
        return [(key, self.parts[1][1].ours(each)) for key, each in value] if self.parts else UUID(value).bytes

    def plain(self, value: Any) -> Any:
        """A value as Arrow or Polars gives it, in a form that is the same for all of them."""
        if value is None:
            return None
        if self.name == "struct":
            return tuple(kind.plain(value[name]) for name, kind in self.parts)
        if self.name == "list":
            return tuple(self.parts[0][1].plain(each) for each in value)
        if self.name == "map":
            pairs = value.items() if isinstance(value, dict) else value
            return sorted((repr(key), repr(self.parts[1][1].plain(each))) for key, each in pairs)
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else repr(value)
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        if self.name == "uuid":
            return value if isinstance(value, bytes) else UUID(str(value)).bytes
        return value

    def literals(self, value: Any) -> Test | None:
        """A value in a filter and in DuckDB's SQL; None if it has none in either."""
        if self.name in ("float", "double"):
            return (repr(value), f"{value!r}::{self.sql}") if math.isfinite(value) else None
        if self.name == "binary":
            return f"X'{value.hex()}'", f"from_hex('{value.hex()}')"
        if self.name in ("int", "long", "decimal", "boolean"):
            return str(value).lower(), f"{str(value).lower()}::{self.sql}"
        text = value if isinstance(value, str) else str(value).replace(" ", "T")
        return f"'{text}'", f"'{text}'::{self.sql}"


def _nested(name: str, parts: Sequence[tuple[str, pa.DataType]]) -> pa.DataType:
    if name == "struct":
        return pa.struct(parts)
    return pa.list_(parts[0][1]) if name == "list" else pa.map_(parts[0][1], parts[1][1])


def nested(name: str, *parts: tuple[str, Kind]) -> Kind:
    """A struct, list or map of parts."""
    kinds = [kind.sql for _, kind in parts]
    fields = ", ".join(f"{part} {kind.sql}" for part, kind in parts)
    sql = {"struct": f"STRUCT({fields})", "list": f"{kinds[0]}[]", "map": f"MAP({', '.join(kinds)})"}[name]
    return Kind(name, _nested(name, [(part, kind.arrow) for part, kind in parts]), sql, parts)


FLAT = {
    kind.name: kind
    for kind in (
        Kind("boolean", pa.bool_(), "BOOLEAN"),
        Kind("int", pa.int32(), "INTEGER"),
        Kind("long", pa.int64(), "BIGINT"),
        Kind("float", pa.float32(), "FLOAT"),
        Kind("double", pa.float64(), "DOUBLE"),
        Kind("decimal", pa.decimal128(9, 2), "DECIMAL(9, 2)"),
        Kind("date", pa.date32(), "DATE"),
        Kind("time", pa.time64("us"), "TIME"),
        Kind("timestamp", pa.timestamp("us"), "TIMESTAMP"),
        Kind("timestamptz", pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
        Kind("string", pa.string(), "VARCHAR"),
        Kind("uuid", pa.uuid(), "UUID"),
        Kind("binary", pa.binary(), "BLOB"),
    )
}
WIDER = {
    "int": FLAT["long"],
    "float": FLAT["double"],
    "decimal": Kind("decimal", pa.decimal128(14, 2), "DECIMAL(14, 2)"),
}


def _flat(name: str, random: Random, few: bool) -> Any:
    number = random.randint(-3, 3) if few else random.randint(-(10**6), 10**6)
    if name in ("int", "long"):
        return number
    if name in ("float", "double"):
        return random.choice((*SPECIAL, number / 4, number / 4, number / 4))
    if name == "decimal":
        return Decimal(number) / 100
    if name == "boolean":
        return number > 0
    if name == "date":
        return EPOCH.date() + dt.timedelta(days=number % 30_000 - 15_000)
    if name in ("timestamp", "timestamptz"):
        zone = dt.timezone.utc if name == "timestamptz" else None
        return (EPOCH + dt.timedelta(seconds=number * 97, microseconds=number % 7)).replace(tzinfo=zone)
    if name == "time":
        return (EPOCH + dt.timedelta(seconds=number % 86_400, microseconds=number % 7)).time()
    if name == "uuid":
        return str(UUID(int=number % 2**128))
    text = random.choice((*TEXTS[:-1], str(number), "x" * 17 + str(number)))
    return text.encode() if name == "binary" else text


def random_kind(random: Random, depth: int = 2) -> Kind:
    """A type of at most so many levels."""
    flat = random.choice([*FLAT.values()])
    if depth == 0 or random.random() < 0.6:
        return flat
    parts = [random_kind(random, depth - 1) for _ in range(random.randint(1, 3))]
    name = random.choice(["struct", "struct", "list", "map"])
    if name == "struct":
        return nested("struct", *((f"f{number}", kind) for number, kind in enumerate(parts)))
    if name == "list":
        return nested("list", ("element", parts[0]))
    return nested("map", ("key", FLAT[random.choice(["int", "string", "date"])]), ("value", parts[0]))


@dataclass
class Column:
    """A column that may be renamed and change its type."""

    name: str
    kind: Kind


class TwoTables:
    """A table and its twin in DuckDB, with a random history; what failed is told by `log`."""

    def __init__(self, catalog: Catalog, name: str, random: Random) -> None:
        self._random = random
        self._few = random.random() < 0.7
        self._ids = 0
        self.log: list[str] = []
        self.columns = [Column("n", FLAT["long"])]
        self.columns += [Column(f"c{number}", random_kind(random)) for number in range(random.randint(2, 5))]
        properties = {
            "format-version": random.choice("23"),
            "write.delete.mode": random.choice(["merge-on-read", "copy-on-write"]),
            "write.parquet.row-group-limit": random.choice(["7", "50", "1000000"]),
            "write.parquet.compression-codec": random.choice(["zstd", "snappy", "uncompressed"]),
            "write.format.default": random.choice(["parquet"] * 5 + ["orc", "avro"]),
        }
        first = self._batch(random.randint(1, 120))
        schema = pa.schema([(each.name, each.kind.arrow) for each in self.columns])
        self.table: Table = catalog.create_table(name, schema, properties=properties)
        self.log.append(f"{properties} {[(each.name, each.kind.sql) for each in self.columns]}")
        self.duckdb = duckdb.connect()
        self.duckdb.execute("set TimeZone = 'UTC'")
        self.duckdb.execute(f"create table t ({', '.join(f'{each.name} {each.kind.sql}' for each in self.columns)})")
        if random.random() < 0.3:
            self._partition()
        self._append(first)

    def _partition(self) -> None:
        chosen = self._random.choice(self.columns)
        if chosen.kind.parts or chosen.kind.name in ("float", "double"):
            return
        with self.table.update_spec() as update:
            update.add_identity(chosen.name)
        self.log.append(f"partition by {chosen.name}")

    def _batch(self, rows: int) -> tuple[pa.Table, pa.Table]:
        """Rows for us and for DuckDB."""
        columns = []
        for each in self.columns:
            values = [each.kind.value(self._random, self._few) for _ in range(rows)]
            columns.append((each.kind, [*range(self._ids, self._ids + rows)] if each.name == "n" else values))
        self._ids += rows
        names = [each.name for each in self.columns]
        ours = [pa.array([kind.ours(each) for each in values], kind.with_uuids(UUID_BYTES)) for kind, values in columns]
        theirs = [pa.array(values, kind.with_uuids(pa.string())) for kind, values in columns]
        return pa.table(ours, names), pa.table(theirs, names)

    def _append(self, batch: tuple[pa.Table, pa.Table]) -> None:
        self.table.append(batch[0])
        self.duckdb.register("batch", batch[1])
        self.duckdb.execute("insert into t by name select * from batch")
        self.duckdb.unregister("batch")

    # ------------------------------------------------------------------------------------------------- history

    def change(self) -> None:
        """A random step of the history, of both tables."""
        step = self._random.choice(["append"] * 4 + ["delete"] * 4 + ["rename", "add", "widen"])
        self.log.append(step)
        getattr(self, f"_{step}_rows" if step in ("append", "delete") else f"_{step}")()

    def _append_rows(self) -> None:
        self._append(self._batch(self._random.randint(1, 80)))

    def _delete_rows(self) -> None:
        test = self.test(1)
        self.log.append(test[0])
        self.table.delete(test[0])
        self.duckdb.execute(f"delete from t where {test[1]}")

    def _rename(self) -> None:
        """A column, or a field of a struct."""
        chosen = self._random.choice(self.columns[1:])
        new = f"r{len(self.log)}"
        path = chosen.name
        if chosen.kind.name == "struct" and self._random.random() < 0.5:
            (name, kind), *rest = chosen.kind.parts
            path = f"{chosen.name}.{name}"
            chosen.kind = nested("struct", (new, kind), *rest)
        else:
            chosen.name = new
        self.log.append(f"{path} to {new}")
        with self.table.update_schema() as update:
            update.rename_column(path, new)
        self.duckdb.execute(f"alter table t rename column {path} to {new}")

    def _add(self) -> None:
        """A column, or a field of a struct."""
        new, kind = f"a{len(self.log)}", random_kind(self._random)
        path = new
        chosen = self._random.choice(self.columns)
        if chosen.kind.name == "struct":
            path = f"{chosen.name}.{new}"
            chosen.kind = nested("struct", *chosen.kind.parts, (new, kind))
            added = pa.schema([(chosen.name, chosen.kind.arrow)])
        else:
            self.columns.append(Column(new, kind))
            added = pa.schema([(new, kind.arrow)])
        self.log.append(f"{path} {kind.sql}")
        with self.table.update_schema() as update:
            update.union_by_name(added)
        if path == new:
            self.duckdb.execute(f"alter table t add column {path} {kind.sql}")
        else:  # DuckDB 2.0 cannot always add a field, but it can make the struct anew
            more = f"struct_insert({chosen.name}, {new} := null::{kind.sql})"
            made = f"case when {chosen.name} is null then null else {more} end"
            self.duckdb.execute(f"alter table t alter {chosen.name} type {chosen.kind.sql} using {made}")

    def _widen(self) -> None:
        narrow = [each for each in self.columns if each.kind.name in WIDER]
        if not narrow or self.table.spec().fields:
            return
        chosen = self._random.choice(narrow)
        chosen.kind = WIDER[chosen.kind.name]
        self.log.append(f"{chosen.name} {chosen.kind.sql}")
        with self.table.update_schema() as update:
            update.union_by_name(pa.schema([(chosen.name, chosen.kind.arrow)]))
        self.duckdb.execute(f"alter table t alter {chosen.name} type {chosen.kind.sql}")

    # ------------------------------------------------------------------------------------------------- tests

    def _places(self) -> Iterator[tuple[str, Kind]]:
        """The columns and the fields of structs."""
        found = [(each.name, each.kind) for each in self.columns]
        while found:
            path, kind = found.pop()
            yield path, kind
            if kind.name == "struct":
                found += [(f"{path}.{name}", part) for name, part in kind.parts]

    def test(self, depth: int = 2) -> Test:
        """A random filter."""
        random = self._random
        if depth == 0 or random.random() < 0.4:
            return self._leaf()
        left, right = self.test(depth - 1), self.test(depth - 1)
        operator = random.choice(["and", "or"])
        ours, theirs = (f"({left[each]} {operator} {right[each]})" for each in (0, 1))
        return (f"not {ours}", f"not {theirs}") if random.random() < 0.15 else (ours, theirs)

    def _leaf(self) -> Test:
        random = self._random
        path, kind = random.choice([*self._places()])
        chance = random.random()
        if kind.parts or chance < 0.12:
            told = f"{path} {random.choice(['is null', 'is not null'])}"
            return told, told
        if kind.name in ("float", "double") and chance < 0.2:
            is_nan = f"coalesce(isnan({path}), false)"
            return random.choice([(f"{path} is nan", is_nan), (f"{path} is not nan", f"not {is_nan}")])
        drawn = [_flat(kind.name, random, True) for _ in range(3)]
        values = [each for each in map(kind.literals, drawn) if each is not None]
        if not values:
            return self._leaf()
        if chance < 0.35:
            word = random.choice(["in", "not in"])
            ours, theirs = (f"{path} {word} ({', '.join(each[side] for each in values)})" for side in (0, 1))
            return ours, theirs
        if kind.name == "string" and chance < 0.5:
            told = f"{path} {random.choice(['like', 'not like'])} '{random.choice('axé1')}%'"
            return told, told
        operator = random.choice(["=", "!="] if kind.name == "boolean" else ["=", "!=", "<", "<=", ">", ">="])
        return f"{path} {operator} {values[0][0]}", f"{path} {operator} {values[0][1]}"

    # ------------------------------------------------------------------------------------------------- reading

    def wanted(self, names: Sequence[str], where: str = "true") -> list[str]:
        """The rows that DuckDB has."""
        found = self.duckdb.sql(f"select {', '.join(names)} from t where {where}").to_arrow_table()
        return self.rows(found)

    def rows(self, found: pa.Table | pl.DataFrame) -> list[str]:
        """Rows in an order and a form that all have in common."""
        is_arrow = isinstance(found, pa.Table)
        names = found.column_names if is_arrow else found.columns
        kinds = {each.name: each.kind for each in self.columns}
        lists = [found.column(name).to_pylist() if is_arrow else found[name].to_list() for name in names]
        columns = [[kinds[name].plain(each) for each in values] for name, values in zip(names, lists, strict=True)]
        return sorted(map(repr, zip(*columns, strict=True)))

    def differences(self, filters: int) -> Iterator[str]:
        """What all ways to read give otherwise than DuckDB, of so many filters."""
        names = [each.name for each in self.columns]
        whole = self.wanted(names)
        yield from _unlike("to_arrow", self.rows(self.table.scan().to_arrow()), whole)
        yield from _unlike("to_polars", self.rows(self.table.scan().to_polars()), whole)
        yield from _unlike("lazy", self.rows(self.table.to_polars().collect()), whole)
        for _ in range(filters):
            yield from self._differences_of(
                self.test(), self._random.sample(names, self._random.randint(1, len(names)))
            )

    def _differences_of(self, test: Test, names: list[str]) -> Iterator[str]:
        random = self._random
        wanted = self.wanted(names, test[1])
        scan = self.table.scan(test[0], tuple(names))
        yield from _unlike(f"to_arrow {test[0]}", self.rows(scan.to_arrow().select(names)), wanted)
        yield from _unlike(f"to_polars {test[0]}", self.rows(scan.to_polars().select(names)), wanted)
        batches = scan.to_arrow_batch_reader().read_all().select(names)
        yield from _unlike(f"batches {test[0]}", self.rows(batches), wanted)
        yield from _unlike(f"count {test[0]}", scan.count(), len(wanted))
        most = random.randint(0, 20)
        limited = replace(scan, limit=most).to_arrow().num_rows
        yield from _unlike(f"limit {most} of {test[0]}", limited, min(most, len(wanted)))
        least = random.randint(0, self._ids)
        narrowed = self.table.scan(test[0]).to_polars_lazy().filter(pl.col("n") < least)
        found = self.rows(narrowed.select(names).collect())
        yield from _unlike(f"lazy n < {least} of {test[0]}", found, self.wanted(names, f"({test[1]}) and n < {least}"))
        name = random.choice(names)
        count = narrowed.filter(pl.col(name).is_not_null()).select(pl.len()).collect().item()
        known = self.wanted(names, f"({test[1]}) and n < {least} and {name} is not null")
        yield from _unlike(f"lazy count of {name}, n < {least} of {test[0]}", count, len(known))


def _unlike(what: str, found: Any, wanted: Any) -> Iterator[str]:
    if found == wanted:
        return
    if isinstance(found, int):
        yield f"{what}: {found}, DuckDB {wanted}"
        return
    more, less = ([each for each in one if each not in other][:3] for one, other in ((found, wanted), (wanted, found)))
    yield f"{what}: {len(found)} rows, DuckDB {len(wanted)}; only ours {more}, only DuckDB's {less}"
