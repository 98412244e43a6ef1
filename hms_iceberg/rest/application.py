"""The ASGI application: authenticates the caller of a request, finds the route, and answers as the protocol says."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from hms_iceberg.catalog.catalog import Catalog
from hms_iceberg.printable import log_fields, printable
from hms_iceberg.rest.access import ANYBODY, Access, Caller, Rule, everything
from hms_iceberg.rest.errors import RefusedError, error_kind, is_expected
from hms_iceberg.rest.routes import ENDPOINTS, Route, check_right, find_route
from hms_iceberg.rest.security.logins import Login
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import Answer, Call, Observer
from hms_iceberg.rest.serving.error_messages import error_message
from hms_iceberg.rest.serving.idempotency import IdempotentRequests
from hms_iceberg.rest.settings import RestSettings

logger = logging.getLogger(__name__)
access_log = logging.getLogger("hms_iceberg.rest.access")


def application(
    catalog: Catalog,
    settings: RestSettings | None = None,
    *,
    login: Login | None = None,
    rule: Rule = everything,
    observer: Observer | None = None,
) -> Starlette:
    """An ASGI application that serves a catalog by the Iceberg REST protocol; it may be mounted in another one.

    Args:
        catalog: the catalog; the caller closes it.
        settings: limits, allowed locations, what clients get to reach files, and more.
        login: authenticates callers; by default everybody is let in, as `anybody`.
        rule: says what a caller may do; by default everything.
        observer: is called with method, route, status and seconds of every answer, for metrics.

    Returns:
        The application; its lifespan ends the server's background work, not the catalog.
    """
    settings = settings or RestSettings()
    serving = Serving(ServedCatalog(catalog, settings, ENDPOINTS), login, rule, observer)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        serving.close()

    app = Starlette(lifespan=lifespan)
    app.router.default = serving  # no pattern of Starlette's is asked: a name may hold whatever can be encoded
    return app


class Serving:
    """Answers requests: an ASGI application without a lifespan."""

    def __init__(self, served: ServedCatalog, login: Login | None, rule: Rule, observer: Observer | None) -> None:
        self._served = served
        self._login = login
        self._rule = rule
        self._observer = observer
        self._limits = served.settings.limits
        self._running = 0
        self._threads = anyio.CapacityLimiter(self._limits.threads)
        self.idempotent_requests = IdempotentRequests(served.settings.idempotency_seconds, served.settings.state_folder)

    def close(self) -> None:
        self.idempotent_requests.close()
        self._served.plans.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await WebSocketClose()(scope, receive, send)
            return
        request = Request(scope, receive)
        with log_fields(request=_request_id(request)):
            await self._serve(request, scope, receive, send)

    async def _serve(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        started, route, call, caller = time.monotonic(), None, None, ANYBODY
        self._running += 1
        try:
            if self._running > self._limits.requests:
                raise RefusedError(
                    503, "ServiceUnavailableException", "Too many requests at once. Come again.", {"Retry-After": "1"}
                )
            route, variables = find_route(request.method, _segments(scope))
            caller = await self._caller(request, route)
            call = Call(
                path=variables,
                query=dict(request.query_params),
                headers={key.lower(): value for key, value in request.headers.items()},
                body=await self._body(request),
                access=Access(caller, self._rule),
                url=str(request.base_url).rstrip("/"),
            )
            answer = await self._answer(route, call)
        except ClientDisconnect:
            return
        except Exception as error:  # every error is answered in the protocol's form
            answer = self._failed(error, request, route, call)
        finally:
            self._running -= 1
        await self._send(answer, request, scope, receive, send)
        self._log(request, route, caller, answer, time.monotonic() - started)

    async def _caller(self, request: Request, route: Route) -> Caller:
        if self._login is None or route.is_open:
            return ANYBODY
        header = request.headers.get("authorization", "")
        return await anyio.to_thread.run_sync(self._login.caller, header, limiter=self._threads)

    async def _body(self, request: Request) -> bytes:
        length = request.headers.get("content-length", "")
        parts: list[bytes] = []
        size = int(length) if length.isascii() and length.isdigit() else 0
        try:
            with anyio.fail_after(self._limits.body_seconds):
                self._check_size(size)
                size = 0
                async for part in request.stream():
                    size += len(part)
                    self._check_size(size)
                    parts.append(part)
        except TimeoutError as error:
            raise RefusedError(408, "RequestTimeoutException", "The body did not arrive in time.") from error
        body = b"".join(parts)
        if sum(map(body.count, (b",", b"[", b"{"))) > self._limits.body_values:
            raise RefusedError(
                413,
                "BadRequestException",
                f"The body has more than {self._limits.body_values:,} values in it, the server's limit `body_values`.",
            )
        return body

    def _check_size(self, size: int) -> None:
        if size > self._limits.body_bytes:
            raise RefusedError(
                413,
                "BadRequestException",
                f"The body is larger than {self._limits.body_bytes} bytes.",
                {"Connection": "close"},
            )

    async def _answer(self, route: Route, call: Call) -> Answer:
        work = partial(self._work, route, call)
        try:
            with anyio.fail_after(self._limits.request_seconds):
                return await anyio.to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=True)
        except TimeoutError as error:
            raise RefusedError(
                504, "ServiceFailureException", "The request took too long. Nobody knows yet what became of it."
            ) from error

    def _work(self, route: Route, call: Call) -> Answer:
        check_right(self._served, route, call)
        key = call.headers.get("idempotency-key") if route.changes else None
        if key is None or not self._served.settings.idempotency_seconds:
            return route.endpoint(self._served, call)
        return self.idempotent_requests.once(
            key, route.method, route.path, call, lambda: route.endpoint(self._served, call)
        )

    def _failed(self, error: Exception, request: Request, route: Route | None, call: Call | None) -> Answer:
        failure = error_kind(error)
        if is_expected(error):
            message = error_message(error, call, route.path if route else "", self._served.catalog)
            level = logging.WARNING if failure.code >= 500 else logging.INFO
            said = printable(str(error))
            logger.log(level, "%s %s: %s: %s", request.method, _shown_path(request), type(error).__name__, said)
        else:
            message = "The server failed. Its log says why."
            logger.error("%s %s failed", request.method, _shown_path(request), exc_info=error)
        headers = error.headers if isinstance(error, RefusedError) else {}
        if failure.code == 503:
            headers = {"Retry-After": "1", **headers}
        body = {"error": {"message": message, "type": failure.type, "code": failure.code}}
        return Answer(body, failure.code, headers)

    async def _send(self, answer: Answer, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        body = answer.encoded()
        headers = dict(answer.headers)
        if body:
            headers["Content-Type"] = "application/json"
        if request.method == "HEAD":
            body = b""
        with anyio.move_on_after(self._limits.request_seconds):  # else the connection is closed
            await Response(body, answer.status, headers)(scope, receive, send)

    def _log(self, request: Request, route: Route | None, caller: Caller, answer: Answer, seconds: float) -> None:
        client = request.client.host if request.client else "-"
        path, took = _shown_path(request), 1000 * seconds
        is_probe = route is not None and route.is_open and answer.status == 200
        level = logging.DEBUG if is_probe else logging.INFO
        access_log.log(
            level, "%s %s %s %s %d %.1f ms", client, _shown(caller), request.method, path, answer.status, took
        )
        if self._observer is not None:
            self._observer(request.method, route.path if route else "none", answer.status, seconds)


def _request_id(request: Request) -> str:
    """The id that a proxy or a client gave the request, or a new one: lines of the log that belong together have it."""
    return request.headers.get("x-request-id", "")[:64] or uuid.uuid4().hex[:12]


def _shown_path(request: Request) -> str:
    """The path as it was sent: a name with a line break does not begin a new line of the log."""
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode()
    return printable(raw.decode("latin-1"))


def _shown(caller: Caller) -> str:
    return printable(caller.name).replace(" ", "_")


def _segments(scope: Scope) -> tuple[str, ...]:
    """The segments of the path below the place where the application is mounted, decoded one by one."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0]
    root = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :]
    return tuple(unquote(segment) for segment in path.strip("/").split("/"))
