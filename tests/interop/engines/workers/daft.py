"""Daft."""

from __future__ import annotations

from typing import Any

import daft
import pyarrow as pa

from tests.interop.engines.workers.serving import serve


def read(question: dict[str, str]) -> Any:
    """The rows of a table by its metadata file."""
    frame = daft.read_iceberg(question["metadata"])
    if "where" in question:
        frame = frame.where(daft.sql_expr(question["where"]))
    return frame.to_arrow()


def append(table: Any, rows: pa.Table) -> None:
    """Appends rows."""
    daft.from_arrow(rows).write_iceberg(table, mode="append")


if __name__ == "__main__":
    serve(read, append)
