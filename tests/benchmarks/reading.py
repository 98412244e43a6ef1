"""Scans to Arrow against raw `pyarrow.dataset` over the same files, each ratio within one run.

python tests/benchmarks/reading.py [--rows 8000000] [--repeat 3]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_schema import from_arrow, to_arrow
from hms_iceberg.arrow.deletes.puffin import write_deletion_vectors
from hms_iceberg.arrow.reading.read import read_all
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.schema import Schema

FILTER = "l_quantity < 24 and l_discount >= 0.05"
RAW_FILTER = (ds.field("l_quantity") < 24) & (ds.field("l_discount") >= 0.05)


def line_items(rows: int, seed: int) -> pa.Table:
    """Ten columns shaped like TPC-H's lineitem."""
    random = np.random.default_rng(seed)
    flags = np.array(["A", "N", "R"])
    modes = np.array(["AIR", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK", "REG AIR"])
    order = np.cumsum(random.integers(0, 2, rows)) + seed * rows
    return pa.table(
        {
            "l_orderkey": pa.array(order, pa.int64()),
            "l_partkey": pa.array(random.integers(1, 200_000, rows), pa.int64()),
            "l_quantity": pa.array(random.integers(1, 51, rows).astype(np.float64)),
            "l_extendedprice": pa.array(np.round(random.uniform(900, 105_000, rows), 2)),
            "l_discount": pa.array(random.integers(0, 11, rows) / 100),
            "l_tax": pa.array(random.integers(0, 9, rows) / 100),
            "l_shipdate": pa.array(random.integers(8_000, 10_500, rows).astype(np.int32), pa.int32()).view(pa.date32()),
            "l_returnflag": pa.array(flags[random.integers(0, 3, rows)]),
            "l_shipmode": pa.array(modes[random.integers(0, 7, rows)]),
            "l_comment": pa.array(np.char.add("comment no ", random.integers(0, 100_000, rows).astype(str))),
        }
    )


class Bench:
    """A table of several files, and what to time on it."""

    def __init__(self, folder: str, rows: int, files: int, repeat: int) -> None:
        self.storage = ArrowStorage()
        self.repeat = repeat
        arrow = line_items(1, 0).schema
        self.schema: Schema = from_arrow(arrow)
        self.metadata = TableMetadata(
            format_version=3,
            table_uuid=None,
            location=folder,
            last_updated_ms=0,
            last_column_id=self.schema.highest_field_id,
            schemas=(self.schema,),
        )
        self.files: list[DataFile] = []
        for index in range(files):
            self.files += write_data_files(self.metadata, self.storage, line_items(rows // files, index + 1))
        self.paths = [file.file_path for file in self.files]

    def tasks(
        self, deletes: dict[str, tuple[DataFile, ...]] | None = None, text: str | None = None
    ) -> list[FileScanTask]:
        """One task a file."""
        residual = AlwaysTrue() if text is None else bind(self.schema, parse(text))
        return [FileScanTask.of(file, (deletes or {}).get(file.file_path, ()), residual, 1) for file in self.files]

    def scan(self, tasks: list[FileScanTask], columns: tuple[str, ...] = ("*",)) -> pa.Table:
        """Reads tasks as a table."""
        return read_all(tasks, self.schema, self.schema.select(*columns), self.metadata, self.storage)

    def raw(self, columns: list[str] | None = None, where: Any = None) -> pa.Table:
        """The same files without Iceberg."""
        return ds.dataset(self.paths).to_table(columns=columns, filter=where)

    def position_deletes(self, share: float) -> dict[str, tuple[DataFile, ...]]:
        """A position delete file beside each data file."""
        found = {}
        random = np.random.default_rng(7)
        for file in self.files:
            count = int(file.record_count * share)
            positions = np.sort(random.choice(file.record_count, count, replace=False))
            schema = to_arrow(Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION))
            location = file.file_path.replace(".parquet", "-deletes.parquet")
            pq.write_table(pa.table([pa.repeat(file.file_path, count), pa.array(positions)], schema=schema), location)
            found[file.file_path] = (self.delete_file(location, DataFileContent.POSITION_DELETES, count),)
        return found

    def deletion_vectors(self, share: float) -> dict[str, tuple[DataFile, ...]]:
        """A deletion vector for each data file, all in one Puffin file."""
        random = np.random.default_rng(7)
        deleted = [
            (file, np.sort(random.choice(file.record_count, int(file.record_count * share), replace=False)))
            for file in self.files
        ]
        vectors = write_deletion_vectors(self.storage, f"{self.metadata.location}/vectors.puffin", deleted)
        return {file.file_path: (vector,) for file, vector in zip(self.files, vectors, strict=True)}

    def equality_deletes(self, keys: int) -> dict[str, tuple[DataFile, ...]]:
        """One equality delete file on the order key for all data files."""
        column = self.schema.find_field("l_orderkey")
        random = np.random.default_rng(8)
        highest = max(int(pc.max(pq.read_table(path, columns=["l_orderkey"])[0]).as_py()) for path in self.paths)
        values = random.choice(highest, keys, replace=False)
        location = f"{self.metadata.location}/equality.parquet"
        pq.write_table(pa.table([pa.array(values, pa.int64())], schema=to_arrow(Schema(column))), location)
        file = self.delete_file(location, DataFileContent.EQUALITY_DELETES, keys, (column.field_id,))
        return dict.fromkeys(self.paths, (file,))

    def delete_file(
        self, location: str, content: DataFileContent, rows: int, equality_ids: tuple[int, ...] | None = None
    ) -> DataFile:
        """The manifest's view of a delete file."""
        return DataFile(
            file_path=location,
            file_format="PARQUET",
            record_count=rows,
            file_size_in_bytes=self.storage.length(location),
            content=content,
            equality_ids=equality_ids,
        )

    def compare(self, name: str, ours: Callable[[], pa.Table], raw: Callable[[], pa.Table]) -> float:
        """Times both, turn by turn, and reports the ratios of the medians; processor time is steadier."""
        wall: dict[str, list[float]] = {"ours": [], "raw": []}
        processor: dict[str, list[float]] = {"ours": [], "raw": []}
        rows = {}
        for _ in range(self.repeat + 1):
            for label, call in (("ours", ours), ("raw", raw)):
                started, used = time.perf_counter(), time.process_time()
                table = call()
                wall[label].append(time.perf_counter() - started)
                processor[label].append(time.process_time() - used)
                rows[label] = table.num_rows
                del table
        mine, theirs = (statistics.median(wall[label][1:]) for label in ("ours", "raw"))
        ratio = statistics.median(processor["ours"][1:]) / statistics.median(processor["raw"][1:])
        sys.stdout.write(
            f"{name:<46} {mine:7.3f} s  raw {theirs:7.3f} s  ratio {mine / theirs:5.2f}  of processor time {ratio:5.2f}"
            f"  rows {rows['ours']:,} of {rows['raw']:,}\n"
        )
        sys.stdout.flush()
        return mine / theirs


def main() -> None:
    """Runs all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    two = ("l_partkey", "l_extendedprice")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options.rows, options.files, options.repeat)
        bench.compare("all columns", lambda: bench.scan(bench.tasks()), bench.raw)
        bench.compare(
            "two columns and a filter",
            lambda: bench.scan(bench.tasks(text=FILTER), two),
            lambda: bench.raw(list(two), RAW_FILTER),
        )
        positions = bench.position_deletes(0.01)
        bench.compare("1% position deletes, all columns", lambda: bench.scan(bench.tasks(positions)), bench.raw)
        bench.compare(
            "1% position deletes, two columns and a filter",
            lambda: bench.scan(bench.tasks(positions, FILTER), two),
            lambda: bench.raw(list(two), RAW_FILTER),
        )
        vectors = bench.deletion_vectors(0.01)
        bench.compare("1% in deletion vectors, all columns", lambda: bench.scan(bench.tasks(vectors)), bench.raw)
        equality = bench.equality_deletes(100_000)
        bench.compare("100,000 equality deletes, all columns", lambda: bench.scan(bench.tasks(equality)), bench.raw)


if __name__ == "__main__":
    main()
