"""Scans that a REST catalog plans. Source: Iceberg's REST protocol, `planTableScan` and `fetchScanTasks`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hms_iceberg.errors import CorruptFileError, MetastoreError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.bound import BoundVariantGet
from hms_iceberg.expressions.json_filters import FilterReader, filter_to_json
from hms_iceberg.expressions.literals import Operator
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import bound_predicates
from hms_iceberg.metastore import Identifier
from hms_iceberg.rest_client.channel import RestChannel, table_path
from hms_iceberg.scan.metadata_filter import is_of_table
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.scan.tasks import FileScanTask, ScanRequest, TaskPlanner
from hms_iceberg.spec.data_types import StructType
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent
from hms_iceberg.spec.property_kinds import ChoiceProperty
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_json

_MODE = ChoiceProperty(
    "scan-planning-mode", "Who plans scans: `client` or `server`.", "rest_client", "client", ("client", "server")
)
# What the protocol does not have.
_UNKNOWN = (Operator.INTERSECTS_BOX, Operator.NOT_INTERSECTS_BOX)
_ENDPOINT = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan"
_LONGEST_WAIT = 5.0
_CONTENTS = {
    "data": DataFileContent.DATA,
    "position-deletes": DataFileContent.POSITION_DELETES,
    "equality-deletes": DataFileContent.EQUALITY_DELETES,
}


def planner(channel: RestChannel, identifier: Identifier, config: Mapping[str, str]) -> TaskPlanner | None:
    """A planner that lets the server plan a table's scans; None unless `scan-planning-mode` is `server` and the
    server can."""
    if _MODE.of(config) != "server" or _ENDPOINT not in channel.endpoints:
        return None
    return lambda request: _planned(channel, table_path(identifier), request)


def _planned(channel: RestChannel, path: str, request: ScanRequest) -> Iterator[FileScanTask] | None:
    metadata, schema = request.metadata, request.schema
    snapshot = None if request.snapshot_id is None else metadata.snapshots_by_id.get(request.snapshot_id)
    if snapshot is None or schema is None:
        return None
    row_filter = bind(schema, request.row_filter, request.case_sensitive)
    if not all(is_of_table(each) for each in bound_predicates(row_filter)):
        return None  # of metadata columns, which the protocol does not have
    tests = list(bound_predicates(row_filter))
    if any(each.operation in _UNKNOWN or isinstance(each.term, BoundVariantGet) for each in tests):
        return None
    uses_snapshot_schema = schema.fields != metadata.schema().fields
    if uses_snapshot_schema and schema.fields != metadata.schema_for_snapshot(snapshot).fields:
        return None
    body: dict[str, Any] = {"snapshot-id": snapshot.snapshot_id, "use-snapshot-schema": uses_snapshot_schema}
    if not isinstance(row_filter, AlwaysTrue):
        body["filter"] = filter_to_json(row_filter)
    response = channel.ask(f"{path}/plan", body, "table")
    return _Tasks(channel, path, request, schema, row_filter).all(response)


class _Tasks:
    """Reads the tasks of one plan."""

    def __init__(
        self, channel: RestChannel, path: str, request: ScanRequest, schema: Schema, row_filter: BooleanExpression
    ) -> None:
        self._channel = channel
        self._path = path
        self._snapshot_id = request.snapshot_id
        self._schema = schema
        self._row_filter = row_filter
        self._structs = partition_columns(request.metadata).structs
        self._residuals: dict[str, BooleanExpression] = {}

    def all(self, response: Mapping[str, Any]) -> Iterator[FileScanTask]:
        """The tasks of a plan, in pages that are fetched as they are needed."""
        response, wait = dict(response), 0.05
        plan_id = response.get("plan-id")
        while response.get("status") == "submitted":
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
            response = self._channel.get(f"{self._path}/plan/{plan_id}", "table")
        if response.get("status") != "completed":
            why = (response.get("error") or {}).get("message", f"its plan is {response.get('status')!r}")
            raise MetastoreError(f"The REST catalog at {self._channel} could not plan the scan: {why}")
        yield from self._of(response)
        waiting = list(response.get("plan-tasks") or ())
        while waiting:
            page = self._channel.ask(f"{self._path}/tasks", {"plan-task": waiting.pop(0)}, "table")
            yield from self._of(page)
            waiting += page.get("plan-tasks") or ()

    def _of(self, page: Mapping[str, Any]) -> Iterator[FileScanTask]:
        deletes = [self._file(each) for each in page.get("delete-files") or ()]
        for each in page.get("file-scan-tasks") or ():
            mine = tuple(deletes[number] for number in each.get("delete-file-references") or ())
            yield FileScanTask.of(
                self._file(each["data-file"]),
                mine,
                self._residual(each),
                delete_sequence_numbers=(0,) * len(mine),
                snapshot_id=self._snapshot_id,
            )

    def _residual(self, task: Mapping[str, Any]) -> BooleanExpression:
        if "residual-filter" not in task or isinstance(self._row_filter, AlwaysTrue):
            return self._row_filter
        text = json.dumps(task["residual-filter"])
        if text not in self._residuals:
            read = FilterReader(self._schema, True).read(task["residual-filter"])
            self._residuals[text] = bind(self._schema, read, True)
        return self._residuals[text]

    def _file(self, data: Mapping[str, Any]) -> DataFile:
        spec_id = data["spec-id"]
        if spec_id not in self._structs or data["content"] not in _CONTENTS:
            raise CorruptFileError(f"The REST catalog at {self._channel} told of a file that cannot be: {data}")
        return DataFile(
            file_path=data["file-path"],
            file_format=data["file-format"].upper(),
            record_count=data["record-count"],
            file_size_in_bytes=data["file-size-in-bytes"],
            content=_CONTENTS[data["content"]],
            spec_id=spec_id,
            partition=_partition(data.get("partition") or (), self._structs[spec_id]),
            key_metadata=bytes.fromhex(data["key-metadata"]) if data.get("key-metadata") else None,
            split_offsets=_numbers(data.get("split-offsets")),
            equality_ids=_numbers(data.get("equality-ids")),
            sort_order_id=data.get("sort-order-id"),
            first_row_id=data.get("first-row-id"),
            referenced_data_file=data.get("referenced-data-file"),
            content_offset=data.get("content-offset"),
            content_size_in_bytes=data.get("content-size-in-bytes"),
        )


def _partition(values: Sequence[Any] | Mapping[str, Any], struct: StructType) -> tuple[Any, ...]:
    """A partition's stored values, given in the order of the fields, or by field ids as Iceberg's Java does."""
    if isinstance(values, Mapping):
        values = [values.get(str(field.field_id)) for field in struct.fields]
    return tuple(from_json(field.field_type, value) for field, value in zip(struct.fields, values, strict=True))


def _numbers(values: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)
