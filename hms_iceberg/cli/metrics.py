"""Options of commands that run for long: at which port they serve their metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def metrics_options(what: str) -> Callable[[Command], Command]:
    """`--metrics-port` and `--metrics-host`; `what` is there."""

    def decorate(command: Command) -> Command:
        host = click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address of the metrics.")
        return click.option("--metrics-port", type=click.IntRange(1, 65535), help=what)(host(command))

    return decorate


@contextmanager
def metrics_at(host: str, port: int | None) -> Iterator[None]:
    """Tells what this process does, in the context, at a port; at none if there is none."""
    if port is None:
        yield
        return
    from hms_iceberg.reporters.prometheus import count, metrics_server, prometheus

    registry = prometheus().CollectorRegistry()
    with count(registry), metrics_server(host, port, registry, {"/health": lambda: None}):
        yield
