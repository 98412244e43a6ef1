"""Hive tables read and copied by Spark, for migrations and their proof."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source_columns import parse_spark_schema
from hms_iceberg.migration.verify import TableSummary, empty_summary
from hms_iceberg.spark.reading.worker_code import Checked, Read
from hms_iceberg.spark.reading.worker_files import what_to_read
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spec.schema import Schema, assign_fresh_ids
from hms_iceberg.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Where Spark reads through Hive's SerDe, a null in a partition column of strings has the name of its folder.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def hive_rows(spark: SparkSession, name: str) -> DataFrame:
    """The rows of a Hive table (`db.table`) as they are now, lazily; Hive's default partition is null."""
    from pyspark.sql import functions

    spark.catalog.refreshTable(dotted(name))
    frame = spark.table(dotted(name))
    keys = {column.name for column in spark.catalog.listColumns(dotted(name)) if column.isPartition}
    for field in frame.schema:
        if field.name in keys and field.dataType.simpleString() == "string":
            column = functions.col(quoted(field.name))
            frame = frame.withColumn(field.name, functions.when(column != _NULL_FOLDER, column))
    return frame


def quoted(name: str) -> str:
    """Puts a name into backticks."""
    return f"`{name.replace('`', '``')}`"


def dotted(name: str) -> str:
    """Puts each part of `db.table` into backticks."""
    return ".".join(map(quoted, name.split(".")))


_TASKS_AT_ONCE = 8


class SparkHiveReader:
    """Reads through an extended session on the tables' metastore; see `hms_iceberg.migration.verify.HiveReader`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def counts(self, table: str, columns: tuple[str, ...]) -> tuple[int, Mapping[str, int]]:
        """The number of a table's rows, and of the nulls of each column by its name."""
        from pyspark.sql import functions

        frame = hive_rows(self._spark, table)
        every = [functions.count(functions.lit(1)), *(functions.count(quoted(name)) for name in columns)]
        rows, *values = frame.agg(*every).collect()[0]
        return rows, {name: rows - found for name, found in zip(columns, values, strict=True)}

    def summary(self, table: str, schema: Schema, arrow: pa.Schema) -> TableSummary:
        """Summarises a table's rows where they are, by Python workers that need this package."""
        frame = _as(hive_rows(self._spark, table), schema, table)
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, whether or not pandas is used.
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            found = frame.mapInArrow(Checked(_summaries(arrow), "Hive tables"), "summary binary").collect()
        return reduce(TableSummary.plus, (pickle.loads(row.summary) for row in found), empty_summary(arrow))

    def unlike_rows(self, hive: str, table: Table, most: int) -> Iterator[str]:
        """A sentence for each row, up to `most` of each side, that is in one table only; workers with this package read
        Iceberg's."""
        left = _comparable(_as(hive_rows(self._spark, hive), table.schema(), hive))
        right = _comparable(self._iceberg_rows(table))
        for side, only in (("Hive", left.exceptAll(right)), ("Iceberg", right.exceptAll(left))):
            for row in only.limit(most).collect():
                yield f"only in the {side} table: {row.asDict()}"

    def _iceberg_rows(self, table: Table) -> DataFrame:
        """The rows of an Iceberg table as this package reads them, and no reader of Spark's."""
        from pyspark.sql.types import StructType

        schema = table.schema()
        reading = what_to_read(table.metadata, schema, [field.name for field in schema.fields], table.storage)
        tasks = [(pickle.dumps(task),) for task in table.scan().plan_files()]
        parts = max(1, min(len(tasks), self._spark.sparkContext.defaultParallelism * _TASKS_AT_ONCE))
        shape = StructType.fromJson(spark_schema(schema, ".".join(table.identifier)))
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, whether or not pandas is used.
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            frame = self._spark.createDataFrame(tasks, "task binary").repartition(parts)
            return frame.mapInArrow(Checked(_rows(reading), "Iceberg tables"), shape)


def _as(frame: DataFrame, schema: Schema, name: str) -> DataFrame:
    """A table with its columns as a schema has them."""
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    wanted = StructType.fromJson(spark_schema(schema, name))
    return frame.select(*(functions.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in wanted))


def _comparable(frame: DataFrame) -> DataFrame:
    """Makes rows comparable: maps become text, because Spark cannot compare maps."""
    from pyspark.sql import functions

    return frame.select(
        *(
            functions.col(quoted(field.name)).cast("string").alias(field.name)
            if "map<" in field.dataType.simpleString()
            else functions.col(quoted(field.name))
            for field in frame.schema
        )
    )


def _summaries(schema: pa.Schema) -> Read:
    """Turns a task's rows into their summary, as a row."""

    def summaries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        import pyarrow as pa

        from hms_iceberg.migration.verify import summarise

        summary = pickle.dumps(summarise(batches, schema))
        yield pa.record_batch({"summary": pa.array([summary], pa.binary())})

    return summaries


def _rows(reading: bytes) -> Read:
    """Turns tasks into the rows of their files."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from hms_iceberg.spark.reading.worker_files import read_in_worker

        return read_in_worker(reading, batches)

    return rows


class SparkCopier:
    """Copies through an extended session on the tables' metastore; see `hms_iceberg.migration.rewrite.CopyRows`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def schema(self, table: str) -> Schema:
        """A Hive table's columns as Spark reads them, `char` padded to its length."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            frame = hive_rows(self._spark, table)
            frame.take(1)
        except (PySparkException, Py4JJavaError) as error:
            lines = str(error).strip().splitlines()
            reason = [lines[0], *(line for line in lines if line.startswith("Caused by: "))][-1]
            raise UnsupportedError(
                f"Table {table} cannot be rewritten as an Iceberg table: Spark does not read it ({reason}). If its "
                "SerDe is missing, add its jar to the session. Nothing was changed."
            ) from error
        described = frame.schema.jsonValue()
        columns = parse_spark_schema(described, TypeOptions(char_as_string=True), count(1))
        return assign_fresh_ids(Schema(*columns))

    def copy(self, source: str, target: str, snapshot_properties: Mapping[str, str]) -> None:
        """Append all rows of a Hive table to an Iceberg table, in one snapshot."""
        writer = hive_rows(self._spark, source).writeTo(dotted(target))
        for name, value in snapshot_properties.items():
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()
