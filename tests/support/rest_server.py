"""A REST server on loopback, in a thread of the test."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3
import uvicorn

from hms_iceberg.catalog import Catalog
from hms_iceberg.rest import RestSettings, application
from hms_iceberg.rest.serving.header_timeout import protocol


@dataclass(frozen=True)
class Reply:
    """What a server answered."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def error(self) -> str:
        """The type of the error that it tells; the answer must be one, in the protocol's form."""
        assert set(self.body) == {"error"} and self.body["error"]["code"] == self.status, self.body
        assert self.body["error"]["message"], self.body
        return str(self.body["error"]["type"])


@dataclass(frozen=True)
class RestServer:
    """A server that runs."""

    url: str
    pool: urllib3.PoolManager

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **query: str
    ) -> Reply:
        """The answer to one request; a body that is no bytes is sent as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.pool.request(
            method, f"{self.url}{path}", body=data, headers=headers, fields=None if data else query
        )
        text = answer.data
        return Reply(answer.status, json.loads(text) if text else None, answer.headers)


@contextmanager
def served(catalog: Catalog, settings: RestSettings | None = None, **arguments: Any) -> Iterator[RestServer]:
    """A server of a catalog; arguments as of `application`."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = application(catalog, settings, **arguments)
    http = protocol((settings or RestSettings()).limits.head_seconds)
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_config=None, lifespan="on", http=http))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    pool = urllib3.PoolManager(retries=False)
    try:
        yield RestServer(f"http://127.0.0.1:{listening.getsockname()[1]}", pool)
    finally:
        pool.clear()
        server.should_exit = True
        thread.join(20)
        listening.close()
