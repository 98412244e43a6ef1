"""The plan of a scan: the questions for it, and its answer as the bridge reads it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.appends import AppendRequest, plan_appends, snapshot_or_current
from hms_iceberg.scan.metadata_filter import with_metadata_columns
from hms_iceberg.scan.planner import plan_scan
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.nanoseconds import chosen, has_nanoseconds
from hms_iceberg.spark.read_questions import PlanScan
from hms_iceberg.spark.reading.column_statistics import column_statistics
from hms_iceberg.spark.reading.conditions import named_columns, row_filter
from hms_iceberg.spark.reading.deletes_of_plan import DeletesOfPlan
from hms_iceberg.spark.reading.identity_columns import Identities
from hms_iceberg.spark.reading.metadata_answers import metadata_answers, row_counts
from hms_iceberg.spark.reading.streams import plan_batch
from hms_iceberg.spark.reading.worker_files import pickled_tasks, split
from hms_iceberg.spark.schemas import is_held, spark_field, spark_type, spark_value
from hms_iceberg.spec.data_types import NestedField, StructType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETED, partition_column
from hms_iceberg.spec.partitions.partition_specs import PartitionField
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.transform import UnknownTransform
from hms_iceberg.storage import Storage


@dataclass(frozen=True)
class AnswerForm:
    """Options for the form of the answer to a scan."""

    lacking_types: tuple[str, ...] = ()  # the names of Iceberg's types that this Spark does not have
    partition_column: bool = False  # whether the query uses ``_partition``
    deleted_column: bool = False  # whether the query uses ``_deleted``, and so gets deleted rows too
    constants: tuple[tuple[NestedField, Any], ...] = ()
    row_counts: bool = False  # whether it tells how many rows each file has


def plan_answer(
    whole: ScanPlan,
    table: str,
    form: AnswerForm,
    aggregates: Sequence[Any] | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> bytes:
    """The bridge's answer for a plan: a header, then columns of paths, sizes and numbers of files and deletes;
    `aggregates` are the query's answers if metadata knows them, `statistics` as of `column_statistics`."""
    plan, in_workers = split(whole, form.lacking_types)
    partitions = _Partitions(plan, table, form.partition_column, form.constants)
    deletes = DeletesOfPlan(plan, table)
    formats = plan.files["file_format"].str.to_uppercase()
    kinds = formats.unique(maintain_order=True).to_list()
    is_keyed = plan.files["key_metadata"].null_count() < plan.files.height
    header = {
        "files": plan.files.height,
        "keyed": is_keyed,
        "formats": kinds,
        "rows": int(whole.files["record_count"].sum() or 0),
        "description": _description(whole, table, in_workers.files.height if in_workers else 0),
        "aggregates": aggregates,
        "statistics": statistics or {},
        "deleted_column": form.deleted_column,
        "row_counts": form.row_counts,
        "worker_files": in_workers.files.height if in_workers else 0,
        "name_mapping": _name_mapping(plan),
        "partition_schema": partitions.schema,
        "partitions": partitions.tuples,
        "specs": partitions.specs,
        **deletes.header,
    }
    answer = AnswerWriter(header)
    answer.texts(plan.files["file_path"])
    answer.longs(plan.files["file_size_in_bytes"])
    answer.longs(plan.files["sequence_number"].fill_null(0))
    answer.longs(plan.files["first_row_id"].fill_null(-1))
    if form.row_counts:
        answer.longs(plan.files["record_count"])
    answer.ints(partitions.numbers)
    if len(kinds) > 1:
        answer.ints(formats.replace_strict(kinds, range(len(kinds)), return_dtype=pl.Int32))
    if is_keyed:
        answer.blobs([key or b"" for key in plan.files["key_metadata"].to_list()])
    deletes.add_to(answer)
    if in_workers:
        answer.texts(in_workers.files["file_path"])
        answer.longs(in_workers.files["file_size_in_bytes"])
        answer.blobs(pickled_tasks(in_workers))
    return answer.done()


def _description(plan: ScanPlan, table: str, in_workers: int) -> str:
    snapshot = "no snapshot" if plan.snapshot is None else f"snapshot {plan.snapshot.snapshot_id}"
    metrics = plan.metrics
    skipped = metrics.manifests_total - metrics.manifests_kept
    text = f"{table} at {snapshot}: {plan.files.height} of {metrics.files_total} files"
    if skipped:
        text += f" ({skipped} of {metrics.manifests_total} manifests skipped)"
    if plan.delete_files.height:
        text += f", {plan.delete_files.height} delete files"
    if in_workers:
        text += f", {in_workers} read by Python"
    wanted = plan.row_filter if plan.file_filter is None else plan.file_filter
    return f"{text}, planned for {wanted}"


def _name_mapping(plan: ScanPlan) -> Any:
    mapping = plan.metadata.name_mapping()
    return None if mapping is None else json.loads(mapping.to_json())


class _Partitions:
    """The distinct partitions of the planned files, and what they say of columns: one by whose own value every file is
    partitioned becomes a partition column of Spark's relation, which need not be read, and prunes at run time; other
    columns are found in the files."""

    def __init__(
        self, plan: ScanPlan, table: str, whole: bool, constants: tuple[tuple[NestedField, Any], ...] = ()
    ) -> None:
        self._plan, self._table = plan, table
        self._whole = partition_column(plan.metadata.partition_specs, plan.schema).field_type if whole else None
        self._known = Identities(plan.metadata, plan.schema)
        spec_ids = sorted(plan.files["spec_id"].unique().to_list())
        identities = {spec_id: self._identities(spec_id) for spec_id in spec_ids}
        # Plans with further constants are read together, so that all have the same partition columns.
        self._common = [] if constants else self._known.shared(spec_ids)
        self._constants = [spark_value(each.field_type, value) for each, value in constants]
        columns = sorted({column for spec_id in spec_ids for column in plan.partitions.columns(spec_id)})
        tuples, self.numbers = _numbered(plan.files, columns)
        told = [*self._common, *(each for each, _ in constants)]
        self.schema = {"type": "struct", "fields": [_nullable(spark_field(each, table)) for each in told]}
        self.tuples = [self._tuple(row, identities[row["spec_id"]]) for row in tuples.iter_rows(named=True)]
        self.specs = {spec_id: self._fields(spec_id) for spec_id in spec_ids}

    def _identities(self, spec_id: int) -> dict[int, str]:
        """Source ids of the identity fields of a spec, and the frame's columns with their values."""
        columns = self._plan.partitions.columns(spec_id)
        return {source_id: columns[number] for source_id, number in self._known.of(spec_id).items()}

    def _tuple(self, row: dict[str, Any], identities: dict[int, str]) -> dict[str, Any]:
        constants: dict[str, Any] = {}
        for source_id, column in identities.items():
            field_type = self._known.read_type(source_id)
            name = self._plan.schema.find_column_name(source_id) or f"of id {source_id}"
            constants[str(source_id)] = [
                spark_type(field_type, self._table, name),
                spark_value(field_type, row[column]),
            ]
        values = [spark_value(each.field_type, row[identities[each.field_id]]) for each in self._common]
        values += self._constants
        told = {"spec_id": row["spec_id"], "values": values, "constants": constants, "fields": self._key(row)}
        return {**told, "partition": self._partition(row)} if self._whole else told

    def _key(self, row: dict[str, Any]) -> list[Any]:
        """The values of the partition's fields, in the order of its spec."""
        spec_id = row["spec_id"]
        fields = self._plan.partitions.structs[spec_id].fields
        columns = zip(fields, self._plan.partitions.columns(spec_id), strict=True)
        return [
            spark_value(field.field_type, row[column]) if is_held(field.field_type) else None
            for field, column in columns
        ]

    def _fields(self, spec_id: int) -> list[dict[str, Any] | None]:
        """How the bridge computes the values of a spec's fields; None for one that tells nothing of a column."""
        return [self._field(field) for field in self._plan.metadata.spec_by_id(spec_id).fields]

    def _field(self, field: PartitionField) -> dict[str, Any] | None:
        transform, schema = field.transform, self._plan.schema
        source = schema.index_by_id.get(field.source_id)
        if source is None or transform.is_void or isinstance(transform, UnknownTransform):
            return None
        known = [each.index_by_id.get(field.source_id) for each in self._plan.metadata.schemas]
        if not is_held(source.field_type) or {each.field_type for each in known if each} != {source.field_type}:
            return None  # a value of an older type may have another partition
        path = [field.source_id, *schema.ancestor_ids(field.source_id)][::-1]
        return {
            "transform": transform.name,
            "width": transform.argument,
            "path": [],
            "source": str(source.field_type),
            "type": spark_type(source.field_type, self._table, source.name),
            "column": [schema.index_by_id[each].name for each in path],
        }

    def _partition(self, row: dict[str, Any]) -> dict[int, Any]:
        """The values of the column _partition by field id; a field that the row's spec lacks is null."""
        assert isinstance(self._whole, StructType)
        spec = self._plan.metadata.spec_by_id(row["spec_id"])
        columns = zip(spec.fields, self._plan.partitions.columns(spec.spec_id), strict=True)
        values = {field.field_id: row[column] for field, column in columns}
        return {each.field_id: spark_value(each.field_type, values.get(each.field_id)) for each in self._whole.fields}


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    return {**field, "nullable": True, "metadata": {}}


def _numbered(files: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, pl.Series]:
    """The distinct partitions, and for each file the number of its own. 0.0 and -0.0 are two partitions."""
    keyed = files.select("spec_id", *columns).with_columns(
        (1.0 / pl.col(column) == float("-inf")).alias(f"{column} is -0.0")
        for column in columns
        if files.schema[column].is_float()
    )
    distinct = keyed.unique(maintain_order=True).with_row_index("number")
    numbers = keyed.join(distinct, on=keyed.columns, how="left", nulls_equal=True, maintain_order="left")["number"]
    return distinct, numbers


logger = logging.getLogger(__name__)


def answer_form(asked: PlanScan) -> AnswerForm:
    """Takes from a question how its answer is told: types, columns and form."""
    return AnswerForm(asked.lacking_types, asked.partition_column, asked.deleted_column, row_counts=asked.row_counts)


def scan_answer(metadata: TableMetadata, storage: Storage, asked: PlanScan) -> bytes:
    """The files of a scan, or the answers that metadata gives in their place."""
    form = answer_form(asked)
    if asked.batch is not None:
        return plan_answer(plan_batch(metadata, storage, asked.name, asked.schema_id, asked.batch), asked.name, form)
    schema = metadata.schema_by_id(asked.schema_id)
    if asked.filter is not None:
        schema = with_metadata_columns(metadata, schema, named_columns(asked.filter) - {DELETED.name})
    nanoseconds = chosen(asked.lacking_types)
    wanted, exact = row_filter(asked.filter, schema, nanoseconds)
    aggregates = asked.aggregates if exact else None
    if nanoseconds is not None and has_nanoseconds(schema) and any("column" in each for each in aggregates or ()):
        aggregates = None  # metadata has other values than Spark
    answers = None
    if aggregates and isinstance(wanted, AlwaysTrue) and asked.start_snapshot_id is None:
        answers = row_counts(snapshot_or_current(metadata, asked.snapshot_id), aggregates, storage)
    if answers is None:
        found, is_filtered = _plan(metadata, storage, asked, schema, wanted)
        answers = metadata_answers(found, aggregates, storage) if aggregates and is_filtered else None
    if answers is not None:
        found = _planned(metadata, storage, asked, schema, AlwaysFalse())  # no file is read
    statistics = column_statistics(found, asked.statistics, storage) if asked.statistics else None
    return plan_answer(found, asked.name, form, answers, statistics)


def _plan(
    metadata: TableMetadata, storage: Storage, asked: PlanScan, schema: Schema, wanted: BooleanExpression
) -> tuple[ScanPlan, bool]:
    """The plan, and whether it applies the filter."""
    try:
        return _planned(metadata, storage, asked, schema, wanted), True
    except InvalidInputError:
        if isinstance(wanted, AlwaysTrue):
            raise
        # Spark compares what Iceberg will not; the filter only saves work, so it can be left out.
        logger.debug("Planning without the filter %s", wanted, exc_info=True)
        return _planned(metadata, storage, asked, schema, AlwaysTrue()), False


def _planned(
    metadata: TableMetadata, storage: Storage, asked: PlanScan, schema: Schema, wanted: BooleanExpression
) -> ScanPlan:
    start, end = asked.start_snapshot_id, asked.snapshot_id
    if start is not None:
        return plan_appends(AppendRequest(metadata, start, end, row_filter=wanted, schema=schema), storage)
    request = ScanRequest(
        metadata, end, wanted, schema=schema, whole_files=asked.whole_files, all_deletes=asked.all_deletes
    )
    return plan_scan(request, storage)
