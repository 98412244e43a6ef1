"""Ctrl-C at a statement: its jobs are cancelled until it ends, and what follows gets its own answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from hms_iceberg.cli.servers.statement_output import Interruptible
from hms_iceberg.spark.shell import SqlSession


class Session:
    """Has statements of several jobs; only the one that runs is cancelled."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()

    def statement(self) -> None:
        for _ in range(self.jobs):
            assert self.cancelled.wait(60)
            self.cancelled.clear()
        raise RuntimeError("cancelled")


@pytest.fixture
def own_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def pressed_after(seconds: float) -> None:
    def press() -> None:
        time.sleep(seconds)
        signal.pthread_kill(cast(int, threading.main_thread().ident), signal.SIGINT)

    threading.Thread(target=press).start()


@pytest.mark.parametrize("jobs", [1, 3])
def test_ctrl_c_cancels_a_statement_until_it_ends_and_the_next_one_has_its_own_answer(
    jobs: int, own_handler: Any
) -> None:
    session = Session(jobs)
    interruptible = Interruptible(cast(SqlSession, session))

    def statement() -> None:
        pressed_after(0.2)  # it runs until it is cancelled, so that nothing else is pressed at
        session.statement()

    with pytest.raises(KeyboardInterrupt):
        interruptible.run(statement)
    assert interruptible.run(lambda: 23) == 23


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_ctrl_c_as_a_statement_is_handed_over_leaves_it_not_running(
    is_handed_over: bool, own_handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(1)
    interruptible = Interruptible(cast(SqlSession, session))
    submit, events = interruptible._pool.submit, [threading.Event(), threading.Event()]

    def statement() -> None:
        events[0].set()
        try:
            session.statement()
        finally:
            events[1].set()

    def pressed(*words: Any) -> None:
        monkeypatch.undo()
        if is_handed_over:
            submit(*words)
            assert events[0].wait(60)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(interruptible._pool, "submit", pressed)
    with pytest.raises(KeyboardInterrupt):
        interruptible.run(statement)
    assert [each.is_set() for each in events] == [is_handed_over] * 2


def test_a_statement_that_ends_all_the_same_has_its_answer(own_handler: Any) -> None:
    session = Session(1)
    interruptible = Interruptible(cast(SqlSession, session))

    def statement() -> str:
        pressed_after(0.1)
        assert session.cancelled.wait(60)
        return "done"

    assert interruptible.run(statement) == "done"


_WAITS = """
import os, signal, threading, time
from concurrent.futures import ThreadPoolExecutor
from hms_iceberg.lazy import pl

def press():
    for _ in range(6):  # a signal that comes just before Python waits is noticed with the next one
        time.sleep(2)
        signal.pthread_kill(main, signal.SIGINT)

def work():
    pl.DataFrame()
    threading.Thread(target=press).start()
    time.sleep(20)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
main = threading.main_thread().ident
began = time.monotonic()
try:
    ThreadPoolExecutor(1).submit(work).result()
except KeyboardInterrupt:
    print(time.monotonic() - began, flush=True)
os._exit(0)
"""


def test_ctrl_c_is_noticed_at_once_where_polars_was_imported_meanwhile() -> None:
    ran = subprocess.run([sys.executable, "-c", _WAITS], capture_output=True, text=True, timeout=60, check=True)
    assert float(ran.stdout) < 15
