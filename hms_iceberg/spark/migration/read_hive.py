"""The rows of a Hive table as Spark reads them, nulls in partition columns being nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Where Spark reads through Hive's SerDe, a null in a partition column of strings has the name of its folder.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def hive_rows(spark: SparkSession, name: str) -> DataFrame:
    """The rows of a Hive table as they are now.

    Args:
        spark: an extended session on its metastore.
        name: `db.table`.
    """
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
