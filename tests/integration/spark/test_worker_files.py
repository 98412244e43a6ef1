"""Files that Spark's Parquet scan cannot read come through Arrow: ORC and Avro data, and what such files delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.spark_tables import Rows, data_files, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

ROWS = Rows(
    {"n": pa.int64(), "text": pa.string(), "pair": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])}
)


def rows(start: int, count: int = 10) -> pa.Table:
    return ROWS(
        (n, f"text {n}" if n % 7 else None, {"a": n, "b": ["x", None]} if n % 3 else None)
        for n in range(start, start + count)
    )


def set_format(table: Table, name: str, key: str = "write.format.default") -> None:
    with table.transaction() as transaction:
        transaction.set_properties({key: name})
    table.refresh()


@pytest.fixture
def mixed(catalog: Catalog, namespace: str) -> Table:
    """Ten rows in each of a Parquet, an ORC and an Avro file."""
    table = catalog.create_table(f"{namespace}.mixed", ROWS.schema)
    for start, name in ((0, "parquet"), (100, "orc"), (200, "avro")):
        set_format(table, name)
        table.append(rows(start))
    assert [file.file_format for file in data_files(table)] == ["PARQUET", "ORC", "AVRO"]
    return table


def test_a_table_may_have_files_of_all_formats(spark: SparkSession, mixed: Table, namespace: str) -> None:
    name = f"{namespace}.mixed"
    wanted = [(n, f"text {n}" if n % 7 else None) for start in (0, 100, 200) for n in range(start, start + 10)]
    assert rows_of(spark, f"select n, text from {name}") == wanted
    assert rows_of(spark, f"select pair.a, pair.b[0] from {name} where n in (1, 101, 202, 3)") == [
        (1, "x"), (101, "x"), (202, "x"), (None, None)
    ]  # fmt: skip
    assert rows_of(spark, f"select n from {name} where text is null and n > 6") == [(7,), (105,), (203,)]
    assert rows_of(spark, f"select count(*), count(pair) from {name} where n % 2 = 0") == [(15, 10)]
    assert rows_of(spark, f"select a.n from {name} a join {name} b on a.n = b.n + 100 where b.text like '%6'") == [
        (106,), (206,)
    ]  # fmt: skip
    assert len(spark.sql(f"select * from {name} limit 25").collect()) == 25


def test_only_files_that_need_it_go_through_python(spark: SparkSession, mixed: Table, namespace: str) -> None:
    def explained(condition: str) -> str:
        frame = spark.sql(f"select n, monotonically_increasing_id() from {namespace}.mixed where {condition}")
        return str(frame._jdf.queryExecution().executedPlan().toString())

    assert "MapInArrow" not in explained("n < 50")
    assert "Union" not in explained("n > 100 and n < 150")
    plan = explained("n > 5")
    assert "MapInArrow" in plan and "Union" in plan
    read = next(line for line in plan.splitlines() if "MapInArrow" in line)
    assert "text" not in read and "pair" not in read
    # What numbers rows sees the rows of both kinds of files as one.
    ids = rows_of(spark, f"select monotonically_increasing_id() from {namespace}.mixed")
    assert len(set(ids)) == 30


def test_metadata_columns_of_all_formats(spark: SparkSession, mixed: Table, namespace: str) -> None:
    found = rows_of(spark, f"select n, _pos, _file from {namespace}.mixed where _pos = 3")
    assert [row[:2] for row in found] == [(3, 3), (103, 3), (203, 3)]
    assert [row[2] for row in found] == [file.file_path for file in data_files(mixed)]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_deletes_in_other_formats_apply_to_all_files(
    spark: SparkSession, mixed: Table, namespace: str, file_format: str
) -> None:
    name = f"{namespace}.mixed"
    set_format(mixed, file_format, "write.delete.format.default")
    paths = [file.file_path for file in data_files(mixed)]
    with mixed.new_row_delta() as delta:
        delta.delete_positions({path: [1, 2] for path in paths})
    mixed.refresh()
    with mixed.new_row_delta() as delta:
        delta.delete_equal(Rows({"n": pa.int64()})([(5,), (105,), (205,)]), ["n"])
    mixed.append(rows(5, 1))
    left = [5, *(n for start in (0, 100, 200) for n in range(start, start + 10) if n - start not in (1, 2, 5))]
    assert rows_of(spark, f"select n from {name}") == [(n,) for n in sorted(left)]
    assert rows_of(spark, f"select count(*) from {name}") == [(len(left),)]
    assert rows_of(spark, f"select text from {name} where n = 104") == [("text 104",)]


def test_what_goes_wrong_in_a_worker_is_told(spark: SparkSession, mixed: Table, namespace: str) -> None:
    import os

    (lost,) = (file.file_path for file in data_files(mixed) if file.file_format == "AVRO")
    os.unlink(lost.removeprefix("file:"))
    with pytest.raises(Exception, match=rf"MissingFileError: .*{os.path.basename(lost)}"):
        spark.sql(f"select * from {namespace}.mixed").collect()


def test_a_worker_without_the_package_says_what_to_install(mixed: Table) -> None:
    """Runs the function as a worker does, in a Python whose path does not have the package."""
    import subprocess
    import sys

    from hms_iceberg.spark.reading.worker_files import what_to_read, worker_command

    command = worker_command(what_to_read(mixed.metadata, mixed.schema(), ["n"], mixed.storage))
    program = (
        "import pickle, sys; sys.modules['hms_iceberg'] = None\n"
        "function, _ = pickle.load(sys.stdin.buffer)\nfunction(iter([]))"
    )
    ran = subprocess.run([sys.executable, "-c", program], input=command, capture_output=True, timeout=100, check=False)
    assert b"Install the same hms_iceberg[spark] on all executors" in ran.stderr
