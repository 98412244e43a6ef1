"""MERGE, UPDATE and DELETE of odd shapes: rows matched twice, queries that answer otherwise when asked again."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.random_row_statements import Merge, Oracle, Statements, TwiceMatchedError
from tests.support.spark_tables import Rows, check_files, from_arrow
from tests.support.spread import SEED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = pytest.mark.spark

COPY, MERGE = "copy-on-write", "merge-on-read"
MODES = (COPY, MERGE)
ROWS = Rows({"k": pa.int32(), "v": pa.int32(), "s": pa.string(), "p": pa.int32()})
PARTITIONED = ("", "partitioned by (p)", "partitioned by (bucket(3, k))")


@pytest.fixture
def make(spark: SparkSession, catalog: Catalog, namespace: str) -> Callable[..., Table]:
    """Makes a table of rows in several files."""

    def made(mode: str, rows: list[Any], form: str = "parquet", version: int = 2, partitions: str = "") -> Table:
        modes = "".join(f", 'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
        name = f"{namespace}.t"
        spark.sql(f"drop table if exists {name}")
        spark.sql(
            f"create table {name} (k int, v int, s string, p int) using iceberg {partitions} tblproperties"
            f" ('write.format.default'='{form}', 'format-version'='{version}'{modes})"
        )
        table = catalog.load_table(name)
        for begin in range(0, len(rows), 5):
            table.append(ROWS(rows[begin : begin + 5]))
        return table

    return made


def left(table: Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.refresh().scan().to_arrow().to_pylist())


def shown(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


# ------------------------------------------------------------------------------------ statements of every shape


def _runs() -> list[tuple[int, int]]:
    """Seeds, each with a number of statements; `HMS_ICEBERG_ROW_STATEMENTS=7:500` takes the seed 7 and 500 of them."""
    asked = os.environ.get("HMS_ICEBERG_ROW_STATEMENTS")
    if asked:
        seed, count = asked.split(":")
        return [(int(seed), int(count))]
    return [(SEED % 1_000_000, 12)]


@pytest.mark.parametrize(("seed", "count"), _runs())
def test_random_statements_leave_the_rows_that_their_clauses_say(
    spark: SparkSession, make: Callable[..., Table], seed: int, count: int
) -> None:
    choice = random.Random(seed)
    draw = Statements(choice)
    for number in range(count):
        target, others = draw.rows(choice.choice([0, 3, 12])), draw.rows(choice.choice([1, 4, 8]))
        form, version = choice.choice(["parquet", "parquet", "orc", "avro"]), choice.choice([2, 3])
        table = make(choice.choice([COPY, COPY, MERGE]), target, form, version, choice.choice(PARTITIONED))
        name = ".".join(table.name())
        from_arrow(spark, ROWS(others)).createOrReplaceTempView("others")
        spark.sql(f"create or replace temporary view part as select * from {name} where v is null or v < 5")
        oracle = Oracle(target, others)
        for _ in range(2):
            statement = draw.statement()
            words = statement.sql if isinstance(statement, Merge) else statement
            text = words.format(target=name, others="others", self=name, view="part")
            told = (seed, number, text, target, others, table.properties)
            try:
                oracle.run(statement)
            except TwiceMatchedError:
                with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
                    spark.sql(text)
            else:
                spark.sql(text)
            assert left(table) == shown(oracle.rows()), told
            if table.metadata.snapshots:
                check_files(table, len(oracle.rows()))
        if version == 3 and oracle.rows():
            ids = [row[0] for row in spark.sql(f"select _row_id from {name}").collect()]
            assert len(set(ids) - {None}) == len(ids), told


# ----------------------------------------------------------------------------------------- rows matched twice

TARGET = [(n, n % 3, "a", n % 2) for n in range(10)] + [(None, 1, "n", 0)]
TWICE = "(select explode(array(1, 1, 1, 2, 30, 30)) as k)"
DOUBLES = {
    "delete by source": f"using {TWICE} s on t.k = s.k when not matched by source and t.k > 7 then delete",
    "update by source": f"using {TWICE} s on t.k = s.k when not matched by source and t.k > 7 then update set v = 9",
    "insert beside": f"using {TWICE} s on t.k = s.k when not matched then insert (k) values (s.k)"
    " when not matched by source and t.k > 7 then delete",
    "no equality": f"using {TWICE} s on t.k < s.k when not matched then insert (k) values (s.k)"
    " when not matched by source then delete",
    "always": f"using {TWICE} s on true when not matched by source then delete",
    "null-safe": "using (select explode(array(null, null, 1)) as k) s on t.k <=> s.k"
    " when not matched then insert (k) values (s.k) when not matched by source and t.k > 7 then delete",
    "broadcast": f"using (select /*+ broadcast(x) */ k from {TWICE} x) s on t.k = s.k"
    " when not matched then insert (k) values (s.k) when not matched by source and t.k > 7 then delete",
    "itself": "using (select k from {t} union all select k from {t}) s on t.k = s.k"
    " when not matched then insert (k) values (99) when not matched by source then update set s = 'alone'",
    "all matched rows go": f"using {TWICE} s on t.k = s.k when matched then delete"
    " when not matched by source and t.k > 7 then update set v = 9",
}
NEW = {
    "delete by source": lambda row: [] if (row[0] or 0) > 7 else [row],
    "update by source": lambda row: [(row[0], 9, *row[2:]) if (row[0] or 0) > 7 else row],
    "no equality": lambda row: [] if row[0] is None else [row],
    "always": lambda row: [row],
    "itself": lambda row: [(None, 1, "alone", 0) if row[0] is None else row],
    "all matched rows go": lambda row: (
        [] if row[0] in (1, 2) else [(row[0], 9, *row[2:]) if (row[0] or 0) > 7 else row]
    ),
}
INSERTED = {"insert beside": [30, 30], "broadcast": [30, 30], "itself": [99, 99]}


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_several_rows_of_the_source_match_is_carried_over_once(
    spark: SparkSession, make: Callable[..., Table], mode: str
) -> None:
    for shape, clauses in DOUBLES.items():
        table = make(mode, TARGET)
        name = ".".join(table.name())
        spark.sql(f"merge into {name} t {clauses.replace('{t}', name)}")
        kept = [new for row in TARGET for new in NEW.get(shape, NEW["delete by source"])(row)]
        kept += [(key, None, None, None) for key in INSERTED.get(shape, [])]
        assert left(table) == shown(kept), shape
        check_files(table, len(kept))


# ----------------------------------------------------------------------------- queries that answer otherwise

MOODY = "select distinct moody(k) as k from {s}"
SOME = f"({MOODY} limit 7)"


@pytest.mark.parametrize("mode", MODES)
def test_a_query_that_answers_otherwise_each_time_is_asked_once(
    spark: SparkSession, make: Callable[..., Table], namespace: str, mode: str
) -> None:
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = set(kept())
    spark.udf.register("moody", lambda k: (k + os.urandom(1)[0]) % 20, "int")
    spark.range(30).selectExpr("cast(id as int) as k").write.saveAsTable(f"{namespace}.s", format="parquet")
    rows = [(n, 0, "a", n % 2) for n in range(20)]

    def after(statement: str, limited: bool = True) -> tuple[int, int]:
        """How many rows there are, and how many were changed; each is there once, and changed in both columns."""
        table = make(mode, rows)
        spark.sql(statement.replace("{some}", SOME if limited else f"({MOODY})").replace("{s}", f"{namespace}.s")
                  .replace("{t}", ".".join(table.name())))  # fmt: skip
        found = table.refresh().scan().to_arrow().to_pylist()
        assert len({row["k"] for row in found}) == len(found), statement
        assert all((row["v"] == 1) == (row["s"] == "z") for row in found), statement
        return len(found), sum(row["v"] == 1 for row in found)

    merge = (
        "merge into {t} t using {some} s on t.k = s.k when matched then update set v = 1, s = 'z'"
        " when not matched then insert (k, v, s) values (s.k, 1, 'z')"
    )
    assert after(merge) == (20, 7)
    assert after(f"with w as {{some}} {merge.replace('{some}', 'w')}") == (20, 7)
    assert after(merge, limited=False)[0] == 20
    assert after(merge.replace("{some}", "(select k from {t} limit 3)")) == (20, 3)
    assert after("update {t} set v = 1, s = 'z' where k in {some}") == (20, 7)
    assert after("update {t} t set v = 1, s = 'z' where not exists (select 1 from {some} x where x.k = t.k)") == (
        20,
        13,
    )
    assert after("delete from {t} where k in {some}") == (13, 0)
    assert after("delete from {t} where k not in {some} and k >= 0") == (7, 0)
    assert set(kept()) <= before
