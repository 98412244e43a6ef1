"""Requests with an idempotency key, of which only the first is carried out.

Answers are kept in a small SQLite file that the processes of one server share. Source: Iceberg's REST protocol,
`Idempotency-Key`.
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
from hms_iceberg.rest.errors import RefusedError, error_kind
from hms_iceberg.rest.serving.calls import Answer, Call

_WAIT_SECONDS = 0.05
_TABLE = """create table if not exists requests (
    key text primary key, request text not null, begun real not null, owner text not null, status integer, headers blob,
    body blob)"""


class IdempotentRequests:
    """Answers by idempotency key, kept for some seconds in a folder that processes share, or one of this process."""

    def __init__(self, seconds: int, folder: str | None = None) -> None:
        self._seconds = seconds
        this = Process.this()
        self._host, self._owner = this.host, this.mark
        self._own = tempfile.TemporaryDirectory(prefix="hms-iceberg-rest-") if folder is None else None
        self._path = os.path.join(folder or (self._own.name if self._own else ""), "idempotency.sqlite")
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
        """The answer of the first request with a key, for which later ones wait; another request with the key is
        refused."""
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
            failure = error_kind(error)
            # What is not final may be tried again with the same key; what is unknown must not be.
            if failure.code == 503 or failure.code in (401, 403, 419):
                self._forget(owned)
            else:
                body = {"error": {"message": str(error), "type": failure.type, "code": failure.code}}
                self._finish(owned, Answer(body, failure.code))
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
            connection.execute("delete from requests where begun < ?", (now - self._seconds,))
            made = connection.execute(
                "insert or ignore into requests (key, request, begun, owner) values (?, ?, ?, ?)",
                (key, request, now, self._owner),
            )
            return made.rowcount == 1 or self._inherited(connection, key, request)

    def _inherited(self, connection: sqlite3.Connection, key: str, request: str) -> bool:
        """Takes over a request whose process died before it answered, and returns whether it did. A commit that the
        dead process made is recognised by its snapshots; any other fails its requirements."""
        row = connection.execute(
            "select owner from requests where key = ? and request = ? and status is null", (key, request)
        ).fetchone()
        owner = None if row is None else Process.find(self._host, row[0])
        if owner is None or owner.may_be_alive():
            return False
        taken = connection.execute(
            "update requests set owner = ? where key = ? and owner = ? and status is null", (self._owner, key, row[0])
        )
        return taken.rowcount == 1

    def _kept(self, key: str, request: str) -> Answer | None:
        with self._lock:
            row = (
                self._connected()
                .execute("select request, status, headers, body from requests where key = ?", (key,))
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
                "update requests set status = ?, headers = ?, body = ? where key = ?",
                (answer.status, msgspec.json.encode(dict(answer.headers)), answer.encoded(), key),
            )

    def _forget(self, key: str) -> None:
        with self._lock:
            self._connected().execute("delete from requests where key = ?", (key,))

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
