from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.spec.data_types import DoubleType, FixedType, LongType, NestedField, StringType, StructType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import NullOrder, SortDirection, SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, TruncateTransform

MakeMetadata = Callable[..., TableMetadata]
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "score", DoubleType()),
    NestedField(4, "code", FixedType(2)),
    NestedField(5, "place", StructType(NestedField(6, "x", LongType()))),
)
ASC, DESC = SortDirection.ASC, SortDirection.DESC
FIRST, LAST = NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST
NAN = float("nan")


def table(**columns: list[Any]) -> pa.Table:
    types = {
        "id": pa.int64(),
        "name": pa.string(),
        "score": pa.float64(),
        "code": pa.binary(2),
        "place": pa.struct([("x", pa.int64())]),
    }
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def column(path: str, name: str) -> list[Any]:
    values = pq.read_table(path, partitioning=None)[name].to_pylist()
    return ["NaN" if isinstance(value, float) and math.isnan(value) else value for value in values]


@pytest.mark.parametrize(
    ("field", "name", "values", "expected"),
    [
        (SortField(1), "id", [3, None, 1, 2], [None, 1, 2, 3]),
        (SortField(1, direction=ASC, null_order=LAST), "id", [3, None, 1], [1, 3, None]),
        (SortField(1, direction=DESC), "id", [3, None, 1], [3, 1, None]),
        (SortField(1, direction=DESC, null_order=FIRST), "id", [1, None, 3], [None, 3, 1]),
        (SortField(2), "name", ["b", "ä", "B", ""], ["", "B", "b", "ä"]),
        (SortField(3), "score", [NAN, 1.0, None, -math.inf, math.inf], [None, -math.inf, 1.0, math.inf, "NaN"]),
        (SortField(3, direction=DESC), "score", [1.0, NAN, None], ["NaN", 1.0, None]),
        (SortField(4), "code", [b"\xff\x00", b"\x00\xff", b"ab"], [b"\x00\xff", b"ab", b"\xff\x00"]),
        (SortField(2, TruncateTransform(1)), "name", ["b2", "a9", "b1", "a0"], ["a9", "a0", "b2", "b1"]),
        (SortField(6), "place", [{"x": 2}, None, {"x": 1}], [None, {"x": 1}, {"x": 2}]),
    ],
)
def test_rows_of_a_table_in_memory_are_written_in_order(
    make_metadata: MakeMetadata,
    storage: ArrowStorage,
    field: SortField,
    name: str,
    values: list[Any],
    expected: list[Any],
) -> None:
    metadata = make_metadata(SCHEMA, sort_order=SortOrder(field))
    (file,) = write_data_files(metadata, storage, table(**{name: values}))
    assert column(file.file_path, name) == expected
    assert file.sort_order_id == 1


def test_equal_rows_keep_their_order(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, sort_order=SortOrder(SortField(1), SortField(2, BucketTransform(1))))
    rows = table(id=[1, 0] * 500, name=[f"{key}" for key in range(1000)])
    (file,) = write_data_files(metadata, storage, rows)
    assert column(file.file_path, "name") == [f"{key}" for key in (*range(1, 1000, 2), *range(0, 1000, 2))]


def test_rows_of_a_partition_are_in_order(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    metadata = make_metadata(SCHEMA, ("name", "identity"), sort_order=SortOrder(SortField(1)))
    files = list(write_data_files(metadata, storage, table(id=[5, 4, 3, 2], name=["a", "b", "a", "b"])))
    assert sorted(column(file.file_path, "id") for file in files) == [[2, 4], [3, 5]]


def stream(*batches: list[int]) -> pa.RecordBatchReader:
    def produce() -> Iterator[pa.RecordBatch]:
        for values in batches:
            yield pa.record_batch({"id": pa.array(values, pa.int64())})

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), produce())


def test_a_stream_is_sorted_by_row_group_and_claims_an_order_only_where_the_file_has_it(
    make_metadata: MakeMetadata, storage: ArrowStorage
) -> None:
    properties = {"write.parquet.row-group-limit": "4"}
    metadata = make_metadata(SCHEMA, sort_order=SortOrder(SortField(1)), properties=properties)
    (file,) = write_data_files(metadata, storage, stream([4, 3], [2, 1], [8, 7], [6, 5]))
    assert column(file.file_path, "id") == list(range(1, 9))
    assert file.sort_order_id == 1
    (file,) = write_data_files(metadata, storage, stream([8, 7], [6, 5], [4, 3], [2, 1]))
    assert column(file.file_path, "id") == [5, 6, 7, 8, 1, 2, 3, 4]
    assert file.sort_order_id == 0


def test_an_unsorted_table_claims_no_order(make_metadata: MakeMetadata, storage: ArrowStorage) -> None:
    (file,) = write_data_files(make_metadata(SCHEMA), storage, table(id=[2, 1]))
    assert column(file.file_path, "id") == [2, 1]
    assert file.sort_order_id == 0
