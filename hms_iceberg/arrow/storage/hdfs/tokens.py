"""Delegation tokens of a process, such as a container of YARN has, and the clusters that they name."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable

VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
OF_NAMESERVICE = "ha-hdfs:"
# After the kind comes the service, with its length, which has a tag before it in the second of the formats.
_SERVICE = {0: re.compile(rb"HDFS_DELEGATION_TOKEN(.)", re.S), 1: re.compile(rb'HDFS_DELEGATION_TOKEN"(.)', re.S)}


def services() -> tuple[str, ...]:
    """What the tokens of this process are for: `ha-hdfs:<nameservice>`, or the address of a NameNode.

    Without a file of tokens, or if it cannot be read, there are none, as for Hadoop's clients.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return ()
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return ()
    if data[:4] != b"HDTS" or data[4:5] not in (b"\0", b"\1"):
        return ()
    found = _SERVICE[data[4]].finditer(data)
    return tuple(data[match.end() : match.end() + match[1][0]].decode("utf-8", "replace") for match in found)


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
