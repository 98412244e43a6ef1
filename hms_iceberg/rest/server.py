"""A server of its own: one or several processes, with TLS, logins, a policy and metrics."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import ConfigurationError, MissingDependencyError
from hms_iceberg.printable import log_to_stderr
from hms_iceberg.private_files import temporary_folder
from hms_iceberg.reporters.prometheus import BUCKETS, count, metrics_server, prometheus
from hms_iceberg.rest.access import everything
from hms_iceberg.rest.security.jwt_login import JwtLogin, JwtSettings
from hms_iceberg.rest.security.logins import AnyOf, Login, read_tokens
from hms_iceberg.rest.security.policy import read_policy
from hms_iceberg.rest.serving.calls import Observer
from hms_iceberg.rest.settings import RestSettings
from hms_iceberg.spec.read_limit import GIBIBYTE, READ_LIMIT

if TYPE_CHECKING:
    from starlette.applications import Starlette

logger = logging.getLogger(__name__)

# Longer than clients keep a connection that they do not use: one that is closed as they ask anew is an error to them.
_ENDING = (signal.SIGTERM, signal.SIGINT)
_IDLE_SECONDS = 75
# Many requests are answered at once.
_READ_LIMIT = GIBIBYTE
_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server, which can be passed to its processes."""

    catalog_name: str | None  # name and properties as of `load_catalog`
    catalog_properties: Mapping[str, str]
    rest: RestSettings = field(default_factory=RestSettings)
    host: str = "127.0.0.1"  # the address that it listens at
    port: int = 8181
    workers: int = 1
    tls_certificate: str | None = None  # PEM files; without them it talks plain HTTP
    tls_key: str | None = None
    tokens: str | None = None  # file of static tokens
    jwt: JwtSettings | None = None  # tokens of an external server that are accepted
    policy: str | None = None  # file that says who may do what
    allow_anybody: bool = False  # whether it may listen beyond this machine without logins
    metrics_port: int | None = None  # port of the metrics for Prometheus, on the same host; None for no metrics
    log_level: str = "INFO"
    log_format: str = "text"  # `text`, or `json` with an object a line

    def __call__(self) -> Starlette:
        """The application of one process."""
        from hms_iceberg.catalog import load_catalog
        from hms_iceberg.rest.application import application

        if self.workers > 1:
            _end_with_parent()
        log_to_stderr(self.log_level, "%(asctime)s %(levelname)s %(name)s: %(message)s", form=self.log_format)
        return application(
            load_catalog(self.catalog_name, **{READ_LIMIT: str(_READ_LIMIT), **self.catalog_properties}),
            self.rest,
            login=self.login(),
            rule=read_policy(Path(self.policy)) if self.policy else everything,
            observer=_observed() if self.metrics_port is not None else None,
        )

    def login(self) -> Login | None:
        """The login of callers; None lets everybody in."""
        logins: list[Login] = []
        if self.tokens:
            logins.append(read_tokens(Path(self.tokens)))
        if self.jwt:
            logins.append(JwtLogin(self.jwt))
        if not logins:
            return None
        return AnyOf(tuple(logins)) if len(logins) > 1 else logins[0]

    def check(self) -> None:
        """Refuses contradictory settings and missing packages, before anything is started."""
        try:
            import uvicorn  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError("This needs uvicorn: pip install 'hms_iceberg[rest]'") from error
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigurationError("TLS needs both a certificate and its key. Give both, or none.")
        for path in filter(None, (self.tls_certificate, self.tls_key)):
            if not os.access(path, os.R_OK):
                raise ConfigurationError(f"Cannot read {path}. Give a PEM file that this user may read.")
        for port in (self.port, self.metrics_port or 0):
            if not 0 <= port <= 65535:
                raise ConfigurationError(f"{port} is no port. Give one of 1 to 65535, or 0 for a free one.")
        if self.policy:
            read_policy(Path(self.policy))
        login = self.login()
        if login is None and self.policy:
            raise ConfigurationError(
                "A policy needs logins: without them, everybody is 'anybody'. Give tokens or JWTs."
            )
        storage = self.rest.storage
        if self.policy and (storage.role_arn or storage.signs) and self.rest.allowed_locations is None:
            raise ConfigurationError(
                "Who may write to a table may choose its folder, and would get at all files that this server reaches. "
                "Say below which folders tables are: --allowed-location."
            )
        if login is None and not self.allow_anybody and not _is_loopback(self.host):
            raise ConfigurationError(
                f"Nobody would be asked for a login at {self.host}, which others can reach. Give tokens or JWTs, or "
                "say --allow-anybody if the network keeps others out."
            )


def event_loop() -> asyncio.AbstractEventLoop:
    """uvicorn's event loop, except that closing a TLS connection waits one second for the other side instead of thirty,
    so that idle clients do not delay the end of the server."""
    from uvicorn.loops.auto import auto_loop_factory

    loop = auto_loop_factory()()
    create = loop.create_server

    def create_server(*arguments: Any, ssl: Any = None, **options: Any) -> Any:
        if ssl is not None:
            options.setdefault("ssl_shutdown_timeout", 1.0)
        return create(*arguments, ssl=ssl, **options)

    # Python 3.10's own loop has no such setting.
    if sys.version_info >= (3, 11) or not isinstance(loop, asyncio.BaseEventLoop):
        loop.create_server = create_server  # type: ignore[method-assign]
    return loop


def serve(settings: ServerSettings) -> None:
    """Serves until SIGTERM or SIGINT comes; requests under way are answered before it ends."""
    settings.check()
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from hms_iceberg.rest.serving.header_timeout import protocol

    folder = temporary_folder("rest")
    try:
        shared = replace(settings, rest=replace(settings.rest, state_folder=str(folder)))
        with closing(_listening(settings)) as listening, _metrics(settings, str(folder)), _handlers_kept():
            config = uvicorn.Config(
                shared,
                factory=True,
                loop=f"{__name__}:{event_loop.__name__}",
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                ssl_certfile=settings.tls_certificate,
                ssl_keyfile=settings.tls_key,
                access_log=False,
                log_config=None,
                server_header=False,
                lifespan="on",
                http=protocol(settings.rest.limits.head_seconds),
                timeout_keep_alive=_IDLE_SECONDS,
                timeout_worker_healthcheck=30,
                timeout_graceful_shutdown=int(settings.rest.limits.drain_seconds),
            )
            # Uvicorn takes the signals from here on: the supervisor by itself, the server only once its loop runs.
            if settings.workers > 1:
                Multiprocess(config, sockets=[listening]).run()
            else:
                server = uvicorn.Server(config)
                for number in _ENDING:  # at its end it raises them again, for whoever had them before
                    signal.signal(number, server.handle_exit)
                server.run(sockets=[listening])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent() -> None:
    """Has this worker end as by SIGTERM when its supervisor is gone, even a killed one."""
    parent = multiprocessing.parent_process()

    def end() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, name="parent", daemon=True).start()


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Gives signals their handlers back."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listening(settings: ServerSettings) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        raise ConfigurationError(f"Cannot listen at {settings.host}:{settings.port}: {error}.") from error
    listening.set_inheritable(True)
    return listening


@contextmanager
def _metrics(settings: ServerSettings, folder: str) -> Iterator[None]:
    if settings.metrics_port is None:
        yield
        return
    with _metrics_server(settings.host, settings.metrics_port, folder):
        yield


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# --------------------------------------------------------------------------------------------- metrics


def _observed() -> Observer:
    """Counts answers and their time, by method, route and status; and what else this process does."""
    from prometheus_client import Histogram

    count()
    seconds = Histogram(
        "hms_iceberg_rest_request_seconds",
        "Time to answer a request, by method, route and status.",
        ("method", "route", "status"),
        buckets=BUCKETS,
    )

    def observe(method: str, route: str, status: int, took: float) -> None:
        known = method if method in ("GET", "HEAD", "POST", "DELETE") else "other"
        seconds.labels(known, route, str(status)).observe(took)

    return observe


@contextmanager
def _metrics_server(host: str, port: int, folder: str) -> Iterator[None]:
    """Serves the metrics of this process and its children at `/metrics` on a port of its own."""
    before = os.environ.get(_METRICS_FOLDER)
    os.environ[_METRICS_FOLDER] = folder  # before the package is imported, here and in the children
    try:
        client = prometheus()
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = client.CollectorRegistry()
        MultiProcessCollector(registry)
        with metrics_server(host, port, registry):
            yield
    finally:
        if before is None:
            os.environ.pop(_METRICS_FOLDER, None)
        else:
            os.environ[_METRICS_FOLDER] = before
