"""Hadoop's delegation tokens: those that a process was given, such as a container of YARN, and their forms as bytes."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of any service, such as of kind `HDFS_DELEGATION_TOKEN`; `service` is empty if only one can be meant."""

    identifier: bytes = field(repr=False)
    password: bytes = field(repr=False)
    kind: str
    service: str


def tokens_of_process(kind: str) -> tuple[Token, ...]:
    """The tokens of a kind that this process has, in the file of the variable `HADOOP_TOKEN_FILE_LOCATION`. Without
    that file, or if it cannot be read, there are none, as for Hadoop's clients."""
    try:
        with open(os.environ.get(VARIABLE) or os.devnull, "rb") as file:
            data = file.read()
        form = {b"HDTS\0": _of_writable, b"HDTS\1": _of_protobuf}.get(data[:5])
        found = tuple(form(io.BytesIO(data[5:]))) if form else ()
    except (OSError, ValueError, LookupError):
        return ()
    return tuple(token for token in found if token.kind == kind)


def token_of_text(text: str) -> Token:
    """A token in Hadoop's text form, the Base64 of its bytes; ValueError for others."""
    data = base64.urlsafe_b64decode(text.strip() + "=" * (-len(text.strip()) % 4))
    return _token(io.BytesIO(data))


def take_bytes(file: io.BytesIO) -> bytes:
    """Bytes after their length, as Hadoop's WritableUtils writes them."""
    return _part(file, take_long(file))


def take_long(file: io.BytesIO) -> int:
    """A number as Hadoop's WritableUtils writes it: small ones are a byte, others come after a byte with their size."""
    first = int.from_bytes(_part(file, 1), "big", signed=True)
    if first >= -112:
        return first
    value = int.from_bytes(_part(file, -112 - first if first >= -120 else -120 - first), "big")
    return value if first >= -120 else ~value


def _of_writable(file: io.BytesIO) -> Iterator[Token]:
    for _ in range(take_long(file)):
        take_bytes(file)  # an alias
        yield _token(file)


def _token(file: io.BytesIO) -> Token:
    identifier, password, kind, service = (take_bytes(file) for _ in range(4))
    return Token(identifier, password, kind.decode(), service.decode())


def _of_protobuf(file: io.BytesIO) -> Iterator[Token]:
    for entry in _fields(_part(file, _varint(file))).get(1, []):
        for found in _fields(entry).get(2, []):
            token = _fields(found)
            identifier, password, kind, service = (token[number][-1] for number in range(1, 5))
            yield Token(identifier, password, kind.decode(), service.decode())


def _fields(message: bytes) -> dict[int, list[bytes]]:
    """The texts and messages in a message of Protocol Buffers, by their numbers."""
    file, found = io.BytesIO(message), dict[int, list[bytes]]()
    while file.tell() < len(message):
        number, kind = divmod(_varint(file), 8)
        if kind != 2:
            raise ValueError(f"a field of kind {kind} is not expected here")
        found.setdefault(number, []).append(_part(file, _varint(file)))
    return found


def _varint(file: io.BytesIO) -> int:
    value, shift, byte = 0, 0, 0x80
    while byte & 0x80:
        byte = _part(file, 1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value


def _part(file: io.BytesIO, size: int) -> bytes:
    data = file.read(max(size, 0))
    if len(data) != size:
        raise ValueError("it ends too early")
    return data
