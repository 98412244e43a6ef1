"""Hive tables as Spark reads them, for a comparison with Iceberg tables."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from hms_iceberg.migration.proof.summary import TableSummary, empty_summary, summarise
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

        frame = self._table(table)
        every = [functions.count(functions.lit(1)), *(functions.count(_quoted(name)) for name in columns)]
        rows, *values = frame.agg(*every).collect()[0]
        return rows, {name: rows - found for name, found in zip(columns, values, strict=True)}

    def summary(self, table: str, schema: Schema, arrow: pa.Schema) -> TableSummary:
        """What a table holds; summed up where its rows are, by Python workers that need this package."""
        frame = self._as(table, schema)
        found = frame.mapInArrow(partial(_summaries, arrow), "summary binary").collect()
        return reduce(TableSummary.plus, (pickle.loads(row.summary) for row in found), empty_summary(arrow))

    def unlike_rows(self, hive: str, iceberg: str, schema: Schema, most: int) -> Iterator[str]:
        """Rows that are in one of two tables only, in words."""
        left, right = self._comparable(hive, schema), self._comparable(iceberg, schema)
        for side, only in (("Hive", left.exceptAll(right)), ("Iceberg", right.exceptAll(left))):
            for row in only.limit(most).collect():
                yield f"only in the {side} table: {row.asDict()}"

    def _table(self, name: str) -> DataFrame:
        self._spark.catalog.refreshTable(_dotted(name))
        return self._spark.table(_dotted(name))

    def _as(self, name: str, schema: Schema) -> DataFrame:
        """A table with its columns as a schema has them."""
        from pyspark.sql import functions
        from pyspark.sql.types import StructType

        wanted = StructType.fromJson(spark_schema(schema, name))
        return self._table(name).select(
            *(functions.col(_quoted(field.name)).cast(field.dataType).alias(field.name) for field in wanted)
        )

    def _comparable(self, name: str, schema: Schema) -> DataFrame:
        """The same, maps as text, which Spark does not compare otherwise."""
        from pyspark.sql import functions

        frame = self._as(name, schema)
        return frame.select(
            *(
                functions.col(_quoted(field.name)).cast("string").alias(field.name)
                if "map<" in field.dataType.simpleString()
                else functions.col(_quoted(field.name))
                for field in frame.schema
            )
        )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _dotted(name: str) -> str:
    return ".".join(map(_quoted, name.split(".")))


def _summaries(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The summary of a task's rows, as a row."""
    summary = pickle.dumps(summarise(batches, schema))
    yield pa.RecordBatch.from_arrays([pa.array([summary], pa.binary())], schema=_SUMMARY)
