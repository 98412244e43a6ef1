"""Thrift over HTTP, which Hive 4 speaks: settings, and the token that authenticates a client.

The names are those of Hive; those of the token are ours, as Hive's client knows its environment variable only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.hms.connection.security import AUTH_MODE

TRANSPORT_MODE = "hive.metastore.client.thrift.transport.mode"
HTTP_PATH = "hive.metastore.client.thrift.http.path"
HTTP_HEADERS = "hive.metastore.client.http.additional.headers"
TOKEN = "hive.metastore.client.auth.jwt"
TOKEN_FILE = "hive.metastore.client.auth.jwt.file"
TOKEN_VARIABLE = "HMS_JWT"
_MODES = ("binary", "http")


@dataclass(frozen=True)
class Bearer:
    """A token (JWT) that authenticates the client."""

    token: str | None = field(default=None, repr=False)  # the token; None if it is in a file
    file: str | None = None  # a file that holds it, which is read for every request: whoever renews it writes it there

    def read(self) -> str:
        if self.file is None:
            return self.token or ""
        try:
            token = Path(self.file).read_text().strip()
        except OSError as error:
            raise ConfigurationError(f"Property {TOKEN_FILE!r}: {self.file} cannot be read: {error}.") from error
        if not token:
            raise ConfigurationError(f"Property {TOKEN_FILE!r}: {self.file} is empty. Expected a token (JWT).")
        return token


@dataclass(frozen=True)
class HttpSettings:
    path: str = "/metastore"  # path of the server's end point, from `/`
    bearer: Bearer | None = None  # the client's token; None if a name is enough
    user: str = ""  # the name that the calls act for if there is no token
    headers: tuple[tuple[str, str], ...] = ()  # further headers of every request


def http_from_properties(properties: Mapping[str, str], user: str) -> HttpSettings | None:
    """Reads the settings of HTTP from a catalog's properties; None if the transport is Thrift's own."""
    mode = properties.get(TRANSPORT_MODE, "binary").strip().lower()
    if mode not in _MODES:
        raise ConfigurationError(f"Property {TRANSPORT_MODE!r}: expected one of {', '.join(_MODES)}, got {mode!r}.")
    wants_token = properties.get(AUTH_MODE, "").strip().upper() == "JWT"
    if mode == "binary":
        if wants_token:
            raise ConfigurationError(f"{AUTH_MODE}=JWT needs {TRANSPORT_MODE}=http: a token goes with HTTP only.")
        return None
    path = properties.get(HTTP_PATH, "metastore").strip("/")
    bearer = _bearer(properties) if wants_token or properties.get(TOKEN) or properties.get(TOKEN_FILE) else None
    return HttpSettings(f"/{path}", bearer, user.partition(":")[0], _headers(properties.get(HTTP_HEADERS, "")))


def _bearer(properties: Mapping[str, str]) -> Bearer:
    if properties.get(TOKEN_FILE):
        bearer = Bearer(file=properties[TOKEN_FILE])
        bearer.read()
        return bearer
    token = properties.get(TOKEN) or os.environ.get(TOKEN_VARIABLE, "")
    if not token.strip():
        raise ConfigurationError(
            f"{AUTH_MODE}=JWT needs a token: the property {TOKEN!r} or {TOKEN_FILE!r}, or the environment variable "
            f"{TOKEN_VARIABLE}."
        )
    return Bearer(token.strip())


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a text such as `a=b,c=d`."""
    pairs = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or any(not each.isprintable() for each in part):
            raise ConfigurationError(f"Property {HTTP_HEADERS!r}: expected NAME=VALUE,NAME=VALUE, got {text!r}.")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)
