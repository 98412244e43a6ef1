"""The columns of metadata tables beside those of Apache Iceberg (Java)."""

from __future__ import annotations

from typing import Any

import pytest

from hms_iceberg.scan.metadata_tables import METADATA_TABLES
from hms_iceberg.spark.read_questions import DescribeMetadataTable
from hms_iceberg.spark.reading.metadata_tables import describe_inspection
from hms_iceberg.spark.schemas import metadata_schema

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# Java says that these have no nulls. Manifest lists of format version 1 may leave counts out, and older ones NaN.
MAY_BE_NULL = {
    "manifests": {"added_data_files_count", "existing_data_files_count", "deleted_data_files_count"},
    "all_manifests": {"partition_summaries.contains_nan"},
}


def columns(struct: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, bool, str | None]]:
    """The type, nullability and comment of each field, by its path."""
    found: dict[str, tuple[Any, bool, str | None]] = {}
    for field in struct["fields"]:
        path, kind = f"{prefix}{field['name']}", field["type"]
        nested = kind.get("elementType", kind) if isinstance(kind, dict) else None
        is_struct = isinstance(nested, dict) and nested["type"] == "struct"
        shown = (kind["type"], kind.get("containsNull")) if is_struct else kind
        found[path] = (shown, field["nullable"], field["metadata"].get("comment"))
        if is_struct:
            found.update(columns(nested, f"{path}."))
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_columns_have_the_types_nullability_and_comments_of_java(
    iceberg_java: Any, catalog: Any, namespace: str, version: int
) -> None:
    name = f"{namespace}.described_{version}"
    iceberg_java.sql(
        f"create table ice.{name} (id bigint not null comment 'key', city string, place struct<x: double>) "
        f"using iceberg partitioned by (city, bucket(4, id)) tblproperties ('format-version' = '{version}')"
    )
    for gone in ("partition field bucket(4, id)", *(["partition field city", "column city"] if version > 1 else [])):
        iceberg_java.sql(f"alter table ice.{name} drop {gone}")
    iceberg_java.sql(f"alter table ice.{name} add partition field truncate(10, id)")
    table = catalog.load_table(name)
    hidden = columns(metadata_schema(table.metadata, table.schema()))
    of_java = columns(iceberg_java.schema(f"select _partition from ice.{name}"))
    assert [(path, hidden[path][0]) for path in hidden if path.startswith("_partition")] == [
        (path, kind) for path, (kind, _, _) in of_java.items()
    ]
    for kind in (*METADATA_TABLES, "position_deletes"):
        asked = DescribeMetadataTable(name, table.metadata_location, kind=kind)
        found = columns(describe_inspection(table.metadata, table.io, asked)["schema"])
        wanted = columns(iceberg_java.schema(f"select * from ice.{name}.{kind}"))
        for column in MAY_BE_NULL.get(kind, ()):
            shown, nullable, comment = wanted[column]
            assert not nullable
            wanted[column] = (shown, True, comment)
        assert found == wanted, kind
        assert list(found) == list(wanted), kind
    iceberg_java.sql(f"drop table ice.{name} purge")
