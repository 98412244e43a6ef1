"""Delegation tokens of HDFS that a process has, and the clusters that they name."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from hms_iceberg.hadoop_tokens import VARIABLE, take_bytes, take_long, tokens_of_process

__all__ = ["OF_NAMESERVICE", "VARIABLE", "HdfsToken", "hdfs_tokens", "service_of", "services"]

OF_NAMESERVICE = "ha-hdfs:"
_KIND = "HDFS_DELEGATION_TOKEN"
_MARGIN = timedelta(seconds=60)  # a token that ends sooner is not used by hdfs-native
_LAST_SECOND = 253_402_300_799  # of the year 9999


@dataclass(frozen=True, slots=True)
class HdfsToken:
    """A token of HDFS for a service (`ha-hdfs:<nameservice>`, or a NameNode's address); nobody can renew it after
    `ends`."""

    service: str
    ends: datetime

    @property
    def has_ended(self) -> bool:
        return self.ends <= datetime.now(timezone.utc) + _MARGIN

    def __str__(self) -> str:
        return f"{self.service}, which ended at {self.ends:%Y-%m-%d %H:%M:%S} UTC" if self.has_ended else self.service


def hdfs_tokens() -> tuple[HdfsToken, ...]:
    return tuple(HdfsToken(token.service, _end(token.identifier)) for token in tokens_of_process(_KIND))


def services() -> tuple[str, ...]:
    """The services for which this process has delegation tokens that have not expired."""
    return tuple(token.service for token in hdfs_tokens() if not token.has_ended)


def service_of(address: str, known: Iterable[str]) -> str | None:
    """The known service that is the NameNode at `host:port`, under any of its names; None if none is."""
    known = [each for each in known if not each.startswith(OF_NAMESERVICE)]
    if address in known:
        return address
    return next((each for each in known if _resolved(each) & _resolved(address)), None)


def _resolved(address: str) -> set[tuple[str, str]]:
    host, _, port = address.rpartition(":")
    try:
        return {(str(found[4][0]), port) for found in socket.getaddrinfo(host.strip("[]"), None)}
    except (OSError, UnicodeError):
        return set()


def _end(identifier: bytes) -> datetime:
    """The latest end that an identifier tells: after a version, three names and the time of its issue."""
    file = io.BytesIO(identifier)
    try:
        file.read(1)
        for _ in range(3):
            take_bytes(file)
        take_long(file)
        seconds = min(max(take_long(file) / 1000, 0), _LAST_SECOND)
    except ValueError:  # spoilt: the NameNode says so
        seconds = _LAST_SECOND
    return datetime.fromtimestamp(seconds, timezone.utc)
