"""Storages that fail where they are told to, over files that are whole."""

from __future__ import annotations

import http.server
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage


class FailingStorage(ArrowStorage):
    """Local files whose reads fail with `error`, once it is set, after so many good reads; reads are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.good_reads = 0
        self.reads = 0

    def read(self, location: str) -> bytes:
        """The whole object."""
        if self.error is not None:
            raise self.error
        return super().read(location)

    def open_input(self, location: str) -> BinaryIO:
        """A file whose reads come through Python, as those of other storages than ours do."""
        return cast(BinaryIO, _FailingFile(location, self))


class _FailingFile(io.FileIO):
    def __init__(self, location: str, storage: FailingStorage) -> None:
        super().__init__(location, "rb")
        self._storage = storage

    def read(self, size: int | None = -1) -> bytes:
        self._storage.reads += 1
        if self._storage.error is not None and self._storage.reads > self._storage.good_reads:
            raise type(self._storage.error)(*self._storage.error.args)
        return super().read(-1 if size is None else size)


@dataclass
class ObjectStore:
    """A store that speaks as much of S3 as reads need, and answers GET with a failure, once it is told to."""

    folder: Path
    port: int = 0
    failure: tuple[int, str] | None = None
    properties: dict[str, str] = field(default_factory=dict)


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Serves the files of a folder as the objects of bucket `bucket`."""
    store = ObjectStore(folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # which holds bodies back for 40 ms, until heads are acknowledged

        def log_message(self, *arguments: Any) -> None:
            pass

        def _data(self) -> bytes:
            return (folder / self.path.split("?")[0].removeprefix("/bucket/")).read_bytes()

        def _answer(self, status: int, body: bytes, length: int | None = None, **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self._answer(200, b"", len(self._data()))

        def do_GET(self) -> None:
            if store.failure is not None:
                status, code = store.failure
                text = f"<Error><Code>{code}</Code><Message>as told</Message></Error>"
                self._answer(status, text.encode(), Content_Type="application/xml")
                return
            data = self._data()
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part = data[first : last + 1]
            self._answer(206, part, Content_Range=f"bytes {first}-{first + len(part) - 1}/{len(data)}")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        store.port = server.server_address[1]
        store.properties = {
            "s3.endpoint": f"http://127.0.0.1:{store.port}",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
        }
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()
