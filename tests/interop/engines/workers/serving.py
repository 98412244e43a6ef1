"""An engine as a process: a JSON object a line asks, one a line answers.

Runs in the packages of the engine, and so imports nothing of this project but its form of rows.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tests.support.peer_rows import arrow_rows


def serve(read: Callable[[dict[str, str]], Any], append: Callable[[Any, pa.Table], None] | None = None) -> None:
    """Answers until the input ends.

    Args:
        read: of a question (`metadata`, a location; `name`; `uri` of the metastore; perhaps `where`) makes an Arrow
            table.
        append: adds rows (a question's `append`, Arrow's stream in Base64) to a table of PyIceberg's catalog.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what engines say of themselves
    for line in sys.stdin:
        try:
            question = json.loads(line)
            if append is not None and "append" in question:
                rows = pa.ipc.open_stream(base64.b64decode(question["append"])).read_all()
                append(pyiceberg_table(question), rows)
                answer: dict[str, Any] = {"columns": [], "rows": []}
            else:
                table = read(question)
                answer = {"columns": table.column_names, "rows": arrow_rows(table)}
        except BaseException as error:  # the matrix says what is to be expected; Rust's panics are no Exception
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def pyiceberg_table(question: dict[str, str]) -> Any:
    """The table of a question, by PyIceberg's catalog."""
    from pyiceberg.catalog import load_catalog

    # Hive 2 knows no `timestamp with local time zone`.
    catalog = load_catalog("peer", type="hive", uri=question["uri"], **{"hive.hive2-compatible": "true"})
    return catalog.load_table(question["name"])
