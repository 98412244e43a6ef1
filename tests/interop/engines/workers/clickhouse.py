"""ClickHouse in a process of Python (chdb)."""

from __future__ import annotations

import base64
import os
from typing import Any

import chdb
import pyarrow as pa

from tests.interop.engines.workers.serving import serve

os.chdir("/")  # it opens what is below its folder
connection = chdb.connect(":memory:")


def read(question: dict[str, str]) -> Any:
    """The rows of a table by its metadata file; its strings hold bytes, so that they are cast to what was written."""
    folder, metadata = question["metadata"].removeprefix("file:").split("/metadata/")
    where = f" where {question['where']}" if "where" in question else ""
    answer = _answer(
        f"select * from icebergLocal('{folder}', settings iceberg_metadata_file_path = 'metadata/{metadata}'){where} "
        "settings session_timezone = 'UTC', output_format_arrow_string_as_string = 0, max_threads = 1"
    )
    table = pa.ipc.open_stream(answer.bytes()).read_all()
    wanted = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(question["schema"])))
    return pa.table([table[field.name].cast(field.type) for field in wanted], schema=wanted)


def _answer(query: str) -> Any:
    global connection
    try:
        return connection.query(query, "ArrowStream")
    except Exception:
        connection.close()  # the next answer of a connection that had an error begins with what was left of it
        connection = chdb.connect(":memory:")
        raise


if __name__ == "__main__":
    serve(read)
