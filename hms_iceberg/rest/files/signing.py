"""Access to a table's files: credentials, or requests to S3 that the server signs.

Signing gives a client no key. Source: `RemoteSignRequest` of the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from hms_iceberg.errors import ConfigurationError, MissingDependencyError
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import FOLDER_PROPERTIES

VENDED = "vended-credentials"
SIGNED = "remote-signing"
_S3 = ("s3", "s3a", "s3n")


@dataclass(frozen=True)
class FileAccess:
    """How a client reaches a table's files.

    Attributes:
        config: properties for the client.
        credentials: what it may use for the locations below a prefix, as the protocol has it.
    """

    config: dict[str, str] = field(default_factory=dict)
    credentials: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A folder in a bucket."""

    bucket: str
    key: str

    @property
    def location(self) -> str:
        """As a location that ends with a slash, so that the folder beside it is not meant."""
        return f"s3://{self.bucket}/{self.key}/" if self.key else f"s3://{self.bucket}/"


def places(metadata: TableMetadata) -> list[Place]:
    """The folders in S3 that a table's files are in; none if one of them is elsewhere."""
    found = []
    for location in (
        metadata.location,
        *(metadata.properties[key] for key in FOLDER_PROPERTIES if key in metadata.properties),
    ):
        scheme, _, rest = location.partition("://")
        bucket, _, key = rest.partition("/")
        key = key.strip("/")
        # A table that is a whole bucket would open that of everybody else.
        if scheme not in _S3 or not bucket or not key:
            return []
        found.append(Place(bucket, key))
    return sorted(set(found), key=lambda place: place.location)


def asked(headers: Mapping[str, str]) -> list[str]:
    """The ways that a client names, in its order."""
    return [each.strip().lower() for each in headers.get("x-iceberg-access-delegation", "").split(",") if each.strip()]


_READS = ("GET", "HEAD")
_WRITES = ("PUT", "POST", "DELETE")
# What would change more than one object, or who may see it.
_NO_SUBRESOURCES = ("acl", "policy", "tagging", "delete", "lifecycle", "versioning", "cors", "website", "replication")
# What would read an object elsewhere, or say who else may see this one.
_NO_HEADERS = ("x-amz-copy-source", "x-amz-acl", "x-amz-grant-")
_LISTING = {
    "prefix",
    "list-type",
    "delimiter",
    "encoding-type",
    "max-keys",
    "continuation-token",
    "start-after",
    "fetch-owner",
    "marker",
    "versions",
    "key-marker",
    "version-id-marker",
}
_AWS = re.compile(
    r"(?:(?P<bucket>.+)\.)?s3(?:-fips|-accelerate)?(?:\.dualstack)?(?:[.-][a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
)
_HOP = ("connection", "content-length", "expect", "transfer-encoding", "user-agent", "x-forwarded-for")


class RequestSigner:
    """Signs requests for objects of a table.

    Args:
        secrets: `s3.access-key-id`, `s3.secret-access-key` and, if there is one, `s3.session-token`; `s3.endpoint`.

    Raises:
        ConfigurationError: the catalog has no key of S3.
        MissingDependencyError: botocore is not installed.
    """

    def __init__(self, secrets: dict[str, str]) -> None:
        try:
            from botocore.credentials import Credentials
        except ImportError as error:
            raise MissingDependencyError("Signing requests needs botocore: pip install boto3") from error
        key, secret = secrets.get("s3.access-key-id"), secrets.get("s3.secret-access-key")
        if not key or not secret:
            raise ConfigurationError(
                "Signing requests needs the catalog's properties s3.access-key-id and s3.secret-access-key. Set them."
            )
        self._credentials = Credentials(key, secret, secrets.get("s3.session-token"))
        self._endpoint = urlsplit(secrets.get("s3.endpoint", "")).netloc

    def signed(
        self, method: str, uri: str, region: str, headers: dict[str, list[str]], folders: Sequence[Place], writes: bool
    ) -> dict[str, Any]:
        """A request with its signature.

        Args:
            method, uri, region, headers: of the request.
            folders: where it may go.
            writes: whether it may change something.

        Raises:
            RefusedError: it goes elsewhere, or changes what it may not.
        """
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest

        if method not in _READS and not (writes and method in _WRITES):
            raise _refused(f"{method} is not allowed on this table")
        if any(key.lower().startswith(_NO_HEADERS) for key in headers):
            raise _refused("a header of it is of a kind that is not signed")
        self._check_place(method, uri, folders)
        kept = {key: values[0] for key, values in headers.items() if values and key.lower() not in _HOP}
        request = AWSRequest(method=method, url=uri, headers={k: v for k, v in kept.items() if k.lower() != "host"})
        request.context["payload_signing_enabled"] = False
        S3SigV4Auth(self._credentials, "s3", region).add_auth(request)
        return {"uri": uri, "headers": {key: [value] for key, value in request.headers.items()}}

    def _check_place(self, method: str, uri: str, folders: Sequence[Place]) -> None:
        parts = urlsplit(uri)
        query = parse_qs(parts.query, keep_blank_values=True)
        if parts.scheme not in ("http", "https") or any(name in query for name in _NO_SUBRESOURCES):
            raise _refused("the request is of a kind that is not signed")
        path = unquote(parts.path).lstrip("/")
        if ".." in path.split("/"):
            raise _refused("its path has '..' in it")
        bucket, key = self._place(parts.netloc, path)
        if not key:  # a listing
            key = "".join(query.get("prefix", []))
            if method != "GET" or not key or not query.keys() <= _LISTING or len(query["prefix"]) > 1:
                raise _refused("it is of the bucket as a whole")
        if not any(place.bucket == bucket and key.startswith(f"{place.key}/") for place in folders):
            raise _refused(f"s3://{bucket}/{key} is none of the table's locations")

    def _place(self, host: str, path: str) -> tuple[str, str]:
        """Bucket and key of a request, whichever of the two styles it has."""
        aws = _AWS.fullmatch(host.removesuffix(":443"))
        if self._endpoint and host.endswith(f".{self._endpoint}"):
            return host[: -len(self._endpoint) - 1], path
        if aws is not None and aws["bucket"]:
            return aws["bucket"], path
        if aws is None and host != self._endpoint:
            raise _refused(f"{host} is not the store of this table")
        bucket, _, key = path.partition("/")
        return bucket, key


def _refused(why: str) -> RefusedError:
    return RefusedError(403, "ForbiddenException", f"The request is not signed: {why}.")
