"""Random Hive tables, as statements of Spark: formats, writers, partitions, types and values at their ends."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of each type, values as Spark's SQL has them; what only some readers agree on is in `OLD`.
VALUES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "tinyint": ("-128Y", "127Y", "0Y"),
    "smallint": ("-32768S", "32767S"),
    "int": ("-2147483648", "2147483647", "0", "7"),
    "bigint": ("-9223372036854775808L", "9223372036854775807L", "0L"),
    "float": ("float('NaN')", "float('-Infinity')", "float('-0.0')", "float('3.4028235E38')", "float('1.4E-45')"),
    "double": ("double('NaN')", "double('Infinity')", "double('-0.0')", "1.7976931348623157E308D", "4.9E-324D"),
    "decimal(9,2)": ("-9999999.99", "9999999.99", "0.01", "0"),
    "decimal(38,10)": (f"-{'9' * 28}.{'9' * 10}", f"{'9' * 28}.{'9' * 10}", "0.0000000001"),
    "string": ("''", "'a,b|c'", "'ünïcödé 漢字 😀'", "repeat('x', 3000)", "'null'", "' '"),
    "varchar(5)": ("''", "'abc'", "'äöü漢'"),
    "binary": ("X''", "X'00FF'", "cast('text' as binary)"),
    "date": ("date'1582-10-15'", "date'1969-12-31'", "date'2262-04-11'", "date'9999-12-31'"),
    "timestamp": ("timestamp'1970-01-01 00:00:00'", "timestamp'1969-12-31 23:59:59.999'", "timestamp'2038-01-19'"),
    "array<int>": ("array()", "array(1, null, -3)"),
    "map<string,bigint>": ("map('k', 1L)", "map('', null, 'z', 2L)"),
    "struct<x:int,y:string>": ("named_struct('x', 1, 'y', 'a')", "named_struct('x', null, 'y', null)"),
    "array<struct<d:date,m:double>>": ("array(named_struct('d', date'2000-02-29', 'm', 1D / 3), null)", "array()"),
}  # fmt: skip
OLD = {"date": ("date'0001-01-01'", "date'1582-10-04'"), "timestamp": ("timestamp'1583-01-01 00:00:00'",)}
KEYS: dict[str, tuple[str, ...]] = {
    "int": ("-1", "0", "2147483647"),
    "bigint": ("9223372036854775807L", "-5L"),
    "string": ("'a/b c=d%:?'", "'ü漢'", "'x'", "' '"),
    "double": ("double('NaN')", "double('-Infinity')", "-0.0D", "1.5D"),
    "date": ("date'1969-12-31'", "date'2024-02-29'"),
    "boolean": ("true", "false"),
    "decimal(5,2)": ("-1.50", "999.99"),
    "smallint": ("-32768S", "3S"),
}


@dataclass(frozen=True)
class RandomHiveTable:
    """A Hive table.

    Attributes:
        form: `parquet`, `orc`, `avro` or `textfile`.
        writer: `hive` (its classes), `spark` (Spark's own, on a Hive table) or `source` (a table of Spark's).
        columns: names and types of the data columns.
        keys: the same of the partition columns.
        rows: values of each row, in SQL, data columns first; a list of inserts.
        external: whether it is external, at a place of its own.
        is_old: whether it holds dates or times that calendars tell apart, which not every reader may be given.
    """

    form: str
    writer: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[tuple[str, str], ...]
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    external: bool
    is_old: bool

    @property
    def is_copied(self) -> bool:
        """Whether it can only be migrated by a copy."""
        return self.form == "textfile"

    def make(self, spark: SparkSession, name: str, location: str) -> None:
        """Create the table and insert its rows."""
        spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
        for each in ("Parquet", "Orc"):
            spark.conf.set(f"spark.sql.hive.convertMetastore{each}", str(self.writer != "hive").lower())
        try:
            self._make(spark, name, location)
        finally:
            for each in ("Parquet", "Orc"):
                spark.conf.unset(f"spark.sql.hive.convertMetastore{each}")

    def _make(self, spark: SparkSession, name: str, location: str) -> None:
        columns = [f"{column} {kind}" for column, kind in self.columns]
        keys = [f"{column} {kind}" for column, kind in self.keys]
        if self.writer == "source":
            by = f"partitioned by ({', '.join(column for column, _ in self.keys)})" if keys else ""
            place = f"location '{location}'" if self.external else ""
            spark.sql(f"create table {name} ({', '.join([*columns, *keys])}) using {self.form} {by} {place}")
        else:
            by = f"partitioned by ({', '.join(keys)})" if keys else ""
            kind, place = ("external ", f"location '{location}'") if self.external else ("", "")
            spark.sql(f"create {kind}table {name} ({', '.join(columns)}) {by} stored as {self.form} {place}")
        kinds = [kind for _, kind in (*self.columns, *self.keys)]
        for part in self.rows:
            rows = ", ".join(
                f"({', '.join(f'cast({value} as {kind})' for value, kind in zip(row, kinds, strict=True))})"
                for row in part
            )
            spark.sql(f"insert into {name} select /*+ coalesce(1) */ * from values {rows}")


def random_hive_table(random: Random) -> RandomHiveTable:
    """A table drawn at random."""
    form = random.choice(("parquet", "parquet", "orc", "orc", "avro", "textfile"))
    writer = {"avro": "hive", "textfile": "hive"}.get(form) or random.choice(("hive", "spark", "source"))
    kinds = random.sample(sorted(VALUES), random.randint(1, 6))
    if form == "textfile":  # which has one text for null and \\N, and none for an empty array in a column alone
        kinds = [kind for kind in kinds if "<" not in kind and kind != "binary"] or ["int"]
    columns = tuple((f"{random.choice('abAB')}{number}", kind) for number, kind in enumerate(kinds))
    if writer != "source":
        columns = tuple((name.lower(), kind) for name, kind in columns)
    keys = tuple((f"k{number}", random.choice(sorted(KEYS))) for number in range(random.choice((0, 0, 1, 1, 2))))
    is_old = random.random() < 0.15 and any(kind in OLD for kind in kinds)
    inserts = tuple(
        tuple(_row(random, columns, keys, is_old) for _ in range(random.randint(1, 5)))
        for _ in range(random.randint(0, 3))
    )
    return RandomHiveTable(form, writer, columns, keys, inserts, random.random() < 0.4, is_old)


def _row(
    random: Random, columns: tuple[tuple[str, str], ...], keys: tuple[tuple[str, str], ...], is_old: bool
) -> tuple[str, ...]:
    data = (
        "null" if random.random() < 0.2 else random.choice((*VALUES[kind], *(OLD.get(kind, ()) if is_old else ())))
        for _, kind in columns
    )
    parts = ("null" if random.random() < 0.15 else random.choice(KEYS[kind]) for _, kind in keys)
    return (*data, *parts)
