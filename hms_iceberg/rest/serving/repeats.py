"""Requests with an idempotency key, of which only the first is carried out.

Answers are kept in a small SQLite file that the processes of one server share. Source: Iceberg's REST protocol,
`idempotency-key`.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress

import msgspec

from hms_iceberg.errors import IcebergError, InvalidInputError
from hms_iceberg.processes import Process
from hms_iceberg.rest.errors import RefusedError, told
from hms_iceberg.rest.serving.calls import Answer, Call

_WAIT_SECONDS = 0.05
_TABLE = """create table if not exists repeats (
    key text primary key, request text not null, begun real not null, owner text not null, status integer, headers blob,
    body blob)"""


class Repeats:
    """Answers by the keys of their requests.

    Args:
        seconds: how long an answer is kept.
        folder: of the processes' own; None for one process.
    """

    def __init__(self, seconds: int, folder: str | None = None) -> None:
        self._seconds = seconds
        this = Process.this()
        self._host, self._owner = this.host, this.mark
        self._own = tempfile.TemporaryDirectory(prefix="hms-iceberg-rest-") if folder is None else None
        self._path = os.path.join(folder or (self._own.name if self._own else ""), "repeats.sqlite")
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Closes the file, and removes it if it is this process's own."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._own is not None:
                with suppress(OSError):
                    self._own.cleanup()

    def once(self, key: str, method: str, path: str, call: Call, work: Callable[[], Answer]) -> Answer:
        """The answer of the first request with a key; later ones wait for it and get the same.

        Args:
            key: the idempotency key.
            method, path: the request's method and path.
            call: the request.
            work: carries the request out.

        Raises:
            InvalidInputError: the key is no UUID of version 7.
            RefusedError: the key is another request's; or the first one is still under way.
        """
        _check_key(key)
        who = call.access.caller.name
        request = _digest(method, path, who, repr(sorted(call.path.items())), repr(sorted(call.query.items())))
        request = _digest(request, call.body.decode("latin-1"))
        owned = f"{who}\n{key.lower()}"
        deadline = time.monotonic() + 60
        while not self._begin(owned, request):
            kept = self._kept(owned, request)
            if kept is not None:
                return kept
            if time.monotonic() > deadline:
                raise RefusedError(503, "ServiceUnavailableException", "The first request of this key is under way.")
            time.sleep(_WAIT_SECONDS)
        try:
            answer = work()
        except IcebergError as error:
            what = told(error)
            # What is not final may be tried again with the same key; what is unknown must not be.
            if what.status == 503 or what.status in (401, 403, 419):
                self._forget(owned)
            else:
                body = {"error": {"message": str(error), "type": what.type, "code": what.status}}
                self._finish(owned, Answer(body, what.status))
            raise
        except BaseException:
            self._forget(owned)
            raise
        self._finish(owned, answer)
        return answer

    # ------------------------------------------------------------------------------------------------ rows

    def _begin(self, key: str, request: str) -> bool:
        """Whether this request is the first with its key."""
        now = time.time()
        with self._lock:
            connection = self._connected()
            connection.execute("delete from repeats where begun < ?", (now - self._seconds,))
            made = connection.execute(
                "insert or ignore into repeats (key, request, begun, owner) values (?, ?, ?, ?)",
                (key, request, now, self._owner),
            )
            return made.rowcount == 1 or self._inherited(connection, key, request)

    def _inherited(self, connection: sqlite3.Connection, key: str, request: str) -> bool:
        """Takes over a request whose process died before it answered; False if that process may live, or another one
        took it over.

        Whatever it has done: a commit of snapshots that are there is told as made, and others do not fit any more.
        """
        row = connection.execute(
            "select owner from repeats where key = ? and request = ? and status is null", (key, request)
        ).fetchone()
        owner = None if row is None else Process.find(self._host, row[0])
        if owner is None or owner.may_be_alive():
            return False
        taken = connection.execute(
            "update repeats set owner = ? where key = ? and owner = ? and status is null", (self._owner, key, row[0])
        )
        return taken.rowcount == 1

    def _kept(self, key: str, request: str) -> Answer | None:
        with self._lock:
            row = (
                self._connected()
                .execute("select request, status, headers, body from repeats where key = ?", (key,))
                .fetchone()
            )
        if row is None:
            return None
        if row[0] != request:
            raise RefusedError(422, "UnprocessableEntityException", "The Idempotency-Key is that of another request.")
        if row[1] is None:
            return None
        return Answer(row[3] if row[3] else None, row[1], msgspec.json.decode(row[2], type=dict[str, str]))

    def _finish(self, key: str, answer: Answer) -> None:
        with self._lock:
            self._connected().execute(
                "update repeats set status = ?, headers = ?, body = ? where key = ?",
                (answer.status, msgspec.json.encode(dict(answer.headers)), answer.encoded(), key),
            )

    def _forget(self, key: str) -> None:
        with self._lock:
            self._connected().execute("delete from repeats where key = ?", (key,))

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = off")
            self._connection.execute(_TABLE)
        return self._connection


def _check_key(key: str) -> None:
    try:
        is_fit = len(key) == 36 and uuid.UUID(key).version == 7
    except ValueError:
        is_fit = False
    if not is_fit:
        raise InvalidInputError(f"Header Idempotency-Key: expected a UUID of version 7, got {key[:50]!r}.")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
