"""Ways up: what a value hands out that a higher room makes, as `schema.as_arrow()` and `table.maintenance` do.

Imports go down only, so that a lower room cannot import a higher one. It asks here by a name instead, and the higher
room is imported when it is asked for. This table is the whole of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SPEC = "hms_iceberg.spec"
_HOMES = {
    # The JSON of values, each as "to" and "from".
    "type.to_json": f"{_SPEC}.schema_json:type_to_json",
    "type.from_json": f"{_SPEC}.schema_json:type_from_json",
    "field.to_json": f"{_SPEC}.schema_json:field_to_json",
    "field.from_json": f"{_SPEC}.schema_json:field_from_json",
    "schema.to_json": f"{_SPEC}.schema_json:schema_to_json",
    "schema.from_json": f"{_SPEC}.schema_json:schema_from_json",
    "spec.to_json": f"{_SPEC}.partitions.partition_specs:spec_to_json",
    "spec.from_json": f"{_SPEC}.partitions.partition_specs:spec_from_json",
    "partition_field.to_json": f"{_SPEC}.partitions.partition_specs:field_to_json",
    "partition_field.from_json": f"{_SPEC}.partitions.partition_specs:field_from_json",
    "sort_order.to_json": f"{_SPEC}.sort_orders:sort_order_to_json",
    "sort_order.from_json": f"{_SPEC}.sort_orders:sort_order_from_json",
    "sort_field.to_json": f"{_SPEC}.sort_orders:field_to_json",
    "sort_field.from_json": f"{_SPEC}.sort_orders:field_from_json",
    "transform.to_json": "builtins:str",
    "transform.from_json": f"{_SPEC}.partition_transforms:parse_transform",
    "summary.to_json": "builtins:dict",
    "summary.from_json": f"{_SPEC}.snapshots_and_refs:Summary.of",
    "snapshot.to_json": f"{_SPEC}.metadata.snapshot_json:snapshot_to_json",
    "snapshot.from_json": f"{_SPEC}.metadata.snapshot_json:snapshot_from_json",
    "ref.to_json": f"{_SPEC}.metadata.snapshot_json:ref_to_json",
    "ref.from_json": f"{_SPEC}.metadata.snapshot_json:ref_from_json",
    "snapshot_log.to_json": f"{_SPEC}.metadata.snapshot_json:snapshot_log_to_json",
    "snapshot_log.from_json": f"{_SPEC}.metadata.snapshot_json:snapshot_log_from_json",
    "metadata_log.to_json": f"{_SPEC}.metadata.snapshot_json:metadata_log_to_json",
    "metadata_log.from_json": f"{_SPEC}.metadata.snapshot_json:metadata_log_from_json",
    "statistics.to_json": f"{_SPEC}.metadata.snapshot_json:statistics_to_json",
    "statistics.from_json": f"{_SPEC}.metadata.snapshot_json:statistics_from_json",
    "partition_statistics.to_json": f"{_SPEC}.metadata.snapshot_json:partition_statistics_to_json",
    "partition_statistics.from_json": f"{_SPEC}.metadata.snapshot_json:partition_statistics_from_json",
    "name_mapping.to_json": f"{_SPEC}.field_mapping:name_mapping_to_list",
    "name_mapping.from_json": f"{_SPEC}.field_mapping:name_mapping_from_list",
    "metadata.to_json": f"{_SPEC}.metadata.metadata_json:metadata_to_dict",
    "metadata.from_json": f"{_SPEC}.metadata.metadata_json:metadata_from_dict",
    "view_metadata.to_json": f"{_SPEC}.views.view_metadata_json:view_metadata_to_dict",
    "view_metadata.from_json": f"{_SPEC}.views.view_metadata_json:view_metadata_from_dict",
    # What is read from files.
    "manifest.entries": f"{_SPEC}.manifests.manifest_avro:decode_manifest",
    "snapshot.manifests": "hms_iceberg.scan.manifests.manifest_source:manifests_of",
    # What is bound to a schema.
    "expression.bind": "hms_iceberg.expressions.binding:bind",
    # Arrow.
    "schema.to_arrow": "hms_iceberg.arrow.columns.arrow_schema:to_arrow",
    "transform.to_arrow": "hms_iceberg.arrow.columns.column_transforms:arrow_transform",
    # Applications.
    "table.maintenance": "hms_iceberg.maintenance.table_maintenance:TableMaintenance",
    # What notebooks show.
    "table.to_html": "hms_iceberg.report.notebook:table_html",
    "scan.to_html": "hms_iceberg.report.notebook:scan_html",
    "schema.to_html": "hms_iceberg.report.notebook:schema_html",
    "snapshot.to_html": "hms_iceberg.report.notebook:snapshot_html",
    "spec.to_html": "hms_iceberg.report.notebook:spec_html",
    "catalog.to_html": "hms_iceberg.report.notebook:catalog_html",
}


def door(name: str) -> Any:
    """The function or class behind a name of the table above.

    Raises:
        KeyError: there is no such name.
    """
    module, _, path = _HOMES[name].partition(":")
    value: Any = import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


def names() -> list[str]:
    """All names that `door` knows."""
    return list(_HOMES)
