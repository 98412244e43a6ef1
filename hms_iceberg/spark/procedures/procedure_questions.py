"""The questions of the bridge about procedures."""

from __future__ import annotations

from typing import Any

import msgspec

from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spark.procedures.procedure import Call, Procedure, ResultView
from hms_iceberg.spark.procedures.registry import PROCEDURES
from hms_iceberg.spark.rewriting.runs import OpenRewrites, SparkRewrite


class CallProcedure(msgspec.Struct, frozen=True):
    """The question behind CALL (`CatalogProcedure`).

    Attributes:
        procedure: its name.
        catalog: the number of the catalog.
        current_namespace: where the catalog looks for names of one part.
        arguments: those that are not null.
        namespace, table: what the argument `table` names.
    """

    procedure: str
    catalog: int
    current_namespace: tuple[str, ...]
    arguments: dict[str, Any]
    namespace: str | None = None
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
        "parameters": [
            {"name": each.name, "type": _INSTANTS.get(each.type, each.type), "required": each.required}
            for each in procedure.parameters
        ],
        "columns": ", ".join(columns),
    }


def call_procedure(question: CallProcedure, catalogs: OpenCatalogs, rewrites: OpenRewrites) -> bytes:
    """Runs a procedure: its `rows`, with the `view` that they are in; or the `rewrite` that Spark has to carry out.

    Raises:
        IcebergError: of the procedure.
    """
    identifier = () if question.table is None else (question.namespace or "", question.table)
    catalog = catalogs.of({"catalog": question.catalog})
    call = Call(catalog, identifier, question.current_namespace, question.arguments)
    result = PROCEDURES[question.procedure].run(call)
    if isinstance(result, SparkRewrite):
        return AnswerWriter({"rewrite": rewrites.open(result)}).done()
    if isinstance(result, ResultView):
        view = {"name": result.name, "schema": result.schema}
        return AnswerWriter({"rows": list(result.rows), "view": view}).blobs([result.command]).done()
    return AnswerWriter({"rows": list(result)}).done()
