"""Polars."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa

from tests.interop.engines.workers.serving import serve


def read(question: dict[str, str]) -> Any:
    """The rows of a table by its metadata file."""
    frame = pl.scan_iceberg(question["metadata"])
    if "where" in question:
        frame = frame.filter(pl.sql_expr(question["where"]))
    return frame.collect().to_arrow()


def append(table: Any, rows: pa.Table) -> None:
    """Appends rows."""
    pl.DataFrame(rows).write_iceberg(table, mode="append")


if __name__ == "__main__":
    serve(read, append)
