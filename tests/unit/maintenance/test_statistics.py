"""Statistics say what a database counts."""

from __future__ import annotations

import io
import json
import random
import struct
from pathlib import Path

import cramjam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.errors import InvalidInputError, NoSuchSnapshotError, UnknownColumnError
from hms_iceberg.maintenance import check_table, compute_partition_stats, compute_table_stats
from hms_iceberg.maintenance.statistics_files import ThetaSketch
from tests.support.hdfs_path import local_path
from tests.support.operations import ARROW, BY_CITY, MERGE_ON_READ, SCHEMA, rows
from tests.support.row_tables import create


@pytest.mark.parametrize("count", [0, 1, 2, 4096, 4097, 50_000])
def test_sketches_are_those_of_the_library(count: int) -> None:
    datasketches = pytest.importorskip("datasketches", reason="the library that is compared with")
    ours, theirs = ThetaSketch(), datasketches.update_theta_sketch(12)
    numbers = list(range(count)) * 2
    random.Random(3).shuffle(numbers)
    for start in range(0, len(numbers), 10_000):
        ours.update(struct.pack("<q", number) for number in numbers[start : start + 10_000])
    for number in numbers:
        theirs.update(number)
    read = datasketches.compact_theta_sketch.deserialize(ours.serialized())
    assert read.get_estimate() == pytest.approx(ours.estimate) == pytest.approx(count, rel=0.05)
    assert read.get_seed_hash() == theirs.get_seed_hash() and read.is_ordered()
    if count <= 4096:
        assert set(read) == set(theirs.compact())
    else:
        assert set(read) <= set(theirs.compact())


def test_table_statistics_are_registered_and_read_back(tmp_path: Path) -> None:
    table = create(tmp_path, 3, schema=SCHEMA, **MERGE_ON_READ)
    amounts = [None if number % 3 == 0 else number % 7 for number in range(100)]
    table.append(pa.table({"id": range(100), "city": ["Ulm", "Bonn"] * 50, "amount": amounts}, schema=ARROW))
    table.delete("id < 10")
    file = compute_table_stats(table)
    assert [each.properties["ndv"] for each in file.blob_metadata] == ["90", "2", "7"]
    assert [each.fields for each in file.blob_metadata] == [(1,), (2,), (3,)]
    data = local_path(file.statistics_path).read_bytes()
    assert len(data) == file.file_size_in_bytes and data[-file.file_footer_size_in_bytes :][:4] == b"PFA1"
    footer = json.loads(data[-file.file_footer_size_in_bytes + 4 : -12])
    blob = footer["blobs"][1]
    assert blob["compression-codec"] == "zstd" and blob["type"] == "apache-datasketches-theta-v1"
    sketch = bytes(cramjam.zstd.decompress(data[blob["offset"] : blob["offset"] + blob["length"]]))
    assert len(sketch) == 16 + 2 * 8
    assert table.refresh().metadata.statistics[0].statistics_path == file.statistics_path
    assert check_table(table).findings == ()
    again = compute_table_stats(table, columns=["city"])
    assert len(again.blob_metadata) == 1 and len(table.metadata.statistics) == 1


@pytest.mark.parametrize("version", [2, 3])
def test_partition_statistics_count_what_the_partitions_hold(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version, schema=SCHEMA, spec=BY_CITY, **MERGE_ON_READ)
    table.append(pa.concat_tables([rows(1, 2, 3, city="Ulm"), rows(4, 5, city=None)]))
    table.append(rows(6, 7, city="Ulm"))
    table.delete("id = 1")
    first = compute_partition_stats(table)
    read = pq.read_table(io.BytesIO(local_path(first.statistics_path).read_bytes()))
    found = read.to_pylist()
    assert [row["partition"]["city"] for row in found] == [None, "Ulm"]
    assert [row["data_record_count"] for row in found] == [2, 5]
    assert [row["data_file_count"] for row in found] == [1, 2]
    assert [row["position_delete_record_count"] for row in found] == [0, 1]
    assert [row["position_delete_file_count"] for row in found] == [0, 1 if version == 2 else 0]
    assert [row.get("dv_count") for row in found] == ([None, None] if version == 2 else [0, 1])
    assert [row["total_record_count"] for row in found] == [2, None if version == 2 else 4]
    assert found[1]["last_updated_snapshot_id"] == table.current_snapshot().snapshot_id
    assert compute_partition_stats(table) == first
    ids = {field.name: field.metadata[b"PARQUET:field_id"] for field in read.schema}
    assert ids["partition"] == b"1" and ids["last_updated_snapshot_id"] == b"12"


def test_what_cannot_be_computed_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA)
    assert compute_table_stats(table) is None
    table.append(rows(1))
    with pytest.raises(NoSuchSnapshotError, match=r"db\.events.*99"):
        compute_table_stats(table, snapshot_id=99)
    with pytest.raises(UnknownColumnError, match=r"db\.events.*nope"):
        compute_table_stats(table, columns=["nope"])
    with pytest.raises(InvalidInputError, match=r"db\.events.*not partitioned"):
        compute_partition_stats(table)
