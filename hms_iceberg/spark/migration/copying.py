"""Copies a Hive table's rows into an Iceberg table, through this package's own Spark writes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source_columns import parse_spark_schema
from hms_iceberg.spark.migration.hive_reader import dotted, hive_rows
from hms_iceberg.spec.schema import Schema, assign_fresh_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkCopier:
    """Copies through a session; see `hms_iceberg.migration.rewrite.CopyRows`.

    Args:
        spark: an extended session on the tables' metastore.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def schema(self, table: str) -> Schema:
        """A Hive table's columns as Spark reads them, `char` padded to its length.

        Raises:
            UnsupportedError: Spark does not read the table, for want of its SerDe or because of its files.
        """
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
        """Append all rows of a Hive table to an Iceberg table, in one snapshot.

        Args:
            source: the Hive table's name.
            target: the Iceberg table's name.
            snapshot_properties: properties of the snapshot.
        """
        writer = hive_rows(self._spark, source).writeTo(dotted(target))
        for name, value in snapshot_properties.items():
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()
