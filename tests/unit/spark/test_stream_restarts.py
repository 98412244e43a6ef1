"""Streams that are killed at every step of a batch and begin again, beside expiry, rollback and tables made anew.

`Query` does with a checkpoint what Spark does (`MicroBatchExecution`): it logs the end of a batch before it runs it,
and the batch as finished after that; whatever was logged and has not finished is run again. A sink takes a batch once.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError
from hms_iceberg.maintenance.expire_with_files import expire_snapshots
from hms_iceberg.spark.read_questions import FirstOffset, LatestOffset, StreamBatch
from hms_iceberg.spark.reading.streams import first_offset, latest_offset, plan_batch
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables

PART = pa.schema([("part", pa.int32())])
BY_PART = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "part"))


class Killed(Exception):
    """The query was."""


@dataclass
class Query:
    """A checkpoint, and what the sink has."""

    options: dict[str, str] = field(default_factory=dict)
    start: dict[str, Any] | None = None
    offsets: list[dict[str, Any]] = field(default_factory=list)
    finished: int = 0
    sink: dict[int, list[int]] = field(default_factory=dict)

    @property
    def delivered(self) -> Counter[int]:
        return Counter(itertools.chain.from_iterable(self.sink.values()))

    def run(self, table: Table, die: tuple[str, int] | None = None) -> None:
        """Until there is nothing new, or it dies at a step of a batch."""
        while True:
            number = self.finished
            if number == len(self.offsets):
                end = self._latest(table, number)
                if end is None:
                    return
                self._step("planned", number, die)
                self.offsets.append(end)
                self._step("logged", number, die)
            batch = StreamBatch(self.offsets[number], self.options, self._start(number))
            self.sink[number] = parts(table, batch)
            self._step("run", number, die)
            self.finished = number + 1
            self._step("finished", number, die)

    def _latest(self, table: Table, number: int) -> Any:
        if number == 0 and self.start is None:
            self.start = first_offset(table.metadata, table.storage, FirstOffset(self.options))["offset"]
        asked = LatestOffset("t", False, self.options, self._start(number) or {})
        return latest_offset(table.metadata, table.storage, asked)["offset"]

    def _start(self, number: int) -> dict[str, Any] | None:
        return self.offsets[number - 1] if number else self.start

    @staticmethod
    def _step(step: str, number: int, die: tuple[str, int] | None) -> None:
        if die == (step, number):
            raise Killed


def parts(table: Table, batch: StreamBatch) -> list[int]:
    plan = plan_batch(table.metadata, table.storage, "t", table.metadata.current_schema_id, batch)
    (column,) = plan.partitions.columns(0)
    return sorted(plan.files[column].to_list())


def add(table: Table, *numbers: int) -> None:
    """A file for each, in one snapshot."""
    table.refresh()
    table.append(pa.table([numbers], schema=PART))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return FileSystemTables().create(PART, str(tmp_path / "t"), BY_PART)


STEPS = ("planned", "logged", "run", "finished")


@pytest.mark.parametrize("per_batch", ["2", "3"])
def test_a_killed_stream_delivers_every_row_or_says_which_snapshot_it_lacks(tmp_path: Path, per_batch: str) -> None:
    files = {0: [1, 2, 3], 1: [4, 5], 2: [6], 3: [7, 8]}
    ended = Counter[bool]()
    for number, (step, batch, expired) in enumerate(itertools.product(STEPS, range(3), range(3))):
        table = FileSystemTables().create(PART, str(tmp_path / str(number)), BY_PART)
        for each in files.values():
            add(table, *each)
        ids = [each.snapshot_id for each in table.metadata.snapshots]
        query = Query({"streaming-max-files-per-micro-batch": per_batch})
        with pytest.raises(Killed):
            query.run(table, (step, batch))
        expire_snapshots(table, snapshot_ids=[ids[expired]])
        finished = Counter(itertools.chain.from_iterable(query.sink[each] for each in range(query.finished)))
        named = query._start(query.finished) or {}
        lost = any(part not in finished for part in files[expired]) or named["snapshot_id"] == ids[expired]
        ended[lost] += 1
        if not lost:
            query.run(table)
            assert query.delivered == Counter(range(1, 9)), (step, batch, expired)
            continue
        for _ in range(2):
            with pytest.raises(NoSuchSnapshotError, match=str(ids[expired])):
                query.run(table)
        assert query.delivered <= Counter(range(1, 9))
    assert min(ended[True], ended[False]) > 5


@pytest.mark.parametrize("step", STEPS)
def test_a_stream_of_a_table_without_snapshots_reads_all_or_says_what_it_lacks(table: Table, step: str) -> None:
    query = Query()
    query.run(table)
    assert query.start == {
        "version": 1,
        "snapshot_id": -1,
        "position": -1,
        "scan_all_files": False,
        "after_snapshot_id": None,
    }
    for number in (1, 2):
        add(table, number)
    with pytest.raises(Killed):
        query.run(table, (step, 0))
    if step != "finished":
        expire_snapshots(table, snapshot_ids=[table.metadata.snapshots[0].snapshot_id])
        with pytest.raises(NoSuchSnapshotError, match=r"before what the stream would read first, has expired"):
            query.run(table)
        return
    add(table, 3)
    expire_snapshots(table, snapshot_ids=[table.metadata.snapshots[0].snapshot_id])
    query.run(table)
    assert query.sink == {0: [1, 2], 1: [3]}


def test_a_checkpoint_that_does_not_know_where_its_stream_began_goes_on_if_nothing_has_expired(table: Table) -> None:
    for number in (1, 2, 3):
        add(table, number)
    query = Query()
    with pytest.raises(Killed):
        query.run(table, ("run", 0))
    query.start = None
    ids = [each.snapshot_id for each in table.metadata.snapshots]
    again = Query(offsets=list(query.offsets))
    again.run(table)
    assert again.sink == {0: [1, 2, 3]}
    expire_snapshots(table, snapshot_ids=ids[:1])
    with pytest.raises(NoSuchSnapshotError, match=f"{ids[0]}, which came before"):
        query.run(table)
    query.finished = 1
    add(table, 4)
    query.run(table)
    assert query.sink == {0: [1, 2, 3], 1: [4]}


def test_a_stream_begins_with_the_history_that_there_is(table: Table) -> None:
    for number in (1, 2, 3):
        add(table, number)
    expire_snapshots(table, snapshot_ids=[table.metadata.snapshots[0].snapshot_id])
    query = Query()
    query.run(table)
    assert query.sink == {0: [2, 3]}


def now(table: Table) -> int:
    """A time after all of a table's snapshots, and before its next one."""
    time.sleep(0.002)
    at = table.metadata.last_updated_ms + 1
    time.sleep(0.002)
    return at


@pytest.mark.parametrize("expired", [None, 0, 1, 2])
@pytest.mark.parametrize("wanted", ["past", "the first", "between", "the second", "future"])
def test_a_stream_from_a_time_goes_on_from_where_it_began(table: Table, wanted: str, expired: int | None) -> None:
    add(table, 1)
    between = now(table)
    add(table, 2)
    future = now(table)
    one, two = (each.timestamp_ms for each in table.metadata.snapshots)
    since = {"past": 0, "the first": one, "between": between, "the second": two, "future": future}[wanted]
    query = Query({"stream-from-timestamp": str(since)})
    first = {"past": 1, "the first": 1, "between": 2, "the second": 2, "future": 3}[wanted]
    if wanted == "future":
        query.run(table)
        assert query.sink == {}
    else:
        with pytest.raises(Killed):
            query.run(table, ("logged", 0))
    add(table, 3)
    add(table, 4)
    if expired is not None:
        expire_snapshots(table, snapshot_ids=[table.metadata.snapshots[expired].snapshot_id])
    query.options = {"stream-from-timestamp": str(since if wanted == "future" else future + 10**9)}
    if expired is not None and expired + 1 >= first:
        with pytest.raises(NoSuchSnapshotError):
            query.run(table)
        assert query.delivered == Counter(range(first, 3) if expired == 2 else ())
    else:
        query.run(table)
        assert query.delivered == Counter(range(first, 5))


def test_a_rolled_back_table_ends_its_stream_after_what_was_planned(table: Table) -> None:
    for number in (1, 2, 3):
        add(table, number)
    ids = [each.snapshot_id for each in table.metadata.snapshots]
    begun, planned = Query(), Query()
    begun.start = first_offset(table.metadata, table.storage, FirstOffset({}))["offset"]
    with pytest.raises(Killed):
        planned.run(table, ("logged", 0))
    table.manage_snapshots().rollback_to_snapshot(ids[1]).commit()
    begun.run(table)
    assert begun.sink == {0: [1, 2]}
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=f"was rolled back from its snapshot {ids[2]}"):
            planned.run(table)
        add(table, 4)
    assert planned.sink == {0: [1, 2, 3]}
    begun.run(table)
    assert begun.delivered == Counter([1, 2, 4, 4])


def test_a_table_that_was_made_anew_is_not_taken_for_the_one_before(table: Table, tmp_path: Path) -> None:
    add(table, 1)
    another = FileSystemTables().create(PART, str(tmp_path / "anew"), BY_PART)
    add(another, 2)
    for step in STEPS:
        query = Query()
        with pytest.raises(Killed):
            query.run(table, (step, 0))
        with pytest.raises(NoSuchSnapshotError, match=r"or the table was made anew"):
            query.run(another)
        assert 2 not in query.delivered


def test_two_streams_of_a_table_know_nothing_of_each_other(table: Table) -> None:
    early, late = Query(), Query()
    early.run(table)
    add(table, 1)
    late.run(table)
    add(table, 2)
    late.run(table)
    early.run(table)
    assert (early.sink, late.sink) == ({0: [1, 2]}, {0: [1], 1: [2]})


def test_a_batch_that_java_planned_of_an_empty_table_has_no_rows(table: Table) -> None:
    empty = {"version": 1, "snapshot_id": -1, "position": -1, "scan_all_files": False}
    query = Query(start=empty, offsets=[empty])
    query.run(table)
    add(table, 1)
    query.run(table)
    assert query.sink == {0: [], 1: [1]}
