"""Credentials of S3 that are good for one table's folders, for reading or for writing, and for a while.

They are those of a role that the server may assume (STS), cut down by a policy of the session.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.errors import MissingDependencyError
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.files.signing import S3Folder

if TYPE_CHECKING:
    from hms_iceberg.rest.settings import StorageSettings

# A client gets credentials that are good for at least half of their time.
_KEPT_SHARE = 0.5


@dataclass(frozen=True)
class _Vended:
    config: dict[str, str]
    good_until: float


class CredentialVendor:
    """Assumes the role of the settings by STS; without `s3.access-key-id` in `secrets`, boto3 looks for the server's
    key."""

    def __init__(self, settings: StorageSettings, secrets: dict[str, str]) -> None:
        try:
            import boto3
        except ImportError as error:
            raise MissingDependencyError("Vending credentials needs boto3: pip install boto3") from error
        self._settings = settings
        self._client: Any = boto3.client(
            "sts",
            endpoint_url=settings.sts_endpoint,
            region_name=secrets.get("s3.region", "us-east-1"),
            aws_access_key_id=secrets.get("s3.access-key-id"),
            aws_secret_access_key=secrets.get("s3.secret-access-key"),
            aws_session_token=secrets.get("s3.session-token"),
        )
        self._kept: BoundedCache[_Vended] = BoundedCache(10_000)
        self._lock = threading.Lock()

    def credentials(self, folders: Sequence[S3Folder], writes: bool, caller: str) -> dict[str, str]:
        """Credentials for some folders, as properties of a client; `caller` is named in the store's log."""
        key = (tuple(folders), writes, caller)
        found = self._kept.get(key)
        if found is None or time.time() > found.good_until:
            with self._lock:
                found = self._kept.put(key, self._assumed(folders, writes, caller))
        return found.config

    def _assumed(self, folders: Sequence[S3Folder], writes: bool, caller: str) -> _Vended:
        from botocore.exceptions import BotoCoreError, ClientError

        seconds = self._settings.credential_seconds
        try:
            answer = self._client.assume_role(
                RoleArn=self._settings.role_arn,
                RoleSessionName=re.sub(r"[^\w+=,.@-]", "_", caller)[:60] or "anybody",
                Policy=json.dumps(session_policy(folders, writes), separators=(",", ":")),
                DurationSeconds=seconds,
            )
        except (BotoCoreError, ClientError) as error:
            raise RefusedError(
                503, "ServiceUnavailableException", f"No credentials for the table's files are to be had now: {error}."
            ) from error
        given = answer["Credentials"]
        ends = given["Expiration"].timestamp()
        config = {
            "s3.access-key-id": given["AccessKeyId"],
            "s3.secret-access-key": given["SecretAccessKey"],
            "s3.session-token": given["SessionToken"],
            "s3.session-token-expires-at-ms": str(int(ends * 1000)),
        }
        return _Vended(config, time.time() + (ends - time.time()) * _KEPT_SHARE)


def session_policy(folders: Sequence[S3Folder], writes: bool) -> dict[str, Any]:
    """The policy of a session that sees nothing but some folders."""
    actions = ["s3:GetObject", "s3:GetObjectVersion"]
    if writes:
        actions += ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
    objects = [f"arn:aws:s3:::{_literal(place.bucket)}/{_literal(place.key)}/*" for place in folders]
    listing = [
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": [f"arn:aws:s3:::{_literal(place.bucket)}"],
            "Condition": {"StringLike": {"s3:prefix": [f"{_literal(place.key)}/*"]}},
        }
        for place in folders
    ]
    location = {
        "Effect": "Allow",
        "Action": ["s3:GetBucketLocation"],
        "Resource": sorted({f"arn:aws:s3:::{_literal(place.bucket)}" for place in folders}),
    }
    statements = [{"Effect": "Allow", "Action": actions, "Resource": objects}, *listing, location]
    return {"Version": "2012-10-17", "Statement": statements}


def _literal(text: str) -> str:
    """A name in which no character is a pattern or a variable of a policy."""
    return re.sub(r"[*?$]", lambda found: f"${{{found[0]}}}", text)
