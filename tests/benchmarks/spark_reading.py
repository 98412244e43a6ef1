"""Iceberg tables in extended Spark against `spark.read.parquet` over the same files, each ratio within one run.

python tests/benchmarks/spark_reading.py [--rows 8000000] [--repeat 5]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.catalog import load_catalog
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.schema import Schema
from hms_iceberg.updates.rows.row_delta import RowDelta
from tests.benchmarks.reading import line_items
from tests.support.spark_session import extended_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

QUERIES = {
    "count": "select count(*) from {}",
    "group by": (
        "select l_returnflag, l_shipmode, sum(l_quantity), sum(l_extendedprice), avg(l_discount), count(*) "
        "from {} where l_shipdate <= date'1998-09-02' group by l_returnflag, l_shipmode"
    ),
    "filter and sum": (
        "select sum(l_extendedprice * l_discount) from {} "
        "where l_shipdate >= date'1994-01-01' and l_shipdate < date'1995-01-01' "
        "and l_discount between 0.05 and 0.07 and l_quantity < 24"
    ),
    "three wide max": "select max(l_comment), max(l_orderkey), max(l_partkey) from {}",
    "all columns": (
        "select max(struct(l_orderkey, l_partkey, l_quantity, l_extendedprice, l_discount, l_tax, l_shipdate, "
        "l_returnflag, l_shipmode, l_comment)) from {}"
    ),
}


class Bench:
    """A table of several files, and its files without Iceberg."""

    def __init__(self, catalog: Catalog, spark: SparkSession, rows: int, files: int, repeat: int) -> None:
        self.catalog, self.spark, self.repeat = catalog, spark, repeat
        self.table: Table = catalog.create_table("bench.items", line_items(1, 0).schema)
        for index in range(files):
            self.table.append(line_items(rows // files, index + 1))
        self.paths = [task.file.file_path for task in self.table.scan().plan_files()]
        spark.read.parquet(*self.paths).createOrReplaceTempView("raw_items")

    def run(self, name: str) -> None:
        """Times every query on the table and on its files."""
        for query, text in QUERIES.items():
            ours, raw = [], []
            for _ in range(self.repeat + 2):
                ours.append(self.seconds(self.spark.sql(text.format("bench.items"))))
                raw.append(self.seconds(self.spark.sql(text.format("raw_items"))))
            mine, theirs = (statistics.median(times[2:]) for times in (ours, raw))
            sys.stdout.write(
                f"{name + ': ' + query:<44} {mine:7.3f} s  parquet {theirs:7.3f} s  ratio {mine / theirs:5.2f}"
                f"  best {min(ours):.3f} / {min(raw):.3f}\n"
            )
            sys.stdout.flush()

    @staticmethod
    def seconds(frame: DataFrame) -> float:
        """How long a query takes to its last row."""
        started = time.perf_counter()
        frame.collect()
        return time.perf_counter() - started

    def delete_positions(self, share: float) -> None:
        """Position deletes of a share of the rows of every file."""
        random = np.random.default_rng(7)
        schema = to_arrow(Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION))
        files = []
        for task in self.table.scan().plan_files():
            count = int(task.file.record_count * share)
            positions = np.sort(random.choice(task.file.record_count, count, replace=False))
            location = task.file.file_path.replace(".parquet", "-deletes.parquet")
            rows = pa.table([pa.repeat(task.file.file_path, count), pa.array(positions)], schema=schema)
            files.append(self.written(location, rows, DataFileContent.POSITION_DELETES))
        self.commit(files)

    def delete_keys(self, count: int) -> None:
        """Equality deletes of a number of order keys."""
        column = self.table.schema().find_field("l_orderkey")
        highest = int(pc.max(pq.read_table(self.paths[-1], columns=["l_orderkey"])[0]).as_py())
        values = np.random.default_rng(8).choice(highest, count, replace=False)
        rows = pa.table([pa.array(values, pa.int64())], schema=to_arrow(Schema(column)))
        location = f"{self.table.location()}/data/keys.parquet"
        self.commit([self.written(location, rows, DataFileContent.EQUALITY_DELETES, (column.field_id,))])

    def written(self, location: str, rows: pa.Table, content: DataFileContent, *ids: tuple[int, ...]) -> DataFile:
        """Writes a delete file."""
        with self.table.storage.open_output(location) as output:
            pq.write_table(rows, output)
        return DataFile(
            file_path=location,
            file_format="PARQUET",
            record_count=rows.num_rows,
            file_size_in_bytes=self.table.storage.length(location),
            content=content,
            equality_ids=ids[0] if ids else None,
        )

    def commit(self, files: list[DataFile]) -> None:
        """Commits delete files."""
        with self.table.transaction() as transaction:
            transaction._transaction.add(RowDelta(tuple(files)))
        self.table.refresh()


def main() -> None:
    """Runs all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with EmbeddedMetastore() as metastore:
        settings: dict[str, Any] = {"spark_driver_memory": "2g"}
        spark = extended_session(metastore, **settings)
        catalog = load_catalog("bench", type="hive", uri=metastore.uri, warehouse=metastore.warehouse)
        catalog.create_namespace("bench")
        bench = Bench(catalog, spark, options.rows, options.files, options.repeat)
        bench.run("no deletes")
        bench.delete_positions(0.01)
        bench.run("1% position deletes")
        bench.delete_keys(10_000)
        bench.run("and 10,000 keys")
        spark.stop()


if __name__ == "__main__":
    main()
