"""An ingest in a process of its own, which begins at once: what it needs is imported before it is forked."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import confluent_kafka  # noqa: F401 - imported before the fork, as is what the others need
import pyarrow.parquet  # noqa: F401

from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import IcebergError
from hms_iceberg.ingest.ingest import Ingest
from hms_iceberg.ingest.settings import BatchReport, Settings

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Worker:
    """A process that ingests, and sends how long each commit took."""

    process: BaseProcess
    commits: Connection

    def killed(self) -> None:
        """Ends it at once."""
        self.process.kill()
        self.process.join()
        self.commits.close()

    def ended(self) -> int | None:
        """Waits for its end, and gives its exit code."""
        self.process.join()
        self.commits.close()
        return self.process.exitcode


def ingesting(properties: Mapping[str, str], settings: Settings, once: bool = False) -> Worker:
    """A process that ingests until it is killed, or, with `once`, up to the end of the topics."""
    commits, sending = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_ingest, args=(dict(properties), settings, once, sending), daemon=True)
    process.start()
    sending.close()
    return Worker(process, commits)


@dataclass(frozen=True)
class _Sending:
    to: Connection

    def batch(self, report: BatchReport) -> None:
        self.to.send(report.seconds)

    def reading(self, lag: int, at_hand: int) -> None: ...

    def failure(self, error: IcebergError) -> None: ...


def _ingest(properties: dict[str, str], settings: Settings, once: bool, sending: Connection) -> None:
    with load_catalog("worker", **properties) as catalog:
        Ingest(catalog, settings, _Sending(sending), threading.Event()).run(once)
