"""A quick check whether a metastore answers, for callers that cannot wait long."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from hms_iceberg.errors import (
    MetastoreAuthenticationError,
    MetastoreError,
    MetastoreTimeoutError,
    MetastoreUnavailableError,
)
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings

CONNECT_TIMEOUT = "hive.metastore.client.connection.timeout"
# For a connection, for its answer, and for all together with names, encryption and login.
_CONNECT_SECONDS = 4.0
_ANSWER_SECONDS = 4.0
_SECONDS = 8.0


def check_reach(properties: Mapping[str, str], seconds: float = _SECONDS) -> None:
    """Checks that a metastore answers: one small request, a connection of its own, a short time-out for all together. A
    time-out for connections in the properties counts instead: nothing is checked then."""
    if CONNECT_TIMEOUT in properties:
        return
    settings = ClientSettings.from_properties(properties)
    connect = min(_CONNECT_SECONDS, seconds) / len(settings.addresses)
    client = HmsClient(replace(settings, connect_timeout=connect, attempts=1))
    failures: list[MetastoreError] = []

    def ask() -> None:
        try:
            client.config_value("hive.metastore.uris", "", min(_ANSWER_SECONDS, seconds))
        except MetastoreError as error:
            failures.append(error)

    # A thread that may be left behind: the look-up of a host's name has no time-out of its own.
    thread = threading.Thread(target=ask, name="iceberg-reach", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive() or any(isinstance(error, MetastoreTimeoutError) for error in failures):
        raise MetastoreTimeoutError(
            f"The metastore at {client.pool} gave no answer in time. Check that a Hive Metastore listens there, and "
            f"not another service, and that it is not overloaded. To wait longer, set {CONNECT_TIMEOUT}, such as 60s."
        )
    with suppress(OSError):
        client.close()
    for error in failures:
        if isinstance(error, (MetastoreUnavailableError, MetastoreAuthenticationError)):
            raise error
