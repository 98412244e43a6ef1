"""How a group of files is read and written by Spark, as Apache Iceberg's actions do it.

Source: Iceberg documentation, "Spark Procedures", `rewrite_data_files`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.maintenance.rewrite.file_groups import FileGroup
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite
from hms_iceberg.scan.tasks import FileScanTask
from hms_iceberg.spark.writing.distribution import Distribution, clustered_order, sort_key, write_distribution
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED

_OVERHEAD = 5 * 1024 * 1024  # of a split, so that a group is not cut into one file too many


def split_size(group: FileGroup[FileScanTask]) -> int:
    """How much of a group one task reads: as much as becomes one file."""
    return int(min(group.input_bytes // max(1, group.output_files) + _OVERHEAD, max(group.output_bytes, _OVERHEAD)))


def write_settings(
    rewrite: DataFileRewrite, group: FileGroup[FileScanTask], session: Mapping[str, str]
) -> WriteSettings:
    """The settings of a group's write: what the plan says, before the session and the table's properties."""
    options = {
        "target-file-size-bytes": str(group.output_bytes),
        "output-spec-id": str(rewrite.plan.output_spec_id),
    }
    if rewrite.layout.zorder:
        options["use-table-distribution-and-ordering"] = "false"  # the rows come along the curve
    elif rewrite.layout.order is not None:
        options["output-sort-order-id"] = str(rewrite.layout.order.order_id)
    else:
        options["distribution-mode"] = "range" if _moves(rewrite, group) else "none"
    return WriteSettings(rewrite.name, options, session, rewrite.table.metadata.properties)


def group_distribution(
    rewrite: DataFileRewrite, group: FileGroup[FileScanTask], settings: WriteSettings
) -> Distribution:
    """How a group's rows are wanted: sorted into ranges, a file each, or as they come.

    Args:
        rewrite: the rewriting.
        group: one of its groups.
        settings: of the group's write.
    """
    metadata = rewrite.table.metadata
    schema, spec = metadata.schema(), metadata.spec_by_id(rewrite.plan.output_spec_id)
    order = rewrite.layout.order
    if order is None:
        return write_distribution(settings, schema, spec, metadata.sort_order(), has_functions=True)
    into = spec if _moves(rewrite, group) else UNPARTITIONED
    keys = tuple(sort_key(each, schema) for each in clustered_order(into, order))
    return Distribution(ranges=keys, ordering=keys, fanout=False, partitions=max(1, group.output_files))


def _moves(rewrite: DataFileRewrite, group: FileGroup[FileScanTask]) -> bool:
    """Whether the rows go into other partitions than they are in."""
    return group.items[0].file.spec_id != rewrite.plan.output_spec_id
