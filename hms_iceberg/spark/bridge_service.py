"""Answers the bridge: what a table is, and which files a scan of it has to read.

The bridge calls this object from JVM threads while the Python thread that runs a query waits for the JVM, so nothing
here may call the JVM.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.scan.appends import snapshot_or_current
from hms_iceberg.scan.metadata_filter import with_metadata_columns
from hms_iceberg.scan.scan_plan import ScanPlan
from hms_iceberg.spark.answers import AnswerWriter, sendable
from hms_iceberg.spark.catalog_questions import FindTable, InCatalog, OpenCatalog, OpenSessionCatalog
from hms_iceberg.spark.catalogs import (
    OpenCatalogs,
    find_table,
    list_namespaces,
    list_tables,
    list_views,
    namespace_properties,
    open_catalog,
    open_session_catalog,
)
from hms_iceberg.spark.ddl.definition_questions import answered as definition_answered
from hms_iceberg.spark.procedures.procedure_questions import answered as procedure_answered
from hms_iceberg.spark.read_questions import (
    CheckStream,
    DescribeMetadataTable,
    InspectRows,
    LatestOffset,
    LoadTable,
    LoadView,
    PlanScan,
    ReadChanges,
    WorkerCommand,
)
from hms_iceberg.spark.reading.changes import changed_rows, describe_changes
from hms_iceberg.spark.reading.conditions import named_columns, row_filter
from hms_iceberg.spark.reading.descriptions import describe, release
from hms_iceberg.spark.reading.distributed_planning import PlanningJob, planned
from hms_iceberg.spark.reading.inspection import describe_inspection, inspection_rows
from hms_iceberg.spark.reading.metadata_answers import metadata_answers, row_counts
from hms_iceberg.spark.reading.plan_answer import AnswerForm, plan_answer
from hms_iceberg.spark.reading.streams import check_stream, latest_offset, plan_batch
from hms_iceberg.spark.reading.view_answers import describe_view
from hms_iceberg.spark.reading.worker_files import worker_command
from hms_iceberg.spark.rewriting.runs import OpenRewrites
from hms_iceberg.spark.rowlevel.begin_rows import BeginRows, begin_rows
from hms_iceberg.spark.rowlevel.commit_rows import CommitRows, commit_rows
from hms_iceberg.spark.rowlevel.metadata_deletes import can_delete, delete_where
from hms_iceberg.spark.sql.statement_questions import answered as statement_answered
from hms_iceberg.spark.targets import Targets
from hms_iceberg.spark.writing.begin_write import begin_write
from hms_iceberg.spark.writing.commit_write import commit_write
from hms_iceberg.spark.writing.merge_schema import merge_schema, merges_schema
from hms_iceberg.spark.writing.write_questions import CommitWrite, DeleteWhere
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.metadata_columns import DELETED
from hms_iceberg.spec.schema import Schema
from hms_iceberg.storage import Storage
from hms_iceberg.table import Table
from hms_iceberg.transaction.metadata_files import read_version

logger = logging.getLogger(__name__)

_KEPT_TABLES = 64
_CATALOG_CALLS: Mapping[str, tuple[type, Callable[[OpenCatalogs, Any], dict[str, Any]]]] = {
    "catalog": (OpenCatalog, open_catalog),
    "namespaces": (InCatalog, list_namespaces),
    "namespace": (InCatalog, namespace_properties),
    "tables": (InCatalog, list_tables),
    "views": (InCatalog, list_views),
}
_ROW_CHANGES: Mapping[str, tuple[type, Callable[[Any, Table], dict[str, Any]]]] = {
    "can-delete": (DeleteWhere, can_delete),
    "delete-where": (DeleteWhere, delete_where),
    "commit-rows": (CommitRows, commit_rows),
}
_TABLE_CALLS: Mapping[str, tuple[type, Callable[[TableMetadata, Storage, Any], dict[str, Any]]]] = {
    "begin-rows": (BeginRows, begin_rows),
    "changes": (LoadTable, describe_changes),
    "load": (LoadTable, describe),
    "inspect": (DescribeMetadataTable, describe_inspection),
    "inspect-rows": (InspectRows, inspection_rows),
    "stream-check": (CheckStream, check_stream),
    "stream-latest": (LatestOffset, latest_offset),
}
_WRITE_CALLS = ("begin-write", "commit-write")


class BridgeService:
    """A ``java.util.function.Function`` from a question (JSON text) to an answer (bytes).

    Args:
        properties: storage properties.
        storage: a storage to use instead.

    Attributes:
        rewrites: the rewritings that are under way.
    """

    class Java:
        """What Py4J looks for."""

        implements = ("java.util.function.Function",)

    def __init__(self, properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> None:
        self._properties = dict(properties or {})
        self._storage = storage or ArrowStorage(self._properties)
        self._catalogs = OpenCatalogs()
        self._tables: OrderedDict[str, TableMetadata] = OrderedDict()
        self._targets = Targets(self._catalogs)
        self.rewrites = OpenRewrites()
        self._lock = threading.Lock()

    def apply(self, text: str) -> bytes:
        """One question; what goes wrong is part of the answer, so that the JVM can raise it as its own error."""
        try:
            question = json.loads(text)
            answer = self.rewrites.answered(question) if "rewrite" in question else None
            return sendable(self._answer(question) if answer is None else AnswerWriter(answer).done())
        except Exception as error:
            logger.debug("A question of Spark failed", exc_info=True)  # its text may hold secrets
            return AnswerWriter({"error": {"type": type(error).__name__, "message": str(error)}}).done()

    def toString(self) -> str:  # noqa: N802  (Py4J calls it)
        """For the JVM's messages."""
        return repr(self)

    def _answer(self, question: dict[str, Any]) -> bytes:
        call, storage = question["call"], self._storage_of(question)
        if call in _CATALOG_CALLS:
            kind, catalog_answer = _CATALOG_CALLS[call]
            return AnswerWriter(catalog_answer(self._catalogs, msgspec.convert(question, kind))).done()
        if call == "version":
            return AnswerWriter(release()).done()
        if call == "session-catalog":
            return self._session_catalog(msgspec.convert(question, OpenSessionCatalog))
        called = procedure_answered(question, self._catalogs, self.rewrites)
        if called is not None:
            return called
        answer = statement_answered(question, self._catalogs, storage)
        if answer is None:
            answer = definition_answered(question, self._targets, storage)
        if answer is not None:
            return AnswerWriter(answer).done()
        if call == "find":
            return AnswerWriter(find_table(self._catalogs, msgspec.convert(question, FindTable), storage)).done()
        if call in _WRITE_CALLS:
            return AnswerWriter(self._written(question, storage)).done()
        if call == "view":
            return AnswerWriter(describe_view(msgspec.convert(question, LoadView), storage)).done()
        if call in _ROW_CHANGES:
            kind, row_answer = _ROW_CHANGES[call]
            asked: Any = msgspec.convert(question, kind)
            seen_at = asked.decided.at if isinstance(asked, CommitWrite) else None
            table = self._catalogs.table_at(question, self._version(question, storage), seen_at, storage)
            return AnswerWriter(row_answer(asked, table)).done()
        metadata = self._metadata(question["metadata_location"], storage)
        if call == "plan":
            return self._planned(metadata, storage, msgspec.convert(question, PlanScan))
        if call == "changed-rows":
            return changed_rows(metadata, storage, msgspec.convert(question, ReadChanges))
        if call == "worker-command":
            asked = msgspec.convert(question, WorkerCommand)
            schema = metadata.schema_by_id(asked.schema_id)
            command = worker_command(metadata, schema, asked.columns, storage, asked.deleted_column)
            return AnswerWriter({}).blobs([command]).done()
        kind, table_answer = _TABLE_CALLS[call]
        return AnswerWriter(table_answer(metadata, storage, msgspec.convert(question, kind))).done()

    def _session_catalog(self, asked: OpenSessionCatalog) -> bytes:
        return AnswerWriter(open_session_catalog(self._catalogs, asked, self._properties)).done()

    def _storage_of(self, question: Mapping[str, Any]) -> Storage:
        if "rewrite" in question:
            return self.rewrites.of(question).storage
        return self._catalogs.storage(question, self._storage)

    def _written(self, question: dict[str, Any], storage: Storage) -> dict[str, Any]:
        version = None if "staged" in question else self._version(question, storage)
        metadata = version.metadata if version else self._targets.metadata(question, storage)
        if question["call"] == "begin-write":
            if merges_schema(question):
                location = merge_schema(question, self._targets, storage)
                question = {**question, "metadata_location": location}
                metadata = self._targets.metadata(question, storage)
            return begin_write(question, metadata, storage)
        asked = msgspec.convert(question, CommitWrite)
        table = None
        if version and asked.epoch is None:  # a stream goes on and on from the version that it began with
            table = self._catalogs.table_at(question, version, asked.decided.at, storage)
        with self._targets.transaction(question, storage, table) as transaction:
            commit_write(asked, transaction, metadata, is_staged=version is None)
        return {}

    def _version(self, question: Mapping[str, Any], storage: Storage) -> MetadataVersion:
        location = question["metadata_location"]
        return MetadataVersion(location, self._metadata(location, storage))

    def _planned(self, metadata: TableMetadata, storage: Storage, asked: PlanScan) -> bytes:
        form = AnswerForm(asked.time_type, asked.partition_column, asked.deleted_column)
        if asked.rewrite is not None:
            plan = self.rewrites.of({"rewrite": asked.rewrite}).plan(asked.rewrite["group"])
            return plan_answer(plan, asked.name, form)
        if asked.batch is not None:
            return plan_answer(
                plan_batch(metadata, storage, asked.name, asked.schema_id, asked.batch), asked.name, form
            )
        schema = metadata.schema_by_id(asked.schema_id)
        if asked.filter is not None:
            schema = with_metadata_columns(metadata, schema, named_columns(asked.filter) - {DELETED.name})
        wanted, exact = row_filter(asked.filter, schema)
        aggregates = asked.aggregates if exact else None
        answers = None
        if aggregates and isinstance(wanted, AlwaysTrue) and asked.start_snapshot_id is None:
            answers = row_counts(snapshot_or_current(metadata, asked.snapshot_id), aggregates, storage)
        if answers is None:
            found, is_filtered = self._plan(metadata, storage, asked, schema, wanted)
            if isinstance(found, PlanningJob):
                return AnswerWriter({"tasks": len(found.tasks)}).blobs([found.command, *found.tasks]).done()
            answers = metadata_answers(found, aggregates, storage) if aggregates and is_filtered else None
        if answers is not None:
            found = planned(metadata, storage, asked, schema, AlwaysFalse())  # no file is read
        assert isinstance(found, ScanPlan)
        return plan_answer(found, asked.name, form, answers)

    @staticmethod
    def _plan(
        metadata: TableMetadata, storage: Storage, asked: PlanScan, schema: Schema, wanted: BooleanExpression
    ) -> tuple[ScanPlan | PlanningJob, bool]:
        """The plan, or what it needs before, and whether it is one with the filter."""
        try:
            return planned(metadata, storage, asked, schema, wanted), True
        except InvalidInputError:
            if isinstance(wanted, AlwaysTrue):
                raise
            # Spark compares what Iceberg will not; the filter only saves work, so it can be left out.
            logger.debug("Planning without the filter %s", wanted, exc_info=True)
            return planned(metadata, storage, asked, schema, AlwaysTrue()), False

    def _metadata(self, location: str, storage: Storage) -> TableMetadata:
        """A metadata file never changes, so that a few of those read last are kept."""
        with self._lock:
            known = self._tables.get(location)
            if known is not None:
                self._tables.move_to_end(location)
                return known
        metadata = read_version(location, storage).metadata
        with self._lock:
            self._tables[location] = metadata
            while len(self._tables) > _KEPT_TABLES:
                self._tables.popitem(last=False)
        return metadata
