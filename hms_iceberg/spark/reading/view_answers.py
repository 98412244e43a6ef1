"""What Spark's analyzer is told of an Iceberg view."""

from __future__ import annotations

from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spark.read_questions import LoadView
from hms_iceberg.spark.schemas import spark_schema
from hms_iceberg.spec.views.view_metadata import SQLViewRepresentation, ViewMetadata, ViewVersion
from hms_iceberg.storage import Storage
from hms_iceberg.view.commit import read_view

QUERY_COLUMN_NAMES = "spark.query-column-names"
RESERVED = ("provider", "location", "format-version", QUERY_COLUMN_NAMES)
"""What statements may neither set nor unset."""


def describe_view(asked: LoadView, storage: Storage) -> dict[str, Any]:
    """The current version of a view.

    Args:
        asked: the view.
        storage: where its metadata is.

    Returns:
        its `sql`, the `catalog` (null for the view's own) and `namespace` of what that names, its `schema`, its
        `properties`, the properties that statements show (`shown_properties`), and the names of the columns of its
        query (`query_columns`; none if no engine left them).

    Raises:
        UnsupportedError: it has no query in SQL.
    """
    metadata = read_view(asked.metadata_location, storage).metadata
    version = metadata.current_version()
    return {
        "sql": _query(version, asked.name),
        "catalog": version.default_catalog,
        "namespace": list(version.default_namespace),
        "schema": spark_schema(metadata.schema(), asked.name),
        "properties": dict(metadata.properties),
        "shown_properties": _shown(metadata),
        "query_columns": list(filter(None, metadata.properties.get(QUERY_COLUMN_NAMES, "").split(","))),
    }


def _shown(metadata: ViewMetadata) -> dict[str, str]:
    own = {key: value for key, value in metadata.properties.items() if key not in RESERVED}
    return {
        "provider": "iceberg",
        "location": metadata.location,
        "format-version": str(metadata.format_version),
        **own,
    }


def _query(version: ViewVersion, name: str) -> str:
    """The view's query for Spark, or its first query if there is none, as Iceberg's Java does."""
    queries = [each for each in version.representations if isinstance(each, SQLViewRepresentation)]
    found = version.sql_for("spark") or next(iter(queries), None)
    if found is None:
        raise UnsupportedError(f"Cannot query the view {name}: none of its representations is SQL. Replace the view.")
    return found.sql
