"""Answers the bridge: what a table is, which files a scan of it has to read, what becomes of a write.

The bridge asks from JVM threads while the Python thread that runs a query waits for the JVM, so nothing here may call
the JVM.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import msgspec

from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.catalogs import location_of
from hms_iceberg.spark.open_tables import OpenTables
from hms_iceberg.spark.questions import QUESTIONS, Answer, Cost
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

# Plans of large tables take much memory; what commits, or asks the metastore, waits for none of them.
_PLANS_AT_ONCE = 4


class BridgeService:
    """From questions (JSON) to answers (see `AnswerWriter`); a given storage goes before the properties'."""

    def __init__(self, properties: Mapping[str, str] | None = None, storage: Storage | None = None) -> None:
        self.tables = OpenTables(properties, storage)
        self._planning = threading.Semaphore(_PLANS_AT_ONCE)

    def answer(self, text: bytes) -> bytes:
        """Answers one question. An error is part of the answer, so that the JVM raises it as its own error."""
        try:
            answer = self._answer(json.loads(text))
            return answer if isinstance(answer, bytes) else AnswerWriter(answer or {}).done()
        except Exception as error:
            logger.debug("A question of Spark failed", exc_info=True)  # its text may hold secrets
            return AnswerWriter({"error": {"type": type(error).__name__, "message": str(error)}}).done()

    def _answer(self, question: dict[str, Any]) -> Answer:
        kind = QUESTIONS[question["call"]]
        name = question.get("metadata_location")
        if name is not None:  # the bridge takes a version's name for the place of its metadata
            question = {**question, "metadata_location": location_of(name), "version_name": name}
        if kind.changes and not kind.joins:
            self.tables.transactions.refuse(question)
        asked = msgspec.convert(question, kind.asked)
        with self._planning if kind.work is Cost.PLANNING else nullcontext():
            return kind.answer(self.tables, asked, question)
