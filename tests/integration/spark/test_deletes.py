"""Deleted rows do not appear, whatever deleted them and however the file is split."""

from __future__ import annotations

import random
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from tests.support.spark_tables import (
    Rows,
    data_files,
    delete_keys,
    delete_positions,
    delete_vector,
    rows_of,
    sent_to_tasks,
    written,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

NUMBERS = Rows({"n": pa.int64(), "text": pa.string(), "part": pa.int32()})


def numbers(count: int, start: int = 0) -> pa.Table:
    return NUMBERS((n, f"text {n}" if n % 7 else None, n % 3) for n in range(start, start + count))


@pytest.fixture
def large(catalog: Catalog, namespace: str) -> Table:
    """A file of 20,000 rows in many row groups, and one of 1,000."""
    properties = {"write.parquet.row-group-size-bytes": "20000", "write.parquet.page-size-bytes": "4000"}
    table = catalog.create_table(f"{namespace}.large", NUMBERS.schema, properties=properties)
    table.append(numbers(20_000))
    table.append(numbers(1_000, 20_000))
    return table


def left(spark: SparkSession, name: str, condition: str = "true") -> list[int]:
    return [row[0] for row in rows_of(spark, f"select n from {name} where {condition}")]


def test_positions_are_deleted_in_every_split(spark: SparkSession, large: Table, namespace: str, commit: Any) -> None:
    first, second = data_files(large)
    commit(large, delete_positions(large, (first, range(0, 20_000, 3)), (second, [999])))
    expected = [n for n in range(20_999) if n >= 20_000 or n % 3]
    spark.conf.set("spark.sql.files.maxPartitionBytes", "30000")
    try:
        frame = spark.table(f"{namespace}.large")
        assert frame.rdd.getNumPartitions() > 2
        assert left(spark, f"{namespace}.large") == expected
        assert left(spark, f"{namespace}.large", "n between 9000 and 9005") == [9001, 9002, 9004, 9005]
        assert rows_of(spark, f"select count(*) from {namespace}.large") == [(len(expected),)]
        assert rows_of(spark, f"select _pos from {namespace}.large where n = 19999") == [(19_999,)]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_deletes_of_several_commits_add_up(spark: SparkSession, large: Table, namespace: str, commit: Any) -> None:
    first, second = data_files(large)
    commit(large, delete_positions(large, (first, [0, 5])))
    commit(large, delete_positions(large, (first, [5, 6]), (second, [0])))
    assert left(spark, f"{namespace}.large", "n < 8 or n = 20000") == [1, 2, 3, 4, 7]


def test_of_a_large_delete_file_each_data_file_takes_its_own_part(
    spark: SparkSession, catalog: Catalog, namespace: str, commit: Any
) -> None:
    """Larger than what is read as a whole: 2,000,000 positions."""
    table = catalog.create_table(f"{namespace}.many", pa.schema([("n", pa.int64())]))
    for start in range(3):
        table.append(pa.table({"n": pa.array(range(start * 900_000, (start + 1) * 900_000))}))
    first, second, third = data_files(table)
    gone = ((first, range(0, 900_000, 2)), (second, range(899_999)), (third, range(1, 900_000)))
    commit(table, delete_positions(table, *gone))
    evens = sum(range(1, 900_000, 2))
    query = f"select count(*), sum(n), max(_pos) from {namespace}.many where _file <> ''"
    assert rows_of(spark, query) == [(450_002, evens + 1_799_999 + 1_800_000, 899_999)]
    assert left(spark, f"{namespace}.many", "n in (2, 3, 1799998, 1799999, 1800000, 1800001)") == [
        3, 1_799_999, 1_800_000
    ]  # fmt: skip


@pytest.fixture
def shared(catalog: Catalog, namespace: str, commit: Any) -> tuple[Table, list[int]]:
    """200 data files and as many delete files of either kind, each about any of them; and the rows that are left.

    The first delete file of positions is also about a data file that only comes later, of which it deletes nothing.
    """
    source, keys = random.Random(41), Rows({"n": pa.int64()})
    table = catalog.create_table(f"{namespace}.shared", NUMBERS.schema)
    schema = to_arrow(table.schema())

    def data(start: int) -> DataFile:
        return written(table, numbers(10, start).cast(schema), DataFileContent.DATA)

    later = data(5_000)
    files: list[DataFile] = []
    rows: dict[int, int] = {}  # each row's commit
    for number in range(10):
        rows |= dict.fromkeys(range(10 * len(files), 10 * (len(files) + 20)), number)
        added = [data(10 * (len(files) + each)) for each in range(20)]
        files += added
        places = [dict.fromkeys(source.sample(range(len(files)), 3), source.randrange(10)) for _ in range(20)]
        deleted = [source.sample(range(2_000), 3) for _ in range(20)]
        about = [[(files[file], [place]) for file, place in each.items()] for each in places]
        about[0] += [(later, [3])] if number == 0 else []
        of_positions = (delete_positions(table, *each) for each in about)
        added += [later] if number == 5 else []
        commit(table, *added, *of_positions, *(delete_keys(table, keys((n,) for n in each)) for each in deleted))
        for each in places:
            for file, place in each.items():
                rows.pop(10 * file + place, None)
        for n in chain.from_iterable(deleted):
            if rows.get(n, number) < number:
                del rows[n]
    return table, [*sorted(rows), *range(5_000, 5_010)]


def test_deletes_that_very_many_files_share(
    spark: SparkSession, shared: tuple[Table, list[int]], namespace: str
) -> None:
    table, expected = shared
    assert left(spark, f"{namespace}.shared") == expected == sorted(table.scan().to_arrow()["n"].to_pylist())
    assert left(spark, f"{namespace}.shared", "n >= 1950") == [n for n in expected if n >= 1_950]
    assert b"-deletes.parquet" not in sent_to_tasks(spark.table(f"{namespace}.shared"))


def test_a_file_may_lose_all_its_rows(spark: SparkSession, large: Table, namespace: str, commit: Any) -> None:
    _, second = data_files(large)
    commit(large, delete_positions(large, (second, range(1_000))))
    assert rows_of(spark, f"select count(*), max(n) from {namespace}.large") == [(20_000, 19_999)]
    assert left(spark, f"{namespace}.large", "n >= 20000") == []


def test_deletion_vectors(spark: SparkSession, catalog: Catalog, namespace: str, commit: Any) -> None:
    table = catalog.create_table(f"{namespace}.vectors", NUMBERS.schema, properties={"format-version": "3"})
    table.append(numbers(5_000))
    table.append(numbers(10, 5_000))
    first, _ = data_files(table)
    commit(table, delete_vector(table, first, range(10, 4_990)))
    assert left(spark, f"{namespace}.vectors") == [*range(10), *range(4_990, 5_010)]
    lineage = rows_of(
        spark, f"select n, _row_id, _last_updated_sequence_number from {namespace}.vectors where n > 4998"
    )
    assert lineage[:3] == [(4_999, 4_999, 1), (5_000, 5_000, 2), (5_001, 5_001, 2)]


def test_keys_are_deleted_from_older_files_only(spark: SparkSession, large: Table, namespace: str, commit: Any) -> None:
    keys = Rows({"n": pa.int64()})
    commit(large, delete_keys(large, keys([(3,), (20_500,), (777_777,)])))
    large.append(numbers(1, 3))
    name = f"{namespace}.large"
    assert left(spark, name, "n in (2, 3, 4, 20500)") == [2, 3, 4]
    assert rows_of(spark, f"select count(*) from {name}") == [(21_000 - 2 + 1,)]
    commit(large, delete_keys(large, keys([(3,)])))
    assert left(spark, name, "n in (2, 3, 4, 20500)") == [2, 4]


def test_keys_of_several_columns_and_of_nulls(spark: SparkSession, large: Table, namespace: str, commit: Any) -> None:
    keys = Rows({"text": pa.string(), "part": pa.int32()})
    commit(large, delete_keys(large, keys([(None, 1), ("text 5", 2), ("text 8", 0)])))
    nulls = [n for n in range(0, 21_000, 7) if n % 3 != 1]
    assert left(spark, f"{namespace}.large", "text is null") == nulls
    # The key's columns are read for the comparison although the query does not ask for them.
    assert left(spark, f"{namespace}.large", "n between 4 and 9") == [4, 6, 8, 9]


def test_keys_and_positions_together(spark: SparkSession, large: Table, namespace: str, commit: Any) -> None:
    first, _ = data_files(large)
    commit(large, delete_positions(large, (first, [1])), delete_keys(large, Rows({"n": pa.int64()})([(2,)])))
    commit(large, delete_keys(large, Rows({"text": pa.string()})([("text 4",)])))
    assert left(spark, f"{namespace}.large", "n < 6") == [0, 3, 5]


def test_a_key_that_was_dropped_later_still_deletes(
    spark: SparkSession, large: Table, namespace: str, commit: Any
) -> None:
    commit(large, delete_keys(large, Rows({"text": pa.string()})([("text 4",)])))
    with large.update_schema() as update:
        update.delete_column("text")
    assert spark.table(f"{namespace}.large").columns == ["n", "part"]
    assert left(spark, f"{namespace}.large", "n < 6") == [0, 1, 2, 3, 5]


def test_a_key_of_a_column_that_older_files_lack(
    spark: SparkSession, large: Table, namespace: str, commit: Any
) -> None:
    from hms_iceberg.spec.data_types import StringType

    with large.update_schema() as update:
        update.add_column("note", StringType())
    rows = Rows({**{field.name: field.type for field in NUMBERS.schema}, "note": pa.string()})
    large.append(rows([(30_000, "x", 0, "keep"), (30_001, "y", 0, None)]))
    commit(large, delete_keys(large, Rows({"note": pa.string()})([(None,)])))
    assert left(spark, f"{namespace}.large") == [30_000]


def test_a_damaged_deletion_vector_is_refused(
    spark: SparkSession, catalog: Catalog, namespace: str, commit: Any
) -> None:
    table = catalog.create_table(f"{namespace}.damaged", NUMBERS.schema, properties={"format-version": "3"})
    table.append(numbers(100))
    vector = delete_vector(table, data_files(table)[0], [5])
    path = vector.file_path.removeprefix("file:")
    with open(path, "r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    commit(table, vector)
    with pytest.raises(Exception, match=r"deletion vector at byte 4 of .* is damaged"):
        left(spark, f"{namespace}.damaged")


def test_a_position_beyond_32_bits_deletes_nothing_else(
    spark: SparkSession, large: Table, namespace: str, commit: Any
) -> None:
    first, _ = data_files(large)
    commit(large, delete_positions(large, (first, [2**32 + 1, 2])))
    assert left(spark, f"{namespace}.large", "n < 4") == [0, 1, 3]
