"""Runs one statement, which Ctrl-C stops, and prints its rows as text, JSON or CSV."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

from hms_iceberg.cli.output import Output, on_terminal, say, shown
from hms_iceberg.spark.shell import Answer, SqlSession

_NULL = "NULL"
_NO_NUMBERS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def print_rows(answer: Answer, form: str, limit: int | None = None) -> int | None:
    """Prints at most `limit` rows of a statement as `text` (a table on a terminal, else lines with tabs), `json` (an
    object a line) or `csv`.

    Returns the number of rows, or None for a statement that has no columns, for which nothing is printed.
    """
    if not answer.columns:
        return None
    rows: Iterator[Sequence[Any]] = ([plain(value) for value in row] for row in answer.rows)
    first = islice(rows, limit)
    if form == "json":
        count = _print_json(answer.columns, first)
    elif form == "csv":
        count = _print_csv(answer.columns, first)
    else:
        kept = list(first)
        Output().rows(answer.columns, kept, _NULL)
        count = len(kept)
    if limit is not None and next(rows, None) is not None:
        say(f"Only the first {limit} rows are shown.", err=True)
    return count


def _print_json(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> int:
    names = _distinct(columns)
    count = 0
    for row in rows:
        Output("json").json(dict(zip(names, row, strict=True)))
        count += 1
    return count


def _print_csv(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> int:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    as_text = shown if on_terminal() else _exactly  # a program reads values as they are
    writer.writerow(map(as_text, columns))
    count = 0
    for row in rows:
        writer.writerow(map(as_text, row))
        count += 1
    return count


def _exactly(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _distinct(columns: Sequence[str]) -> list[str]:
    """Names made distinct for an object: the second `a` is `a_2`."""
    seen: Counter[str] = Counter()
    names: list[str] = []
    for column in columns:
        name = column
        while name in names:
            seen[column] += 1
            name = f"{column}_{seen[column] + 1}"
        names.append(name)
    return names


def plain(value: Any) -> Any:
    """A value of a row in a form that JSON has."""
    if isinstance(value, float) and not math.isfinite(value):
        return _NO_NUMBERS.get(value, "NaN")
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    fields = getattr(value, "__fields__", None)  # of a struct
    if fields is not None:
        return {name: plain(each) for name, each in zip(fields, value, strict=True)}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


T = TypeVar("T")
_LOOK_SECONDS = 0.3


class Interruptible:
    """Runs statements of a session in threads, so that Ctrl-C works while Spark is busy.

    The answer to an interrupted question would stay on the thread's connection, and be taken for that to the next one.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="iceberg-sql")
        # PySpark's own would ask Spark in this thread.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def run(self, work: Callable[[], T]) -> T:
        """Runs the work and returns its result; Ctrl-C cancels its Spark jobs, and ends this with KeyboardInterrupt."""
        running: Future[T] = Future()
        try:
            self._pool.submit(_fulfil, running, work)
            while not running.done():  # in short waits, as handlers of libraries may let a wait go on at Ctrl-C
                wait([running], _LOOK_SECONDS)
            return running.result()
        except (KeyboardInterrupt, SystemExit) as stop:
            if self._stopped(running) or isinstance(stop, SystemExit):
                raise
            return running.result()

    def _stopped(self, running: Future[T]) -> bool:
        """Whether work ends without a result. If a job is cancelled, the statement may start another one."""
        while not running.done() and not running.cancel():  # which only work that has not begun heeds
            wait([self._pool.submit(self._session.cancel)])
            wait([running], _LOOK_SECONDS)
        return running.cancelled() or running.exception() is not None


def _fulfil(running: Future[T], work: Callable[[], T]) -> None:
    if running.set_running_or_notify_cancel():
        try:
            running.set_result(work())
        except BaseException as error:  # for whoever waits
            running.set_exception(error)


def run_statement(session: SqlSession, statement: str, output: str, timing: bool, limit: int | None = None) -> None:
    """Runs a statement (without its semicolon) and prints its rows, with `timing` also its time, on standard error."""
    started = time.monotonic()
    wanted = None if limit is None else limit + 1  # one more tells that there are more
    count = print_rows(session.run(statement, wanted, streamed=output != "text"), output, limit)
    if timing:
        rows = "" if count is None else f"{count} row{'s' * (count != 1)}, "
        say(f"{rows}{time.monotonic() - started:.2f} s", err=True)
