"""The answer to the question for the files of a scan."""

from __future__ import annotations

import logging

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.scan.appends import snapshot_or_current
from hms_iceberg.scan.metadata_filter import with_metadata_columns
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.read_questions import PlanScan
from hms_iceberg.spark.reading.conditions import named_columns, row_filter
from hms_iceberg.spark.reading.distributed_planning import PlanningJob, planned
from hms_iceberg.spark.reading.metadata_answers import metadata_answers, row_counts
from hms_iceberg.spark.reading.plan_answer import AnswerForm, plan_answer
from hms_iceberg.spark.reading.streams import plan_batch
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)


def answer_form(asked: PlanScan) -> AnswerForm:
    """What the answer has beside the files."""
    return AnswerForm(asked.lacking_types, asked.partition_column, asked.deleted_column)


def scan_answer(metadata: TableMetadata, storage: Storage, asked: PlanScan) -> bytes:
    """The files of a scan, the answers that metadata gives in their place, or what executors have to do before.

    Args:
        metadata: the table.
        storage: where its files are.
        asked: what was selected.

    Raises:
        IcebergError: the scan cannot be planned.
    """
    form = answer_form(asked)
    if asked.batch is not None:
        return plan_answer(plan_batch(metadata, storage, asked.name, asked.schema_id, asked.batch), asked.name, form)
    schema = metadata.schema_by_id(asked.schema_id)
    if asked.filter is not None:
        schema = with_metadata_columns(metadata, schema, named_columns(asked.filter) - {DELETED.name})
    wanted, exact = row_filter(asked.filter, schema)
    aggregates = asked.aggregates if exact else None
    answers = None
    if aggregates and isinstance(wanted, AlwaysTrue) and asked.start_snapshot_id is None:
        answers = row_counts(snapshot_or_current(metadata, asked.snapshot_id), aggregates, storage)
    if answers is None:
        found, is_filtered = _plan(metadata, storage, asked, schema, wanted)
        if isinstance(found, PlanningJob):
            return AnswerWriter({"tasks": len(found.tasks)}).blobs([found.command, *found.tasks]).done()
        answers = metadata_answers(found, aggregates, storage) if aggregates and is_filtered else None
    if answers is not None:
        found = planned(metadata, storage, asked, schema, AlwaysFalse())  # no file is read
    assert isinstance(found, ScanPlan)
    return plan_answer(found, asked.name, form, answers)


def _plan(
    metadata: TableMetadata, storage: Storage, asked: PlanScan, schema: Schema, wanted: BooleanExpression
) -> tuple[ScanPlan | PlanningJob, bool]:
    """The plan, or the job that executors must do first; and whether the plan applies the filter."""
    try:
        return planned(metadata, storage, asked, schema, wanted), True
    except InvalidInputError:
        if isinstance(wanted, AlwaysTrue):
            raise
        # Spark compares what Iceberg will not; the filter only saves work, so it can be left out.
        logger.debug("Planning without the filter %s", wanted, exc_info=True)
        return planned(metadata, storage, asked, schema, AlwaysTrue()), False
