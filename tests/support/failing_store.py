"""A store behind HTTP that fails where it is told to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

STATUSES = {403: "403 Forbidden", 500: "500 Error", 503: "503 Slow Down"}

Application = Callable[..., Any]


@dataclass
class Failure:
    """Requests that fail: of one method, whose path matches; so many of them, each after a while."""

    method: str
    path: str
    status: int | None
    times: int = 1_000_000
    seconds: float = 0.0
    met: int = 0


@dataclass
class FailingStore:
    """What fails of a store, and how it says so.

    Attributes:
        errors: by status, the body of its answer.
        kind: the type of such a body.
        endpoint: the store's URL.
        failures: requests that fail; the first that fits holds.
    """

    errors: dict[int, str]
    kind: str
    endpoint: str = ""
    failures: list[Failure] = field(default_factory=list)

    def fails(self, method: str, path: str) -> int | None:
        """The status of a request that is to fail, after its while; None of one that is to be served."""
        for failure in self.failures:
            if failure.times > failure.met and failure.method == method and re.search(failure.path, path):
                failure.met += 1
                time.sleep(failure.seconds)
                if failure.status is not None:
                    return failure.status
        return None

    def answers(self, serve: Application) -> Application:
        """A WSGI application that fails where it is told to."""

        def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
            status = self.fails(environ["REQUEST_METHOD"], environ["PATH_INFO"])
            if status is None:
                return serve(environ, start_response)
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(STATUSES[status], [("Content-Type", self.kind)])
            return [self.errors[status].encode()]

        return application
