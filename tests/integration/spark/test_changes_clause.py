"""select * from db.t changes from version a to version b, of Spark 4.2 and newer."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.spark_tables import rows_of
from tests.support.spread import ALL

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.since_spark("4.2", "the clause CHANGES")]

OF_CHANGES = ["_change_type", "_commit_version", "_commit_timestamp"]
GONE = {"delete": -1, "update_preimage": -1, "insert": 1, "update_postimage": 1}
Content = list[tuple[int, str | None, int]]
# Every format with deletes by copies, positions or vectors.
FORMS = (("parquet", "merge-on-read", 3), ("orc", "merge-on-read", 2), ("avro", "copy-on-write", 2))
FURTHER = (
    ("parquet", "copy-on-write", 3),
    ("parquet", "merge-on-read", 2),
    ("orc", "copy-on-write", 3),
    ("avro", "merge-on-read", 3),
)


class History:
    """A table, and in plain Python what each of its versions must hold."""

    def __init__(self, spark: SparkSession, name: str, form: tuple[str, str, int], seed: int) -> None:
        file_format, mode, version = form
        self.spark, self.name, self._random = spark, name, random.Random(seed)
        modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
        spark.sql(
            f"create table {name} (id bigint, s string, p int) using iceberg partitioned by (p) tblproperties "
            f"('format-version' = '{version}', 'write.format.default' = '{file_format}', {modes})"
        )
        self.rows: Content = []
        self.versions: list[tuple[int, Content]] = []  # snapshot ids of the current branch, and their rows
        self._next = 0
        self.insert()

    def commit(self, statement: str, rows: Content) -> None:
        self.spark.sql(statement.format(name=self.name))
        newest = self._current()
        if not self.versions or self.versions[-1][0] != newest:
            self.versions.append((newest, rows))
        self.rows = rows

    def _current(self) -> int:
        return self.spark.sql(f"select snapshot_id from {self.name}.refs where name = 'main'").collect()[0][0]

    def go_on(self) -> None:
        steps = [
            self.insert,
            self.insert,
            self.update,
            self.merge,
            self.delete,
            self.overwrite,
            self.compact,
            self.roll_back,
        ]
        self._random.choice(steps)()

    def insert(self) -> None:
        count = self._random.randint(1, 6)
        new = [
            (self._next + n, self._random.choice([None, "a", "b", "ü"]), self._random.randint(0, 2))
            for n in range(count)
        ]
        new += new[:1] if self._random.random() < 0.3 else []  # the same row twice
        self._next += count
        self.commit(f"insert into {{name}} values {_values(new)}", [*self.rows, *new])

    def update(self) -> None:
        rest = self._random.randint(0, 2)
        self.commit(
            f"update {{name}} set s = concat(coalesce(s, ''), '!') where id % 3 = {rest}",
            [(i, (s or "") + "!" if i % 3 == rest else s, p) for i, s, p in self.rows],
        )

    def merge(self) -> None:
        keys = sorted({self._random.randint(0, self._next + 2) for _ in range(3)})
        source = " union all ".join(f"select {key}L as id" for key in keys)
        known = {i for i, _, _ in self.rows}
        changed = [(i, "m", p) if i in keys else (i, s, p) for i, s, p in self.rows]
        new = [(key, "n", 1) for key in keys if key not in known]
        self._next = max(self._next, *(key + 1 for key in keys))
        self.commit(
            f"merge into {{name}} t using ({source}) s on t.id = s.id when matched then update set s = 'm' "
            "when not matched then insert (id, s, p) values (s.id, 'n', 1)",
            changed + new,
        )

    def delete(self) -> None:
        rest, part = self._random.randint(0, 3), self._random.random() < 0.3
        condition = f"p = {rest}" if part else f"id % 4 = {rest}"
        self.commit(
            f"delete from {{name}} where {condition}",
            [row for row in self.rows if (row[2] if part else row[0] % 4) != rest],
        )

    def overwrite(self) -> None:
        new = [(self._next, "o", 0), (self._next + 1, None, 0)]
        self._next += 2
        kept = [row for row in self.rows if row[2] != 0]
        self.commit(
            f"insert overwrite {{name}} partition (p = 0) values {', '.join(_value(row[:2]) for row in new)}",
            kept + new,
        )

    def compact(self) -> None:
        table, options = self.name, "map('rewrite-all', 'true')"
        self.commit(f"call system.rewrite_data_files(table => '{table}', options => {options})", self.rows)

    def roll_back(self) -> None:
        if len(self.versions) > 2:
            back = self._random.randint(1, 2)
            del self.versions[-back:]
            snapshot_id, self.rows = self.versions[-1]
            self.spark.sql(f"call system.rollback_to_snapshot('{self.name}', {snapshot_id})")


def _value(row: Iterable[Any]) -> str:
    return "(" + ", ".join("null" if each is None else repr(each) for each in row) + ")"


def _values(rows: Iterable[Iterable[Any]]) -> str:
    return ", ".join(map(_value, rows))


def replayed(rows: Content, changes: Iterable[tuple[Any, ...]]) -> Counter[Any]:
    """Rows after changes; no row may go that is not there."""
    found = Counter(rows)
    for *row, kind in changes:
        found[tuple(row)] += GONE[kind]
    assert all(count >= 0 for count in found.values())
    return +found


@pytest.mark.parametrize("form", (*FORMS, *FURTHER) if ALL else FORMS, ids=lambda form: "-".join(map(str, form)))
def test_changes_make_of_each_version_each_later_one(
    spark: SparkSession, namespace: str, form: tuple[str, str, int]
) -> None:
    seed = (*FORMS, *FURTHER).index(form)
    history = History(spark, f"{namespace}.history_{seed}", form, seed)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    for _ in range(12):
        history.go_on()
    chosen = random.Random(seed)
    ids = [each for each, _ in history.versions]
    for _ in range(4):
        first, last = sorted(chosen.sample(range(len(ids)), 2))
        between = f"{history.name} changes from version {ids[first]} exclusive to version {ids[last]}"
        before, after = history.versions[first][1], history.versions[last][1]
        by_commit = spark.sql(f"select id, s, p, _change_type, _commit_version from {between}").collect()
        for mode in ("none", "netChanges"):
            rows = rows_of(spark, f"select id, s, p, _change_type from {between} with (deduplicationMode = '{mode}')")
            assert replayed(before, rows) == Counter(after), (mode, first, last)
            if mode == "netChanges":
                wanted = [(row, -1) for row in (Counter(before) - Counter(after)).elements()]
                wanted += [(row, 1) for row in (Counter(after) - Counter(before)).elements()]
                assert Counter((tuple(row), GONE[kind]) for *row, kind in rows) == Counter(wanted)
        # Each commit says what it changed, and nothing else.
        versions = sorted({row._commit_version for row in by_commit})
        found = {v: Counter() for v in versions}
        for row in by_commit:
            found[row._commit_version][(tuple(row)[:3], GONE[row._change_type])] += 1
        wanted_by_commit = []
        for place in range(first + 1, last + 1):
            old, new = Counter(history.versions[place - 1][1]), Counter(history.versions[place][1])
            change = Counter({(row, -1): count for row, count in (old - new).items()})
            change.update({(row, 1): count for row, count in (new - old).items()})
            wanted_by_commit += [change] if change else []
        assert [found[version] for version in versions] == wanted_by_commit


@pytest.fixture
def three(spark: SparkSession, namespace: str) -> tuple[str, list[int]]:
    """A table of format version 3 with three commits: two rows, an update, a delete; and their snapshots."""
    name = f"{namespace}.three"
    spark.sql(f"create table {name} (id bigint, s string) using iceberg tblproperties ('format-version' = '3')")
    spark.sql(f"insert into {name} select /*+ coalesce(1) */ * from values (1L, 'a'), (2L, 'b')")
    spark.sql(f"update {name} set s = 'c' where id = 1")
    spark.sql(f"delete from {name} where id = 2")
    by_time = spark.sql(f"select snapshot_id from {name}.snapshots order by committed_at")
    return name, [row[0] for row in by_time.collect()]


def changes(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return rows_of(spark, f"select id, s, _change_type, _commit_version from {text}")


def test_columns_are_those_of_the_table_and_three(spark: SparkSession, three: tuple[str, list[int]]) -> None:
    name, ids = three
    frame = spark.sql(f"select * from {name} changes from version {ids[1]} to version {ids[1]}")
    assert frame.columns == ["id", "s", *OF_CHANGES]
    assert [frame.schema[each].dataType.simpleString() for each in OF_CHANGES] == ["string", "bigint", "timestamp"]
    committed = {
        row[0] for row in spark.sql(f"select committed_at from {name}.snapshots where snapshot_id = {ids[1]}").collect()
    }
    assert {row._commit_timestamp for row in frame.collect()} == committed
    assert spark.sql(f"select count(*) from {name} changes from version 1").collect()[0][0] == 5


def test_bounds_are_versions_of_every_kind_and_times(
    spark: SparkSession, three: tuple[str, list[int]], catalog: Catalog
) -> None:
    name, ids = three
    spark.sql(f"alter table {name} create tag first as of version {ids[0]}")
    inserted = [(1, "a", "insert", 1), (2, "b", "insert", 1)]
    updated = [(1, "a", "delete", 2), (1, "c", "insert", 2)]
    deleted = [(2, "b", "delete", 3)]
    times = [snapshot.timestamp_ms for snapshot in catalog.load_table(name).metadata.snapshots]

    def at(number: int) -> str:
        moment = dt.datetime.fromtimestamp(times[number] / 1000, dt.timezone.utc)
        return f"timestamp '{moment:%Y-%m-%d %H:%M:%S.%f} UTC'"

    everything = sorted([*inserted, *updated, *deleted], key=str)
    for clause, wanted in {
        "from version 1 to version 3": everything,
        f"from version {ids[0]}": everything,
        "from version 'first' exclusive": [*updated, *deleted],
        "from version 'first' exclusive to version 'main' exclusive": updated,
        f"from version {ids[0]} to version 2": [*inserted, *updated],
        f"from version 1 to version {ids[1]} exclusive": inserted,
        "from version 2 to version 2": updated,
        "from version 2 exclusive to version 2": [],
        f"from {at(1)}": [*updated, *deleted],
        f"from {at(0)} exclusive to {at(2)} exclusive": updated,
        f"from {at(0)} to {at(0)}": inserted,
    }.items():
        assert sorted(changes(spark, f"{name} changes {clause}"), key=str) == sorted(wanted, key=str), clause
    read = spark.read.option("startingVersion", 2).option("endingVersion", str(ids[1])).changes(name)
    assert sorted(map(tuple, read.select("id", "s", "_change_type", "_commit_version").collect()), key=str) == updated
    assert spark.read.changes(name).count() == 5
    assert spark.sql(f"select * from {name}.tag_first changes from version 1").count() == 2


def test_updates_are_told_by_ids_of_rows_or_columns(spark: SparkSession, three: tuple[str, list[int]]) -> None:
    name, _ = three
    updated = [(1, "a", "update_preimage", 2), (1, "c", "update_postimage", 2)]
    clause = f"{name} changes from version 2 to version 2"
    assert sorted(changes(spark, f"{clause} with (computeUpdates = 'true')")) == updated
    by_column = f"{clause} with (computeUpdates = 'true', `identifier-columns` = 'id')"
    assert sorted(changes(spark, by_column)) == updated
    with pytest.raises(Exception, match="nobody"):
        changes(spark, f"{clause} with (computeUpdates = 'true', `identifier-columns` = 'nobody')")
    # A condition must not tear apart what is one update.
    assert changes(spark, f"{by_column} where s = 'c'") == updated[1:]
    net = f"{name} changes from version 1 to version 3 with (deduplicationMode = 'netChanges', computeUpdates = 'true')"
    assert changes(spark, net) == [(1, "c", "insert", 2)]
    assert changes(spark, f"{name} changes from version 2 where s = 'c'") == [(1, "c", "insert", 2)]


def test_rows_that_a_merge_on_read_table_loses_by_keys_are_deleted(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    name = f"{namespace}.keyed"
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("s", pa.string())])
    table = catalog.create_table(name, schema, properties={"format-version": "2"})
    table.append(pa.table({"id": [1, 2, 3], "s": ["a", "b", None]}, schema))
    with table.update_schema() as update:
        update.set_identifier_fields("id")
    table.upsert(pa.table({"id": [2, 4], "s": ["B", "d"]}, schema))
    wanted = [
        (2, "B", "update_postimage", 2),
        (2, "b", "update_preimage", 2),
        (4, "d", "insert", 2),
    ]
    assert sorted(changes(spark, f"{name} changes from version 2 with (computeUpdates = 'true')")) == wanted
    raw = [(2, "B", "insert", 2), (2, "b", "delete", 2), (4, "d", "insert", 2)]
    assert sorted(changes(spark, f"{name} changes from version 2")) == raw


def test_a_named_catalog_has_them(ice: SparkSession, three: tuple[str, list[int]]) -> None:
    name, ids = three
    assert changes(ice, f"ice.{name} changes from version {ids[2]}") == [(2, "b", "delete", 3)]
    assert ice.read.option("startingVersion", 3).changes(f"ice.{name}").count() == 1
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        ice.sql("select * from ice.default.nothing changes from version 1").collect()


def test_what_cannot_be_is_refused(spark: SparkSession, three: tuple[str, list[int]], namespace: str) -> None:
    name, ids = three

    def refused(clause: str, why: str) -> None:
        with pytest.raises(Exception, match=why):
            spark.sql(f"select * from {clause}").collect()

    refused(f"{name} changes from version 77", "NoSuchSnapshotError: .*77 is neither the id of one of its snapshots")
    refused(f"{name} changes from version 1 to version 77", "NoSuchSnapshotError")
    refused(f"{name} changes from version 'nobody'", "NoSuchRefError: .*no branch or tag 'nobody'. Known are main")
    refused(f"{name} changes from version 3 to version 1", "InvalidInputError: .*the first comes after the last")
    refused(
        f"{name} changes from timestamp '2031-01-01' to timestamp '2030-01-01'",
        "InvalidInputError: .*later than the last",
    )
    both = "with (deduplicationMode = 'none', computeUpdates = 'true')"
    refused(f"{name} changes from version 1 {both}", "InvalidInputError: .*only copied would be taken for updates")
    refused(f"{name}.files changes from version 1", "UnsupportedError: .*changes of tables and of their branches only")
    with pytest.raises(Exception, match="did you mean 'identifier-columns'"):
        spark.read.option("identifier-column", "id").changes(name).collect()

    spark.sql(f"call system.rollback_to_snapshot('{name}', {ids[1]})")
    refused(f"{name} changes from version {ids[2]}", "InvalidInputError: .*was rolled back from it")
    spark.sql(f"call system.set_current_snapshot('{name}', {ids[2]})")
    spark.sql(
        f"call system.expire_snapshots(table => '{name}', older_than => timestamp '2100-01-01', retain_last => 1)"
    )
    refused(f"{name} changes from version {ids[0]}", "NoSuchSnapshotError: .*may have expired")
    refused(f"{name} changes from version 3", "NoSuchSnapshotError: .*has expired")
    refused(f"{name} changes from timestamp '2000-01-01'", "NoSuchSnapshotError: .*the snapshot before it")

    old, keyless, taken, empty, hive = (f"{namespace}.{each}" for each in ("old", "keyless", "taken", "empty", "hive"))
    for table, version in ((old, 1), (keyless, 2), (empty, 2)):
        spark.sql(f"create table {table} (id bigint) using iceberg tblproperties ('format-version' = '{version}')")
    for table in (old, keyless):
        spark.sql(f"insert into {table} values (1)")
    refused(f"{old} changes from version 'main'", "UnsupportedError: .*format version 1, which does not number commits")
    keys = "with (computeUpdates = 'true')"
    refused(f"{keyless} changes from version 1 {keys}", "InvalidInputError: .*nothing identifies a row")
    refused(f"{empty} changes from version 1", "NoSuchSnapshotError")
    assert spark.read.changes(empty).collect() == []
    spark.sql(f"create table {taken} (id bigint, _commit_version int) using iceberg")
    refused(f"{taken} changes from timestamp '2000-01-01'", "it has a column '_commit_version'")
    spark.sql(f"create table {hive} (id bigint) stored as parquet")
    refused(f"{hive} changes from version 1", "(?i)does not support|unsupported")
    refused(f"{namespace}.nothing changes from version 1", "TABLE_OR_VIEW_NOT_FOUND")


def test_changes_can_be_streamed(spark: SparkSession, three: tuple[str, list[int]], tmp_path: Path) -> None:
    name, _ = three
    checkpoint, out = str(tmp_path / "checkpoint"), str(tmp_path / "out")

    def run() -> list[tuple[Any, ...]]:
        query = (
            spark.readStream.option("startingVersion", 2)
            .option("computeUpdates", "true")
            .changes(name)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(out)
        )
        query.awaitTermination(120)
        assert query.exception() is None
        return sorted(
            map(tuple, spark.read.parquet(out).select("id", "s", "_change_type", "_commit_version").collect())
        )

    wanted = [(1, "a", "update_preimage", 2), (1, "c", "update_postimage", 2), (2, "b", "delete", 3)]
    assert spark.sql(f"select id from stream {name} changes from version 2").isStreaming
    assert run() == wanted
    assert run() == wanted  # nothing is read again
    spark.sql(f"insert into {name} values (5, 'e')")
    spark.sql(f"update {name} set s = 'f' where id = 5")
    wanted += [(5, "e", "insert", 4), (5, "e", "update_preimage", 5), (5, "f", "update_postimage", 5)]
    # What was read may expire, and the stream goes on.
    assert run() == sorted(wanted)
    spark.sql(f"insert into {name} values (6, 'g')")
    spark.sql(
        f"call system.expire_snapshots(table => '{name}', older_than => timestamp '2100-01-01', retain_last => 2)"
    )
    assert run() == sorted([*wanted, (6, "g", "insert", 6)])
    for n in (7, 8, 9):
        spark.sql(f"insert into {name} values ({n}, 'h')")
    spark.sql(
        f"call system.expire_snapshots(table => '{name}', older_than => timestamp '2100-01-01', retain_last => 1)"
    )
    with pytest.raises(Exception, match="may have expired"):
        run()
