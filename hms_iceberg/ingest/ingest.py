"""The loop: events are read, become rows, and are committed; whatever begins anew reads on from where the tables are.

Kafka's own offsets are not used. What a commit wrote and where it ended are one thing, so that nothing is applied twice
or lost, whenever the process ends.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import closing

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    BadEventError,
    CommitError,
    EventsLostError,
    IngestError,
    InvalidInputError,
    MetastoreError,
    StorageError,
)
from hms_iceberg.ingest.envelopes.envelopes import envelope_of
from hms_iceberg.ingest.records import Partition
from hms_iceberg.ingest.run import IngestRun, OffsetsMovedError
from hms_iceberg.ingest.settings import Observer, Settings
from hms_iceberg.ingest.source import KafkaSource
from hms_iceberg.metastore import table_identifier

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 60.0
_MOST_CONFLICTS_ONCE = 20


class Ingest:
    """Applies the events of topics to tables."""

    def __init__(self, catalog: Catalog, settings: Settings, observer: Observer, stop: threading.Event) -> None:
        """Checks the settings, and reads nothing yet; `stop` ends the work once the batch at hand is committed."""
        self._catalog = catalog
        self._settings = settings
        self._observer = observer
        self._stop = stop
        self._envelope = envelope_of(settings.format, settings.registry, settings.operation_column)
        self._letters = None if settings.dead_letters is None else table_identifier(settings.dead_letters.lower())
        if self._letters is not None and settings.table.may_be(*self._letters):
            raise InvalidInputError(
                f"Dead letters cannot go to table {settings.dead_letters}: events may belong to it, by the table "
                f"{settings.table.text}."
            )
        self.offsets: Mapping[str, int] = {}
        """Where the tables are: the next offset of each partition, behind the last commit."""

    def run(self, once: bool = False) -> None:
        """Applies events until it is stopped, or with `once` those that the topics have at the start; failures that may
        pass are tried again from where the tables are (with `once`, conflicts only)."""
        ends: Mapping[Partition, int] | None = None
        failures = 0
        while True:
            try:
                with closing(
                    KafkaSource(self._settings.topics, self._settings.kafka, self._settings.max_bytes)
                ) as source:
                    run = IngestRun(self._catalog, self._settings, source, self._observer, self._letters)
                    self.offsets = run.start()
                    ends = run.ends() if once and not ends else ends
                    for offsets in run.batches(self._envelope, self._stop, ends):
                        self.offsets, failures = offsets, 0
                if once or self._stop.is_set():
                    return
            except (BadEventError, EventsLostError):
                raise
            except (CommitError, MetastoreError, StorageError, IngestError) as error:
                failures += 1
                is_conflict = isinstance(error, (CommitError, OffsetsMovedError))
                if once and (not is_conflict or failures > _MOST_CONFLICTS_ONCE):
                    raise
                wait = min(_FIRST_WAIT_SECONDS * 2 ** (failures - 1), _LONGEST_WAIT_SECONDS)
                logger.warning("Reading on in %.0f s from where the tables are: %s", wait, error)
                self._observer.failure(error)
                if self._stop.wait(wait):
                    return
