"""Turns among threads and processes of one machine."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from hms_iceberg.hms.locking import host_lock
from hms_iceberg.hms.locking.host_lock import HostLock
from hms_iceberg.hms.locking.writer_lock import LocalLock

HOLDER = """
import sys, time
from hms_iceberg.hms.locking.host_lock import HostLock
lock = HostLock(sys.argv[1])
assert lock.acquire(10)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_one_at_a_time_holds_the_lock_of_a_key() -> None:
    first, second, other = HostLock("a"), HostLock("a"), HostLock("b")
    assert first.try_acquire() and first.try_acquire()
    assert not second.try_acquire()
    assert other.try_acquire()
    first.release()
    first.release()
    assert second.try_acquire()
    second.release()
    other.release()


def test_a_lock_that_is_not_free_in_time_is_done_without() -> None:
    first, second = HostLock("a"), HostLock("a")
    first.try_acquire()
    assert second.acquire(0.05) is False
    threading.Timer(0.1, first.release).start()
    assert second.acquire(10) is True
    second.release()


def test_a_killed_process_holds_nothing(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, "key"], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        mine = HostLock("key")
        assert not mine.try_acquire()
        holder.kill()
        assert mine.acquire(60)
        mine.release()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_meanwhile_does_not_keep_the_lock() -> None:
    first, second = HostLock("a"), HostLock("a")
    first.try_acquire()
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        first.release()
        assert second.try_acquire()
        second.release()
    finally:
        child.kill()
        child.join()
        child.close()


def test_a_folder_of_somebody_else_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lock.os, "getuid", lambda: 4711)
    (folder / "hms_iceberg-locks-4711").mkdir()
    first, second = HostLock("a"), HostLock("a")
    assert first.try_acquire() and second.try_acquire(), "without file locks everything is free"
    assert list((folder / "hms_iceberg-locks-4711").iterdir()) == []


def test_threads_come_in_the_order_in_which_they_asked() -> None:
    first, came = HostLock("a"), list[int]()
    first.try_acquire()

    def work(number: int) -> None:
        mine = HostLock("a")
        assert mine.acquire(60)
        came.append(number)
        mine.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
        time.sleep(0.2)  # it asks
    first.release()
    for thread in threads:
        thread.join()
    assert came == list(range(6))


def test_who_waits_for_one_that_stands_still_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lock, "WARN_AFTER_SECONDS", 1.0)
    first, second, told = HostLock("a"), HostLock("a"), list[str]()
    first.try_acquire()
    assert second.acquire(1.5, told.append) is False
    assert told == ["Another writer of this machine commits to the same table."]
    first.release()
    told.clear()

    def work() -> None:
        mine = HostLock("a")
        assert mine.acquire(30, told.append)
        time.sleep(0.15)
        mine.release()

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [], "a queue that moves is no reason to worry"


def test_a_writer_that_holds_the_lock_for_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lock, "_HOST_SECONDS", 0.05)
    other = HostLock("server/db/t3")
    other.try_acquire()
    mine = LocalLock("server", ("db", "t3"), 3600)
    assert not mine.try_acquire()
    mine.acquire()
    mine.release()
    other.release()
