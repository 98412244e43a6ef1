"""Compaction keeps every row as it was; what it rewrites and writes is what Apache Iceberg's options say."""

from __future__ import annotations

import random
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow_type
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.errors import CommitConflictError, InvalidInputError, UnknownColumnError
from hms_iceberg.maintenance import check_table, rewrite_data_files
from hms_iceberg.maintenance.rewrite import data_files
from hms_iceberg.maintenance.rewrite.data_files import LocalEngine
from hms_iceberg.maintenance.rewrite.layout import layout_of
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table
from tests.support import flat_rows
from tests.support.arrow_tables import arrow_rows
from tests.support.hdfs_path import local_path
from tests.support.operations import ARROW, BY_CITY, MERGE_ON_READ, SCHEMA, rows
from tests.support.random_tables import DEEP
from tests.support.row_tables import create, other_writer

ALL = {"rewrite-all": "true"}


def files(table: Table) -> list[Any]:
    """The live data files."""
    return [task.file for task in table.scan().plan_files()]


def ids(table: Table) -> list[int]:
    """The ids of all rows, sorted."""
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def content(table: Table) -> list[dict[str, Any]]:
    """All rows, sorted."""
    return sorted(table.scan().to_arrow().to_pylist(), key=repr)


@pytest.fixture(params=[1, 2, 3])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    """Six files of a row each."""
    made = create(tmp_path, request.param, schema=SCHEMA, **(MERGE_ON_READ if request.param > 1 else {}))
    for number in range(6):
        made.append(rows(number))
    return made


def test_small_files_become_one_and_rows_stay(table: Table) -> None:
    before = content(table)
    result = rewrite_data_files(table)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (6, 1)
    assert len(files(table)) == 1 and content(table) == before
    assert table.current_snapshot().summary["operation"] == "replace"
    assert check_table(table, record_counts=True).findings == ()
    assert rewrite_data_files(table).rewritten_data_files_count == 0


def test_fewer_files_than_asked_for_stay(table: Table) -> None:
    assert rewrite_data_files(table, options={"min-input-files": 7}).plan.groups == ()
    assert len(files(table)) == 6


def test_a_dry_run_only_plans(table: Table) -> None:
    version = table.metadata_location
    result = rewrite_data_files(table, dry_run=True)
    assert result.plan.input_files == 6 and result.plan.output_files == 1
    assert table.refresh().metadata_location == version


def test_partitions_are_rewritten_apart_and_only_those_that_the_filter_may_match(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, spec=BY_CITY)
    for number in range(3):
        table.append(pa.concat_tables([rows(number, city="Ulm"), rows(10 + number, city="Bonn")]))
    result = rewrite_data_files(table, where="city = 'Ulm'", options=ALL)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (3, 1)
    assert sorted(str(file.partition) for file in files(table)) == ["('Bonn',)"] * 3 + ["('Ulm',)"]


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_are_applied_and_rows_of_many_deletes_choose_a_file(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version, schema=SCHEMA, **MERGE_ON_READ)
    table.append(pa.concat_tables([rows(number) for number in range(10)]))
    table.delete("id < 2")
    assert rewrite_data_files(table).rewritten_data_files_count == 0
    table.delete("id < 3")
    before = content(table)
    result = rewrite_data_files(table)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (1, 1)
    assert content(table) == before and len(before) == 7
    assert not any(task.delete_files for task in table.scan().plan_files())
    assert files(table)[0].record_count == 7


def test_row_ids_and_sequence_numbers_of_rows_are_kept(tmp_path: Path) -> None:
    table = create(tmp_path, 3, schema=SCHEMA, **MERGE_ON_READ)
    for number in range(4):
        table.append(rows(number, amount=100 + number))
    table.update({"amount": 7}, "id = 2")
    columns = ("id", "amount", "_row_id", "_last_updated_sequence_number")
    before = table.scan(selected_fields=columns).to_arrow().sort_by("id")
    rewrite_data_files(table, options=ALL)
    assert table.scan(selected_fields=columns).to_arrow().sort_by("id").equals(before)


def test_equality_deletes_of_a_concurrent_writer_keep_applying(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)
    for number in range(4):
        table.append(rows(number))
    start = table.current_snapshot().sequence_number
    other = other_writer(table)
    engine = _Meanwhile(lambda: _delete_by_key(other, 2))
    rewrite_data_files(table, options=ALL, engine=engine)
    assert ids(table) == [0, 1, 3]
    assert [task.data_sequence_number for task in table.scan().plan_files()] == [start]


def test_row_deletes_of_a_concurrent_writer_lose_their_group_only(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, spec=BY_CITY, **MERGE_ON_READ)
    for number in (0, 2, 4):
        table.append(pa.concat_tables([rows(number, number + 1, city="Ulm"), rows(10 + number, 11 + number)]))
    other = other_writer(table)
    engine = _Meanwhile(lambda: other.delete("id = 11 and city = 'Bonn'"))
    result = rewrite_data_files(table, options=ALL | {"partial-progress.max-commits": 1}, engine=engine)
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (3, 1)
    assert result.failed_data_files_count == 3 and "deleted rows" in result.failures[0]
    assert ids(table) == [0, 1, 2, 3, 4, 5, 10, 12, 13, 14, 15]
    assert sorted(str(file.partition) for file in files(table)) == ["('Bonn',)"] * 3 + ["('Ulm',)"]
    on_disk = {path.name for path in (local_path(table.location()) / "data").rglob("*.parquet")}
    assert on_disk == {local_path(path).name for path in table.inspect.all_files()["file_path"].to_pylist()}


def test_without_partial_progress_a_conflict_changes_nothing(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, **MERGE_ON_READ)
    for number in (0, 2, 4):
        table.append(rows(number, number + 1))
    other = other_writer(table)
    engine = _Meanwhile(lambda: other.delete("id = 1"))
    with pytest.raises(CommitConflictError):
        rewrite_data_files(table, options=ALL | {"partial-progress.enabled": "false"}, engine=engine)
    assert len(files(table.refresh())) == 3 and ids(table) == [0, 2, 3, 4, 5]
    assert len(list((local_path(table.location()) / "data").rglob("*.parquet"))) == 4  # three of data, one of deletes


@pytest.mark.parametrize("order", ["id desc nulls last", "zorder(id, amount)", "amount, id desc"])
def test_sorted_files_hold_the_same_rows_in_order(tmp_path: Path, order: str) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)
    numbers = list(range(400))
    random.Random(1).shuffle(numbers)
    for start in range(0, 400, 100):
        part = numbers[start : start + 100]
        amounts = [None if number % 7 == 0 else number % 20 for number in part]
        table.append(pa.table({"id": part, "city": ["Ulm"] * 100, "amount": amounts}, schema=ARROW))
    before = content(table)
    rewrite_data_files(table, strategy="sort", sort_order=order, options=ALL)
    assert content(table) == before
    if "zorder" not in order:
        found = table.scan().to_arrow()
        duck = duckdb.sql(f"from found order by {order.replace('amount', 'amount nulls first')}").to_arrow_table()
        assert found.to_pylist() == duck.to_pylist()


def test_sorted_files_that_are_written_side_by_side_follow_one_another(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)
    chance = random.Random(1)
    ids = chance.sample(range(10**9), 20_000)
    cities = [chance.choice([None, "Ulm", "Köln", ""]) for _ in ids]
    table.append(pa.table({"id": ids, "city": cities, "amount": [None] * len(ids)}, schema=ARROW))
    options = ALL | {"target-file-size-bytes": "32768"}
    rewrite_data_files(table, strategy="sort", sort_order="city desc nulls last, id", options=options)
    found = table.scan().to_arrow()
    expected = duckdb.sql("from found order by city desc nulls last, id").to_arrow_table()
    assert found.equals(expected.cast(found.schema))
    assert len(files(table)) > 2 and max(file.record_count for file in files(table)) < 10_000
    assert check_table(table, record_counts=True).findings == ()


def test_files_are_compressed_as_by_java_unless_the_table_says_otherwise(tmp_path: Path) -> None:
    chance, sizes = random.Random(1), {}
    data = pa.table({"id": range(20_000), "city": [f"{chance.random():.3f} Ulm" for _ in range(20_000)]})
    for level in (None, "1", "3"):
        given = {} if level is None else {"write.parquet.compression-level": level}
        table = create(tmp_path / str(level), 2, schema=SCHEMA, **given)
        table.append(data)
        rewrite_data_files(table, options=ALL)
        sizes[level] = files(table)[0].file_size_in_bytes
    assert sizes[None] == pytest.approx(sizes["3"], abs=50) and abs(sizes[None] - sizes["1"]) > 500


def test_rows_of_every_type_in_files_of_every_size_stay_in_their_order(tmp_path: Path) -> None:
    table = create(tmp_path, 3, schema=Schema(*flat_rows.SCHEMA.fields, DEEP))
    few = _rows_of_every_type()
    for count in (1, 2, 40_000, 7, 30_000, 20_000, 3):
        table.append(few.take(np.arange(count) % few.num_rows))
    old = pa.concat_tables(pq.read_table(local_path(file.file_path)) for file in files(table))
    rewrite_data_files(table, options=ALL)
    (file,) = files(table)
    new = pq.read_table(local_path(file.file_path)).select(old.schema.names)
    assert flat_rows.exact(new.cast(old.schema)) == flat_rows.exact(old)


@pytest.mark.parametrize(
    ("location", "strategy", "readers"),
    [("/near", "binpack", 1), ("/near", "sort", None), ("s3://far/table", "binpack", None)],
)
def test_files_that_are_near_are_read_one_at_a_time_unless_rows_are_sorted(
    table: Table, monkeypatch: pytest.MonkeyPatch, location: str, strategy: str, readers: int | None
) -> None:
    metadata = replace(table.metadata, location=location)
    layout = layout_of(metadata, strategy, None if strategy == "binpack" else "id", "events", True)
    asked: list[int | None] = []
    monkeypatch.setattr(data_files, "read_tasks", lambda *_, workers, **__: iter(asked.append(workers) or ()))
    (group,) = data_files.plan_data_files(table, options=ALL).plan.groups
    assert data_files.GroupWriter(metadata, table.storage, "events", layout, 0, 1).rewrite(group, print) == ()
    assert asked == [readers]


def test_batches_of_small_files_are_joined_as_long_as_they_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    avro = {"write.format.default": "avro"}  # Polars reads small files of Parquet together
    table = create(tmp_path, 3, schema=SCHEMA, **avro)
    for _ in range(10):
        table.append(pa.table({"id": range(7_000), "city": ["Ulm"] * 7_000, "amount": [1] * 7_000}, schema=ARROW))
    written = _batches_written(monkeypatch)
    rewrite_data_files(table, options=ALL)
    assert [batch.num_rows for batch in written] == [35_000, 35_000]

    wide = create(tmp_path / "wide", 3, schema=SCHEMA, **avro)
    for number in range(4):
        wide.append(rows(number, city="x" * (9 << 20)))
    written.clear()
    rewrite_data_files(wide, options=ALL)
    assert [batch.num_rows for batch in written] == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"strategy": "temp"}, InvalidInputError, "strategy"),
        ({"sort_order": "id"}, InvalidInputError, "binpack"),
        ({"strategy": "sort"}, InvalidInputError, "no sort order"),
        ({"strategy": "sort", "sort_order": "nope asc"}, UnknownColumnError, "nope"),
        ({"strategy": "sort", "sort_order": "zorder(nope)"}, UnknownColumnError, "nope"),
        ({"strategy": "sort", "sort_order": "zorder(id), amount"}, InvalidInputError, "mix"),
        ({"strategy": "sort", "sort_order": "id nulls"}, InvalidInputError, "first or last"),
        ({"options": {"bogus-option": 1}}, InvalidInputError, "bogus-option"),
        ({"options": {"target-file-size-bytes": 10, "min-file-size-bytes": 10}}, InvalidInputError, "min-file-size"),
        ({"options": {"output-spec-id": 9}}, InvalidInputError, "output-spec-id"),
        ({"branch": "nowhere"}, InvalidInputError, "branch"),
        ({"where": "nope = 1"}, UnknownColumnError, "nope"),
    ],
)
def test_bad_input_is_refused_with_the_table_named(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)
    table.append(rows(1))
    with pytest.raises(error, match=message) as raised:
        rewrite_data_files(table, **arguments)
    assert table.identifier[-1] in str(raised.value) or "where" in arguments
    assert len(table.snapshots()) == 1


def _rows_of_every_type() -> pa.Table:
    chance = random.Random(7)
    made = arrow_rows(flat_rows.some_rows(chance), flat_rows.SCHEMA)
    deep = [
        chance.choice([None, [], [None], [{"x": nan, "m": [("k", None)]}, {"x": None, "m": []}]]) for _ in made["id"]
    ]
    return made.append_column("deep", pa.array(deep, to_arrow_type(DEEP.field_type)))


def _batches_written(monkeypatch: pytest.MonkeyPatch) -> list[pa.RecordBatch]:
    """The batches that compaction hands to the writer, as they come."""
    found: list[pa.RecordBatch] = []

    def spying(metadata: Any, storage: Any, data: pa.RecordBatchReader, **more: Any) -> Any:
        batches = (found.append(batch) or batch for batch in data)
        return write_data_files(metadata, storage, pa.RecordBatchReader.from_batches(data.schema, batches), **more)

    monkeypatch.setattr(data_files, "write_data_files", spying)
    return found


class _Meanwhile:
    """The local engine; another writer commits before the first group is."""

    def __init__(self, commit: Any) -> None:
        self._commit = commit

    def run(self, rewrite: DataFileRewrite) -> None:
        self._commit()
        LocalEngine().run(rewrite)


def _delete_by_key(table: Table, number: int) -> None:
    with table.new_row_delta() as delta:
        delta.delete_equal(pa.table({"id": pa.array([number], pa.int64())}))
