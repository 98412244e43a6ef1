"""DuckDB with its Iceberg extension, out of the packages of its extensions."""

from __future__ import annotations

from typing import Any

import duckdb
from duckdb_extensions import import_extension

from tests.interop.engines.workers.serving import serve

connection = duckdb.connect()
connection.execute("set TimeZone = 'UTC'; set threads = 1")
for extension in ("avro", "iceberg"):
    import_extension(extension)
    connection.execute(f"load {extension}")


def read(question: dict[str, str]) -> Any:
    """The rows of a table by its metadata file."""
    where = f" where {question['where']}" if "where" in question else ""
    return connection.execute(f"select * from iceberg_scan('{question['metadata']}'){where}").to_arrow_table()


if __name__ == "__main__":
    serve(read)
