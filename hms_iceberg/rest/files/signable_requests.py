"""Which requests to S3 are signed: those that a reader or a writer of Iceberg's files makes, and no others.

Everything is named that may be in a request: its operation by method and parameters, its headers, the host. What is not
named here (locks of objects, restoring, tags, rights, copies, signatures in the address that are good for days ...) is
refused, so that what a store learns to do tomorrow is refused as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from hms_iceberg.rest.errors import RefusedError

_READS = {"GET", "HEAD"}
# S3's operations on one object, by method and the parameters that tell them apart.
_OBJECT_OPERATIONS: Mapping[tuple[str, frozenset[str]], str] = {
    ("GET", frozenset()): "GetObject",
    ("GET", frozenset({"partNumber"})): "GetObject",
    ("HEAD", frozenset()): "HeadObject",
    ("HEAD", frozenset({"partNumber"})): "HeadObject",
    ("PUT", frozenset()): "PutObject",
    ("PUT", frozenset({"partNumber", "uploadId"})): "UploadPart",
    ("POST", frozenset({"uploads"})): "CreateMultipartUpload",
    ("POST", frozenset({"uploadId"})): "CompleteMultipartUpload",
    ("DELETE", frozenset({"uploadId"})): "AbortMultipartUpload",
    ("DELETE", frozenset()): "DeleteObject",
}
# Parameters of a listing of what is below a prefix.
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
}
_NAMES_OPERATION = "x-id"  # some clients name the operation
_SIGNED = re.compile(
    r"range|if-(?:none-)?match|if-(?:un)?modified-since|content-(?:type|md5|encoding|disposition|language)|cache-control|"
    r"x-amz-content-sha256|x-amz-decoded-content-length|x-amz-trailer|x-amz-te|x-amz-storage-class|"
    r"x-amz-(?:sdk-)?checksum-[a-z0-9]+|x-amz-mp-object-size|x-amz-expected-bucket-owner|x-amz-meta-[a-z0-9._-]+|"
    r"x-amz-server-side-encryption(?:-aws-kms-key-id|-bucket-key-enabled|-customer-(?:algorithm|key|key-md5))?"
)
# What a client, a proxy, or the signature itself brings: no part of what is signed for.
_LEFT_OUT = re.compile(
    r"host|connection|content-length|expect|transfer-encoding|user-agent|x-forwarded-for|accept|accept-encoding|"
    r"amz-sdk-[a-z-]+|x-amz-user-agent|traceparent|tracestate|x-amzn-trace-id|"
    r"authorization|date|x-amz-date|x-amz-security-token"
)
_VALUES = {
    "x-amz-content-sha256": re.compile(r"UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER|[0-9a-fA-F]{64}"),
    "x-amz-trailer": re.compile(r"x-amz-checksum-[a-z0-9]+"),
    # Of the others files could not be read before they are restored.
    "x-amz-storage-class": re.compile(
        r"STANDARD|REDUCED_REDUNDANCY|STANDARD_IA|ONEZONE_IA|INTELLIGENT_TIERING|GLACIER_IR|EXPRESS_ONEZONE|OUTPOSTS"
    ),
}
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_ADDRESS = re.compile(r"[!-~]+")
_AWS = re.compile(
    r"(?:(?P<bucket>.+)\.)?s3(?:-fips|-accelerate)?(?:\.dualstack)?(?:[.-][a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?"
)
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True)
class SignableRequest:
    """A request that may be signed, if its sender may reach the key (of a listing: the prefix); `headers` are those
    to sign."""

    bucket: str
    key: str
    headers: dict[str, str]

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


def signable(
    method: str, uri: str, region: str, headers: Mapping[str, Sequence[str]], endpoint: str, writes: bool
) -> SignableRequest:
    """A request to a store that may be signed; raises RefusedError, with the reason, for all others. `endpoint` is
    empty for Amazon's own."""
    parts = urlsplit(uri)
    if not _ADDRESS.fullmatch(uri) or "#" in uri or "\\" in uri or parts.scheme not in ("http", "https"):
        raise refused("its address is not that of an object in a store")
    if not _REGION.fullmatch(region):
        raise refused(f"{region[:50]!r} is no region")
    bucket, key = bucket_and_key(parts.netloc.lower(), _plain_path(parts.path), endpoint.lower())
    query = _parameters(parts.query)
    if key:
        operation = _OBJECT_OPERATIONS.get((method, frozenset(query) - {_NAMES_OPERATION}))
    else:
        operation, key = _listing(method, query), query.get("prefix", "")
    if operation is None or query.get(_NAMES_OPERATION, operation) != operation:
        raise refused(f"{method} with these parameters is nothing that readers and writers of tables do")
    if method not in _READS and not writes:
        raise refused(f"{method} is not allowed on this table")
    return SignableRequest(bucket, key, _signed_headers(headers))


def _listing(method: str, query: Mapping[str, str]) -> str | None:
    """The prefix of a request that names no object, if it lists what is below a prefix."""
    if method != "GET" or not query.get("prefix") or not query.keys() - {_NAMES_OPERATION} <= _LISTING:
        raise refused("it is of the bucket as a whole")
    _check_segments(query["prefix"])
    return {None: "ListObjects", "2": "ListObjectsV2"}.get(query.get("list-type"))


def _parameters(query: str) -> dict[str, str]:
    """The parameters of a request; each has one value, and one reading."""
    if ";" in query:  # which some stores take for `&`
        raise refused("its parameters can be read in two ways")
    found: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, value = (_decoded(each.replace("+", " ")) for each in pair.partition("=")[::2])
        if name in found:
            raise refused("it has a parameter twice")
        found[name] = value
    return found


def _plain_path(path: str) -> str:
    """A path, decoded, in which nothing leads elsewhere when it is decoded once more, or tidied up."""
    if "%2f" in path.lower() or not path.startswith("/"):
        raise refused("its path can be read in two ways")
    decoded = _decoded(path)[1:]
    _check_segments(decoded)
    return decoded


def _check_segments(key: str) -> None:
    *inner, _ = key.split("/")
    if not all(inner) or "\\" in key or not key.isprintable():
        raise refused("its path has empty segments, backslashes or control characters in it")
    decoded = ""
    while decoded != key:
        decoded, key = key, unquote(key)
        if any(segment in (".", "..") for segment in re.split(r"[/\\]", key)):
            raise refused("its path has '.' or '..' in it")


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise refused("its address is no text") from error


def bucket_and_key(host: str, path: str, endpoint: str) -> tuple[str, str]:
    """Bucket and key of a request, in either of the two styles of addresses."""
    aws = _AWS.fullmatch(host.removesuffix(":443")) if not endpoint or _AWS.fullmatch(endpoint) else None
    if endpoint and host.endswith(f".{endpoint}"):
        return host[: -len(endpoint) - 1], path
    if aws is not None and aws["bucket"]:
        return aws["bucket"], path
    if aws is None and host != endpoint:
        raise refused(f"{host} is not the store of this table")
    bucket, _, key = path.partition("/")
    return bucket, key


def _signed_headers(headers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, values in headers.items():
        lower, value = name.lower(), ",".join(values)
        if _LEFT_OUT.fullmatch(lower) or not values:
            continue
        # A line break in a value would be another header of what is signed.
        if not _SIGNED.fullmatch(lower) or not _VALUE.fullmatch(value) or lower in kept:
            raise refused(f"its header {name[:100]!r} is not one that readers and writers of tables send")
        wanted = _VALUES.get(lower)
        if wanted is not None and not wanted.fullmatch(value):
            raise refused(f"the value of its header {name!r} is not one that readers and writers of tables send")
        kept[lower] = value
    return kept


def refused(why: str) -> RefusedError:
    """The error for a request that is not signed; `why` ends the sentence."""
    return RefusedError(403, "ForbiddenException", f"The request is not signed: {why}.")
