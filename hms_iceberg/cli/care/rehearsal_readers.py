"""Reads versions of a table by one engine, in a process of its own, and prints a summary of each.

The question comes on the standard input, since it may hold keys of a storage; the last line of the output is the
answer. See `rehearsal`.
"""

from __future__ import annotations

import importlib
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.migration.verify import summarise
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, StructType, UUIDType
from hms_iceberg.table import StaticTable

Read = Callable[[str], pa.RecordBatchReader]
_SPARK = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}


def main() -> None:
    """Answers one question with each version's summary, or the error that the engine ended with."""
    sys.stdout.write("\n" + json.dumps(_answer(json.loads(sys.stdin.read()))) + "\n")


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    try:
        read = ENGINES[asked["engine"]](asked)
    except Exception as error:  # whatever an engine raises is the result
        return {"missing": _line(error)}
    summaries: dict[str, Any] = {}
    for version, location in asked["versions"].items():
        try:
            summaries[version] = _summary(read(location), location, asked["properties"])
        except Exception as error:
            summaries[version] = {"error": _line(error)}
    return summaries


def _line(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return next(line for line in text.splitlines() if line.strip())


def _summary(rows: pa.RecordBatchReader, location: str, properties: dict[str, str]) -> dict[str, Any]:
    """A summary of an engine's rows, in types that are the same for all engines."""
    schema = StaticTable.from_metadata(location, properties).schema()
    plain = to_arrow(schema, field_ids=False, extensions=False)
    is_text = [
        pa.types.is_nested(field.type) or isinstance(of.field_type, UUIDType)
        for field, of in zip(plain, schema.fields, strict=True)
    ]
    target = pa.schema(
        [
            pa.field(each.name, pa.large_string() if text else each.type)
            for each, text in zip(plain, is_text, strict=True)
        ]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            columns = [
                pa.array([_text(value, of.field_type) for value in batch.column(of.name).to_pylist()], field.type)
                if text
                else batch.column(of.name)
                for of, field, text in zip(schema.fields, target, is_text, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, target.names)

    found = summarise(batches(), target)
    return {
        "rows": found.rows,
        "checksum": found.checksum,
        "columns": json.loads(json.dumps(asdict(found)["columns"], default=str)),
    }


def _text(value: Any, kind: IcebergType) -> str | None:
    return None if value is None else repr(_plain(value, kind))


def _plain(value: Any, kind: IcebergType) -> Any:
    """A value in the form that all engines' values of its type get."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return [_plain(value[field.name], field.field_type) for field in kind.fields]
    if isinstance(kind, ListType):
        return [_plain(each, kind.element_type) for each in value]
    if isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, dict) else value
        return sorted(([_plain(key, kind.key_type), _plain(each, kind.value_type)] for key, each in pairs), key=repr)
    if isinstance(kind, UUIDType):
        return str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat()
    return value


# ----------------------------------------------------------------------------------------------- engines


def _python(asked: dict[str, Any]) -> Read:
    return lambda location: StaticTable.from_metadata(location, asked["properties"]).scan().to_arrow_batch_reader()


def _pyiceberg(asked: dict[str, Any]) -> Read:
    from pyiceberg.table import StaticTable as Static

    def read(location: str) -> pa.RecordBatchReader:
        return Static.from_metadata(location, asked["properties"]).scan().to_arrow_batch_reader()

    return read


def _duckdb(asked: dict[str, Any]) -> Read:
    """DuckDB with its extension, which has to be installed; with the keys of an S3 storage."""
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute("set timezone = 'UTC'")
    connection.load_extension("iceberg")
    keys = {
        "key_id": "s3.access-key-id",
        "secret": "s3.secret-access-key",
        "session_token": "s3.session-token",
        "region": "s3.region",
    }
    given = {name: asked["properties"][key] for name, key in keys.items() if key in asked["properties"]}
    if given:
        scheme, _, host = asked["properties"].get("s3.endpoint", "").rpartition("://")
        if host:
            given |= {"endpoint": host, "url_style": "path", "use_ssl": str(scheme != "http").lower()}
        values = ", ".join("{} '{}'".format(name, value.replace("'", "''")) for name, value in given.items())
        connection.execute(f"create secret (type s3, {values})")

    def read(location: str) -> pa.RecordBatchReader:
        return connection.execute("select * from iceberg_scan(?)", [location]).to_arrow_reader()

    return read


def _spark(asked: dict[str, Any]) -> Read:
    """Spark with this package's session."""
    from pyspark.sql import SparkSession

    spark_module = importlib.import_module("hms_iceberg.spark")
    builder = SparkSession.builder
    for key, value in _SPARK.items():
        builder = builder.config(key, value)
    spark = spark_module.extend(builder.getOrCreate(), asked["properties"])
    return lambda location: _rows_of(spark.read.format("iceberg").load(location))


def _java(asked: dict[str, Any]) -> Read:
    """Spark with Apache Iceberg's runtime JAR."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.jars", asked["jar"])
    for key, value in _SPARK.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    return lambda location: _rows_of(spark.read.format("iceberg").load(location.rpartition("/metadata/")[0]))


def _rows_of(frame: Any) -> pa.RecordBatchReader:
    batches = frame._collect_as_arrow()
    table = pa.Table.from_batches(batches) if batches else pa.Table.from_pylist([])
    return table.to_reader()


ENGINES: dict[str, Callable[[dict[str, Any]], Read]] = {
    "python": _python,
    "spark": _spark,
    "pyiceberg": _pyiceberg,
    "duckdb": _duckdb,
    "java": _java,
}

if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
