"""Requests to a REST catalog; its errors become errors of this package.

Source of the errors: Iceberg's REST protocol, `ErrorModel`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from hms_iceberg.errors import (
    AlreadyExistsError,
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    IcebergError,
    InvalidInputError,
    MetastoreAnswerLostError,
    MetastoreAuthenticationError,
    MetastoreError,
    MetastoreUnavailableError,
    MissingDependencyError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    StorageDeniedError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from hms_iceberg.spec.property_kinds import IntProperty

_BY_TYPE: dict[str, type[IcebergError]] = {
    "NoSuchNamespaceException": NoSuchNamespaceError,
    "NoSuchTableException": NoSuchTableError,
    "NoSuchViewException": NoSuchViewError,
    "NotFoundException": MissingFileError,
    "NamespaceNotEmptyException": NamespaceNotEmptyError,
    "CommitFailedException": CommitFailedError,
    "CommitStateUnknownException": CommitStateUnknownError,
    "UnsupportedOperationException": UnsupportedError,
    "ForbiddenException": StorageDeniedError,
}
_BY_STATUS: dict[int, type[IcebergError]] = {
    400: InvalidInputError,
    401: MetastoreAuthenticationError,
    403: MetastoreAuthenticationError,
    404: NoSuchTableError,
    406: UnsupportedError,
    409: CommitFailedError,
    413: InvalidInputError,
    419: MetastoreAuthenticationError,
    422: InvalidInputError,
    503: MetastoreUnavailableError,
}
UNKNOWN = frozenset({500, 502, 504})
"""Statuses after which nobody knows what became of a commit."""


def failure(status: int, body: bytes, what: str) -> IcebergError:
    """The error of an answer; `what` was requested is `namespace`, `table`, `view` or `commit`."""
    kind, message = "", ""
    with suppress(ValueError, AttributeError, TypeError):
        error = json.loads(body)["error"]
        kind, message = str(error.get("type") or ""), str(error.get("message") or "")
    message = message or f"The server answered with status {status}: {body[:200].decode('utf-8', 'replace')}"
    if what == "commit" and status in UNKNOWN:
        return CommitStateUnknownError(message)
    if status == 409 and (kind == "AlreadyExistsException" or what == "namespace"):
        return _taken(what, message) if kind != "NamespaceNotEmptyException" else NamespaceNotEmptyError(message)
    if status in (401, 419):
        return MetastoreAuthenticationError(message)
    return (_BY_TYPE.get(kind) or _BY_STATUS.get(status, MetastoreError))(message)


def _taken(what: str, message: str) -> AlreadyExistsError:
    if what == "namespace":
        return NamespaceAlreadyExistsError(message)
    return ViewAlreadyExistsError(message) if what == "view" else TableAlreadyExistsError(message)


logger = logging.getLogger(__name__)

SEPARATOR = "\x1f"
_ATTEMPTS = IntProperty("rest.attempts", "How often a request that may be repeated is sent.", "rest_client", 5)
_TIMEOUT_MS = IntProperty("rest.timeout-ms", "Longest wait for an answer.", "rest_client", 60_000)


class RestChannel:
    """Requests to one catalog; `what` names the object for errors. Properties: `uri`, `warehouse`, `prefix`, `token`,
    or `credential` (`id:secret`) with `oauth2-server-uri` and `scope`, `header.*`, `ssl.cabundle`, `rest.timeout-ms`
    (60000), `rest.attempts` (5), between the server's defaults and overrides; `endpoints` are empty if the server
    advertises none."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        try:
            import urllib3
        except ImportError as error:
            raise MissingDependencyError("A REST catalog needs urllib3: pip install 'hms_iceberg[rest]'") from error
        uri = properties.get("uri", "")
        if not uri.startswith(("http://", "https://")):
            raise ConfigurationError(f"A REST catalog has a URI such as http://host:8181, got {uri!r}. Set `uri`.")
        self.properties = dict(properties)
        self._uri = uri.rstrip("/")
        self._attempts = max(1, _ATTEMPTS.of(properties))
        self._timeout = _TIMEOUT_MS.of(properties) / 1000
        certificates = properties.get("ssl.cabundle")
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, ca_certs=certificates)
        self._lock = threading.Lock()
        self._token = properties.get("token")
        self._token_ends: float | None = None
        self._configured = False
        self.endpoints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self._uri

    @property
    def has_login(self) -> bool:
        return any(key in self.properties for key in ("token", "credential"))

    def close(self) -> None:
        self._pool.clear()

    def configured(self) -> Mapping[str, str]:
        """The catalog's properties, merged with the server's configuration, which is requested once."""
        with self._lock:
            if not self._configured:
                warehouse = self.properties.get("warehouse")
                query = {"warehouse": warehouse} if warehouse else {}
                response = self._decoded(self._sent("GET", f"{self._uri}/v1/config", query, None, "config", True))
                self.properties = {
                    **(response.get("defaults") or {}),
                    **self.properties,
                    **(response.get("overrides") or {}),
                }
                self.endpoints = tuple(map(str, response.get("endpoints") or ()))
                self._configured = True
        return self.properties

    # -------------------------------------------------------------------------------------------- requests

    def get(self, path: str, what: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        return self._decoded(self._sent("GET", self._url(path), query or {}, None, what, True))

    def pages(self, path: str, what: str, member: str) -> Iterator[Any]:
        """All entries of a list, which are in `member` of each page."""
        token: str | None = ""
        while token is not None:
            response = self.get(path, what, {"pageToken": token})
            yield from response.get(member) or ()
            token = response.get("next-page-token")

    def exists(self, path: str, what: str) -> bool:
        status, body = self._sent("HEAD", self._url(path), {}, None, what, True, fails=False)
        if status == 404:
            return False
        if status >= 400:
            raise failure(status, body, what)
        return True

    def post(self, path: str, body: Any, what: str) -> dict[str, Any]:
        """Sends a change; if its answer is lost, the change is not sent again, since the server may have made it."""
        return self._decoded(self._sent("POST", self._url(path), {}, body, what, False))

    def ask(self, path: str, body: Any, what: str) -> dict[str, Any]:
        """Sends a POST request that changes nothing, and so is retried like a GET."""
        return self._decoded(self._sent("POST", self._url(path), {}, body, what, True))

    def delete(self, path: str, what: str, query: Mapping[str, str] | None = None) -> None:
        """Sends a DELETE request, which is retried like `post`."""
        self._sent("DELETE", self._url(path), query or {}, None, what, False)

    # ----------------------------------------------------------------------------------------------- below

    def _url(self, path: str) -> str:
        prefix = self.configured().get("prefix")
        return f"{self._uri}/v1/{prefix}/{path}" if prefix else f"{self._uri}/v1/{path}"

    def _sent(
        self,
        method: str,
        url: str,
        query: Mapping[str, str],
        body: Any,
        what: str,
        repeatable: bool,
        fails: bool = True,
    ) -> tuple[int, bytes]:
        import urllib3

        data = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
        headers = self._headers(data is not None)
        if not repeatable:
            headers["Idempotency-Key"] = new_key()
        address = f"{url}?{urlencode(query)}" if query else url
        for attempt in range(1, self._attempts + 1):
            is_last = attempt == self._attempts
            try:
                answer = self._pool.request(method, address, body=data, headers=headers, timeout=self._timeout)
            except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
                if is_last:
                    raise MetastoreUnavailableError(
                        f"The REST catalog at {self._uri} cannot be reached: {error}."
                    ) from error
            except urllib3.exceptions.HTTPError as error:
                if not repeatable:
                    lost = f"The answer of the REST catalog at {self._uri} was lost: {error}."
                    raise (CommitStateUnknownError if what == "commit" else MetastoreAnswerLostError)(lost) from error
                if is_last:
                    raise MetastoreUnavailableError(
                        f"The REST catalog at {self._uri} does not answer: {error}."
                    ) from error
            else:
                if answer.status in (401, 419) and attempt == 1 and not is_last and self._is_renewable():
                    # Nothing was done. Not every server says when its tokens end.
                    self._token = None
                    headers.update(self._login())
                    continue
                # 429 and 503 say that nothing was done.
                if answer.status not in (429, 503) or is_last:
                    if answer.status >= 400 and fails:
                        raise failure(answer.status, answer.data, what)
                    return answer.status, answer.data
            time.sleep(min(0.1 * 2**attempt, 5.0))
        raise AssertionError("the last attempt returns or raises")

    def _headers(self, has_body: bool) -> dict[str, str]:
        headers = {"Accept": "application/json", "X-Client-Version": "hms_iceberg"}
        if has_body:
            headers["Content-Type"] = "application/json"
        delegation = self.properties.get("header.X-Iceberg-Access-Delegation", "vended-credentials")
        headers["X-Iceberg-Access-Delegation"] = delegation
        for key, value in self.properties.items():
            if key.startswith("header."):
                headers[key[len("header.") :]] = value
        return {**headers, **self._login()}

    def _login(self) -> dict[str, str]:
        token = self._bearer()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _is_renewable(self) -> bool:
        return self._token is not None and bool(self.properties.get("credential"))

    def _bearer(self) -> str | None:
        """The token; a token that was fetched for a credential is renewed before it expires."""
        credential = self.properties.get("credential")
        is_good = self._token is not None and (self._token_ends is None or time.monotonic() < self._token_ends)
        if not credential or is_good:
            return self._token
        address = self.properties.get("oauth2-server-uri")
        if not address:
            raise ConfigurationError("A `credential` needs the address of its server: set `oauth2-server-uri`.")
        client, _, secret = credential.rpartition(":")
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
        form["scope"] = self.properties.get("scope", "catalog")
        answer = self._pool.request("POST", address, fields=form, encode_multipart=False, timeout=self._timeout)
        response = self._decoded((answer.status, answer.data)) if answer.status == 200 else {}
        token = response.get("access_token")
        if not isinstance(token, str):
            raise MetastoreAuthenticationError(f"{address} gave no token for the credential: status {answer.status}.")
        ends = response.get("expires_in")
        self._token_ends = time.monotonic() + 0.9 * float(ends) if ends else None
        self._token = token
        return token

    def _decoded(self, answer: tuple[int, bytes]) -> dict[str, Any]:
        status, body = answer
        if not body:
            return {}
        try:
            response = json.loads(body)
        except ValueError as error:
            raise MetastoreError(f"{self._uri} is no REST catalog: it answered no JSON (status {status}).") from error
        if not isinstance(response, dict):
            raise MetastoreError(f"{self._uri} is no REST catalog: it answered {body[:100]!r}.")
        return response


def namespace_path(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}"


def table_path(identifier: tuple[str, ...], kind: str = "tables") -> str:
    """The path of a table, or with `kind` `views` of a view."""
    namespace = SEPARATOR.join(identifier[:-1])
    return f"{namespace_path(namespace)}/{kind}/{quote(identifier[-1], safe='')}"


def new_key() -> str:
    """An `Idempotency-Key`: a UUID of version 7, which is the time in milliseconds, and 74 random bits."""
    bits = uuid.uuid4().int & ~(((1 << 48) - 1) << 80) & ~(0xF << 76)
    return str(uuid.UUID(int=bits | (time.time_ns() // 1_000_000 << 80) | (0x7 << 76)))
