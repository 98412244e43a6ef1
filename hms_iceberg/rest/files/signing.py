"""Access to a table's files: credentials, or requests to S3 that the server signs.

Signing gives a client no key. Source: `RemoteSignRequest` of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hms_iceberg.errors import ConfigurationError, MissingDependencyError
from hms_iceberg.rest.files.signable_requests import refused, signable
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.places import folded
from hms_iceberg.spec.table_properties import FOLDER_PROPERTIES

VENDED = "vended-credentials"
SIGNED = "remote-signing"
_S3 = ("s3", "s3a", "s3n")


@dataclass(frozen=True)
class FileAccess:
    """How a client reaches a table's files: properties, and credentials for the locations below a prefix."""

    config: dict[str, str] = field(default_factory=dict)
    credentials: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class S3Folder:
    bucket: str
    key: str

    @property
    def location(self) -> str:
        """With a slash at its end, so that the folder beside it is not meant."""
        return f"s3://{self.bucket}/{self.key}/" if self.key else f"s3://{self.bucket}/"


def s3_folders(metadata: TableMetadata) -> list[S3Folder]:
    """The folders in S3 that a table's files are in; empty if one of them is elsewhere."""
    found = []
    for location in (
        metadata.location,
        *(metadata.properties[key] for key in FOLDER_PROPERTIES if key in metadata.properties),
    ):
        scheme, _, rest = location.partition("://")
        bucket, _, key = rest.partition("/")
        key = key.strip("/")
        # A table that is a whole bucket would open that of everybody else, and so would one of another spelling.
        if scheme.lower() not in _S3 or not bucket or not key or folded(f"/{key}") != f"/{key}":
            return []
        found.append(S3Folder(bucket, key))
    return sorted(set(found), key=lambda folder: folder.location)


def requested_delegation(headers: Mapping[str, str]) -> list[str]:
    """The kinds of access that a client asks for (`X-Iceberg-Access-Delegation`), in its order."""
    return [each.strip().lower() for each in headers.get("x-iceberg-access-delegation", "").split(",") if each.strip()]


_STREAMED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


class RequestSigner:
    """Signs requests for objects of a table, with the catalog's own `s3.access-key-id` and `s3.secret-access-key`."""

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
        self,
        method: str,
        uri: str,
        region: str,
        headers: dict[str, list[str]],
        folders: Sequence[S3Folder],
        writes: bool,
    ) -> dict[str, Any]:
        """Signs a request that stays in some folders and, unless `writes`, changes nothing."""
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = signable(method, uri, region, headers, self._endpoint, writes)
        if not any(folder.bucket == request.bucket and request.key.startswith(f"{folder.key}/") for folder in folders):
            raise refused(f"{request.location} is not one of the table's locations")
        signed = AWSRequest(method=method, url=uri, headers=request.headers)
        signed.context["payload_signing_enabled"] = False
        if request.headers.get("x-amz-content-sha256") == _STREAMED:
            signed.context["checksum"] = {"request_algorithm": {"in": "trailer"}}
        S3SigV4Auth(self._credentials, "s3", region).add_auth(signed)
        return {"uri": uri, "headers": {key: [value] for key, value in signed.headers.items()}}
