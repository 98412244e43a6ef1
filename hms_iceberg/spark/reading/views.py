"""What Spark's analyzer is told of an Iceberg view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spec.views.view_metadata import SQLViewRepresentation, ViewVersion
from hms_iceberg.storage import Storage
from hms_iceberg.view.commit import read_view


def describe_view(question: Mapping[str, Any], storage: Storage) -> dict[str, Any]:
    """The current version of a view.

    Args:
        question: the view's `name` and its `metadata_location`.
        storage: where its metadata is.

    Returns:
        its `sql`, the `catalog` (null for the view's own) and `namespace` of what that names, its `schema` and its
        `properties`.

    Raises:
        UnsupportedError: it has no query in SQL.
    """
    metadata = read_view(question["metadata_location"], storage).metadata
    version = metadata.current_version()
    return {
        "sql": _query(version, question["name"]),
        "catalog": version.default_catalog,
        "namespace": list(version.default_namespace),
        "schema": spark_schema(metadata.schema(), question["name"]),
        "properties": dict(metadata.properties),
    }


def _query(version: ViewVersion, name: str) -> str:
    """Spark's, or else the first there is, as Iceberg's Java has it."""
    queries = [each for each in version.representations if isinstance(each, SQLViewRepresentation)]
    found = version.sql_for("spark") or next(iter(queries), None)
    if found is None:
        raise UnsupportedError(f"Cannot query the view {name}: none of its representations is SQL. Replace the view.")
    return found.sql
