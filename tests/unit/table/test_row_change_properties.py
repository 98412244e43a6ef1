"""Every operation that changes rows, on random tables, leaves the rows that DuckDB leaves.

Tables have columns of all types with nulls and NaN, partitions by all transforms, specs that change, files of all
formats written by this package or found, metrics of any kind, and rows that are deleted already. Predicates have
literals at and beyond the limits of their columns' types. HMS_ICEBERG_EXAMPLES=8000 runs 2,000
examples of each.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance import (
    check_table,
    expire_snapshots,
    rewrite_data_files,
    rewrite_manifests,
    rewrite_position_delete_files,
)
from hms_iceberg.spec.data_types import (
    DecimalType,
    IntegerType,
    ListType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
)
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction
from tests.support.expression_strategies import EXAMPLES, TRANSFORMS
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.sql_conditions import Column, Condition, conditions, one_test, presence
from tests.support.sql_oracle import ITEMS, KINDS, NUMBER, PRESENT, Kind, Row, SqlRows, comparable
from tests.support.tables import QUICK

FORMATS = ("parquet", "orc", "avro")
WAYS = [(1, "copy-on-write"), *((version, mode) for version in (2, 3) for mode in ("copy-on-write", "merge-on-read"))]
METRICS = ("none", "counts", "truncate(1)", "truncate(16)", "full")
Draw = Callable[[st.SearchStrategy[Any]], Any]
Changed = Table | TableTransaction


class Made:
    """A table, and the same rows in DuckDB."""

    def __init__(self, draw: Draw, formats: int = 1) -> None:
        self.version, mode = draw(st.sampled_from(WAYS))
        self.formats = draw(st.permutations(FORMATS))[:formats]
        by_name = {str(each): each for each in KINDS if self.version >= 3 or not str(each).endswith("_ns")}
        a, b, c = self.kinds = tuple(by_name[draw(st.sampled_from(sorted(by_name)))] for _ in range(3))
        schema = Schema(
            NestedField(1, "n", NUMBER.iceberg),
            NestedField(2, "a", a.iceberg),
            NestedField(3, "b", b.iceberg),
            NestedField(4, "s", StructType(NestedField(6, "c", c.iceberg))),
            NestedField(5, "l", ListType(7, IntegerType(), element_required=False)),
        )
        properties = {
            **QUICK,
            **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
            "format-version": str(self.version),
            "write.format.default": self.formats[0],
            "write.metadata.metrics.default": draw(st.sampled_from(METRICS)),
            "write.parquet.row-group-limit": "2",
        }
        catalog = Catalog("memory", InMemoryMetastore(), InMemoryStorage(), {"warehouse": "mem://warehouse"})
        catalog.create_namespace("db", {})
        self.table = catalog.create_table("db.t", schema, partition_spec=UNPARTITIONED, properties=properties)
        self.oracle = SqlRows((NUMBER, a, b, PRESENT, c, ITEMS))
        self.numbered = 0
        self.said: list[str] = []

    def __repr__(self) -> str:
        files = [(task.file.file_format, str(task.file.partition)) for task in self.table.scan().plan_files()]
        kinds = ", ".join(map(str, self.kinds))
        return f"Made({kinds}; {self.table.properties}; {self.said}; now {files}; {list(self.table.specs().values())})"

    # --------------------------------------------------------------------------------------------- drawing

    def columns(self) -> list[Column]:
        """What conditions test."""
        return [Column(*each) for each in zip(("a", "b", "s.c"), "abc", self.kinds, strict=True)]

    def condition(self, draw: Draw) -> Condition:
        """A condition over all columns."""
        leaves = [one_test(column) for column in self.columns()]
        found: Condition = draw(conditions(st.one_of(*leaves, *leaves, presence("s", "s"), presence("l", "l"))))
        return found

    def rows(self, draw: Draw, least: int = 0, most: int = 4) -> list[Row]:
        """New rows, each with a number of its own."""
        a, b, c = (st.one_of(st.none(), *[st.sampled_from(self._storable(kind))] * 3) for kind in self.kinds)
        rest = st.tuples(a, b, st.sampled_from([True, True, None]), c, st.sampled_from([None, *ITEMS.values]))
        rows = []
        for a, b, s, c, items in draw(st.lists(rest, min_size=least, max_size=most)):
            rows.append((self.numbered, a, b, s, c if s else None, items))
            self.numbered += 1
        return rows

    def _storable(self, kind: Kind) -> list[Any]:
        """The values that files of the table's formats can hold: in ORC, times that nanoseconds hold.

        It has no form for the last second before 1970.
        """
        if "orc" not in self.formats or not pa.types.is_timestamp(kind.arrow):
            return list(kind.values)
        second = 10**9 if kind.arrow.unit == "ns" else 10**6
        return [value if -(2**53) < value < -second else abs(value) % 2**53 for value in kind.values]

    def partition(self, draw: Draw, transforms: Sequence[Transform] = TRANSFORMS) -> list[tuple[Column, Transform]]:
        """Gives the table another partition spec, of up to two fields."""
        columns = {column.name: column for column in self.columns()}
        possible = [
            (column.name, each)
            for column in columns.values()
            for each in transforms
            # Truncating the least of 38 digits gives one of 39, which cannot be written.
            if each.can_transform(column.kind.iceberg)
            and not (each.is_void and self.version == 1)
            and not (isinstance(each, TruncateTransform) and column.kind.iceberg == DecimalType(38, 0))
        ]
        drawn = draw(st.lists(st.sampled_from(possible), max_size=2, unique_by=lambda each: each[0]))
        fields = [(columns[name], transform) for name, transform in drawn]
        with self.table.update_spec() as update:
            void = {field.source_id for field in self.table.spec().fields if field.transform.is_void}
            for field in self.table.spec().fields:
                if not field.transform.is_void:
                    update.remove_field(field.name)
            for place, (column, transform) in enumerate(fields):
                if not (transform.is_void and self.table.schema().find_id(column.name) in void):
                    update.add_field(column.name, transform, f"p{len(self.table.specs())}_{place}")
        self.said.append(f"partition by {[(column.name, str(each)) for column, each in fields]}")
        return fields

    # -------------------------------------------------------------------------------------------- changing

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as they are written."""
        n, a, b, s, c, items = ([row[place] for row in rows] for place in range(6))
        mask = pa.array([each is None for each in s], pa.bool_())
        struct = pa.StructArray.from_arrays([self.kinds[2].array(c)], ["c"], mask=mask)
        columns = [NUMBER.array(n), self.kinds[0].array(a), self.kinds[1].array(b), struct, ITEMS.array(items)]
        return pa.table(columns, names=["n", "a", "b", "s", "l"])

    def append(self, rows: Sequence[Row], on: Changed | None = None) -> None:
        """Appends rows."""
        (on or self.table).append(self.arrow(rows))
        self.oracle.insert(rows)
        self.said.append(f"append {rows}")

    def add_file(self, rows: Sequence[Row]) -> None:
        """Adds a Parquet file that another writer wrote."""
        target = io.BytesIO()
        pq.write_table(self.arrow(rows), target, row_group_size=2)
        location = f"{self.table.location()}/data/found-{self.numbered}.parquet"
        self.table.storage.create(location, target.getvalue())
        self.table.add_files([location])
        self.oracle.insert(rows)
        self.said.append(f"add a file of {rows}")

    def check(self) -> None:
        """The table has the rows of the oracle, and nothing in it contradicts itself."""
        assert self.found() == self.oracle.rows()
        assert check_table(self.table).findings == ()

    def by_file(self) -> dict[str, set[int]]:
        """The numbers of the live rows of each file, each of which has as many as its entry and its deletes say."""
        rows = self.table.scan(selected_fields=("n", "_file")).to_arrow()
        live: dict[str, set[int]] = {}
        for number, path in zip(rows["n"].to_pylist(), rows["_file"].to_pylist(), strict=True):
            live.setdefault(path, set()).add(number)
        for task in self.table.scan().plan_files():
            found = len(live.setdefault(task.file.file_path, set()))
            assert found <= task.file.record_count, task.file.file_path
            assert task.delete_files or found == task.file.record_count, task.file.file_path
        assert sum(map(len, live.values())) == rows.num_rows == self.oracle.number("SELECT count(*) FROM t")
        return live

    def found(self) -> list[str]:
        """The table's rows, comparable."""
        batches = self.table.scan().to_arrow().to_batches()
        return sorted(comparable(row) for batch in batches for row in self._rows_of(batch))

    def _rows_of(self, batch: pa.RecordBatch) -> Iterator[Row]:
        struct = batch["s"]
        present = struct.is_valid().to_pylist()
        inner = self.kinds[2].read(struct.field(0))
        return zip(
            NUMBER.read(batch["n"]),
            self.kinds[0].read(batch["a"]),
            self.kinds[1].read(batch["b"]),
            [each or None for each in present],
            [value if each else None for value, each in zip(inner, present, strict=True)],
            batch["l"].to_pylist(),
            strict=True,
        )


def history(draw: Draw, formats: int = 1) -> Made:
    """A table of several files, some of whose rows may be deleted already."""
    made = Made(draw, formats)
    if draw(st.booleans()):
        made.partition(draw)
    for _ in range(draw(st.integers(1, 3))):
        rows = made.rows(draw, least=1)
        can_be_found = made.table.spec().is_unpartitioned() and not any(
            isinstance(kind.iceberg, UUIDType) for kind in made.kinds
        )
        if can_be_found and draw(st.integers(0, 3)) == 0:
            made.add_file(rows)
        else:
            made.append(rows)
        if draw(st.integers(0, 3)) == 0:
            made.partition(draw)
    if draw(st.booleans()):
        gone = draw(st.integers(0, made.numbered))
        made.table.delete(f"n = {gone}")
        made.oracle.run(f"DELETE FROM t WHERE n = {gone}")
        made.said.append(f"delete {gone}")
    return made


# -------------------------------------------------------------------------------------------------- operations


def delete(made: Made, on: Changed, draw: Draw) -> None:
    condition = made.condition(draw)
    made.said.append(f"delete {condition.text}")
    on.delete(condition.text)
    made.oracle.run(f"DELETE FROM t WHERE {condition.sql}")


def overwrite(made: Made, on: Changed, draw: Draw) -> None:
    condition, rows = made.condition(draw), made.rows(draw)
    made.said.append(f"overwrite {condition.text} by {rows}")
    on.overwrite(made.arrow(rows), condition.text)
    made.oracle.run(f"DELETE FROM t WHERE {condition.sql}")
    made.oracle.insert(rows)


def update(made: Made, on: Changed, draw: Draw) -> None:
    condition = made.condition(draw)
    (row,) = made.rows(draw, 1, 1)
    values = made.arrow([row])
    chosen = draw(st.lists(st.sampled_from(["a", "b", "s", "l"]), min_size=1, max_size=3, unique=True))
    made.said.append(f"update {chosen} of {row} where {condition.text}")
    result = on.update({name: values[name][0] for name in chosen}, condition.text)
    assert result.rows_updated == made.oracle.number(f"SELECT count(*) FROM t WHERE {condition.sql}")
    made.oracle.give([row])
    assigned = [*chosen, "c"] if "s" in chosen else chosen
    changes = ", ".join(f"{name} = given.{name}" for name in assigned)
    matching = f"SELECT rowid FROM t WHERE {condition.sql}"
    made.oracle.run(f"UPDATE t SET {changes} FROM given WHERE t.rowid IN ({matching})")


def upsert(made: Made, on: Changed, draw: Draw) -> None:
    columns = {column.name: column.sql for column in made.columns()}
    keys = draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=2, unique=True))
    rows = made.rows(draw, 1, 5)
    made.said.append(f"upsert {rows} by {keys}")
    made.oracle.give(rows)
    names = [columns[key] for key in keys]
    groups = made.oracle.number(f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(names)} FROM given)")
    if groups < len(rows):
        with pytest.raises(InvalidInputError, match="share their key"):
            on.upsert(made.arrow(rows), keys)
        return
    same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM given.{name}" for name in names)
    if made.oracle.number(f"SELECT count(*) FROM given WHERE (SELECT count(*) FROM t WHERE {same}) > 1"):
        with pytest.raises(InvalidInputError, match="have the key"):
            on.upsert(made.arrow(rows), keys)
        return
    result = on.upsert(made.arrow(rows), keys)
    assert result.rows_updated == made.oracle.number(f"SELECT count(*) FROM t WHERE EXISTS (FROM given WHERE {same})")
    new = made.oracle.run(f"SELECT n FROM given WHERE NOT EXISTS (FROM t WHERE {same})")
    assert result.rows_inserted == len(new)
    # All columns but the keys; a struct with a key in it is replaced as a whole.
    changes = ", ".join(f"{name} = given.{name}" for name in "nabscl" if name not in keys)
    made.oracle.run(f"UPDATE t SET {changes} FROM given WHERE {same}")
    inserted = {number for (number,) in new}
    made.oracle.insert([row for row in rows if row[0] in inserted])


def partition_sql(transform: Transform, column: Column, table: str) -> str:
    """What is equal for two rows of DuckDB exactly where their partition values are."""
    name = f"{table}.{column.sql}"
    if isinstance(transform, IdentityTransform):
        return f"{name}::VARCHAR" if column.kind.is_floating else name  # -0.0 and 0.0 are two partitions
    if isinstance(transform, TruncateTransform):
        if isinstance(column.kind.iceberg, StringType):
            return f"left({name}, {transform.width})"
        if pa.types.is_binary(column.kind.arrow):
            return f"left(hex({name}), {2 * transform.width})"
        scale = 100 if isinstance(column.kind.iceberg, DecimalType) else 1
        return _floor(f"({name} * {scale})::HUGEINT", transform.width)
    hours = 24 if isinstance(transform, DayTransform) else 1
    if pa.types.is_date(column.kind.arrow):
        return name
    return _floor(name, hours * 3_600_000_000 * (1000 if str(column.kind).endswith("_ns") else 1))


def _floor(number: str, width: int) -> str:
    return f"(({number}) - (({number}) % {width} + {width}) % {width})"


def append(made: Made, on: Changed, draw: Draw) -> None:
    made.append(made.rows(draw), on)


OPERATIONS = (delete, overwrite, update, upsert)


def add_file(made: Made, on: Changed, draw: Draw) -> None:
    is_uuid = any(isinstance(kind.iceberg, UUIDType) for kind in made.kinds)
    if made.table.spec().is_unpartitioned() and not is_uuid:
        made.add_file(made.rows(draw, least=1))


def partition(made: Made, on: Changed, draw: Draw) -> None:
    made.partition(draw)


def reset(made: Made, on: Changed, draw: Draw) -> None:
    """Another format, other modes and metrics from now on."""
    modes = ("copy-on-write", "merge-on-read") if made.version > 1 else ("copy-on-write",)
    properties = {f"write.{each}.mode": draw(st.sampled_from(modes)) for each in ("delete", "update", "merge")}
    properties["write.format.default"] = draw(st.sampled_from(made.formats))
    properties["write.metadata.metrics.default"] = draw(st.sampled_from(METRICS))
    with made.table.transaction() as transaction:
        transaction.set_properties(properties)
    made.said.append(f"set {properties}")


def maintain(made: Made, on: Changed, draw: Draw) -> None:
    """What leaves the rows as they are."""
    word = draw(st.sampled_from(["compact", "sort", "position deletes", "manifests", "expire"]))
    made.said.append(word)
    if word == "compact":
        rewrite_data_files(made.table, options={"rewrite-all": draw(st.sampled_from(["true", "false"]))})
    elif word == "sort":
        by = draw(st.sampled_from(["a", "b desc nulls last", "n"]))
        rewrite_data_files(made.table, strategy="sort", sort_order=by, options={"rewrite-all": "true"})
    elif word == "position deletes":
        rewrite_position_delete_files(made.table, options={"rewrite-all": "true"})
    elif word == "manifests":
        rewrite_manifests(made.table)
    else:
        expire_snapshots(made.table, older_than=made.table.metadata.last_updated_ms + 1, retain_last=1)


STEPS = (append, *OPERATIONS, *OPERATIONS, add_file, partition, reset, reset, maintain, maintain)
# What SQL can compute of a partition.
KNOWN = (IdentityTransform(), TruncateTransform(1), TruncateTransform(3), DayTransform(), HourTransform())
searching = settings(
    max_examples=max(EXAMPLES // 4, 1),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


@contextmanager
def told(made: Made) -> Iterator[None]:
    """Tells what the table was where something in the block fails."""
    try:
        yield
    except Exception:
        note(repr(made))
        raise


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.__name__)
@searching
@given(st.data())
def test_an_operation_leaves_the_rows_of_sql(operation: Any, data: st.DataObject) -> None:
    made = history(data.draw)
    with told(made):
        operation(made, made.table, data.draw)
        made.check()


@searching
@given(st.data())
def test_operations_of_a_transaction_see_one_another_and_leave_the_rows_of_sql(data: st.DataObject) -> None:
    made = history(data.draw)
    with told(made):
        with made.table.transaction() as transaction:
            for _ in range(data.draw(st.integers(2, 4))):
                operation = data.draw(st.sampled_from((append, *OPERATIONS)))
                operation(made, transaction, data.draw)
        made.check()


@searching
@given(st.data())
def test_a_long_history_leaves_the_rows_of_sql_and_files_that_were_not_concerned(data: st.DataObject) -> None:
    """Formats, modes, metrics and partitions change on the way, and maintenance goes on in between."""
    made = history(data.draw, formats=3)
    with told(made):
        for _ in range(data.draw(st.integers(2, 12))):
            before = made.by_file()
            step = data.draw(st.sampled_from(STEPS))
            step(made, made.table, data.draw)
            made.check()
            after = made.by_file()
            left = set().union(*after.values())
            if step in (append, add_file, partition, reset, delete):
                assert {path for path, rows in before.items() if rows <= left and rows} <= set(after)
            if data.draw(st.booleans()):
                condition = made.condition(data.draw)
                made.said.append(f"scan {condition.text}")
                scan = made.table.scan(condition.text, selected_fields=("n",))
                assert sorted(scan.to_arrow()["n"].to_pylist()) == made.oracle.numbers(condition.sql)


@searching
@given(st.data())
def test_a_dynamic_overwrite_replaces_the_partitions_of_sql(data: st.DataObject) -> None:
    made = Made(data.draw)
    with told(made):
        fields = made.partition(data.draw, KNOWN)
        for _ in range(data.draw(st.integers(1, 3))):
            made.append(made.rows(data.draw, 1))
        rows = made.rows(data.draw, 1, 3)
        made.said.append(f"replace partitions by {rows}")
        if not fields:
            with pytest.raises(InvalidInputError, match="not partitioned"):
                made.table.dynamic_partition_overwrite(made.arrow(rows))
            return
        made.table.dynamic_partition_overwrite(made.arrow(rows))
        made.oracle.give(rows)
        same = " AND ".join(
            f"{partition_sql(each, column, 't')} IS NOT DISTINCT FROM {partition_sql(each, column, 'given')}"
            for column, each in fields
        )
        # No correlated query: DuckDB takes the zeros for one value of its outer rows.
        made.oracle.run(f"DELETE FROM t WHERE rowid IN (SELECT t.rowid FROM t JOIN given ON {same})")
        made.oracle.insert(rows)
        made.check()


@searching
@given(st.data())
def test_a_scan_gives_the_rows_of_sql(data: st.DataObject) -> None:
    made = history(data.draw)
    with told(made):
        for _ in range(3):
            condition = made.condition(data.draw)
            made.said.append(f"scan {condition.text}")
            scan = made.table.scan(condition.text, selected_fields=("n",))
            assert sorted(scan.to_arrow()["n"].to_pylist()) == made.oracle.numbers(condition.sql)
            assert scan.count() == made.oracle.number(f"SELECT count(*) FROM t WHERE {condition.sql}")
