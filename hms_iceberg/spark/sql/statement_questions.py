"""The questions of the bridge about Iceberg's SQL extensions, by their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spark.sql.execution import ReadStatement, RunStatement, read_statement, run_statement
from hms_iceberg.storage import Storage


def answered(asked: Mapping[str, Any], catalogs: OpenCatalogs, storage: Storage) -> dict[str, Any] | None:
    """The answer to a question about a statement; None if it is another kind of question."""
    call = asked["call"]
    if call == "read-statement":
        return read_statement(msgspec.convert(asked, ReadStatement))
    if call == "run-statement":
        run_statement(catalogs.table(asked, storage), msgspec.convert(asked, RunStatement))
        return {}
    return None
