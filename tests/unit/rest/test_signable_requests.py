"""Requests that are signed are those of readers and writers of Iceberg's files, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.files.signing import RequestSigner, S3Folder, s3_folders
from tests.support.tables import metadata

STORE = "http://store:9000"
TABLE = [S3Folder("lake", "wh/mine.db/t")]
BELOW = f"{STORE}/lake/wh/mine.db/t"
FILE = f"{BELOW}/data/x"
KEYS = {"s3.access-key-id": "AKIAX", "s3.secret-access-key": "sekret"}
READS = {("GET", ""), ("HEAD", ""), ("GET", "?partNumber=2"), ("HEAD", "?partNumber=2"), ("GET", "?x-id=GetObject")}
WRITES = {
    ("PUT", ""),
    ("PUT", "?x-id=PutObject"),
    ("PUT", "?partNumber=1&uploadId=abc"),
    ("PUT", "?uploadId=abc&partNumber=1&x-id=UploadPart"),
    ("POST", "?uploads"),
    ("POST", "?uploads="),
    ("POST", "?uploadId=abc"),
    ("DELETE", ""),
    ("DELETE", "?uploadId=abc"),
}
PRESIGNED = (
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAX%2F20261128%2Fus-east-1%2Fs3%2Faws4_request"
    "&X-Amz-Date=20261128T060000Z&X-Amz-Expires=604800&X-Amz-SignedHeaders=host"
)


def signed(
    method: str,
    uri: str,
    headers: dict[str, list[str]] | None = None,
    *,
    writes: bool = True,
    region: str = "us-east-1",
    endpoint: str = STORE,
) -> dict[str, str] | None:
    """The headers that are told for a request; None if it is refused."""
    signer = RequestSigner({**KEYS, "s3.endpoint": endpoint} if endpoint else KEYS)
    try:
        answer = signer.signed(method, uri, region, headers or {}, TABLE, writes)
    except RefusedError:
        return None
    assert answer["uri"] == uri
    return {name.lower(): values[0] for name, values in answer["headers"].items()}


@pytest.mark.parametrize(
    "query",
    [
        *sorted({query for _, query in (*READS, *WRITES)}),
        *(f"?{each}" for each in (PRESIGNED, "X-Amz-Expires=604800", "x-amz-acl=public-read", "X-Amz-Tagging=a")),
        *(f"?{each}" for each in ("acl", "policy", "tagging", "delete", "versions", "retention", "legal-hold")),
        *(f"?{each}" for each in ("torrent", "restore", "select&select-type=2", "attributes", "renameObject")),
        *(f"?{each}" for each in ("ACL", "%61cl", "acl=&x", "x=1;acl", "versionId=1", "response-content-type=a")),
        *(
            f"?{each}"
            for each in ("object-lock", "encryption", "metadata", "append", "uploads&acl", "x-id=PutObjectAcl")
        ),
        *(f"?{each}" for each in ("uploadId=1&uploadId=2", "partNumber=1&uploadId=1;acl", "%ff", "&")),
    ],
)
def test_an_object_is_read_and_written_by_the_operations_of_iceberg_only(query: str) -> None:
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "COPY", "get"):
        reads, writes = (method, query) in READS, (method, query) in WRITES
        assert (signed(method, FILE + query, writes=False) is not None) is reads
        assert (signed(method, FILE + query, writes=True) is not None) is (reads or writes)


@pytest.mark.parametrize(
    ("name", "value", "is_signed"),
    [
        ("Range", "bytes=0-7", True),
        ("If-None-Match", "*", True),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD", True),
        ("x-amz-checksum-crc32", "AAAAAA==", True),
        ("x-amz-server-side-encryption", "AES256", True),
        ("x-amz-storage-class", "STANDARD_IA", True),
        ("User-Agent", "any", None),
        ("Host", "other:9000", None),
        ("Date", "Thu, 31 Dec 2099 00:00:00 GMT", None),
        ("X-Amz-Date", "20991231T000000Z", None),
        ("Authorization", "AWS4 x", None),
        ("x-amz-security-token", "stolen", None),
        ("x-amz-storage-class", "GLACIER", False),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", False),
        ("x-amz-trailer", "x-amz-copy-source", False),
        ("x-amz-copy-source", "/lake/wh/secret", False),
        (" x-amz-copy-source", "/lake/wh/secret", False),
        ("X-Amz-Copy-Source-Range", "bytes=0-7", False),
        ("x-amz-meta-a\nx-amz-copy-source", "/lake/s", False),
        ("x-amz-meta-a", "1\nx-amz-copy-source:/lake/s", False),
        ("x-amz-meta-a", "1\rx", False),
        ("x-amz-rename-source", "/lake/wh/secret", False),
        ("x-amz-website-redirect-location", "http://evil", False),
        ("x-amz-tagging", "a=b", False),
        ("x-amz-acl", "public-read", False),
        ("x-amz-grant-read", "everybody", False),
        ("x-amz-object-lock-mode", "COMPLIANCE", False),
        ("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z", False),
        ("x-amz-object-lock-legal-hold", "ON", False),
        ("x-amz-bypass-governance-retention", "true", False),
        ("x-amz-request-payer", "requester", False),
        ("x-http-method-override", "DELETE", False),
        ("x-goog-copy-source", "/lake/s", False),
        ("x-minio-force-delete", "true", False),
    ],
)
def test_a_header_is_signed_left_to_the_signature_or_refused(name: str, value: str, is_signed: bool | None) -> None:
    answer = signed("PUT", FILE, {name: [value]})
    assert (answer is not None) is (is_signed is not False)
    if answer is not None:
        named = answer["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        assert (name.lower() in named) is bool(is_signed or name in ("Host", "X-Amz-Date"))  # of the signature's own
        assert "2099" not in answer["x-amz-date"] and "stolen" not in str(answer)


def test_a_header_is_not_signed_twice_under_one_name() -> None:
    assert signed("GET", FILE, {"Range": ["bytes=0-7"], "range": ["bytes=0-9"]}) is None


def test_a_body_in_chunks_is_signed_as_that() -> None:
    streamed = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    answer = signed("PUT", FILE, {"x-amz-content-sha256": [streamed], "x-amz-trailer": ["x-amz-checksum-crc32"]})
    assert answer is not None and answer["x-amz-content-sha256"] == streamed


@pytest.mark.parametrize(
    ("uri", "is_signed"),
    [
        (f"{BELOW}/data/city=K%C3%B6ln/x", True),
        (f"{BELOW}/data/time=06%253A00/x", True),  # the escaped value of a partition
        ("http://STORE:9000/lake/wh/mine.db/t/x", True),
        ("http://lake.store:9000/wh/mine.db/t/x", True),
        (f"{BELOW}/../secret", False),
        (f"{BELOW}/%2e%2e/secret", False),
        (f"{BELOW}/.%2E/secret", False),
        (f"{BELOW}/%252e%252e/secret", False),
        (f"{BELOW}/..%252fsecret", False),
        (f"{BELOW}/a%5c..%5c..%5csecret", False),
        (f"{BELOW}/a%255c..%255c..%255csecret", False),
        (f"{BELOW}/./x", False),
        (f"{BELOW}/%2e/x", False),
        (f"{BELOW}//x", False),
        (f"{BELOW}t/x", False),
        (BELOW, False),
        (f"{BELOW}/%00", False),
        (f"{BELOW}/%0a", False),
        (f"{BELOW}/%e2%80%ae", False),
        (f"{BELOW}/%ff", False),
        (f"{BELOW}/x#frag", False),
        (f"{BELOW}/\\..\\x", False),
        (f"{BELOW}/x\n?acl", False),
        (f"{BELOW}/x y", False),
        (f"{STORE}//lake/wh/mine.db/t/x", False),
        (f"{STORE}/./lake/wh/mine.db/t/x", False),
        (f"{STORE}/lake/./wh/mine.db/t/x", False),
        (f"{STORE}/other/%2e/../lake/wh/mine.db/t/x", False),
        (f"{STORE}/lake%2fwh/mine.db/t/x", False),
        (f"{STORE}/LAKE/wh/mine.db/t/x", False),
        ("http://evil@store:9000/lake/wh/mine.db/t/x", False),
        ("http://store:9000@evil/lake/wh/mine.db/t/x", False),
        ("http://store:9001/lake/wh/mine.db/t/x", False),
        ("http://secret.store:9000/wh/mine.db/t/x", False),
        ("http://lake.s3.amazonaws.com/wh/mine.db/t/x", False),  # another store than the table's
        ("ftp://store:9000/lake/wh/mine.db/t/x", False),
    ],
)
def test_a_path_is_below_the_tables_folder_whatever_its_spelling(uri: str, is_signed: bool) -> None:
    assert (signed("GET", uri) is not None) is is_signed


@pytest.mark.parametrize(
    ("query", "is_signed"),
    [
        ("prefix=wh/mine.db/t/", True),
        ("list-type=2&prefix=wh%2Fmine.db%2Ft%2Fdata%2F&delimiter=/&continuation-token=abc", True),
        ("x-id=ListObjectsV2&list-type=2&prefix=wh/mine.db/t/", True),
        ("prefix=wh/mine.db/t", False),  # which others begin with
        ("prefix=wh/mine.db/t/../", False),
        ("prefix=wh/mine.db/t/%252e%252e/", False),
        ("prefix=wh/mine.db/t//", False),
        ("prefix=", False),
        ("", False),
        ("prefix=wh/mine.db/t/&prefix=", False),
        ("prefix=wh/mine.db/t/;prefix=", False),
        ("Prefix=x&prefix=wh/mine.db/t/", False),
        ("prefix=wh/mine.db/t/&uploads", False),
        ("prefix=wh/mine.db/t/&versions", False),
        ("prefix=wh/mine.db/t/&policyStatus", False),
        ("prefix=wh/mine.db/t/&list-type=3", False),
        (f"prefix=wh/mine.db/t/&{PRESIGNED}", False),
    ],
)
def test_what_is_listed_is_below_the_tables_folder(query: str, is_signed: bool) -> None:
    for bucket in (f"{STORE}/lake", f"{STORE}/lake/", "http://lake.store:9000/"):
        assert (signed("GET", f"{bucket}?{query}", writes=False) is not None) is is_signed
        assert signed("HEAD", f"{bucket}?{query}") is None and signed("DELETE", f"{bucket}?{query}") is None


@pytest.mark.parametrize(
    ("host", "path", "bucket"),
    [
        ("s3.amazonaws.com", "b/k/x", "b"),
        ("s3.eu-central-1.amazonaws.com", "b/k/x", "b"),
        ("s3.dualstack.eu-central-1.amazonaws.com:443", "b/k/x", "b"),
        ("b.s3.eu-central-1.amazonaws.com", "k/x", "b"),
        ("s3-mine.s3.amazonaws.com", "b/k/x", "s3-mine"),
        ("b.s3x.s3.us-east-1.amazonaws.com", "k/x", "b.s3x"),
        ("b.c.s3-us-west-2.amazonaws.com", "k/x", "b.c"),
        ("s3.execute-api.us-east-1.amazonaws.com", "b/k/x", None),
        ("amazonaws.com", "b/k/x", None),
        ("s3.amazonaws.com.evil.org", "b/k/x", None),
    ],
)
def test_the_bucket_of_a_request_to_amazon_is_found_by_its_host(host: str, path: str, bucket: str | None) -> None:
    for endpoint in ("", "https://s3.eu-central-1.amazonaws.com"):
        signer = RequestSigner({**KEYS, "s3.endpoint": endpoint})
        for named in ("b", "s3-mine", "b.s3x", "b.c"):
            folder = S3Folder(named, "b/k" if named == "s3-mine" else "k")
            try:
                signer.signed("GET", f"https://{host}/{path}", "eu-central-1", {}, [folder], False)
            except RefusedError:
                assert named != bucket
            else:
                assert named == bucket


@pytest.mark.parametrize("region", ["", "us-east-1/s3", "us-east-1\n", "a b"])
def test_a_region_is_a_word(region: str) -> None:
    assert signed("GET", FILE, region=region) is None


@pytest.mark.parametrize(
    ("location", "keys"),
    [
        ("s3://b/lake/t", ["lake/t"]),
        ("S3A://b/lake/t/", ["lake/t"]),
        ("s3://b/", []),
        ("s3://b/./", []),
        ("s3://b/lake/./t", []),
        ("s3://b/lake/../t", []),
        ("s3://b/lake//t", []),
        ("file:/lake/t", []),
        ("hdfs://b/lake/t", []),
    ],
)
def test_folders_that_keys_are_given_for_have_a_plain_spelling(location: str, keys: list[str]) -> None:
    for key in ("location", "write.data.path"):
        own = metadata(properties={} if key == "location" else {key: location})
        own = replace(own, location=location if key == "location" else "s3://b/own")
        expected = {"own", *keys} if key != "location" and keys else set(keys)
        assert {place.key for place in s3_folders(own)} == expected
