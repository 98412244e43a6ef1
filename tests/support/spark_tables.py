"""Rows and delete files for tests that read them through Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
from pyarrow import orc

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.deletes.puffin import encode_deletion_vector
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION
from hms_iceberg.spec.schema import Schema
from tests.support.file_content import content

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hms_iceberg.table import Table


class Rows:
    """Makes Arrow tables of tuples."""

    def __init__(self, columns: Mapping[str, pa.DataType]) -> None:
        self.schema = pa.schema(list(columns.items()))

    def __call__(self, rows: Iterable[Sequence[Any]]) -> pa.Table:
        names = self.schema.names
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=self.schema)


def arrow_of(frame: DataFrame) -> pa.Table:
    """All rows of a query."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    batches = frame._collect_as_arrow()  # Spark 3.5
    if batches:
        return pa.Table.from_batches(batches)
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(frame.schema).empty_table()


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A frame with the rows of a table of simple types."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], from_arrow_schema(table.schema))


def plan_text(frame: DataFrame) -> str:
    """The physical plan of a query."""
    return frame._jdf.queryExecution().executedPlan().toString()


def sent_to_tasks(frame: DataFrame) -> bytes:
    """What travels with the tasks of a query's scan, as the JVM serializes it."""
    jvm = frame.sparkSession.sparkContext._jvm
    assert jvm is not None
    partitions = frame._jdf.queryExecution().toRdd().partitions()
    return b"".join(bytes(jvm.org.apache.spark.util.Utils.serialize(each)) for each in partitions)


def rows_of(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted (nulls last)."""
    rows = [tuple(row) for row in spark.sql(query).collect()]
    return sorted(rows, key=lambda row: [(value is None, str(type(value)), value) for value in row])


def data_files(table: Table) -> list[DataFile]:
    """The table's data files in the order in which they were added."""
    tasks = list(table.scan().plan_files())
    return [task.file for task in sorted(tasks, key=lambda task: task.data_sequence_number)]


def check_files(table: Table, rows: int) -> None:
    """Checks what the table's metadata says of numbers of rows: of each file by a reader of its own, of all by `rows`.

    Args:
        table: a table without equality deletes, each of whose positions is deleted once.
        rows: how many it has.
    """
    tasks = list(table.scan().plan_files())
    data = [task.file for task in tasks]
    encrypted = "encryption.key-id" in table.properties  # the readers here have no keys
    assert encrypted or {file.file_path: file.record_count for file in data} == {
        file.file_path: _rows_in(file.file_path, file.file_format) for file in data
    }
    deletes = {
        each.file_path + str(each.content_offset): each for t in table.scan().plan_files() for each in t.delete_files
    }
    assert all(each.content is DataFileContent.POSITION_DELETES for each in deletes.values())
    live = sum(file.record_count for file in data) - sum(each.record_count for each in deletes.values())
    snapshot = table.metadata.current_snapshot()
    assert live == rows and snapshot is not None
    assert snapshot.summary["total-records"] == str(sum(file.record_count for file in data))


def _rows_in(location: str, file_format: str) -> int:
    file = content(location)
    if file_format.lower() == "avro":
        return sum(1 for _ in fastavro.reader(file))
    return int(orc.ORCFile(file).nrows if file_format.lower() == "orc" else pq.read_metadata(file).num_rows)


def delete_positions(table: Table, *positions: tuple[DataFile, Sequence[int]]) -> DataFile:
    """One position delete file over one or several data files."""
    schema = to_arrow(Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION))
    parts = [
        pa.table([pa.repeat(file.file_path, len(own)), pa.array(sorted(own), pa.int64())], schema=schema)
        for file, own in sorted(positions, key=lambda each: each[0].file_path)
    ]
    return written(table, pa.concat_tables(parts), DataFileContent.POSITION_DELETES)


def delete_keys(table: Table, rows: pa.Table) -> DataFile:
    """One equality delete file; the columns of `rows` are the key."""
    fields = [table.schema().find_field(name) for name in rows.column_names]
    cast = rows.cast(to_arrow(Schema(*fields)))
    ids = tuple(field.field_id for field in fields)
    return written(table, cast, DataFileContent.EQUALITY_DELETES, equality_ids=ids)


def delete_vector(table: Table, file: DataFile, positions: Sequence[int]) -> DataFile:
    """A deletion vector (a Puffin file in all but its footer, which readers of vectors do not need)."""
    blob = encode_deletion_vector(pyroaring.BitMap64(positions))
    location = f"{table.location()}/data/{uuid.uuid4()}.puffin"
    table.storage.create(location, b"PFA1" + blob)
    return DataFile(
        file_path=location,
        file_format="PUFFIN",
        record_count=len(positions),
        file_size_in_bytes=4 + len(blob),
        content=DataFileContent.POSITION_DELETES,
        referenced_data_file=file.file_path,
        content_offset=4,
        content_size_in_bytes=len(blob),
        spec_id=file.spec_id,
        partition=file.partition,
    )


def written(table: Table, rows: pa.Table, content: DataFileContent, **more: Any) -> DataFile:
    """A Parquet file, which is not committed."""
    ending = "" if content is DataFileContent.DATA else "-deletes"
    location = f"{table.location()}/data/{uuid.uuid4()}{ending}.parquet"
    with table.storage.open_output(location) as output:
        pq.write_table(rows, output)
    return DataFile(
        file_path=location,
        file_format="PARQUET",
        record_count=rows.num_rows,
        file_size_in_bytes=table.storage.length(location),
        content=content,
        **more,
    )
