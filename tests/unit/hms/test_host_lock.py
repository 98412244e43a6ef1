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

from hms_iceberg.errors import LockTimeoutError
from hms_iceberg.hms.locking import host_lock
from hms_iceberg.hms.locking.host_lock import HostLock, LocalMutex

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
        assert mine.acquire(10)
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


def test_the_mutex_is_taken_by_one_writer_and_kept_for_the_next() -> None:
    first, second = LocalMutex("server", ("db", "t")), LocalMutex("server", ("db", "t"))
    assert first.try_acquire() and first.try_acquire()
    assert not second.try_acquire()
    first.release()
    second.acquire(1)
    second.release()
    assert LocalMutex("server", ("db", "other")).try_acquire()


def test_a_mutex_that_is_not_free_in_time_is_an_error() -> None:
    first, second = LocalMutex("server", ("db", "t2")), LocalMutex("server", ("db", "t2"))
    first.acquire(1)
    with pytest.raises(LockTimeoutError, match="other threads of this process"):
        second.acquire(0.05)
    first.release()


def test_another_process_that_holds_the_mutex_for_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_lock, "_HOST_SECONDS", 0.05)
    other = HostLock("server/db/t3")
    other.try_acquire()
    mine = LocalMutex("server", ("db", "t3"))
    assert not mine.try_acquire()
    mine.acquire(10)
    mine.release()
    other.release()
