"""Signals end a service's work, whenever they come and whichever thread they come to."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from hms_iceberg.cli.stopping import stopped_by_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_another_thread_ends_the_wait_of_the_main_one(number: signal.Signals) -> None:
    with stopped_by_signals() as stop:
        threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), number)).start()

        assert stop.wait(30)
        assert stop.number == number


def test_a_signal_in_the_midst_of_setting_or_asking_the_event_does_not_stand_still() -> None:
    script = """
import signal
from hms_iceberg.cli.stopping import stopped_by_signals
with stopped_by_signals() as stop:
    with stop._cond:  # as the main thread does within each call
        signal.raise_signal(signal.SIGTERM)
        list(range(10))
    assert stop.wait() and stop.is_set()
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_a_thread_may_end_the_work_as_well() -> None:
    with stopped_by_signals() as stop:
        assert not stop.is_set()
        assert not stop.wait(0)
        assert not stop.wait(0.3)
        threading.Timer(0.1, stop.set).start()

        assert stop.wait()
        assert stop.number is None


def test_the_handlers_of_before_come_back() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with stopped_by_signals():
        pass
    assert before == {number: signal.getsignal(number) for number in before}
