"""How clients reach the files of a table in S3: with credentials for its folder, or with requests that are signed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import urllib3

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog, load_catalog
from hms_iceberg.rest import RestSettings, StorageSettings
from hms_iceberg.rest.access import Caller, Right
from hms_iceberg.rest.files.signing import S3Folder
from hms_iceberg.rest.files.vending import session_policy
from hms_iceberg.rest.security.logins import StaticTokens
from hms_iceberg.rest.security.policy import Policy, PolicyRule
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.rest_server import RestServer, served
from tests.support.s3_store import S3Store, s3_store

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
WRITER, READER = "the-token-of-a-writer", "the-token-of-a-reader"
TABLE = "/v1/namespaces/db/tables/t"


@pytest.fixture(scope="module")
def store() -> Iterator[S3Store]:
    with s3_store() as running:
        yield running


@pytest.fixture(scope="module")
def behind(store: S3Store) -> Catalog:
    properties = {**store.properties, "warehouse": "s3://warehouse/lake"}
    catalog = Catalog("behind", InMemoryMetastore(), ArrowStorage(properties), properties)
    catalog.create_namespace("db", {"location": "s3://warehouse/lake/db.db"})
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    return catalog


@pytest.fixture(scope="module")
def server(behind: Catalog, store: S3Store) -> Iterator[RestServer]:
    role = "arn:aws:iam::123456789012:role/lake"
    settings = RestSettings(
        table_config={"s3.endpoint": store.endpoint, "s3.region": "us-east-1", "s3.path-style-access": "true"},
        storage=StorageSettings(role, store.endpoint, 900, signs=True),
    )
    rules = (PolicyRule(Right.MANAGE, ("writer",)), PolicyRule(Right.READ, ("reader",)))
    login = StaticTokens.of({WRITER: Caller("writer"), READER: Caller("reader")})
    with served(behind, settings, login=login, rule=Policy(rules)) as running:
        yield running


def headers(token: str, way: str = "vended-credentials") -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "X-Iceberg-Access-Delegation": way}


def test_credentials_are_good_for_the_tables_folder_only_and_for_what_the_caller_may_do(server: RestServer) -> None:
    from moto.backends import get_backend

    for token, writes in ((READER, False), (WRITER, True)):
        (given,) = server.ask("GET", TABLE, headers=headers(token)).body["storage-credentials"]
        assert given["prefix"] == "s3://warehouse/lake/db.db/t/"
        assert {"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.endpoint"} <= given["config"].keys()
        key = given["config"]["s3.access-key-id"]
        assert key != "key"
        roles = get_backend("sts")["123456789012"]["aws"].assumed_roles
        (role,) = (each for each in roles if each.access_key_id == key)
        policy = json.loads(role.policy)
        assert policy == session_policy([S3Folder("warehouse", "lake/db.db/t")], writes)
        assert ("s3:PutObject" in str(policy)) is writes
    again = server.ask("GET", f"{TABLE}/credentials", headers=headers(WRITER)).body["storage-credentials"]
    assert again == [given]  # kept for half of their time
    assert server.ask("GET", TABLE, headers=headers(WRITER, "")).body.get("storage-credentials") is None


def test_a_policy_of_a_session_opens_no_folder_beside_the_tables() -> None:
    policy = session_policy([S3Folder("b", "lake/a*b")], writes=False)
    resources = [each for statement in policy["Statement"] for each in statement["Resource"]]
    assert "arn:aws:s3:::b/lake/a${*}b/*" in resources
    assert policy["Statement"][1]["Condition"] == {"StringLike": {"s3:prefix": ["lake/a${*}b/*"]}}


def test_a_client_without_a_key_reads_and_writes_with_vended_credentials(server: RestServer, behind: Catalog) -> None:
    with load_catalog("client", uri=server.url, token=WRITER) as client:
        table = client.load_table("db.t")
        assert "s3.session-token" in table.storage._properties
        table.append(ROWS)
    assert behind.load_table("db.t").scan().count() == 6


def sign(server: RestServer, token: str, method: str, uri: str, **more: str) -> Any:
    headers_of_request = {"x-amz-content-sha256": ["UNSIGNED-PAYLOAD"], **{key: [more[key]] for key in more}}
    body = {"region": "us-east-1", "method": method, "uri": uri, "headers": headers_of_request}
    return server.ask("POST", f"{TABLE}/sign", body, headers(token))


def test_a_signed_request_reads_what_is_the_tables(server: RestServer, behind: Catalog, store: S3Store) -> None:
    location = behind.load_table("db.t").metadata_location
    uri = location.replace("s3://", f"{store.endpoint}/")
    told = server.ask("GET", TABLE, headers=headers(READER, "remote-signing")).body["config"]
    assert told["s3.remote-signing-enabled"] == "true" and told["s3.signer.endpoint"].endswith("/t/sign")
    signed = sign(server, READER, "GET", uri).body
    given = {key: values[0] for key, values in signed["headers"].items()}
    assert given["Authorization"].startswith("AWS4-HMAC-SHA256") and "secret" not in str(signed).replace("sha256", "")
    assert urllib3.request("GET", signed["uri"], headers=given).status == 200


def test_nothing_else_is_signed(server: RestServer, store: S3Store) -> None:
    for token, method, path in (
        (READER, "PUT", "/warehouse/lake/db.db/t/data/x"),
        (READER, "DELETE", "/warehouse/lake/db.db/t/data/x"),
        (WRITER, "GET", "/warehouse/lake/db.db/t2/data/x"),
        (WRITER, "GET", "/warehouse/lake/db.db/t/../t2/x"),
        (WRITER, "GET", "/other/lake/db.db/t/x"),
        (WRITER, "GET", "/warehouse?prefix=lake/"),
        (WRITER, "PUT", "/warehouse/lake/db.db/t/data/x?acl"),
        (WRITER, "GET", "/warehouse/lake/db.db/t/data/x?X-Amz-Expires=604800"),
        (WRITER, "POST", "/warehouse?delete"),
    ):
        answer = sign(server, token, method, f"{store.endpoint}{path}")
        assert (answer.status, answer.error) == (403, "ForbiddenException")


def test_a_client_without_a_key_does_all_that_iceberg_does_by_signed_requests(
    server: RestServer, store: S3Store
) -> None:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.exceptions import ClientError

    def client(token: str) -> Any:
        def ask(request: Any, **_: object) -> None:
            given = {key: [text(value)] for key, value in request.headers.items()}
            body = {"region": "us-east-1", "method": request.method, "uri": request.url, "headers": given}
            answer = server.ask("POST", f"{TABLE}/sign", body, headers(token))
            if answer.status == 200:
                for key, values in answer.body["headers"].items():
                    del request.headers[key]
                    request.headers[key] = values[0]

        style = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        made = boto3.client("s3", endpoint_url=store.endpoint, region_name="us-east-1", config=style)
        made.meta.events.register_last("before-sign.s3", ask)
        return made

    def text(value: Any) -> str:
        return value.decode() if isinstance(value, bytes) else str(value)

    writer, reader = client(WRITER), client(READER)
    one, many = ({"Bucket": "warehouse", "Key": f"lake/db.db/t/data/{name}"} for name in ("one", "many"))
    writer.put_object(**one, Body=b"12345678", ChecksumAlgorithm="SHA256")
    upload = {**many, "UploadId": writer.create_multipart_upload(**many)["UploadId"]}
    part = writer.upload_part(**upload, PartNumber=1, Body=b"abc")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    writer.complete_multipart_upload(**upload, MultipartUpload=parts)
    writer.abort_multipart_upload(**many, UploadId=writer.create_multipart_upload(**many)["UploadId"])
    assert reader.get_object(**one, Range="bytes=2-4")["Body"].read() == b"345"
    assert reader.head_object(**many)["ContentLength"] == 3
    found = reader.list_objects_v2(Bucket="warehouse", Prefix="lake/db.db/t/data/", MaxKeys=1000)["Contents"]
    assert {one["Key"], many["Key"]} <= {each["Key"] for each in found}
    for each in (one, many):
        writer.delete_object(**each)
    with pytest.raises(ClientError, match="404"):
        reader.head_object(**one)


def test_the_folders_of_a_metadata_file_that_its_writer_changed_are_not_opened(
    server: RestServer, behind: Catalog, store: S3Store
) -> None:
    changed = behind.create_table("db.changed", ROWS.schema)
    content = json.loads(behind.storage.read(changed.metadata_location))
    behind.storage.delete(changed.metadata_location)
    secret = behind.load_table("db.t").location()
    behind.storage.create(changed.metadata_location, json.dumps({**content, "location": secret}).encode())
    where = TABLE.removesuffix("t") + "changed"
    for way in ("", "/credentials"):
        answer = server.ask("GET", f"{where}{way}", headers=headers(WRITER))
        assert (answer.status, answer.error) == (403, "ForbiddenException")
    body = {"region": "us-east-1", "method": "GET", "uri": f"{store.endpoint}/warehouse/lake/db.db/t/x", "headers": {}}
    assert server.ask("POST", f"{where}/sign", body, headers(WRITER)).status == 403


def test_a_store_of_somebody_else_is_not_signed_for(server: RestServer) -> None:
    assert sign(server, WRITER, "GET", "http://elsewhere/warehouse/lake/db.db/t/x").status == 403
    assert sign(server, WRITER, "GET", "file:///warehouse/lake/db.db/t/x").status == 403


def test_a_place_of_somebody_else_in_a_bucket_gets_no_table_no_key_and_no_signature(
    server: RestServer, behind: Catalog, store: S3Store
) -> None:
    before = {each.location for each in behind.storage.list("s3://warehouse/lake/")}
    name = TABLE.removesuffix("/t")
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    for place in (
        "s3://warehouse/lake/./db.db/t",
        "s3a://warehouse/lake/db.db/x/../t",
        "s3n://warehouse//lake/db.db/t",
        "S3://warehouse/lake/db.db/%2e/t",
        "s3://warehouse/lake/db.db/x/%252e%252e/t",
        "s3://warehouse/lake/db.db\\t",
        "s3://other/lake/db.db/t",
    ):
        for staged in (False, True):
            for body in ({"location": place}, {"properties": {"write.data.path": place}}):
                new = {"name": "evil", "schema": schema, "stage-create": staged, **body}
                for way in ("vended-credentials", "remote-signing"):
                    answer = server.ask("POST", name, new, headers(WRITER, way))
                    assert (answer.status, answer.error) == (403, "ForbiddenException"), (place, answer)
    assert {each.location for each in behind.storage.list("s3://warehouse/lake/")} == before
    for spelled in ("./t/x", "t/./x", "x/../t/x", "%2e/t/x", "/t/x"):
        uri = f"{store.endpoint}/warehouse/lake/db.db/{spelled}"
        assert sign(server, WRITER, "GET", uri).status == 403
