"""Metrics for Prometheus: every process counts in files of a folder, and one port tells the sums."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from hms_iceberg.errors import ConfigurationError, MissingDependencyError
from hms_iceberg.rest.serving.calls import Observer

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


def observer() -> Observer:
    """Counts answers and their time, by method, route and status."""
    from prometheus_client import Histogram

    seconds = Histogram(
        "hms_iceberg_rest_request_seconds",
        "Time to answer a request, by method, route and status.",
        ("method", "route", "status"),
        buckets=_BUCKETS,
    )

    def observe(method: str, route: str, status: int, took: float) -> None:
        known = method if method in ("GET", "HEAD", "POST", "DELETE") else "other"
        seconds.labels(known, route, str(status)).observe(took)

    return observe


@contextmanager
def served_metrics(host: str, port: int, folder: str) -> Iterator[None]:
    """Serves the metrics of this process and its children at `/metrics` on a port of its own.

    Args:
        host, port: where.
        folder: in which the processes count.

    Raises:
        ConfigurationError: the address is taken.
    """
    before = os.environ.get(_FOLDER)
    os.environ[_FOLDER] = folder  # before the package is imported, here and in the children
    try:
        try:
            from prometheus_client import CollectorRegistry, start_http_server
            from prometheus_client.multiprocess import MultiProcessCollector
        except ImportError as error:
            raise MissingDependencyError("Metrics need prometheus-client: pip install 'hms_iceberg[rest]'") from error
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        try:
            server, thread = start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            raise ConfigurationError(f"Cannot tell metrics at {host}:{port}: {error}.") from error
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join(5)
    finally:
        if before is None:
            os.environ.pop(_FOLDER, None)
        else:
            os.environ[_FOLDER] = before
