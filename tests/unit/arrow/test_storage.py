from __future__ import annotations

import errno
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage, open_for_arrow
from hms_iceberg.arrow.storage.filesystems import create_filesystem, parse_location
from hms_iceberg.errors import ConfigurationError, FileAlreadyExistsError, StorageError
from hms_iceberg.storage import Storage
from tests.support.storage_contract import StorageContract


class RemoteStorage(ArrowStorage):
    """Takes the path of remote stores, over pyarrow's local file system."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._filesystems[("s3", "bucket")] = fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())


class LikeLibhdfs:
    """pyarrow's local file system, which fails to delete what is not there, as libhdfs does."""

    def __init__(self) -> None:
        self._filesystem = fs.LocalFileSystem()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    def delete_file(self, path: str) -> None:
        if self._filesystem.get_file_info(path).type == fs.FileType.NotFound:
            raise OSError(errno.EIO, "HDFS DeleteFile failed, errno: 5 (Input/output error)")
        self._filesystem.delete_file(path)


class StorageByLibhdfs(ArrowStorage):
    """Takes the path of HDFS by libhdfs."""

    def __init__(self) -> None:
        super().__init__()
        self._filesystems[("hdfs", "host")] = LikeLibhdfs()


class TestArrowStorage(StorageContract):
    @pytest.fixture(params=["plain", "file:/", "file:///", "remote", "libhdfs"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ArrowStorage, str]:
        if request.param == "remote":
            (tmp_path / "bucket" / "t" / "data").mkdir(parents=True)
            return RemoteStorage(tmp_path), "s3://bucket/t"
        if request.param == "libhdfs":
            return StorageByLibhdfs(), f"hdfs://host{tmp_path}/t"
        prefix = {"plain": "", "file:/": "file:", "file:///": "file://"}[request.param]
        return ArrowStorage(), f"{prefix}{tmp_path}/t"


def test_arrow_storage_is_a_storage() -> None:
    assert isinstance(ArrowStorage(), Storage)


def test_with_libhdfs_nobody_sees_a_file_before_it_is_whole(tmp_path: Path) -> None:
    storage = StorageByLibhdfs()
    location = f"hdfs://host{tmp_path}/t/a.bin"
    with storage.open_output(location) as output:
        output.write(b"half")
        assert not storage.exists(location)
    assert [info.location for info in storage.list(f"hdfs://host{tmp_path}")] == [location]
    assert not storage.creates_exclusively(location)


def test_an_output_becomes_visible_only_when_it_is_closed(tmp_path: Path) -> None:
    storage = ArrowStorage()
    location = str(tmp_path / "deep" / "er" / "a.bin")
    output = storage.open_output(location)
    output.write(b"abc")
    output.write(memoryview(b"def"))
    assert output.tell() == 6
    assert not storage.exists(location)
    output.close()
    assert storage.read(location) == b"abcdef"
    assert [info.location for info in storage.list(str(tmp_path))] == [location]


def test_the_slower_of_two_writers_of_a_name_is_refused(tmp_path: Path) -> None:
    storage = ArrowStorage()
    location = str(tmp_path / "a.bin")
    slow, fast = storage.open_output(location), storage.open_output(location)
    slow.write(b"slow")
    fast.write(b"fast")
    fast.close()
    with pytest.raises(FileAlreadyExistsError):
        slow.close()
    assert storage.read(location) == b"fast"
    assert [info.location for info in storage.list(str(tmp_path))] == [location]


def test_a_folder_in_the_place_of_a_file_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        ArrowStorage().read(str(tmp_path))


def test_storage_can_be_sent_to_another_process() -> None:
    storage = ArrowStorage({"s3.endpoint": "http://localhost:9000"})
    assert pickle.loads(pickle.dumps(storage))._properties == {"s3.endpoint": "http://localhost:9000"}


def test_any_storage_can_be_opened_for_arrow(tmp_path: Path) -> None:
    class PlainStorage(ArrowStorage):
        def open_input(self, location: str):  # type: ignore[no-untyped-def]
            return open(location, "rb")

    location = str(tmp_path / "a.bin")
    for storage in (ArrowStorage(), PlainStorage()):
        storage.delete(location)
        storage.create(location, b"abc")
        with open_for_arrow(storage, location) as file:
            assert isinstance(file, pa.NativeFile)
            assert file.read() == b"abc"


@pytest.mark.parametrize(
    ("location", "scheme", "authority", "path"),
    [
        ("/a/b", "file", "", "/a/b"),
        ("a/b:c", "file", "", "a/b:c"),
        ("C:/a", "file", "", "C:/a"),
        ("file:/a/b", "file", "", "/a/b"),
        ("file:///a/b", "file", "", "/a/b"),
        ("s3a://bucket/key=1%2F/x", "s3a", "bucket", "bucket/key=1%2F/x"),
        ("gs://bucket/key", "gs", "bucket", "bucket/key"),
        ("hdfs://host:8020/a", "hdfs", "host:8020", "/a"),
        ("hdfs:///a", "hdfs", "", "/a"),
        ("abfss://c@acc.dfs.core.windows.net/a", "abfss", "c@acc.dfs.core.windows.net", "c/a"),
    ],
)
def test_a_location_is_taken_apart(location: str, scheme: str, authority: str, path: str) -> None:
    parsed = parse_location(location)
    assert (parsed.scheme, parsed.authority, parsed.path) == (scheme, authority, path)


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="'ftp'"):
        ArrowStorage().read("ftp://host/x")


def test_s3_properties_reach_the_file_system() -> None:
    found = create_filesystem(
        parse_location("s3://bucket/key"),
        {
            "s3.endpoint": "http://localhost:9000",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "s3.connect-timeout": "2.5",
            "s3.path-style-access": "true",
        },
    )
    assert found.type_name == "s3"
    assert found.region == "us-east-1"


def test_a_property_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"s3\.connect-timeout.*'soon'"):
        create_filesystem(
            parse_location("s3://bucket/key"), {"s3.endpoint": "http://localhost:9", "s3.connect-timeout": "soon"}
        )


def test_an_azure_location_without_an_account_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="account"):
        create_filesystem(parse_location("abfss://container/key"), {})


def test_a_location_with_a_null_character_is_refused() -> None:
    with pytest.raises(StorageError, match="null character"):
        ArrowStorage().read("/tmp/a\0b")
