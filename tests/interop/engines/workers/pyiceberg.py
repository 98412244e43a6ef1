"""PyIceberg, by the metastore."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.interop.engines.workers.serving import pyiceberg_table, serve


def read(question: dict[str, str]) -> Any:
    """The rows of a table of the metastore."""
    return pyiceberg_table(question).scan(question.get("where", "true")).to_arrow()


def append(table: Any, rows: pa.Table) -> None:
    """Appends rows."""
    table.append(rows)


if __name__ == "__main__":
    serve(read, append)
