"""All procedures, by name, and the questions that list and call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spark.procedures.changelog_view import CREATE_CHANGELOG_VIEW
from hms_iceberg.spark.procedures.erasure import FORGET
from hms_iceberg.spark.procedures.maintenance import (
    COMPUTE_PARTITION_STATS,
    COMPUTE_TABLE_STATS,
    EXPIRE_SNAPSHOTS,
    REMOVE_ORPHAN_FILES,
    ROTATE_KEYS,
)
from hms_iceberg.spark.procedures.migration import ADD_FILES, MIGRATE, REGISTER_TABLE, SNAPSHOT
from hms_iceberg.spark.procedures.procedure import Call, Procedure, ResultView, SessionTransactionChange
from hms_iceberg.spark.procedures.rewriting_files import (
    REWRITE_DATA_FILES,
    REWRITE_MANIFESTS,
    REWRITE_POSITION_DELETE_FILES,
    REWRITE_TABLE_PATH,
)
from hms_iceberg.spark.procedures.snapshots import (
    ANCESTORS_OF,
    APPLIED_OFFSETS,
    CHERRYPICK_SNAPSHOT,
    FAST_FORWARD,
    PUBLISH_CHANGES,
    ROLLBACK_TO_SNAPSHOT,
    ROLLBACK_TO_TIMESTAMP,
    SET_CURRENT_SNAPSHOT,
)
from hms_iceberg.spark.procedures.transactions import BEGIN_TRANSACTION, COMMIT_TRANSACTION, ROLLBACK_TRANSACTION
from hms_iceberg.spark.rewriting.runs import OpenRewrites, SparkRewrite
from hms_iceberg.spark.transactions import OpenTransactions, SessionTransaction

PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in (
        ROLLBACK_TO_SNAPSHOT,
        ROLLBACK_TO_TIMESTAMP,
        SET_CURRENT_SNAPSHOT,
        CHERRYPICK_SNAPSHOT,
        PUBLISH_CHANGES,
        FAST_FORWARD,
        ANCESTORS_OF,
        APPLIED_OFFSETS,
        REGISTER_TABLE,
        EXPIRE_SNAPSHOTS,
        REWRITE_MANIFESTS,
        REWRITE_DATA_FILES,
        REWRITE_POSITION_DELETE_FILES,
        REWRITE_TABLE_PATH,
        REMOVE_ORPHAN_FILES,
        COMPUTE_TABLE_STATS,
        COMPUTE_PARTITION_STATS,
        ROTATE_KEYS,
        FORGET,
        MIGRATE,
        SNAPSHOT,
        ADD_FILES,
        CREATE_CHANGELOG_VIEW,
        BEGIN_TRANSACTION,
        COMMIT_TRANSACTION,
        ROLLBACK_TRANSACTION,
    )
}


class CallProcedure(msgspec.Struct, frozen=True):
    """The question behind CALL (`CatalogProcedure`)."""

    procedure: str
    catalog: int  # the number of the catalog
    current_namespace: tuple[str, ...]  # where the catalog looks for names of one part
    arguments: dict[str, Any]  # those that are not null
    namespace: str | None = None  # namespace, table: what the argument `table` names
    table: str | None = None


class ListProcedures(msgspec.Struct, frozen=True):
    """All procedures that there are (`Procedures`)."""


# What a plain timestamp is depends on Spark's settings; here it is always an instant.
_INSTANTS = {"timestamp": "timestamp_ltz"}


def list_procedures() -> dict[str, Any]:
    """Their names, parameters and columns, as `procedures`."""
    return {"procedures": [_described(each) for each in PROCEDURES.values()]}


def _described(procedure: Procedure) -> dict[str, Any]:
    columns = (f"`{each.name}` {each.type}{'' if each.nullable else ' not null'}" for each in procedure.columns)
    return {
        "name": procedure.name,
        "only_reads": procedure.only_reads,
        "transaction": procedure.transaction,
        "resolves_where": procedure.resolves_where,
        "parameters": [
            {"name": each.name, "type": _INSTANTS.get(each.type, each.type), "required": each.required}
            for each in procedure.parameters
        ],
        "columns": ", ".join(columns),
    }


def call_procedure(
    question: CallProcedure,
    catalogs: OpenCatalogs,
    rewrites: OpenRewrites,
    transactions: OpenTransactions,
    transaction: SessionTransaction | None,
) -> bytes:
    """Runs a procedure, and answers its `rows`, with any `view` of them, what becomes of the session's `transaction`,
    or the number of the `rewrite` for Spark."""
    procedure = PROCEDURES[question.procedure]
    if transaction is not None and procedure.transaction is None:
        raise transaction.refuses(f"call system.{procedure.name}")
    identifier = () if question.table is None else (question.namespace or "", question.table)
    call = Call(
        catalogs.numbered(question.catalog),
        identifier,
        question.current_namespace,
        question.arguments,
        transactions,
        transaction,
    )
    result = procedure.run(call)
    if isinstance(result, SparkRewrite):
        return AnswerWriter({"rewrite": rewrites.open(result)}).done()
    if isinstance(result, ResultView):
        view = {"name": result.name, "options": result.options}
        return AnswerWriter({"rows": list(result.rows), "view": view}).done()
    if isinstance(result, SessionTransactionChange):
        moved = {"open": result.open, "changed": [list(each) for each in result.changed]}
        return AnswerWriter({"rows": list(result.rows), "transaction": moved}).done()
    return AnswerWriter({"rows": list(result)}).done()
