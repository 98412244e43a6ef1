"""Tables with a random history, and plain Parquet copies of the rows that they must hold."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.spec.data_types import IntegerType, LongType
from tests.support.random_queries.values import (
    ARRAY,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LONG,
    MAP,
    STRING,
    STRUCT,
    TIME,
    is_float,
    is_simple,
    literal,
    sql_type,
    value,
    values_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

COLUMNS = {
    "l": LONG, "f": FLOAT, "d": DOUBLE, "dec": DECIMAL, "b": BOOLEAN, "ts": INSTANT, "tn": TIME, "bin": BINARY,
    "st": STRUCT, "arr": ARRAY, "m": MAP,
}  # fmt: skip
ALWAYS = {"id": LONG, "k": INT, "i": INT, "s": STRING, "dt": DATE}
FORMATS = ("parquet", "orc", "avro")
MODES = ("merge-on-read", "copy-on-write")


@dataclass(frozen=True)
class Reference:
    """What a query can name: a table at one of its versions, and the copy of that.

    Attributes:
        ours: in SQL.
        plain: the copy, in SQL.
        types: of the columns.
        pools: values that columns have.
        partitioned: columns that partitions are made of.
        rows: how many there are.
        is_current: whether metadata columns can be asked for.
    """

    ours: str
    plain: str
    types: dict[str, pa.DataType]
    pools: dict[str, list[Any]]
    partitioned: frozenset[str]
    rows: int
    is_current: bool = True


@dataclass
class Version:
    """The rows after a snapshot, in the columns of that time."""

    words: str
    types: dict[str, pa.DataType]
    columns: dict[str, list[Any]]


@dataclass
class LivingTable:
    """A table, and what its rows must be.

    Attributes:
        spark: writes some of its rows.
        catalog: writes others.
        name: of the table, with its namespace.
        choose: what happens to it.
        folder: for files.
        shared: partition fields that other tables have as well, so that joins find the same ones.
        is_big: whether it gets thousands of rows.
        told: what was done to it.
    """

    spark: SparkSession
    catalog: Catalog
    name: str
    choose: random.Random
    folder: Path
    shared: Sequence[str] = ()
    is_big: bool = False
    told: list[str] = field(default_factory=list)
    types: dict[str, pa.DataType] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    pools: dict[str, list[Any]] = field(default_factory=dict)
    partitioned: set[str] = field(default_factory=set)
    versions: list[Version] = field(default_factory=list)

    def __post_init__(self) -> None:
        of = self.choose.choice
        self._numbers = itertools.count()
        chosen = {name for name in COLUMNS if self.choose.random() < 0.6}
        self.types = {**ALWAYS, **{name: kind for name, kind in COLUMNS.items() if name in chosen}}
        self.columns = {name: [] for name in self.types}
        for name, kind in self.types.items():
            if is_simple(kind):
                count = of([2, 4, 8, 99])
                self.pools[name] = self.choose.sample(values_of(kind), min(count, len(values_of(kind))))
        self.pools["k"] = list(range(of([20, 60, 200])))
        self.version = of([2, 2, 3, 3])
        mode = of(MODES)
        properties = {
            "format-version": str(self.version),
            **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
            "write.format.default": of(FORMATS),
            "write.delete.format.default": of(FORMATS),
            "write.metadata.metrics.default": of(["truncate(16)", "full", "counts", "none", "truncate(1)"]),
            "write.parquet.row-group-limit": of(["7", "100", "1000"]),
            "write.parquet.page-row-limit": of(["3", "20000"]),
            "write.parquet.bloom-filter-enabled.column.s": of(["true", "false"]),
            "write.parquet.bloom-filter-max-bytes": "1024",
            "write.distribution-mode": of(["none", "hash", "range"]),
            "read.split.target-size": of(["134217728", "65536"]),
        }
        fields = list(self.shared)
        self.partitioned |= {name for name in ALWAYS if any(f"{name})" in each for each in fields)}
        if not fields or self.choose.random() < 0.4:
            self.partitioned = set()
            fields = self._partitions(of([0, 1, 1, 1, 2]))
        columns = ", ".join(f"{name} {sql_type(kind)}" for name, kind in self.types.items())
        parted = f" partitioned by ({', '.join(fields)})" if fields else ""
        told = ", ".join(f"'{key}'='{each}'" for key, each in properties.items())
        self.sql(f"create table {self.name} ({columns}) using iceberg{parted} tblproperties ({told})")
        self.table = self.catalog.load_table(self.name)

    def sql(self, text: str) -> None:
        """Carries a statement out."""
        self.told.append(text if len(text) < 2000 else f"{text[:2000]}…")
        self.spark.sql(text)

    def live(self) -> None:
        """Some changes of every kind."""
        self.append(self.choose.choice([1000, 3000]) if self.is_big else 100)
        changes: list[Callable[[], None]] = [
            self._append, self._append, self._delete, self._delete, self._delete_equal, self._update, self._evolve,
            self._evolve, self._evolve_struct, self._repartition, self._format, self._add_file, self._maintain,
            self._merge,
        ]  # fmt: skip
        for _ in range(self.choose.choice([2, 5, 9])):
            self.choose.choice(changes)()
            if self.choose.random() < 0.4:
                self._keep()

    # ---------------------------------------------------------------------------------------------- rows

    def append(self, count: int) -> None:
        """Appends rows in one go: by Python or by Spark."""
        new = self._new_rows(count)
        if self.choose.random() < 0.6:
            self.told.append(f"append {count} rows by Python")
            self.table.refresh().append(new)
        else:
            self._view("given", new)
            hint = self.choose.choice(["", "/*+ repartition(3) */ ", "/*+ coalesce(1) */ "])
            self.sql(f"insert into {self.name} select {hint}* from given")

    def _append(self) -> None:
        self.append(self.choose.choice([0, 1, 20, 200]))

    def _new_rows(self, count: int) -> pa.Table:
        nulls = {name: self.choose.choice([0, 0.1, 0.1, 0.5, 1]) for name in self.types}
        nulls["id"] = 0
        for name, kind in self.types.items():
            pool = self.pools.get(name, ())
            new = [value(self.choose, kind, pool, nulls[name]) for _ in range(count)]
            self.columns[name] += [next(self._numbers) for _ in range(count)] if name == "id" else new
        start = len(self.columns["id"]) - count
        return arrow({name: values[start:] for name, values in self.columns.items()}, self.types)

    def _delete(self) -> None:
        condition, kept = self._condition()
        if self.choose.random() < 0.7 and "'" not in condition and not condition.endswith("L"):
            self.told.append(f"delete where {condition} by Python")
            self.table.refresh().delete(condition)
        else:
            self.sql(f"delete from {self.name} where {condition}")
        self._keep_rows(kept)

    def _condition(self) -> tuple[str, list[bool]]:
        """A condition, and of each row whether it does not hold."""
        ids, keys = self.columns["id"], self.columns["k"]
        kind = self.choose.choice(["ids", "ids", "most", "keys", "value", "file"])
        if kind in ("ids", "most") and ids:
            chosen = set(self.choose.sample(ids, max(1, len(ids) // (100 if kind == "ids" else 3))))
            return f"id in ({', '.join(map(str, sorted(chosen)))})", [each not in chosen for each in ids]
        names = [name for name in self.pools if name != "id" and not is_float(self.types[name])]
        if kind == "value":
            name = self.choose.choice(sorted(self.partitioned & set(names)) or names)
            given = self.choose.choice(self.pools[name])
            text = f"{name} = {literal(given, self.types[name])}"
            return text, [each != given for each in self.columns[name]]
        if kind == "file":
            start = self.choose.choice([0, *ids])
            return f"id between {start} and {start + 40}", [not start <= each <= start + 40 for each in ids]
        return "k between 3 and 5", [each is None or not 3 <= each <= 5 for each in keys]

    def _keep_rows(self, kept: Sequence[bool]) -> None:
        for name, values in self.columns.items():
            self.columns[name] = list(itertools.compress(values, kept))

    def _delete_equal(self) -> None:
        """Deletes rows by keys in files of all partitions, or of each key's partition where the spec never changed."""
        specs = self.table.refresh().specs()
        everywhere = [spec for spec in specs.values() if spec.is_unpartitioned()]
        simple = [name for name in self.pools if name != "id" and not is_float(self.types[name])]
        names = self.choose.sample(simple, self.choose.choice([1, 2]))
        if not everywhere:
            names = list(dict.fromkeys([*names, *sorted(self.partitioned)]))
            if len(specs) > 1 or not set(names) <= {*simple, "id"}:
                return
        rows = list(zip(*(self.columns[name] for name in names), strict=True))
        keys = list(dict.fromkeys(self.choose.sample(rows, min(2, len(rows)))))
        if not keys:
            return
        columns = {name: [key[place] for key in keys] for place, name in enumerate(names)}
        self.told.append(f"delete equal {columns}")
        with self.table.new_row_delta() as delta:
            delta.delete_equal(arrow(columns, self.types), names, everywhere[0] if everywhere else None)
        self._keep_rows([row not in keys for row in rows])

    def _update(self) -> None:
        condition, kept = self._condition()
        name = self.choose.choice([name for name in self.pools if name != "id"])
        given = value(self.choose, self.types[name], self.pools[name])
        self.sql(f"update {self.name} set {name} = {literal(given, self.types[name])} where {condition}")
        self.columns[name] = [old if keep else given for old, keep in zip(self.columns[name], kept, strict=True)]

    def _merge(self) -> None:
        """Rows of some ids take those of new ones, which come themselves as well."""
        old = len(self.columns["id"])
        self._new_rows(20)
        chosen = self.choose.sample(range(old), min(10, old))
        for place, source in zip(chosen, range(old, old + 10), strict=False):
            for name, values in self.columns.items():
                if name != "id":
                    values[place] = values[source]
        given = [*chosen, *range(old, old + 20)]
        self._view("given", arrow({name: [v[at] for at in given] for name, v in self.columns.items()}, self.types))
        self.sql(
            f"merge into {self.name} t using given s on t.id = s.id when matched then update set *"
            " when not matched then insert *"
        )

    def _add_file(self) -> None:
        """A file without field ids, with or without rows."""
        if any(not each.transform.is_void for each in self.table.refresh().spec().fields):
            return
        path = self.folder / f"{self.name}-{next(self._numbers)}.parquet"
        count = self.choose.choice([0, 40])
        self.told.append(f"add a file of {count} rows")
        pq.write_table(self._new_rows(count), path, row_group_size=15)
        self.table.add_files([str(path)])

    # ---------------------------------------------------------------------------------------- definition

    def _evolve(self) -> None:
        """Columns are added, renamed, promoted, moved or dropped."""
        free = [name for name in self.types if name not in ("id", "k") and name not in self.partitioned]
        kind = self.choose.choice(["add", "rename", "promote", "move", "drop"])
        name = self.choose.choice(free)
        new = f"{name.rstrip('0123456789')}{next(self._numbers)}"
        self.told.append(f"{kind} {name} {new}")
        with self.table.refresh().update_schema(allow_incompatible_changes=True) as update:
            if kind == "add":
                default = self.choose.choice([None, 7]) if self.version == 3 else None
                update.add_column(new, IntegerType(), default_value=default)
                self.types[new], self.pools[new] = INT, [7, 0, 1]
                self.columns[new] = [default] * len(self.columns["id"])
            elif kind == "rename":
                update.rename_column(name, new)
                for owner in (self.types, self.columns, self.pools):
                    _rename(owner, name, new)
            elif kind == "promote" and self.types[name] == INT:
                update.update_column(name, LongType())
                self.types[name] = LONG
            elif kind == "move":
                update.move_first(name)
                for owner in (self.types, self.columns):
                    rest = dict(owner)
                    owner.clear()
                    owner.update({name: rest.pop(name), **rest})  # type: ignore[dict-item]
            elif kind == "drop" and name not in ALWAYS:
                update.delete_column(name)
                for owner in (self.types, self.columns, self.pools):
                    owner.pop(name, None)

    def _evolve_struct(self) -> None:
        """Fields of a struct are added, renamed or promoted."""
        name = next((name for name, kind in self.types.items() if pa.types.is_struct(kind)), None)
        if name is None:
            return
        fields = {each.name: each.type for each in self.types[name]}
        rows, new = self.columns[name], f"n{next(self._numbers)}"
        kind = self.choose.choice(["add", "rename", "promote"])
        old = self.choose.choice(sorted(set(fields) - {"c"}))
        self.told.append(f"{kind} {name}.{old} {new}")
        with self.table.refresh().update_schema() as update:
            if kind == "add":
                update.add_column((name, new), IntegerType())
                fields[new] = INT
                rows = [row and {**row, new: None} for row in rows]
            elif kind == "rename":
                update.rename_column((name, old), new)
                _rename(fields, old, new)
                rows = [row and {new if key == old else key: each for key, each in row.items()} for row in rows]
            elif fields[old] == INT:
                update.update_column((name, old), LongType())
                fields[old] = LONG
        self.types[name], self.columns[name] = pa.struct(list(fields.items())), rows

    def _partitions(self, count: int) -> list[str]:
        """Partition fields in SQL, of different columns."""
        simple = [name for name in self.types if is_simple(self.types[name]) and name != "id"]
        fields = []
        for name in self.choose.sample(simple, count):
            possible = [each.format(name) for each in transforms(self.types[name]) if name != "k" or "(" in each]
            fields.append(self.choose.choice(possible))
            self.partitioned.add(name)
        return fields

    def _repartition(self) -> None:
        fields = [each for each in self.table.refresh().spec().fields if not each.transform.is_void]
        if fields and self.choose.random() < 0.5:
            self.sql(f"alter table {self.name} drop partition field {self.choose.choice(fields).name}")
            return
        (new,) = self._partitions(1)
        if len(fields) < 2 and not any(f"{each.name}".startswith(new.split(",")[-1].strip(" )")) for each in fields):
            self.sql(f"alter table {self.name} add partition field {new} as p{next(self._numbers)}")

    def _format(self) -> None:
        """Files get another format; the table perhaps another version."""
        given = {f"write{part}.format.default": self.choose.choice(FORMATS) for part in ("", ".delete")}
        if self.choose.random() < 0.5:
            self.version = 3
        self.told.append(f"{given}, version {self.version}")
        self.table.refresh()
        with self.table.transaction() as transaction:
            transaction.set_properties({**given, "format-version": str(self.version)})

    def _maintain(self) -> None:
        procedure = self.choose.choice(["rewrite_data_files", "rewrite_position_delete_files", "rewrite_manifests"])
        options = "" if procedure == "rewrite_manifests" else ", options => map('rewrite-all', 'true')"
        self.sql(f"call spark_catalog.system.{procedure}(table => '{self.name}'{options})")

    # ------------------------------------------------------------------------------------------- copies

    def _keep(self) -> None:
        """Remembers the rows of the current snapshot, if its columns are today's."""
        metadata = self.table.refresh().metadata
        snapshot = metadata.current_snapshot()
        if snapshot is None or snapshot.schema_id != metadata.current_schema_id:
            return
        words = f"version as of {snapshot.snapshot_id}"
        if self.choose.random() < 0.3:
            name = f"tag{next(self._numbers)}"
            self.sql(f"alter table {self.name} create tag {name}")
            words = f"version as of '{name}'"
        self.versions = [
            *self.versions,
            Version(words, dict(self.types), {name: list(values) for name, values in self.columns.items()}),
        ][-2:]

    def references(self) -> list[Reference]:
        """The table as it is, thrice, and as it was."""
        plain = self.name.replace(".", "_")
        current = self._reference(self.name, plain, self.types, self.columns)
        older = [
            self._reference(f"{self.name} {each.words}", f"{plain}_{number}", each.types, each.columns)
            for number, each in enumerate(self.versions)
        ]
        return [current] * 3 + older

    def _reference(self, ours: str, plain: str, types: dict[str, Any], columns: dict[str, list[Any]]) -> Reference:
        self._view(plain, arrow(columns, types))
        pools = {name: self.pools.get(name, list(values_of(kind))) for name, kind in types.items() if is_simple(kind)}
        pools["id"] = [0, 1, 7, len(columns["id"]) // 2, len(columns["id"])]
        return Reference(
            ours, plain, dict(types), pools, frozenset(self.partitioned), len(columns["id"]), ours == self.name
        )

    def _view(self, name: str, rows: pa.Table) -> None:
        """A temporary view of rows in plain Parquet files that Spark wrote."""
        path = self.folder / f"{self.name}-{name}-{next(self._numbers)}"
        source = f"{path}-source.parquet"
        # Spark takes the days of files that tell no version for those of another calendar.
        pq.write_table(rows.replace_schema_metadata({"org.apache.spark.version": "3.5.0"}), source)
        self.spark.read.parquet(f"file://{source}").write.parquet(f"file://{path}")
        self.spark.read.parquet(f"file://{path}").createOrReplaceTempView(name)


def transforms(kind: pa.DataType) -> list[str]:
    """Partition fields of a column `{}` of some type."""
    found = ["{}"]
    if not is_float(kind) and kind != BOOLEAN:
        found += ["bucket(4, {})", "bucket(2, {})"]
    if kind in (INT, LONG, STRING, BINARY) or pa.types.is_decimal(kind):
        found += ["truncate(2, {})", "truncate(10, {})"]
    if kind in (DATE, INSTANT, TIME):
        found += ["years({})", "months({})", "days({})"] + (["hours({})"] if kind != DATE else [])
    return found


def arrow(columns: dict[str, list[Any]], types: dict[str, pa.DataType]) -> pa.Table:
    """Rows of some columns."""
    schema = pa.schema([(name, types[name]) for name in columns])
    return pa.Table.from_arrays([pa.array(values, types[name]) for name, values in columns.items()], schema=schema)


def _rename(owner: dict[str, Any], old: str, new: str) -> None:
    items = [(new if key == old else key, each) for key, each in owner.items()]
    owner.clear()
    owner.update(items)
