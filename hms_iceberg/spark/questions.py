"""Every question of the bridge, in one place: its name, its struct, what answers it, and whether it may wait.

The bridge's side is told the names of those that commit (`commits`); it knows no other list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from hms_iceberg.errors import NoSuchNamespaceError, NoSuchTableError
from hms_iceberg.hms.commit.several_tables.visible_version import histories, seen_pointer
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.catalogs import (
    FindTable,
    InCatalog,
    OpenCatalog,
    OpenSessionCatalog,
    find_table,
    list_namespaces,
    list_tables,
    list_views,
    namespace_properties,
    open_catalog,
    open_session_catalog,
)
from hms_iceberg.spark.ddl.alter import AlterTable, alter_table, may_change
from hms_iceberg.spark.ddl.definition import DefineTable
from hms_iceberg.spark.ddl.namespace_changes import (
    AlterNamespace,
    CreateNamespace,
    DropNamespace,
    alter_namespace,
    create_namespace,
    drop_namespace,
)
from hms_iceberg.spark.ddl.table_changes import (
    DropTable,
    RenameTable,
    StagedTable,
    StageTable,
    abort_staged,
    commit_staged,
    create_table,
    drop_table,
    rename_table,
    stage_table,
)
from hms_iceberg.spark.ddl.view_changes import (
    AlterView,
    CreateView,
    DropView,
    RenameView,
    alter_view,
    create_view,
    drop_view,
    rename_view,
)
from hms_iceberg.spark.nanoseconds import chosen
from hms_iceberg.spark.open_tables import OpenTables
from hms_iceberg.spark.procedures.registry import (
    CallProcedure,
    ListProcedures,
    call_procedure,
    list_procedures,
)
from hms_iceberg.spark.read_questions import (
    AskVersion,
    CheckStream,
    DescribeChanges,
    DescribeMetadataTable,
    FirstChanges,
    FirstOffset,
    InspectRows,
    LatestChanges,
    LatestOffset,
    ListPartitions,
    LoadTable,
    LoadView,
    NameVersion,
    PlanScan,
    ReadChanges,
    WorkerCommand,
)
from hms_iceberg.spark.reading.changelog.changelogs import changed_rows, describe_changes, first_changes, latest_changes
from hms_iceberg.spark.reading.descriptions import describe, describe_view, release
from hms_iceberg.spark.reading.metadata_tables import describe_inspection, inspection_rows
from hms_iceberg.spark.reading.partitions import list_partitions
from hms_iceberg.spark.reading.plan_answer import answer_form, plan_answer, scan_answer
from hms_iceberg.spark.reading.streams import check_stream, first_offset, latest_offset
from hms_iceberg.spark.reading.system_tables import (
    DescribeSystemTables,
    SystemRows,
    describe_system_tables,
    system_rows,
)
from hms_iceberg.spark.reading.worker_files import what_to_read, worker_command
from hms_iceberg.spark.rewriting.rewrite_questions import (
    FailedRewrite,
    OfRewrite,
    abandon_rewrite,
    end_rewrite,
    failed_rewrite,
    may_rewrite,
)
from hms_iceberg.spark.rowlevel.begin_rows import BeginRows, begin_rows
from hms_iceberg.spark.rowlevel.commit_rows import CommitRows, can_delete, commit_rows, delete_where
from hms_iceberg.spark.sql.execution import ReadStatement, RunStatement, read_statement, run_statement
from hms_iceberg.spark.transactions import GiveUpTransaction
from hms_iceberg.spark.writing.begin_write import begin_write
from hms_iceberg.spark.writing.commit_write import commit_write
from hms_iceberg.spark.writing.write_questions import BeginWrite, CommitWrite, DeleteWhere
from hms_iceberg.table import Table
from hms_iceberg.table.table import TableTransaction

Answer = bytes | dict[str, Any] | None
Handler = Callable[[OpenTables, Any, Mapping[str, Any]], Answer]


class Cost(Enum):
    """The cost of an answer, which decides where it is made."""

    BRIEF = "a metadata file or a request to the metastore"
    PLANNING = "manifests: memory and processors, so that few are answered at once"
    COMMIT = "a commit, which may wait for locks, and of which nobody can tell the outcome if it is interrupted"


@dataclass(frozen=True)
class Question:
    """A kind of question: its struct, the function that answers it, and what work that takes. The function gets the
    open tables, the struct and the raw question; None as its answer says only that it is done."""

    asked: type[msgspec.Struct]
    answer: Handler
    work: Cost = Cost.BRIEF
    joins: bool = False  # whether a change becomes part of a transaction that the session has open

    @property
    def changes(self) -> bool:
        """Whether it changes anything, now or with what is said next."""
        return self.work is Cost.COMMIT or self.asked is StageTable


def _of_catalogs(answer: Callable[..., Answer]) -> Handler:
    return lambda tables, asked, question: answer(tables.catalogs, asked)


def _of_targets(answer: Callable[..., Answer]) -> Handler:
    return lambda tables, asked, question: answer(asked, tables.targets)


def _of_rewrites(answer: Callable[..., Answer]) -> Handler:
    return lambda tables, asked, question: answer(tables.rewrites, asked, question)


def _of_metadata(answer: Callable[..., Answer]) -> Handler:
    def of_metadata(tables: OpenTables, asked: Any, question: Mapping[str, Any]) -> Answer:
        return answer(tables.version(question).metadata, tables.storage(question), asked)

    return of_metadata


def _of_change(answer: Callable[[Any, TableTransaction], Answer]) -> Handler:
    def of_change(tables: OpenTables, asked: Any, question: Mapping[str, Any]) -> Answer:
        seen_at = asked.decided.at if isinstance(asked, CommitWrite) else None
        with tables.change(question, lambda: _table_read(tables, question, seen_at)) as transaction:
            return answer(asked, transaction)

    return of_change


def _table_read(tables: OpenTables, question: Mapping[str, Any], seen_at: float | None = None) -> Table:
    """The table at the version that the query of a question has read."""
    return tables.catalogs.table_at(question, tables.version(question), seen_at, tables.storage(question))


def _open_catalog(tables: OpenTables, asked: OpenCatalog, question: Mapping[str, Any]) -> Answer:
    return open_catalog(tables.catalogs, asked, tables.properties)


def _open_session_catalog(tables: OpenTables, asked: OpenSessionCatalog, question: Mapping[str, Any]) -> Answer:
    return open_session_catalog(tables.catalogs, asked, tables.properties)


def _find(tables: OpenTables, asked: FindTable, question: Mapping[str, Any]) -> Answer:
    with suppress(NoSuchTableError, NoSuchNamespaceError):  # it may be a view
        name = tables.transactions.find(question)
        if name is not None:
            return {"metadata_location": name}
    return find_table(tables.catalogs, asked, tables.storage(question), tables.name_of)


def _name_version(tables: OpenTables, asked: NameVersion, question: Mapping[str, Any]) -> Answer:
    storage = tables.storage(question)
    row = TablePointer(("", ""), asked.location, asked.row)
    pointer = seen_pointer(row, lambda identifier: asked.deciding, histories(storage))
    return {"metadata_location": tables.name_of(pointer, storage)}


def _plan(tables: OpenTables, asked: PlanScan, question: Mapping[str, Any]) -> Answer:
    if asked.rewrite is not None:
        return plan_answer(tables.rewrites.of(question).plan(asked.rewrite["group"]), asked.name, answer_form(asked))
    return scan_answer(tables.version(question).metadata, tables.storage(question), asked)


def _worker_command(tables: OpenTables, asked: WorkerCommand, question: Mapping[str, Any]) -> Answer:
    metadata, storage = tables.version(question).metadata, tables.storage(question)
    schema = metadata.schema_by_id(asked.schema_id)
    nanoseconds = chosen(asked.lacking_types)
    reading = what_to_read(metadata, schema, asked.columns, storage, asked.deleted_column, nanoseconds, asked.types)
    return AnswerWriter({}).blobs([worker_command(reading)]).done()


def _run_statement(tables: OpenTables, asked: RunStatement, question: Mapping[str, Any]) -> None:
    with tables.change(question) as transaction:
        run_statement(transaction, asked)


def _alter_table(tables: OpenTables, asked: AlterTable, question: Mapping[str, Any]) -> None:
    with tables.change(question) as transaction:
        alter_table(asked, transaction)


def _can_delete(tables: OpenTables, asked: DeleteWhere, question: Mapping[str, Any]) -> Answer:
    return can_delete(asked, _table_read(tables, question).transaction())


def _begin_rows(tables: OpenTables, asked: BeginRows, question: Mapping[str, Any]) -> Answer:
    tables.transactions.of_change(question)
    return begin_rows(tables.version(question).metadata, tables.storage(question), asked)


def _call_procedure(tables: OpenTables, asked: CallProcedure, question: Mapping[str, Any]) -> Answer:
    transactions = tables.transactions
    return call_procedure(asked, tables.catalogs, tables.rewrites, transactions, transactions.of(question))


def _begin_write(tables: OpenTables, asked: BeginWrite, question: Mapping[str, Any]) -> Answer:
    if "rewrite" in question:
        return tables.rewrites.of(question).begin(question["rewrite"]["group"], question)
    tables.transactions.of_change(question)
    storage = tables.storage(question)
    version = _written_version(tables, question)
    metadata = version.metadata if version else tables.targets.metadata(question, storage)
    return begin_write(question, metadata, storage)


def _commit_write(tables: OpenTables, asked: CommitWrite, question: Mapping[str, Any]) -> None:
    if "rewrite" in question:
        tables.rewrites.of(question).commit(question["rewrite"]["group"], question)
        return
    storage = tables.storage(question)
    version = _written_version(tables, question)
    metadata = version.metadata if version else tables.targets.metadata(question, storage)

    def table_read() -> Table | None:
        # a stream goes on and on from the version that it began with
        return _table_read(tables, question, asked.decided.at) if version and asked.epoch is None else None

    with tables.change(question, table_read) as transaction:
        commit_write(asked, transaction, metadata, is_staged=version is None)


def _written_version(tables: OpenTables, question: Mapping[str, Any]) -> MetadataVersion | None:
    """The version that a query was resolved on; None for a staged table, which has none."""
    return None if "staged" in question else tables.version(question)


QUESTIONS: dict[str, Question] = {
    "version": Question(AskVersion, lambda tables, asked, question: release()),
    "procedures": Question(ListProcedures, lambda tables, asked, question: list_procedures()),
    "read-statement": Question(ReadStatement, lambda tables, asked, question: read_statement(asked)),
    "catalog": Question(OpenCatalog, _open_catalog),
    "session-catalog": Question(OpenSessionCatalog, _open_session_catalog),
    "namespaces": Question(InCatalog, _of_catalogs(list_namespaces)),
    "namespace": Question(InCatalog, _of_catalogs(namespace_properties)),
    "tables": Question(InCatalog, _of_catalogs(list_tables)),
    "views": Question(InCatalog, _of_catalogs(list_views)),
    "find": Question(FindTable, _find),
    "name-version": Question(NameVersion, _name_version),
    "view": Question(LoadView, lambda tables, asked, question: describe_view(asked, tables.storage(question))),
    # reads
    "load": Question(LoadTable, _of_metadata(describe)),
    "changes": Question(DescribeChanges, _of_metadata(describe_changes)),
    "changes-first": Question(FirstChanges, _of_metadata(first_changes)),
    "changes-latest": Question(LatestChanges, _of_metadata(latest_changes)),
    "inspect": Question(DescribeMetadataTable, _of_metadata(describe_inspection), Cost.PLANNING),
    "inspect-rows": Question(InspectRows, _of_metadata(inspection_rows), Cost.PLANNING),
    "system-tables": Question(DescribeSystemTables, lambda tables, asked, question: describe_system_tables()),
    "system-rows": Question(SystemRows, _of_catalogs(system_rows), Cost.PLANNING),
    "partitions": Question(ListPartitions, _of_metadata(list_partitions), Cost.PLANNING),
    "changed-rows": Question(ReadChanges, _of_metadata(changed_rows), Cost.PLANNING),
    "plan": Question(PlanScan, _plan, Cost.PLANNING),
    "worker-command": Question(WorkerCommand, _worker_command),
    "stream-check": Question(CheckStream, _of_metadata(check_stream)),
    "stream-first": Question(FirstOffset, _of_metadata(first_offset)),
    "stream-latest": Question(LatestOffset, _of_metadata(latest_offset), Cost.PLANNING),
    # writes
    "begin-write": Question(BeginWrite, _begin_write),
    "commit-write": Question(CommitWrite, _commit_write, Cost.COMMIT, joins=True),
    "begin-rows": Question(BeginRows, _begin_rows),
    "commit-rows": Question(CommitRows, _of_change(commit_rows), Cost.COMMIT, joins=True),
    "can-delete": Question(DeleteWhere, _can_delete, Cost.PLANNING),
    "delete-where": Question(DeleteWhere, _of_change(delete_where), Cost.COMMIT, joins=True),
    # statements
    "run-statement": Question(RunStatement, _run_statement, Cost.COMMIT, joins=True),
    "call-procedure": Question(CallProcedure, _call_procedure, Cost.COMMIT, joins=True),
    "read-by-procedure": Question(CallProcedure, _call_procedure, Cost.PLANNING),
    "create-table": Question(DefineTable, _of_targets(create_table), Cost.COMMIT),
    "alter-table": Question(AlterTable, _alter_table, Cost.COMMIT, joins=True),
    "may-change": Question(AlterTable, _of_metadata(may_change)),
    "drop-table": Question(DropTable, _of_targets(drop_table), Cost.COMMIT),
    "rename-table": Question(RenameTable, _of_targets(rename_table), Cost.COMMIT),
    "create-view": Question(CreateView, _of_targets(create_view), Cost.COMMIT),
    "alter-view": Question(AlterView, _of_targets(alter_view), Cost.COMMIT),
    "drop-view": Question(DropView, _of_targets(drop_view), Cost.COMMIT),
    "rename-view": Question(RenameView, _of_targets(rename_view), Cost.COMMIT),
    "create-namespace": Question(CreateNamespace, _of_targets(create_namespace), Cost.COMMIT),
    "alter-namespace": Question(AlterNamespace, _of_targets(alter_namespace), Cost.COMMIT),
    "drop-namespace": Question(DropNamespace, _of_targets(drop_namespace), Cost.COMMIT),
    "stage-table": Question(StageTable, _of_targets(stage_table)),
    "commit-staged": Question(StagedTable, _of_targets(commit_staged), Cost.COMMIT),
    "abort-staged": Question(StagedTable, _of_targets(abort_staged)),
    "give-up-transaction": Question(
        GiveUpTransaction, lambda tables, asked, question: tables.transactions.give_up(asked.number)
    ),
    # rewritings that Spark carries out
    "may-rewrite": Question(OfRewrite, _of_rewrites(may_rewrite)),
    "failed-rewrite": Question(FailedRewrite, _of_rewrites(failed_rewrite)),
    "end-rewrite": Question(OfRewrite, _of_rewrites(end_rewrite), Cost.COMMIT),
    "abandon-rewrite": Question(OfRewrite, _of_rewrites(abandon_rewrite)),
}


def commits() -> list[str]:
    """The names of the questions that commit."""
    return [name for name, question in QUESTIONS.items() if question.work is Cost.COMMIT]
