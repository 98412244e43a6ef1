"""One statement, run and told; and stopped by Ctrl-C."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import click

from hms_iceberg.cli.servers.told_rows import tell_rows
from hms_iceberg.spark.shell import SqlSession

T = TypeVar("T")
_LOOK_SECONDS = 0.3


class Interruptible:
    """Asks a session in threads of its own, so that Ctrl-C finds nobody who waits for an answer of Spark.

    A question that is interrupted leaves its answer on the thread's connection, if it would be taken for that to the
    next one.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="iceberg-sql")
        # PySpark's own would ask Spark in this thread.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def run(self, work: Callable[[], T]) -> T:
        """Runs the work and returns its result; Ctrl-C cancels its Spark jobs.

        Raises:
            KeyboardInterrupt: it was stopped.
        """
        running = self._pool.submit(work)
        try:
            while not running.done():  # in short waits, as handlers of libraries may let a wait go on at Ctrl-C
                wait([running], _LOOK_SECONDS)
            return running.result()
        except (KeyboardInterrupt, SystemExit) as stop:
            if self._stopped(running) or isinstance(stop, SystemExit):
                raise
            return running.result()

    def _stopped(self, running: Future[T]) -> bool:
        """Whether work ends without a result. If a job is cancelled, the statement may start another one."""
        while not running.done():
            wait([self._pool.submit(self._session.cancel)])
            wait([running], _LOOK_SECONDS)
        return running.exception() is not None


def run_statement(session: SqlSession, statement: str, output: str, timing: bool, limit: int | None = None) -> None:
    """Runs a statement and tells its rows.

    Args:
        session: where it runs.
        statement: without the semicolon.
        output: `text`, `json` or `csv`.
        timing: whether the time is told, on standard error.
        limit: how many rows are told at most.

    Raises:
        SqlFailedError: it failed; its message is Spark's.
    """
    started = time.monotonic()
    wanted = None if limit is None else limit + 1  # one more tells that there are more
    count = tell_rows(session.run(statement, wanted, streamed=output != "text"), output, limit)
    if timing:
        rows = "" if count is None else f"{count} row{'s' * (count != 1)}, "
        click.echo(f"{rows}{time.monotonic() - started:.2f} s", err=True)
