"""Delegation tokens of a process, such as a container of YARN has, and the clusters that they name."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
OF_NAMESERVICE = "ha-hdfs:"
_KIND = b"HDFS_DELEGATION_TOKEN"
_MARGIN = timedelta(seconds=60)  # a token that ends sooner is not used by hdfs-native


@dataclass(frozen=True, slots=True)
class Token:
    """A token of HDFS.

    Args:
        service: `ha-hdfs:<nameservice>`, or the address of a NameNode.
        ends: when nobody can renew it any more.
    """

    service: str
    ends: datetime

    @property
    def has_ended(self) -> bool:
        """Whether clients use it no more."""
        return self.ends <= datetime.now(timezone.utc) + _MARGIN

    def __str__(self) -> str:
        return f"{self.service}, which ended at {self.ends:%Y-%m-%d %H:%M:%S} UTC" if self.has_ended else self.service


def tokens_of_process() -> tuple[Token, ...]:
    """The tokens of HDFS that this process has.

    Without a file of tokens, or if it cannot be read, there are none, as for Hadoop's clients.
    """
    path = os.environ.get(VARIABLE)
    try:
        with open(path or os.devnull, "rb") as file:
            return tuple(_tokens(file.read()))
    except (OSError, ValueError, LookupError, OverflowError):
        return ()


def services() -> tuple[str, ...]:
    """What the tokens of this process are for that have not ended."""
    return tuple(token.service for token in tokens_of_process() if not token.has_ended)


def service_of(address: str, known: Iterable[str]) -> str | None:
    """The one of several services that is the NameNode at an address, by whichever name."""
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


def _tokens(data: bytes) -> Iterator[Token]:
    """Those of a file, in either of Hadoop's formats (org.apache.hadoop.security.Credentials)."""
    found = {b"HDTS\0": _of_writable, b"HDTS\1": _of_protobuf}.get(data[:5])
    for identifier, kind, service in found(io.BytesIO(data[5:])) if found else ():
        if kind == _KIND:
            yield Token(service.decode(), _end(io.BytesIO(identifier)))


def _of_writable(file: io.BytesIO) -> Iterator[tuple[bytes, bytes, bytes]]:
    for _ in range(_long(file)):
        _alias, identifier, _password, kind, service = (_bytes(file) for _ in range(5))
        yield identifier, kind, service


def _of_protobuf(file: io.BytesIO) -> Iterator[tuple[bytes, bytes, bytes]]:
    for entry in _fields(_part(file, _varint(file))).get(1, []):
        for found in _fields(entry).get(2, []):
            token = _fields(found)
            yield token[1][-1], token[3][-1], token[4][-1]


def _end(identifier: io.BytesIO) -> datetime:
    """The latest end that an identifier tells: after a version, three names and the time of its issue."""
    identifier.read(1)
    for _ in range(3):
        _bytes(identifier)
    _long(identifier)
    seconds = min(_long(identifier) / 1000, 253_402_300_799)  # the year 9999 for one without an end
    return datetime.fromtimestamp(seconds, timezone.utc)


def _bytes(file: io.BytesIO) -> bytes:
    return _part(file, _long(file))


def _part(file: io.BytesIO, size: int) -> bytes:
    data = file.read(max(size, 0))
    if len(data) != size:
        raise ValueError("the file of tokens ends too early")
    return data


def _long(file: io.BytesIO) -> int:
    """A number as Hadoop's WritableUtils writes it."""
    first = int.from_bytes(_part(file, 1), "big", signed=True)
    if first >= -112:
        return first
    size = -(first + 112) if first >= -120 else -(first + 120)
    value = int.from_bytes(_part(file, size), "big")
    return value if first >= -120 else ~value


def _varint(file: io.BytesIO) -> int:
    value, shift, byte = 0, 0, 0x80
    while byte & 0x80:
        byte = _part(file, 1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value


def _fields(message: bytes) -> dict[int, list[bytes]]:
    """The texts and messages in a message of Protocol Buffers, by their numbers."""
    file, found = io.BytesIO(message), dict[int, list[bytes]]()
    while file.tell() < len(message):
        number, kind = divmod(_varint(file), 8)
        if kind != 2:
            raise ValueError(f"a field of kind {kind} is not expected here")
        found.setdefault(number, []).append(_part(file, _varint(file)))
    return found
