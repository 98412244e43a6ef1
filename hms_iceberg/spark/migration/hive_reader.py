"""Hive tables as Spark reads them, for a comparison with Iceberg tables."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from hms_iceberg.migration.proof.content_summary import TableSummary, empty_summary, summarise
from hms_iceberg.spark.migration.read_hive import dotted, hive_rows, quoted
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spec.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SUMMARY = pa.schema([pa.field("summary", pa.binary())])


class SparkHiveReader:
    """Reads through a session; see `hms_iceberg.migration.proof.verify.HiveReader`.

    Args:
        spark: an extended session on the tables' metastore.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def counts(self, table: str, columns: tuple[str, ...]) -> tuple[int, Mapping[str, int]]:
        """How many rows a table has, and how many nulls each column."""
        from pyspark.sql import functions

        frame = hive_rows(self._spark, table)
        every = [functions.count(functions.lit(1)), *(functions.count(quoted(name)) for name in columns)]
        rows, *values = frame.agg(*every).collect()[0]
        return rows, {name: rows - found for name, found in zip(columns, values, strict=True)}

    def summary(self, table: str, schema: Schema, arrow: pa.Schema) -> TableSummary:
        """What a table holds; summed up where its rows are, by Python workers that need this package."""
        frame = _as(hive_rows(self._spark, table), schema, table)
        with warnings.catch_warnings():
            # PySpark looks at the version of pandas, whether or not pandas is used.
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            found = frame.mapInArrow(partial(_summaries, arrow), "summary binary").collect()
        return reduce(TableSummary.plus, (pickle.loads(row.summary) for row in found), empty_summary(arrow))

    def unlike_rows(self, hive: str, iceberg: str, schema: Schema, most: int) -> Iterator[str]:
        """Rows that are in one of two tables only, in words."""
        self._spark.catalog.refreshTable(dotted(iceberg))
        left = _comparable(_as(hive_rows(self._spark, hive), schema, hive))
        right = _comparable(_as(self._spark.table(dotted(iceberg)), schema, iceberg))
        for side, only in (("Hive", left.exceptAll(right)), ("Iceberg", right.exceptAll(left))):
            for row in only.limit(most).collect():
                yield f"only in the {side} table: {row.asDict()}"


def _as(frame: DataFrame, schema: Schema, name: str) -> DataFrame:
    """A table with its columns as a schema has them."""
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    wanted = StructType.fromJson(spark_schema(schema, name))
    return frame.select(*(functions.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in wanted))


def _comparable(frame: DataFrame) -> DataFrame:
    """The same, maps as text, which Spark does not compare otherwise."""
    from pyspark.sql import functions

    return frame.select(
        *(
            functions.col(quoted(field.name)).cast("string").alias(field.name)
            if "map<" in field.dataType.simpleString()
            else functions.col(quoted(field.name))
            for field in frame.schema
        )
    )


def _summaries(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The summary of a task's rows, as a row."""
    summary = pickle.dumps(summarise(batches, schema))
    yield pa.RecordBatch.from_arrays([pa.array([summary], pa.binary())], schema=_SUMMARY)
