"""Answers the bridge: what a table is, and which files a scan of it has to read.

The bridge calls this object from JVM threads while the Python thread that runs a query waits for the JVM, so nothing
here may call the JVM.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from hms_iceberg.arrow.storage import ArrowStorage
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.descriptions import describe
from hms_iceberg.spark.filters import row_filter
from hms_iceberg.spark.foreign_files import worker_command
from hms_iceberg.spark.inspection import describe_inspection, inspection_rows
from hms_iceberg.spark.plan_answer import plan_answer
from hms_iceberg.spark.read_options import planned
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.metadata_files import read_version

logger = logging.getLogger(__name__)

_KEPT_TABLES = 64


class Planner:
    """A ``java.util.function.Function`` from a question (JSON text) to an answer (bytes).

    Args:
        properties: storage properties.
        storage: a storage to use instead.
    """

    class Java:
        """What Py4J looks for."""

        implements = ("java.util.function.Function",)

    def __init__(self, properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> None:
        self._storage = storage or ArrowStorage(dict(properties or {}))
        self._tables: OrderedDict[str, TableMetadata] = OrderedDict()
        self._lock = threading.Lock()

    def apply(self, text: str) -> bytes:
        """One question; what goes wrong is part of the answer, so that the JVM can raise it as its own error."""
        try:
            question = json.loads(text)
            return self._answer(question)
        except Exception as error:
            logger.debug("A question of Spark failed: %s", text, exc_info=True)
            return AnswerWriter({"error": {"type": type(error).__name__, "message": str(error)}}).done()

    def toString(self) -> str:  # noqa: N802  (Py4J calls it)
        """For the JVM's messages."""
        return repr(self)

    def _answer(self, question: dict[str, Any]) -> bytes:
        metadata = self._metadata(question["metadata_location"])
        if question["call"] == "load":
            return AnswerWriter(describe(metadata, self._storage, question)).done()
        if question["call"] == "inspect":
            return AnswerWriter(describe_inspection(metadata, self._storage, question)).done()
        if question["call"] == "inspect-rows":
            return AnswerWriter(inspection_rows(metadata, self._storage, question)).done()
        if question["call"] == "worker-command":
            schema = metadata.schema_by_id(question["schema_id"])
            command = worker_command(metadata, schema, question["columns"], self._storage)
            return AnswerWriter({}).blobs([command]).done()
        return self._planned(metadata, question)

    def _planned(self, metadata: TableMetadata, question: dict[str, Any]) -> bytes:
        schema = metadata.schema_by_id(question["schema_id"])
        wanted, exact = row_filter(question.get("filter"), schema)
        try:
            plan = planned(metadata, self._storage, question, wanted)
        except InvalidInputError:
            if isinstance(wanted, AlwaysTrue):
                raise
            # Spark compares what Iceberg will not; the filter only saves work, so it can be left out.
            logger.debug("Planning without the filter %s", wanted, exc_info=True)
            exact = False
            plan = planned(metadata, self._storage, question, AlwaysTrue())
        return plan_answer(plan, question["name"], exact)

    def _metadata(self, location: str) -> TableMetadata:
        """A metadata file never changes, so that a few of those read last are kept."""
        with self._lock:
            known = self._tables.get(location)
            if known is not None:
                self._tables.move_to_end(location)
                return known
        metadata = read_version(location, self._storage).metadata
        with self._lock:
            self._tables[location] = metadata
            while len(self._tables) > _KEPT_TABLES:
                self._tables.popitem(last=False)
        return metadata
