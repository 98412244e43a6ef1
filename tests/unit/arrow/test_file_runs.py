"""Small files that are read together have the rows that each has on its own."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import FIELD_ID_KEY
from hms_iceberg.arrow.columns.frames import empty_frame
from hms_iceberg.arrow.formats import parquet_frames
from hms_iceberg.arrow.formats.parquet_frames import FrameReader
from hms_iceberg.arrow.reading import task_reader
from hms_iceberg.arrow.reading.read import read_frames, read_tasks
from hms_iceberg.arrow.reading.scan_context import WantedFrame
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.expressions.tree import AlwaysFalse
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec import metadata_columns as columns
from hms_iceberg.spec.data_types import BinaryType, DateType, LongType, NestedField, StringType, TimestampType
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.arrow_tables import FileTable

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


@pytest.fixture(autouse=True)
def files_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of files that Polars read in one scan; it reads whatever it can."""
    found: list[int] = []
    original = FrameReader.read

    def spy(self: FrameReader, *given: Any) -> Any:
        found.append(1 + len(given[-1]) if len(given) == 10 else 1)
        return original(self, *given)

    monkeypatch.setattr(FrameReader, "read", spy)
    monkeypatch.setattr(parquet_frames, "_LEAST_WORK", 0)
    monkeypatch.setattr(parquet_frames, "_LEAST_FILTERED_WORK", 0)
    return found


def add(table: FileTable, rows: pa.Table, name: str, ids: Sequence[int], **options: Any) -> DataFile:
    """A file that another writer wrote, with field ids if any are given."""
    if ids:
        fields = [field.with_metadata({FIELD_ID_KEY: str(of)}) for field, of in zip(rows.schema, ids, strict=True)]
        rows = rows.cast(pa.schema(fields))
    marked = rows.replace_schema_metadata(options.pop("marks", None))
    path = str(table.folder / name)
    pq.write_table(marked, path, **options)
    size = table.storage.length(path)
    file = DataFile(file_path=path, file_format="PARQUET", record_count=rows.num_rows, file_size_in_bytes=size)
    table.files.append(file)
    return file


def small_files(folder: Path, count: int = 3, **options: Any) -> FileTable:
    """Files of ten rows each, whose ids go on."""
    table = FileTable(folder, SCHEMA)
    folder.mkdir(exist_ok=True)
    for first in range(0, 10 * count, 10):
        numbers = list(range(first, first + 10))
        add(table, pa.table({"id": numbers, "name": [f"n{each}" for each in numbers]}), f"{first}", (1, 2), **options)
    return table


def ids_of(table: FileTable, tasks: Sequence[FileScanTask], **options: Any) -> list[int]:
    """The ids of the rows of some tasks, read as batches, and as frames, which have the same."""
    read = read_tasks(tasks, SCHEMA, SCHEMA, table.metadata, table.storage, **options)
    found = [key for batch in read for key in batch["id"].to_pylist()]
    empty = empty_frame(SCHEMA)
    frames = read_frames(tasks, SCHEMA, SCHEMA, table.metadata, table.storage, WantedFrame(empty.schema))
    if not options:
        assert pl.concat([empty, *frames])["id"].to_list() == found
    return found


def test_small_files_of_one_layout_are_read_by_one_scan_in_their_order(
    tmp_path: Path, files_together: list[int]
) -> None:
    table = small_files(tmp_path)
    assert table.read()["id"].to_pylist() == list(range(30))
    assert table.read("id >= 5 and name != 'n7'")["id"].to_pylist() == [5, 6, *range(8, 30)]
    assert table.read("id > 99").num_rows == 0
    assert table.read(None, Schema())[:3].num_rows == 3
    assert files_together[:3] == [3, 3, 3]


def test_each_file_is_read_with_what_is_left_of_the_filter_in_it(tmp_path: Path, files_together: list[int]) -> None:
    table = small_files(tmp_path)
    filters = ["id > 3", "id > 3", None]
    tasks = [table.task(file, each) for file, each in zip(table.files, filters, strict=True)]
    assert ids_of(table, tasks) == list(range(4, 30))
    tasks = [table.task(file, each) for file, each in zip(table.files, reversed(filters), strict=True)]
    assert ids_of(table, tasks) == list(range(30))
    assert max(files_together) == 2


def test_a_file_that_no_row_can_match_is_not_opened(tmp_path: Path) -> None:
    table = small_files(tmp_path)
    Path(table.files[1].file_path).unlink()
    nothing = FileScanTask.of(table.files[1], residual=AlwaysFalse())
    assert ids_of(table, [table.task(table.files[0]), nothing, table.task(table.files[2])]) == [
        *range(10),
        *range(20, 30),
    ]


def test_columns_that_files_lack_have_the_values_of_each_ones_partition(
    tmp_path: Path, files_together: list[int]
) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = FileTable(tmp_path, SCHEMA, spec)
    for number, name in enumerate(("a", "a", "b", None)):
        file = add(table, pa.table({"id": [number]}), f"{number}", (1,))
        table.files[-1] = replace(file, partition=(name,))
    assert table.read().to_pylist() == [{"id": at, "name": name} for at, name in enumerate(("a", "a", "b", None))]
    assert files_together == [2, 1, 1]
    assert table.read("id >= 0", SCHEMA.select("id"))["id"].to_pylist() == [0, 1, 2, 3]
    assert files_together[3:] == [4]


def test_columns_are_found_by_their_ids_in_each_file(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
    table = FileTable(tmp_path, schema)
    rows = pa.table({"a": [1], "b": [2]})
    add(table, rows, "as they are", (1, 2))
    add(table, rows, "renamed", (2, 1))
    assert table.read().to_pylist() == [{"a": 1, "b": 2}, {"a": 2, "b": 1}]


def test_times_mean_what_each_writer_meant(tmp_path: Path, files_together: list[int]) -> None:
    time = dt.datetime(2020, 1, 2, 3)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "t", TimestampType()))
    table = FileTable(tmp_path, schema)
    rows = pa.table({"id": [1], "t": pa.array([time], pa.timestamp("us"))})
    for name, is_int96 in (("one", False), ("two", False), ("old", True)):
        add(table, rows, name, (1, 2), use_deprecated_int96_timestamps=is_int96, store_schema=False)
    assert table.read()["t"].to_pylist() == 3 * [time]
    assert files_together == [2]


def test_dates_mean_what_each_writer_meant(tmp_path: Path) -> None:
    names = '[{"field-id": 1, "names": ["day"]}]'
    table = FileTable(
        tmp_path, Schema(NestedField(1, "day", DateType())), properties={"schema.name-mapping.default": names}
    )
    julian = {"org.apache.spark.version": "3.0.0", "org.apache.spark.legacyDateTime": ""}
    for name, marks in (("new", {"org.apache.spark.version": "4.0.0"}), ("old", julian), ("new again", None)):
        rows = pa.table({"day": pa.array([dt.date(1500, 1, 1)], pa.date32())})
        add(table, rows, name, (), marks=marks)
    assert table.read()["day"].to_pylist() == [dt.date(1500, 1, 1), dt.date(1499, 12, 23), dt.date(1500, 1, 1)]


def test_parts_of_files_are_read_on_their_own(tmp_path: Path, files_together: list[int]) -> None:
    table = small_files(tmp_path, row_group_size=5)
    tasks = [table.task(file) for file in table.files]
    second = pq.read_metadata(table.files[1].file_path).row_group(1).column(0).data_page_offset
    assert ids_of(table, [tasks[0], tasks[1].part(0, 40), tasks[2]]) == [*range(15), *range(20, 30)]
    rest = table.files[1].file_size_in_bytes - second
    assert ids_of(table, [tasks[0], tasks[1].part(40, rest), tasks[2]]) == [*range(10), *range(15, 30)]
    assert max(files_together) == 1


def test_files_whose_row_groups_a_filter_may_leave_out_are_read_on_their_own(
    tmp_path: Path, files_together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    several = small_files(tmp_path, row_group_size=5)
    assert several.read("id > 17")["id"].to_pylist() == list(range(18, 30))
    assert several.read()["id"].to_pylist() == list(range(30))
    assert files_together[-1] == 3 and set(files_together[:-1]) == {1}
    files_together.clear()
    one = small_files(tmp_path / "one")
    first = replace(several, files=[*several.files[:1], *one.files[1:]])
    last = replace(several, files=[*one.files[:2], *several.files[2:]])
    assert first.read("id > 6")["id"].to_pylist() == list(range(7, 30))
    assert last.read("id < 23")["id"].to_pylist() == list(range(23))
    assert first.read("id > 3")["id"].to_pylist() == list(range(4, 30))
    assert files_together == [1, 2, 2, 1, 3]
    files_together.clear()
    assert one.read("id > 17")["id"].to_pylist() == list(range(18, 30))
    assert files_together == [3]  # so few values are not worth the question
    files_together.clear()
    monkeypatch.setattr(task_reader, "_FEW_VALUES", 10)
    assert one.read("id > 17")["id"].to_pylist() == list(range(18, 30))
    assert files_together == [2]


class RemoteStorage(ArrowStorage):
    """A storage that calls its files remote."""

    def is_local(self, location: str) -> bool:
        return False


def test_remote_files_are_left_to_threads_of_their_own(tmp_path: Path, files_together: list[int]) -> None:
    table = replace(small_files(tmp_path), storage=RemoteStorage())
    assert table.read(workers=3)["id"].to_pylist() == list(range(30))
    assert max(files_together) == 1


def test_no_more_rows_are_decoded_together_than_memory_is_given(tmp_path: Path, files_together: list[int]) -> None:
    table = small_files(tmp_path)
    tasks = [table.task(file) for file in table.files]
    assert ids_of(table, tasks, decoded_bytes=500) == list(range(30))
    assert files_together == [1, 1, 1]


def test_text_that_repeats_comes_in_batches_that_arrow_can_hold(
    tmp_path: Path, files_together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_frames, "_BATCH_BYTES", 20_000)
    for kind, text in ((StringType(), "x" * 1000), (BinaryType(), b"x" * 1000)):
        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "text", kind))
        table = FileTable(tmp_path, schema)
        for number in range(3):
            add(table, pa.table({"id": range(40), "text": [text] * 39 + [None]}), f"{number}", (1, 2))
        found = list(read_tasks(map(table.task, table.files), schema, schema, table.metadata, table.storage))
        assert max(batch.nbytes for batch in found) < 30_000
        rows = pa.Table.from_batches(found)
        assert rows["id"].to_pylist() == 3 * list(range(40))
        assert rows["text"].to_pylist() == 3 * ([text] * 39 + [None])
    assert files_together == [3, 3]


def test_who_takes_the_first_rows_only_has_no_more_files_read(tmp_path: Path, files_together: list[int]) -> None:
    table = small_files(tmp_path)
    rows = read_tasks(iter(map(table.task, table.files)), SCHEMA, SCHEMA, table.metadata, table.storage, most_rows=3)
    assert next(rows).num_rows == 3
    assert max(files_together) == 1


@pytest.mark.parametrize("row_filter", [None, "id >= 0"])
def test_places_of_rows_are_told_file_by_file(tmp_path: Path, row_filter: str | None) -> None:
    table = small_files(tmp_path)
    found = table.read(row_filter, Schema(SCHEMA.fields[0], columns.POSITION, columns.FILE))
    assert found["_pos"].to_pylist() == 3 * list(range(10))
    assert found["_file"].to_pylist() == [file.file_path for file in table.files for _ in range(10)]
    with_places = replace(table, schema=Schema(*SCHEMA.fields, columns.POSITION))
    assert with_places.read("_pos >= 8", SCHEMA)["id"].to_pylist() == [8, 9, 18, 19, 28, 29]


def test_deleted_rows_stay_if_they_are_asked_for(tmp_path: Path) -> None:
    table = small_files(tmp_path)
    table.delete(table.files[1:2], table.position_deletes([(table.files[1].file_path, at) for at in (0, 9)]))
    tasks = [table.task(file) for file in table.files]
    assert ids_of(table, tasks) == [*range(10), *range(11, 19), *range(20, 30)]
    assert ids_of(table, tasks, marks_deleted=True) == list(range(30))


@pytest.mark.parametrize("row_filter", [None, "id > 7"])
def test_row_lineage_is_inherited_from_each_file(
    tmp_path: Path, files_together: list[int], row_filter: str | None
) -> None:
    table = small_files(tmp_path)
    lineage = Schema(SCHEMA.fields[0], columns.ROW_ID, columns.LAST_UPDATED_SEQUENCE_NUMBER)
    kept = pa.table({"id": [30, 31], "row": pa.array([None, 5]), "number": pa.array([1, None])})
    for rows in (kept, kept):
        ids = (1, columns.ROW_ID.field_id, columns.LAST_UPDATED_SEQUENCE_NUMBER.field_id)
        add(table, rows, f"kept {len(table.files)}", ids)
    table.delete(table.files[1:2], table.position_deletes([(table.files[1].file_path, at) for at in (0, 9)]))

    def read(firsts: Sequence[int | None], *wanted: NestedField) -> list[tuple[int | None, ...]]:
        tasks = [
            FileScanTask.of(
                replace(file, first_row_id=first),
                table.deletes.get(file.file_path, ()),
                table.task(file, row_filter).residual,
                100 + at,
            )
            for at, (file, first) in enumerate(zip(table.files, firsts, strict=True))
        ]
        found = read_tasks(tasks, SCHEMA, Schema(*wanted), table.metadata, table.storage, workers=1)
        return [tuple(row.values()) for batch in found for row in batch.to_pylist()]

    expected = [(at, 1000 * (at // 10) + at % 10, 100 + at // 10) for at in range(30) if at not in (10, 19)]
    expected += 2 * [(30, 3000, 1), (31, 5, 103)]
    expected[-2:] = [(30, 4000, 1), (31, 5, 104)]
    expected = [row for row in expected if row_filter is None or row[0] > 7]
    assert read(range(0, 5000, 1000), *lineage.fields) == expected
    assert read(range(0, 5000, 1000), lineage.fields[2]) == [row[2:] for row in expected]
    assert files_together == [3, 2, *([3] if row_filter else []), 2]  # nothing is read of files without lineage
    files_together.clear()
    unknown = [(at, None if at < 20 else row, None if at < 20 else number) for at, row, number in expected]
    assert read((None, None, 2000, 3000, 4000), *lineage.fields) == unknown
    assert files_together == [2, 1, 2]


def test_a_file_of_other_rows_than_its_manifest_says_is_named(tmp_path: Path) -> None:
    table = small_files(tmp_path)
    table.files[1] = replace(table.files[1], record_count=11)
    with pytest.raises(CorruptDataFileError, match=f"{table.files[1].file_path}: it holds 10 rows"):
        table.read()


def test_a_flipped_bit_is_found_in_every_file(tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        table = small_files(folder, write_page_checksum=True, compression="none", use_dictionary=False)
        assert table.read().num_rows == 30
        path = Path(table.files[number].file_path)
        chunk = pq.read_metadata(path).row_group(0).column(0)
        damaged = bytearray(path.read_bytes())
        damaged[chunk.data_page_offset + chunk.total_compressed_size - 5] ^= 4
        before = path.stat()
        path.write_bytes(damaged)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(CorruptDataFileError):
            table.read()


def test_a_bit_that_flips_in_a_column_that_was_not_read_before_is_found(tmp_path: Path) -> None:
    table = small_files(tmp_path, write_page_checksum=True, compression="none", use_dictionary=False)
    path = Path(table.files[0].file_path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    damaged = bytearray(path.read_bytes())
    damaged[chunk.data_page_offset + chunk.total_compressed_size - 5] ^= 4
    path.write_bytes(damaged)
    assert table.read(None, SCHEMA.select("name")).num_rows == 30
    with pytest.raises(CorruptDataFileError):
        table.read()


def test_a_file_that_took_the_place_of_another_one_is_read_as_it_is(tmp_path: Path) -> None:
    table = small_files(tmp_path)
    assert table.read()["id"].to_pylist() == list(range(30))
    first, other = (Path(file.file_path) for file in table.files[:2])
    before = first.stat()
    pq.write_table(pq.read_table(other).replace_schema_metadata({"name": "x" * 40}), tmp_path / "made")
    os.replace(tmp_path / "made", first)
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert table.read()["id"].to_pylist() == [*range(10, 20), *range(10, 30)]
