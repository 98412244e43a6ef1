"""The questions of the bridge about procedures, by their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.catalogs import OpenCatalogs
from hms_iceberg.spark.procedures.procedure import Call, Procedure, ResultView
from hms_iceberg.spark.procedures.registry import PROCEDURES
from hms_iceberg.spark.rewriting.runs import OpenRewrites, SparkRewrite


class CallProcedure(msgspec.Struct, frozen=True):
    """A call.

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


def answered(asked: Mapping[str, Any], catalogs: OpenCatalogs, rewrites: OpenRewrites) -> bytes | None:
    """The answer to a question about procedures; None if it is another kind of question."""
    if asked["call"] == "procedures":
        return AnswerWriter({"procedures": [_described(each) for each in PROCEDURES.values()]}).done()
    if asked["call"] == "call-procedure":
        return _called(msgspec.convert(asked, CallProcedure), catalogs, rewrites)
    return None


# What a plain timestamp is depends on Spark's settings; here it is always an instant.
_INSTANTS = {"timestamp": "timestamp_ltz"}


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


def _called(question: CallProcedure, catalogs: OpenCatalogs, rewrites: OpenRewrites) -> bytes:
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
