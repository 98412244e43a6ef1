"""DELETE, UPDATE and MERGE in SQL: rows, files, lineage and conflicts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from tests.support.path_deletes import commit_deletes, path_delete
from tests.support.pyspark_home import spark_release
from tests.support.spark_tables import Rows, check_files, data_files, from_arrow, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

COPY, MERGE = "copy-on-write", "merge-on-read"
WHOLE = pytest.mark.whole
FORMATS = ("parquet", "orc", "avro")
FORMS = [(1, COPY), (2, COPY), (2, MERGE), (3, COPY), (3, MERGE)]
ROWS = Rows({"id": pa.int64(), "kind": pa.string(), "v": pa.int32(), "x": pa.float64()})
NAN = float("nan")
# Tables that are partitioned alike are joined partition by partition.
ALIKE = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture
def make(catalog: Catalog, namespace: str) -> Callable[..., Table]:
    """Makes a table; a name, a version of the format, a mode and further properties."""

    def made(name: str, version: int, mode: str, **properties: str) -> Table:
        modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
        given = {key.replace("_", "."): value for key, value in properties.items()}
        return catalog.create_table(
            f"{namespace}.{name}", ROWS.schema, properties={"format-version": str(version), **modes, **given}
        )

    return made


def name_of(table: Table) -> str:
    return ".".join(table.name())


def rows_left(table: Table) -> list[tuple[Any, ...]]:
    """The rows after a statement, by the Python API: it takes no time. Spark reads them for the next statement."""
    return [tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist()]


def shown(rows: Any) -> list[str]:
    """Rows that can be compared: NaN equals NaN, and -0.0 is told from 0.0."""
    return sorted(repr(tuple(row)) for row in rows)


# ------------------------------------------------------------------------------------------ random sequences

CONDITIONS = (
    "t.v > 3", "not (t.v > 3)", "t.v is null", "t.kind = 'a'", "t.kind <> 'a'", "t.kind in ('a', null)",
    "t.kind not in ('a', 'b')", "t.x > 1.5", "t.x <= 0", "t.x = cast('NaN' as double)", "t.x <> cast('NaN' as double)",
    "not (t.x >= cast('NaN' as double)) and t.v < 5", "t.id % 3 = 0", "t.v = 1 and t.kind is not null or t.x is null",
    "1 = 1", "1 = 0", "t.id between 3 and 9", "t.kind like 'b%'",
)  # fmt: skip
SUBQUERIES = (
    "t.id in (select s.id from {s} s)", "exists (select 1 from {s} s where s.kind = t.kind)",
    "t.id > (select min(s.id) from {s} s)",
)  # fmt: skip
ASSIGNMENTS = (
    "kind = 'z'",
    "x = null",
    "v = null, kind = kind || 'q'",
    "x = v / 2, v = 0",
    "id = id + 100",
)
CLAUSES = (
    "when matched and {c} then delete", "when matched then delete", "when matched then update set v = s.v, x = t.x",
    "when matched and s.v > 2 then update set kind = s.kind", "when matched then update set *",
)  # fmt: skip
INSERTS = ("when not matched then insert *", "when not matched and s.v > 2 then insert (id, v) values (s.id, s.v)", "")
BY_SOURCE = (
    "when not matched by source and {c} then delete",
    "when not matched by source then update set v = -1",
    "",
    "",
)


def random_rows(choice: random.Random, count: int, distinct: bool = False) -> list[tuple[Any, ...]]:
    ids: Any = choice.sample(range(12), count) if distinct else [choice.randrange(12) for _ in range(count)]
    return [
        (
            key,
            choice.choice(["a", "b", "ba", "", None]),
            choice.choice([0, 1, 3, 5, -(2**31), 2**31 - 3, None]),
            choice.choice([0.0, -0.0, 1.5, NAN, 1e300, None]),
        )
        for key in ids
    ]


def random_statement(choice: random.Random) -> str:
    kind = choice.choice(["delete", "update", "merge", "merge"])
    if kind == "delete":
        return f"delete from {{t}} as t where {choice.choice(CONDITIONS + SUBQUERIES)}"
    if kind == "update":
        return f"update {{t}} as t set {choice.choice(ASSIGNMENTS)} where {choice.choice(CONDITIONS + SUBQUERIES)}"
    clauses = [choice.choice(CLAUSES), choice.choice(INSERTS), choice.choice(BY_SOURCE)]
    text = " ".join(each.replace("{c}", choice.choice(CONDITIONS)) for each in clauses)
    return f"merge into {{t}} as t using {{s}} as s on t.id = s.id {text}"


@pytest.mark.parametrize(
    ("version", "mode"),
    [pytest.param(1, COPY, marks=WHOLE), (3, COPY), (2, MERGE), pytest.param(3, MERGE, marks=WHOLE)],
)
def test_random_statements_leave_the_rows_that_they_leave_in_another_database(
    spark: SparkSession, make: Callable[..., Table], version: int, mode: str
) -> None:
    choice = random.Random(f"{version} {mode}")
    table = make("t", version, mode)
    other = duckdb.connect()
    other.execute("create table t (id bigint, kind varchar, v integer, x double)")
    other.execute("create table s (id bigint, kind varchar, v integer, x double)")
    for step in range(10):
        if step == 4:
            with table.refresh().update_spec() as spec:
                spec.add_field("id", BucketTransform(2), "bucket")
        if step == 7:
            with table.refresh().update_schema() as schema:
                schema.add_column("extra", LongType())
            for each in ("t", "s"):
                other.execute(f"alter table {each} add column extra bigint")
        if step == 9:
            with table.refresh().update_spec() as spec:
                spec.add_field("kind", IdentityTransform(), "by_kind")
        width = 5 if step >= 7 else 4
        if step % 3 == 0:
            added = random_rows(choice, 6)
            table.refresh().set_properties({"write.format.default": choice.choice(FORMATS)})
            table.append(arrow([(*row, None)[:width] for row in added]))
            other.executemany(
                f"insert into t values ({', '.join('?' * width)})", [(*row, None)[:width] for row in added]
            )
        source = random_rows(choice, 5, distinct=True)
        other.execute("delete from s")
        other.executemany(f"insert into s values ({', '.join('?' * width)})", [(*row, step)[:width] for row in source])
        from_arrow(spark, arrow([(*row, step)[:width] for row in source])).createOrReplaceTempView("source_rows")
        statement = random_statement(choice)
        theirs = statement.format(t="t", s="s").replace("update set *", star(width)).replace("insert *", insert(width))
        spark.sql(statement.format(t=name_of(table), s="source_rows")).collect()
        other.execute(theirs)
        expected = other.execute("select * from t").fetchall()
        assert shown(rows_left(table)) == shown(expected), (step, statement)
        check_files(table, len(expected))
    assert shown(spark.sql(f"select * from {name_of(table)}").collect()) == shown(expected)
    spark.catalog.dropTempView("source_rows")


def arrow(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows with or without the column that comes later; a small Arrow table is a constant of Spark's plan."""
    fields = [*ROWS.schema, pa.field("extra", pa.int64())][: len(rows[0])]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), fields, strict=True)], pa.schema(fields)
    )


def star(width: int) -> str:
    names = ("id", "kind", "v", "x", "extra")[:width]
    return "update set " + ", ".join(f"{name} = s.{name}" for name in names)


def insert(width: int) -> str:
    names = ("id", "kind", "v", "x", "extra")[:width]
    return f"insert ({', '.join(names)}) values ({', '.join(f's.{name}' for name in names)})"


def test_a_merge_on_read_joins_only_rows_that_a_small_source_has(
    spark: SparkSession, make: Callable[..., Table]
) -> None:
    table, source = name_of(make("t", 2, MERGE)), name_of(make("s", 2, MERGE))
    merge = (
        "merge into {t} t using {s} s on s.id = t.id and t.v < s.v + 5 when matched then update set v = s.v "
        "when not matched then insert *"
    )

    def leaves_out(of: str, clause: str = "") -> bool:
        ((plan,),) = spark.sql("explain " + merge.format(t=table, s=of) + clause).collect()
        return "LeftSemi" in plan

    assert leaves_out(source) and leaves_out(f"(select id, kind, v + 1 as v, x from {source} where id > 3)")
    # All rows of the target are needed, or the source need not have the same rows when it is read twice.
    assert not leaves_out(source, " when not matched by source then delete")
    assert not leaves_out(f"(select * from {source} limit 3)")


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_spark_asks_no_query_of_its_own_which_files_and_partitions_a_statement_reads(
    spark: SparkSession, make: Callable[..., Table], mode: str
) -> None:
    table, source = make("t", 2, mode), make("s", 2, mode)
    with table.update_spec() as spec:
        spec.add_field("kind", IdentityTransform())
    for each in (table, source):
        each.append(ROWS([(1, "a", 1, 0.0), (2, "b", 2, 0.0)]))
    statement = f"update {name_of(table)} set v = 7 where id in (select id from {name_of(source)} where x = 0)"
    ((plan,),) = spark.sql(f"explain {statement}").collect()
    assert "BatchScan" in plan and "dynamicpruning" not in plan


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_a_merge_of_tables_in_the_same_buckets_of_its_key_shuffles_nothing(
    spark: SparkSession, make: Callable[..., Table], mode: str
) -> None:
    none = {"write_distribution-mode": "none", "write_merge_distribution-mode": "none"}
    table, source = make("t", 2, mode, **none), make("s", 2, mode)
    other = duckdb.connect()
    rows = {
        "t": [ROWS((n, "a", n, 0.0) for n in range(first, first + 20)) for first in (0, 20)],
        "s": [ROWS((n * 3, "b", -n, 1.0) for n in range(30))],
    }
    for each in (table, source):
        with each.update_spec() as spec:
            spec.add_field("id", BucketTransform(4))
        for appended in rows[each.name()[-1]]:
            each.append(appended)
    for name, parts in rows.items():
        other.register("rows", pa.concat_tables(parts))
        other.execute(f"create table {name} as select * from rows")
    for key, value in ALIKE.items():
        spark.conf.set(key, value)
    merge = (
        "merge into {t} as t using {s} as s on t.id = s.id when matched and s.v < -8 then delete "
        "when matched then update set v = s.v when not matched then insert *"
    )
    ((plan,),) = spark.sql("explain " + merge.format(t=name_of(table), s=name_of(source))).collect()
    assert "SortMergeJoin" in plan and "Exchange" not in plan
    spark.sql(merge.format(t=name_of(table), s=name_of(source))).collect()
    other.execute(merge.format(t="t", s="s"))
    expected = other.execute("select * from t").fetchall()
    assert shown(rows_left(table)) == shown(expected)
    check_files(table, len(expected))


# ----------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        pytest.param(*form, marks=pytest.mark.since_spark("4.0", "copies with lineage")) if form == (3, COPY) else form
        for form in FORMS
    ],
)
def test_files_without_rows_that_change_stay_as_they_are(
    spark: SparkSession, make: Callable[..., Table], version: int, mode: str
) -> None:
    table = make("t", version, mode)
    table.append(ROWS([(1, "a", 1, 0.0), (9, "a", 2, 0.0)]))
    table.append(ROWS([(2, "b", 3, 0.0), (8, "b", 4, 0.0)]))
    table.append(ROWS([(3, "c", 5, 0.0), (7, "c", 6, 0.0)]))
    before = {file.file_path for file in data_files(table)}
    # 5 lies between the bounds of all three files, so that only their rows tell.
    spark.sql(f"update {name_of(table)} set kind = 'changed' where id in (3, 5)").collect()
    after = {file.file_path for file in data_files(table.refresh())}
    assert len(before - after) == (1 if mode == COPY else 0)
    assert len(after - before) == 1
    found = rows_of(spark, f"select id, kind from {name_of(table)}")
    assert found == [(1, "a"), (2, "b"), (3, "changed"), (7, "c"), (8, "b"), (9, "a")]


CHANGES = (
    "update {t} set kind = 'new' where id = 1",
    "update {t} as t set v = v + 1 where kind = 'a' or x is null",
    "merge into {t} as t using {s} as s on t.id = s.id and t.kind = 'a' when matched then update set v = s.v",
    "delete from {t} as t where kind like 'b%' and v > 3",
    "merge into {t} as t using {s} as s on t.id = s.id and t.v < 4 when matched then delete "
    "when not matched by source and t.kind = 'new' then update set x = -1",
    "update {t} as t set x = 0 where id in (select s.id from {s} as s where s.v < 40)",
    "delete from {t} as t where x <> x or kind is null",
)


@pytest.mark.parametrize(
    ("mode", "file_format", "partitioned"),
    [pytest.param(COPY, "orc", False, marks=WHOLE), (COPY, "orc", True), (COPY, "avro", True), (MERGE, "orc", True)],
)
def test_rows_that_do_not_match_stay_in_files_of_other_formats(
    spark: SparkSession, make: Callable[..., Table], mode: str, file_format: str, partitioned: bool
) -> None:
    table, source = make("t", 2, mode, write_format_default=file_format), make("s", 2, mode)
    if partitioned:
        with table.update_spec() as spec:
            spec.add_field("kind", IdentityTransform())
    rows = [(n, ["a", "b", None, "ba"][n % 4], [0, 3, 5, None][n // 4 % 4], [0.0, NAN, None][n % 3]) for n in range(24)]
    table.append(ROWS(rows))
    source.append(ROWS((n, "s", n * 10, 1.0) for n in range(0, 30, 2)))
    other = duckdb.connect()
    for name, content in (("t", ROWS(rows)), ("s", source.scan().to_arrow())):
        other.register("rows", content)
        other.execute(f"create table {name} as select * from rows")
    for number, statement in enumerate(CHANGES):
        if number == 4:  # the files of the past are of another format than new ones
            table.refresh().set_properties({"write.format.default": "parquet"})
        spark.sql(statement.format(t=name_of(table), s=name_of(source))).collect()
        # DuckDB finds that a NaN equals itself, as Spark does.
        other.execute(statement.format(t="t", s="s"))
        expected = other.execute("select * from t").fetchall()
        assert shown(rows_left(table)) == shown(expected), statement
        check_files(table, len(expected))
    assert shown(spark.sql(f"select * from {name_of(table)}").collect()) == shown(expected)
    assert len(expected) > 8


def test_only_files_in_which_rows_change_are_replaced(spark: SparkSession, make: Callable[..., Table]) -> None:
    table = make("t", 2, COPY)
    for number, file_format in enumerate(FORMATS * 2):
        table.set_properties({"write.format.default": file_format})
        table.append(ROWS([(number, "a", 1, 0.0), (20 - number, "a", 2, 0.0)]))
    before = {file.file_path for file in data_files(table)}
    spark.sql(f"update {name_of(table)} set kind = 'changed' where id in (0, 1, 2, 10)").collect()
    summary = table.refresh().metadata.current_snapshot().summary
    assert summary["deleted-data-files"] == "3"
    assert len(before & {file.file_path for file in data_files(table)}) == 3
    expected = [(n, "changed" if n < 3 else "a") for n in (*range(6), *range(15, 21))]
    assert rows_of(spark, f"select id, kind from {name_of(table)}") == expected
    check_files(table, 12)


@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_that_were_deleted_do_not_come_back_with_their_files(
    spark: SparkSession, make: Callable[..., Table], file_format: str
) -> None:
    table = make("t", 2, COPY, write_format_default=file_format)
    table.append(ROWS((n, "a", n, 0.0) for n in range(6)))
    table.set_properties({"write.delete.mode": MERGE})
    table.delete("id = 2")
    # The metrics of the keys say that they delete no row which the statement asks for.
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([4], pa.int64())}), ["id"])
    with table.refresh().update_spec() as spec:
        spec.add_field("kind", IdentityTransform())
    table.append(ROWS([(7, "b", 7, 0.0)]))
    spark.sql(f"update {name_of(table)} set v = -1 where id = 1").collect()
    assert rows_of(spark, f"select id, v from {name_of(table)}") == [(0, 0), (1, -1), (3, 3), (5, 5), (7, 7)]
    assert sorted(file.record_count for file in data_files(table.refresh())) == [1, 4]


@pytest.mark.parametrize(("version", "mode"), FORMS)
def test_a_delete_of_whole_files_reads_no_row(
    spark: SparkSession, make: Callable[..., Table], version: int, mode: str
) -> None:
    table = make("t", version, mode)
    table.append(ROWS([(1, "a", 1, 0.0), (2, "a", 2, NAN)]))
    table.append(ROWS([(5, "b", 3, 0.0), (6, "b", 4, 0.0)]))
    spark.sql(f"delete from {name_of(table)} where id < 5").collect()
    summary = table.refresh().metadata.current_snapshot().summary
    assert summary["operation"] == "delete"
    assert (summary["deleted-data-files"], summary.get("added-data-files")) == ("1", None)
    assert rows_of(spark, f"select id from {name_of(table)}") == [(5,), (6,)]
    snapshots = len(table.metadata.snapshots)
    spark.sql(f"delete from {name_of(table)} where false").collect()
    assert len(table.refresh().metadata.snapshots) == snapshots
    spark.sql(f"truncate table {name_of(table)}").collect()
    assert rows_of(spark, f"select id from {name_of(table)}") == []


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_the_snapshot_of_a_merge_tells_what_became_of_the_rows(
    spark: SparkSession, make: Callable[..., Table], mode: str
) -> None:
    table = make("t", 2, mode)
    table.append(ROWS([(number, "a", number, 0.0) for number in range(6)]))
    spark.sql(f"""
        merge into {name_of(table)} t
        using (select * from values (0, 0), (1, 1), (2, 0), (9, 0) as s(id, drop)) s on t.id = s.id
        when matched and s.drop = 1 then delete when matched then update set kind = 'b'
        when not matched then insert (id) values (s.id)
        when not matched by source and t.id = 3 then update set kind = 'c'
        when not matched by source and t.id = 4 then delete
    """)
    prefix = "spark.merge-into.num-target-rows-"

    def counts() -> dict[str, str]:
        summary = table.refresh().metadata.current_snapshot().summary
        return {name.removeprefix(prefix): count for name, count in summary.items() if name.startswith(prefix)}

    counted = {
        "copied": "1" if mode == COPY else "0", "deleted": "2", "updated": "3", "inserted": "1",
        "matched-updated": "2", "matched-deleted": "1",
        "not-matched-by-source-updated": "1", "not-matched-by-source-deleted": "1",
    }  # fmt: skip
    assert counts() == ({} if spark.version < "4.1" else counted)  # Spark 4.0 counts nothing
    spark.sql(f"update {name_of(table)} set kind = 'd' where id = 0")
    assert counts() == {}


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_one_file_are_put_together(spark: SparkSession, make: Callable[..., Table], version: int) -> None:
    table = make("t", version, MERGE)
    table.append(ROWS((n, "a", n, float(n)) for n in range(100)))
    for least in (90, 80, 70):
        spark.sql(f"delete from {name_of(table)} where id >= {least} and v % 2 = 0").collect()
    deletes = table.refresh().inspect.delete_files().to_pylist()
    assert [each["record_count"] for each in deletes] == [15]
    assert deletes[0]["file_format"] == ("PUFFIN" if version == 3 else "PARQUET")
    assert table.metadata.current_snapshot().summary["removed-delete-files"] == "1"
    assert len(rows_of(spark, f"select * from {name_of(table)}")) == 85


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_rows_keep_their_lineage(spark: SparkSession, make: Callable[..., Table], mode: str) -> None:
    table = make("t", 3, mode)
    table.append(ROWS((n, "a", n, float(n)) for n in range(5)))
    lineage = f"select id, _row_id, _last_updated_sequence_number from {name_of(table)}"
    spark.sql(f"update {name_of(table)} set v = -1 where id in (1, 3)").collect()
    assert rows_of(spark, lineage) == [(0, 0, 1), (1, 1, 2), (2, 2, 1), (3, 3, 2), (4, 4, 1)]
    spark.sql(f"delete from {name_of(table)} where id = 0").collect()
    assert rows_of(spark, lineage) == [(1, 1, 2), (2, 2, 1), (3, 3, 2), (4, 4, 1)]
    spark.sql(
        f"merge into {name_of(table)} t using (select * from values (1L, 10), (9L, 90) as x(id, v)) s on t.id = s.id "
        "when matched then update set v = s.v when not matched then insert (id, v) values (s.id, s.v)"
    ).collect()
    found = {row[0]: row[1:] for row in rows_of(spark, lineage)}
    new = found.pop(9)
    assert found == {1: (1, 4), 2: (2, 1), 3: (3, 2), 4: (4, 1)}
    assert new[0] >= 5 and new[1] == 4


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_what_spark_and_the_table_forbid_is_refused_and_changes_nothing(
    spark: SparkSession, make: Callable[..., Table], mode: str
) -> None:
    table = make("t", 2, mode)
    table.append(ROWS([(1, "a", 1, 0.0), (2, "b", 2, 0.0)]))
    name, location = name_of(table), table.metadata_location
    twice = "using (select * from values (1L), (1L) as x(id)) s on t.id = s.id"
    refused = {
        f"merge into {name} t {twice} when matched then update set v = 0": "MERGE_CARDINALITY",
        f"delete from {name} where rand() > 0.5": "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
        f"update {name} set v = 'text' where id = 1": "CANNOT_SAFELY_CAST",
        f"update {name} set nothing = 1": "UNRESOLVED_COLUMN",
        f"delete from {name}.snapshot_id_{table.metadata.current_snapshot_id} where id = 1": "version of the past",
    }
    for statement, expected in refused.items():
        with pytest.raises(Exception, match=expected):
            spark.sql(statement).collect()
    assert table.refresh().metadata_location == location


def test_merge_on_read_needs_format_version_2_for_rows_that_match(
    spark: SparkSession, make: Callable[..., Table]
) -> None:
    table = make("t", 1, MERGE)
    rows = [(1, "a", 1, 0.0), (2, "b", 2, 0.0)]
    table.append(ROWS(rows))
    name, location = name_of(table), table.metadata_location
    source = "using (select 1L as id) s on t.id = s.id"
    for statement in (
        f"delete from {name} where v = 1",
        f"update {name} set v = 0 where kind = 'b'",
        f"merge into {name} t {source} when matched then delete",
    ):
        with pytest.raises(Exception, match=r"UnsupportedError.*format version 1 has no row deletes"):
            spark.sql(statement).collect()
        assert table.refresh().metadata_location == location
    for statement in (
        f"delete from {name} where v = 7",
        f"update {name} set v = 0 where kind = 'aa'",
        f"delete from {name} where kind like '%z'",
        f"merge into {name} t {source.replace('1L', '9L')} when matched then delete when not matched then "
        "insert (id) values (s.id)",
    ):
        spark.sql(statement).collect()
    assert rows_of(spark, f"select * from {name}") == [*rows, (9, None, None, None)]
    check_files(table.refresh(), 3)


# Each with the same statement on a table without such columns.
BY_METADATA = {
    "update {t} set v = v + 10 where _file like '%kind=a%' and id < 4L": "update t set v = v + 10 where id = 0",
    "update {t} set v = v + 20 where _partition.kind = 'b' and _spec_id = 1": "update t set v = v + 20 "
    "where kind = 'b'",
    "update {t} set v = v + 30 where _pos = 0L and kind = 'a'": "update t set v = v + 30 where id = 0",
    "merge into {t} t using (select 6L as id) s on t.id = s.id when matched and t._partition.kind is null "
    "and t._file is not null then update set v = t._spec_id": "update t set v = 1 where id = 6",
    "delete from {t} where _spec_id = 1 and id = 4L": "delete from t where id = 4",
    "delete from {t} where _partition.kind = 'c' or _file is null": "delete from t where kind = 'c'",
}


@pytest.mark.parametrize(
    ("version", "mode", "file_format"),
    [(2, COPY, "parquet"), (3, COPY, "orc"), (3, MERGE, "parquet"), (2, MERGE, "avro")],
)
def test_conditions_may_say_where_rows_are(
    spark: SparkSession, make: Callable[..., Table], version: int, mode: str, file_format: str
) -> None:
    if spark_release() == (4, 0):
        pytest.skip("Spark 4.0 takes metadata columns of an UPDATE for columns to write, which is refused")
    table = make("t", version, mode, write_format_default=file_format)
    with table.update_spec() as spec:
        spec.add_field("kind", IdentityTransform())
    rows = ROWS((n, ["a", "b", None, "c"][n % 4], n, 0.0) for n in range(12))
    table.refresh().append(rows)
    other = duckdb.connect()
    other.execute("create table t as select * from rows")
    for statement, meaning in BY_METADATA.items():
        if spark_release() < (4, 0) and statement.startswith("merge"):
            with pytest.raises(Exception, match="cannot MERGE by metadata columns"):
                spark.sql(statement.format(t=name_of(table)))
            continue
        spark.sql(statement.format(t=name_of(table))).collect()
        other.execute(meaning)
        expected = other.execute("select * from t").fetchall()
        assert shown(rows_left(table)) == shown(expected), statement
        check_files(table, len(expected))
    assert shown(spark.sql(f"select * from {name_of(table)}").collect()) == shown(expected)


# ------------------------------------------------------------------------------------------------- conflicts


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_rows_that_others_add_meanwhile_are_in_conflict_by_the_isolation_level(
    spark: SparkSession, catalog: Catalog, make: Callable[..., Table], mode: str, isolation: str
) -> None:
    table = make("t", 2, mode, **{"write_update_isolation-level": isolation})
    table.append(ROWS([(1, "a", 1, 0.0), (2, "b", 2, 0.0)]))
    name, uri, warehouse = name_of(table), *spark_settings(spark)

    def appended(value: int) -> int:
        """Appends a row while the statement runs; the condition of a statement may be evaluated several times."""
        from hms_iceberg.catalog import load_catalog

        loaded = load_catalog("other", type="hive", uri=uri, warehouse=warehouse).load_table(name)
        if loaded.scan().count() == 2:
            loaded.append(pa.table({"id": pa.array([3], pa.int64()), "v": pa.array([1], pa.int32())}))
        return value

    spark.udf.register("appended", appended, "int")
    statement = f"update {name} set kind = 'changed' where appended(v) = 1"
    if isolation == "serializable":
        with pytest.raises(Exception, match="CommitConflictError"):
            spark.sql(statement).collect()
        assert rows_of(spark, f"select id, kind from {name}") == [(1, "a"), (2, "b"), (3, None)]
    else:
        spark.sql(statement).collect()
        assert rows_of(spark, f"select id, kind from {name}") == [(1, "changed"), (2, "b"), (3, None)]


def spark_settings(spark: SparkSession) -> tuple[str, str]:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    return hadoop.get("hive.metastore.uris"), spark.conf.get("spark.sql.warehouse.dir")


def test_branches_are_changed_alone(spark: SparkSession, make: Callable[..., Table]) -> None:
    for mode in (COPY, MERGE):
        table = make(f"t_{mode[0]}", 2, mode)
        table.append(ROWS([(1, "a", 1, 0.0), (2, "b", 2, 0.0), (3, "c", 3, 0.0)]))
        table.manage_snapshots().create_branch(table.metadata.current_snapshot_id, "audit").commit()
        name = name_of(table)
        spark.sql(f"update {name}.branch_audit set v = 10 where id = 1").collect()
        spark.sql(f"delete from {name}.branch_audit where v = 2").collect()
        spark.sql(
            f"merge into {name}.branch_audit t using (select 3L as id) s on t.id = s.id when matched then delete"
        ).collect()
        assert rows_of(spark, f"select id, v from {name}") == [(1, 1), (2, 2), (3, 3)]
        assert rows_of(spark, f"select id, v from {name}.branch_audit") == [(1, 10)]


@pytest.mark.parametrize(("version", "mode"), [(2, COPY), (2, MERGE), (3, MERGE)])
def test_rows_that_are_deleted_by_path_under_another_spec_stay_so(
    version: int, mode: str, make: Callable[..., Table], spark: SparkSession
) -> None:
    for number, statement in enumerate(("delete from {} where {}", "update {} set x = 9.0 where {}")):
        table = make(f"by_path{number}", version, mode)
        with table.update_spec() as spec:
            spec.add_identity("kind")
        rows = [(n, "a" if n < 6 else "b", n, 1.0) for n in range(10)]
        table.append(pa.table(dict(zip(ROWS.schema.names, zip(*rows, strict=True), strict=True)), schema=ROWS.schema))
        (task,) = table.scan("kind = 'a'").plan_files()
        with table.update_spec() as spec:
            spec.add_field("id", "bucket[4]")
        commit_deletes(table, path_delete(table, task.file, [1, 4], 2, ("b", 3), "named"))
        left = {row[0]: row for row in rows if row[0] not in (1, 4)}
        assert sorted(map(tuple, spark.sql(f"select * from {name_of(table)}").collect())) == sorted(left.values())
        spark.sql(statement.format(name_of(table), "kind = 'a' and id < 3"))
        if number:
            left |= {n: (*left[n][:3], 9.0) for n in (0, 2)}
        else:
            left = {n: row for n, row in left.items() if n not in (0, 2)}
        assert sorted(rows_left(table)) == sorted(left.values())
