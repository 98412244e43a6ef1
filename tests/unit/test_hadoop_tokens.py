"""Files of Hadoop's delegation tokens, in both of its forms."""

from __future__ import annotations

import base64
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hms_iceberg.arrow.storage.hdfs.tokens import hdfs_tokens
from hms_iceberg.hadoop_tokens import VARIABLE, tokens_of_process
from hms_iceberg.hms.connection.security import login_from_properties

HIVE, HDFS = b"HIVE_DELEGATION_TOKEN", b"HDFS_DELEGATION_TOKEN"
ENDS = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def identifier(ends: datetime) -> bytes:
    """What a token of HDFS says of itself: version, owner, renewer, real user, issued, and the latest end."""
    milliseconds = int(ends.timestamp() * 1000).to_bytes(6, "big")
    return b"\0" + b"\5alice" + b"\0\0" + b"\x8a" + bytes(6) + b"\x8a" + milliseconds + b"\1\1"


TOKENS = [
    (identifier(ENDS), b"secret", HDFS, b"ha-hdfs:ns1"),
    (identifier(datetime(2020, 1, 1, tzinfo=timezone.utc)), b"old", HDFS, b"host:8020"),
    (b"of the metastore" * 20, b"password", HIVE, b""),
]


def counted(data: bytes) -> bytes:
    """Bytes after their length, as WritableUtils has it."""
    size = len(data)
    return (bytes([size]) if size < 128 else b"\x8e" + size.to_bytes(2, "big")) + data


def field(number: int, data: bytes) -> bytes:
    """A field of Protocol Buffers."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def writable() -> bytes:
    rows = (b"".join(map(counted, (b"alias", *token))) for token in TOKENS)
    return b"HDTS\0" + bytes([len(TOKENS)]) + b"".join(rows) + b"\0"


def protobuf() -> bytes:
    rows = (b"".join(field(number, part) for number, part in enumerate(token, 1)) for token in TOKENS)
    message = b"".join(field(1, field(1, b"alias") + field(2, row)) for row in rows)
    return b"HDTS\1" + varint(len(message)) + message


@pytest.mark.parametrize("form", [writable, protobuf])
def test_tokens_of_both_forms_are_found_with_their_ends(
    form: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens").write_bytes(form())  # type: ignore[operator]
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tokens"))
    assert [(token.service, token.ends, token.has_ended) for token in hdfs_tokens()] == [
        ("ha-hdfs:ns1", ENDS, False),
        ("host:8020", datetime(2020, 1, 1, tzinfo=timezone.utc), True),
    ]
    [found] = tokens_of_process(HIVE.decode())
    assert (found.identifier, found.password) == TOKENS[2][:2]


def test_a_token_of_the_metastore_comes_before_a_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = login_from_properties({"hive.kerberos-authentication": "true"})
    assert login is not None
    monkeypatch.delenv(VARIABLE, raising=False)
    assert login.of_process() == login
    (tmp_path / "tokens").write_bytes(writable())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tokens"))
    now = login.of_process()
    assert (now.mechanism, base64.b64decode(now.user), now.password) == (
        "DIGEST-MD5", TOKENS[2][0], base64.b64encode(b"password").decode()
    )  # fmt: skip
    other = login_from_properties({"hive.kerberos-authentication": "true", "hive.metastore.token.signature": "x"})
    assert other is not None and other.of_process() == other


@pytest.mark.parametrize("size", [0, 4, 5, 6, 40, 200])
def test_a_file_that_ends_too_early_has_no_tokens(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tokens"))
    for form in (writable, protobuf):
        (tmp_path / "tokens").write_bytes(form()[:size])
        assert tokens_of_process(HDFS.decode()) == ()
