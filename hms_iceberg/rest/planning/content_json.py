"""Files of a plan as the protocol has them. Source: Iceberg's REST protocol, `ContentFile`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from hms_iceberg.expressions.json_filters import filter_to_json
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.delete_keys import key_metric_columns
from hms_iceberg.scan.delete_runs import pairs_of
from hms_iceberg.scan.tasks import ScanPlan, content_files, residuals
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.values.single_values import to_json

_CONTENTS = {
    DataFileContent.DATA: "data",
    DataFileContent.POSITION_DELETES: "position-deletes",
    DataFileContent.EQUALITY_DELETES: "equality-deletes",
}
# In the order of `key_metric_columns`.
_METRICS = ("value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")


def tasks_json(
    plan: ScanPlan, start: int, length: int, stats: Collection[int] = (), left: Any = None
) -> dict[str, Any]:
    """The data files `start` to `start + length` of a plan, with metrics of the fields `stats`, and the delete files
    that apply to them; `left` is a filter for all rows instead of the plan's residuals."""
    rows = plan.files.slice(start, length)
    types = {spec_id: _partition_types(plan, spec_id) for spec_id in plan.metadata.specs_by_id}
    files = content_files(rows, plan.partitions)
    remains, written = residuals(plan), lru_cache(1000)(_residual_json)
    # Iceberg's Java implementation fails on a partitioned table without a residual.
    tasks: list[dict[str, Any]] = [
        {
            "data-file": _file_json(file, types[file.spec_id]),
            "residual-filter": written(remains(file)) if left is None else left,
        }
        for file in files
    ]
    for task, number in zip(tasks, rows["sequence_number"].to_list(), strict=True):
        if "first-row-id" in task["data-file"]:  # as in Apache Iceberg: for `_last_updated_sequence_number`
            task["data-file"]["data-sequence-number"] = number
    for task, metrics in zip(tasks, _metrics_json(rows, stats), strict=bool(stats)):
        task["data-file"].update(metrics)
    deletes: list[dict[str, Any]] = []
    if plan.has_deletes:
        runs = plan.assignments.filter(plan.assignments["data_file"].is_between(start, start + rows.height - 1))
        part = pairs_of(runs)
        used = part["delete_file"].unique().sort()
        numbers = {row: number for number, row in enumerate(used.to_list())}
        of_plan = content_files(plan.delete_files[used.to_list()], plan.partitions) if numbers else []
        deletes = [_file_json(file, types[file.spec_id]) for file in of_plan]
        for data_file, delete_file in part.iter_rows():
            tasks[data_file - start].setdefault("delete-file-references", []).append(numbers[delete_file])
    return {"file-scan-tasks": tasks, "delete-files": deletes}


def _metrics_json(rows: pl.DataFrame, stats: Collection[int]) -> Iterator[dict[str, Any]]:
    """The metrics of each file, as maps from field id; bounds as stored, in hexadecimal digits."""
    nothing = pl.Series([None] * rows.height)
    columns = {
        field_id: [rows.get_column(name, default=nothing).to_list() for name in key_metric_columns(field_id)]
        for field_id in sorted(stats)
    }
    for row in range(rows.height if stats else 0):
        maps: dict[str, Any] = {}
        for field_id, series in columns.items():
            for name, values in zip(_METRICS, series, strict=True):
                value = values[row]
                if value is not None:
                    entries = maps.setdefault(name, {"keys": [], "values": []})
                    entries["keys"].append(field_id)
                    entries["values"].append(value.hex() if isinstance(value, bytes) else value)
        yield maps


def _residual_json(residual: BooleanExpression) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(filter_to_json(residual)))


def _partition_types(plan: ScanPlan, spec_id: int) -> list[IcebergType]:
    struct = plan.partitions.structs.get(spec_id)
    return [] if struct is None else [field.field_type for field in struct.fields]


def _file_json(file: DataFile, types: list[IcebergType]) -> dict[str, Any]:
    partition = [
        None if value is None else to_json(kind, value) for kind, value in zip(types, file.partition, strict=True)
    ]
    body: dict[str, Any] = {
        "spec-id": file.spec_id,
        "content": _CONTENTS[file.content],
        "file-path": file.file_path,
        "file-format": str(file.file_format).lower(),
        "partition": partition,
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    optional = {
        "key-metadata": None if file.key_metadata is None else file.key_metadata.hex(),
        "split-offsets": None if file.split_offsets is None else list(file.split_offsets),
        "equality-ids": None if file.equality_ids is None else list(file.equality_ids),
        "sort-order-id": file.sort_order_id,
        "first-row-id": file.first_row_id,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_in_bytes,
    }
    body.update((key, value) for key, value in optional.items() if value is not None)
    return body
