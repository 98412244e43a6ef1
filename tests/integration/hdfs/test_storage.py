"""Files on a real HDFS without a Hadoop installation: what a storage promises, races, forks, users, what fails."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.arrow.storage.hdfs.native import NativeHdfs
from hms_iceberg.errors import (
    ConfigurationError,
    FileAlreadyExistsError,
    IcebergError,
    MissingDependencyError,
    MissingFileError,
    StorageDeniedError,
    StorageError,
)
from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.forwarded_port import ForwardedPort
from tests.support.hdfs_cluster.cluster import HdfsCluster
from tests.support.refusals import refused_in_one_line
from tests.support.storage_contract import StorageContract


class TestHdfsStorage(StorageContract):
    @pytest.fixture(params=["nameservice", "address", "default", "mounted", "path"])
    def place(self, request: pytest.FixtureRequest, cluster: HdfsCluster, folder: str) -> tuple[ArrowStorage, str]:
        path = folder.removeprefix(cluster.nameservice)
        mounts = {"fs.viewfs.mounttable.all.link./tests": f"{cluster.nameservice}/tests"}
        roots = {
            "nameservice": f"{cluster.nameservice}:8020{path}",
            "address": cluster.address + path,
            "default": f"hdfs://{path}",
            "mounted": f"viewfs://all{path}",
            "path": path,
        }
        return ArrowStorage({**cluster.settings, **mounts}), roots[request.param]


# --------------------------------------------------------------------------------------------- whole files


def test_large_files_are_written_and_read_whole_in_pieces_of_any_size(storage: ArrowStorage, folder: str) -> None:
    data = random.Random(1).randbytes(9 * 2**20 + 12345)
    location = f"{folder}/large.bin"
    with storage.open_output(location) as output:
        view, position = memoryview(data), 0
        for size in (1, 4095, 1 << 20, 3, 8 << 20):
            output.write(view[position : position + size])
            position += size
        output.write(pa.array(list(view[position:]), pa.uint8()).buffers()[1])
        assert output.tell() == len(data)
    assert hashlib.md5(storage.read(location)).digest() == hashlib.md5(data).digest()
    with storage.open_input(location) as file:
        for start, size in ((0, 10), (len(data) - 5, 100), (len(data), 1), (len(data) + 7, 1), (12345, 2 << 20)):
            file.seek(start)
            assert file.read(size) == data[start : start + size]
            file.seek(start)
            assert file.read_buffer(size) == pa.py_buffer(data[start : start + size])


def test_nobody_sees_a_file_before_it_is_whole(storage: ArrowStorage, folder: str) -> None:
    location = f"{folder}/t/a.bin"
    with storage.open_output(location) as output:
        output.write(b"half")
        assert not storage.exists(location)
    assert storage.length(location) == 4
    assert [info.location for info in storage.list(folder)] == [location]


def test_parquet_is_read_and_written_by_arrow_through_its_file_system(storage: ArrowStorage, folder: str) -> None:
    table = pa.table({"id": range(100_000), "text": [f"row {each}" for each in range(100_000)]})
    storage.create(f"{folder}/keep", b"")
    filesystem, path = storage.filesystem(f"{folder}/a.parquet")
    pq.write_table(table, path, filesystem=filesystem, row_group_size=10_000)
    assert pq.read_table(path, filesystem=filesystem).equals(table)


# ---------------------------------------------------------------------------------------- several at once


def test_of_writers_of_one_name_exactly_one_wins(cluster: HdfsCluster, storage: ArrowStorage, folder: str) -> None:
    def create(writer: int) -> int | None:
        own = ArrowStorage(cluster.settings)
        try:
            own.create(location, str(writer).encode())
        except FileAlreadyExistsError:
            return None
        return writer

    with ThreadPoolExecutor(4) as pool:
        for race in range(8):
            location = f"{folder}/{race}"
            winners = [each for each in pool.map(create, range(4)) if each is not None]
            assert [storage.read(location)] == [str(each).encode() for each in winners]
    assert len(list(storage.list(folder))) == 8


def _read_and_write(storage: ArrowStorage, location: str, target: str) -> None:
    storage.create(target, storage.read(location))


def test_a_forked_child_goes_on_with_a_storage_that_was_used(storage: ArrowStorage, folder: str) -> None:
    storage.create(f"{folder}/a", b"whole")
    opened = storage.open_input(f"{folder}/a")
    assert storage.read(f"{folder}/a") == b"whole"  # hdfs-native keeps its connection, which the children have too
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_read_and_write, args=(storage, f"{folder}/a", f"{folder}/b"))
    reader = context.Process(target=lambda: storage.create(f"{folder}/c", opened.read()))
    for process in (child, reader):
        process.start()
    for process in (child, reader):
        process.join(30)
        assert process.exitcode == 0
    assert [storage.read(f"{folder}/{name}") for name in "abc"] == [b"whole"] * 3


def test_a_storage_travels_to_another_process(storage: ArrowStorage, folder: str) -> None:
    storage.create(f"{folder}/a", b"whole")
    assert pickle.loads(pickle.dumps(storage)).read(f"{folder}/a") == b"whole"


@dataclass
class Removing:
    """A client of HDFS beside whom somebody removes a folder once he has listed its parent."""

    client: Any
    doomed: str

    def list_status(self, path: str, recursive: bool = False) -> Iterator[Any]:
        for status in self.client.list_status(path, recursive):
            yield status
            if status.path == self.doomed:
                self.client.delete(self.doomed, True)


def test_a_folder_that_is_removed_while_it_is_listed_hides_no_other_file(
    storage: ArrowStorage, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [f"{folder}/{name}" for name in ("a/1", "a/deep/2", "c/3", "4")]
    for location in (*kept, f"{folder}/b/_temporary/0/5"):
        storage.create(location, b"")
    filesystem, path = storage.filesystem(f"{folder}/b")
    client = Removing(filesystem.handler._client(), path)
    monkeypatch.setattr(NativeHdfs, "_client", lambda handler: client)
    assert sorted(info.location for info in storage.list(folder)) == sorted(kept)
    client.doomed = path.rpartition("/")[0]
    assert list(storage.list(f"{folder}/b")) == []


# ------------------------------------------------------------------------------------------- which cluster


def test_the_configuration_folder_says_where_a_nameservice_is(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create(f"{folder}/a", b"x")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.folder / "conf"))
    path = folder.removeprefix(cluster.nameservice)
    for location in (folder, f"hdfs://{path}", f"hdfs:{path}"):
        assert ArrowStorage().read(f"{location}/a") == b"x"


def test_variables_and_included_files_of_a_configuration_count(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    storage.create(f"{folder}/a", b"x")
    (tmp_path / "site.xml").write_bytes((cluster.folder / "conf" / "core-site.xml").read_bytes())
    (tmp_path / "core-site.xml").write_text(
        '<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="site.xml"/><property>'
        "<name>fs.defaultFS</name><value>hdfs://${service}</value></property><property><name>service</name><value>"
        "${env.SERVICE:-ns1}</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert ArrowStorage().read(f"hdfs://{folder.removeprefix(cluster.nameservice)}/a") == b"x"
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigurationError, match=r"hdfs-site\.xml"):
        ArrowStorage().read(f"{folder}/a")


def test_settings_may_have_the_prefix_of_apache_iceberg(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str
) -> None:
    storage.create(f"{folder}/a", b"x")
    prefixed = {f"hadoop.{name}": value for name, value in cluster.settings.items()}
    assert ArrowStorage(prefixed).read(f"{folder}/a") == b"x"


def test_host_and_port_count_for_locations_without_a_host(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str
) -> None:
    storage.create(f"{folder}/a", b"x")
    properties = {"hdfs.host": "127.0.0.1", "hdfs.port": str(cluster.ports[0])}
    assert ArrowStorage(properties).read(f"hdfs://{folder.removeprefix(cluster.nameservice)}/a") == b"x"


def test_a_host_that_contradicts_the_settings_of_hadoop_is_refused(
    cluster: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.folder / "conf"))
    assert not ArrowStorage({"hdfs.host": "ns1"}).exists("hdfs:///absent")
    active, standby = (
        ArrowStorage({"hdfs.host": "localhost", "hdfs.port": str(cluster.ports[number])})
        for number in (cluster.active, 1 - cluster.active)
    )
    assert not active.exists("hdfs:///absent")
    with refused_in_one_line(StorageError, "hdfs:///absent", "StandbyException", "use the nameservice"):
        standby.exists("hdfs:///absent")
    with refused_in_one_line(ConfigurationError, "hdfs.host says other:8020", "fs.defaultFS is hdfs://ns1"):
        ArrowStorage({"hdfs.host": "other", "hdfs.port": "8020"}).read("hdfs:///a")
    with refused_in_one_line(ConfigurationError, "as alice", "no Kerberos", "hdfs.kerberos-principal"):
        ArrowStorage({"hdfs.kerberos-principal": "alice"}).read("hdfs:///a")


@pytest.mark.whole  # as of a change in whose middle the other NameNode takes over
def test_a_client_finds_the_namenode_that_became_active(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str
) -> None:
    storage.create(f"{folder}/a", b"1")
    try:
        cluster.activate(1)
        storage.create(f"{folder}/b", storage.read(f"{folder}/a"))
        with refused_in_one_line(StorageError, "StandbyException", "use the nameservice"):
            ArrowStorage().read(f"{cluster.address}/a")
        cluster.stop_namenode(0)
        storage.create(f"{folder}/c", storage.read(f"{folder}/b"))
        assert ArrowStorage(cluster.settings).read(f"{folder}/c") == b"1"
        cluster.start_namenode(0)
    finally:
        cluster.activate(0)
    assert sorted(info.location for info in storage.list(folder)) == [f"{folder}/{name}" for name in "abc"]


def test_mounts_end_where_they_are_said_to(cluster: HdfsCluster, storage: ArrowStorage, folder: str) -> None:
    path = folder.removeprefix(cluster.nameservice)
    storage.create(f"{folder}/a", b"x")
    prefix = "fs.viewfs.mounttable.all."
    mounted = {**cluster.settings, f"{prefix}link./data": folder}
    assert ArrowStorage(mounted).read("viewfs://all/data/a") == b"x"
    with pytest.raises(MissingFileError):
        ArrowStorage(mounted).read(f"viewfs://all{path}/a")
    with refused_in_one_line(StorageDeniedError, "outside of the mounts of viewfs://all, which are /data"):
        ArrowStorage(mounted).create(f"viewfs://all{path}/b", b"x")
    fallback = {**mounted, f"{prefix}linkFallback": f"{cluster.nameservice}/"}
    assert ArrowStorage(fallback).read(f"viewfs://all{path}/a") == b"x"
    assert [info.location for info in storage.list(folder)] == [f"{folder}/a"]


# ----------------------------------------------------------------------------------------------- who may


def test_files_belong_to_the_user_of_the_property(cluster: HdfsCluster, storage: ArrowStorage, folder: str) -> None:
    storage.filesystem(folder)[0].create_dir(folder.removeprefix(cluster.nameservice), recursive=True)
    settings = {**cluster.settings, "fs.permissions.umask-mode": "u=rwx,g=rx,o="}
    cluster.command("setowner", folder.removeprefix(cluster.nameservice), "alice")
    code = (
        "import sys; from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage\n"
        f"settings = {settings!r}\n"
        "for user in ('alice', 'bob'):\n"
        "    ArrowStorage({**settings, 'hdfs.user': user}).create(sys.argv[1] + '/' + user, b'x')\n"
    )
    own = {key: value for key, value in os.environ.items() if key != "HADOOP_USER_NAME"}
    ran = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, env=own, check=False)
    assert "Cannot use HDFS as bob (property hdfs.user): this process uses it as alice" in ran.stderr
    status = _status(storage, f"{folder}/alice")
    assert (status.owner, oct(status.permission)) == ("alice", "0o640")
    assert [info.location for info in storage.list(folder)] == [f"{folder}/alice"]


def _status(storage: ArrowStorage, location: str):  # type: ignore[no-untyped-def]
    filesystem, path = storage.filesystem(location)
    return filesystem.handler._client().get_file_info(path)


def test_who_may_not_is_told_so(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create(f"{folder}/a", b"x")
    filesystem, path = storage.filesystem(folder)
    filesystem.handler._client().set_permission(path, 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    stranger = ArrowStorage(cluster.settings)
    for call in (stranger.read, stranger.length, stranger.exists, stranger.open_output, stranger.delete):
        with refused_in_one_line(StorageDeniedError, f"{folder}/a", "user=mallory"):
            call(f"{folder}/a")
    with refused_in_one_line(StorageDeniedError, folder, "user=mallory"):
        list(stranger.list(folder))
    filesystem.handler._client().set_permission(path, 0o755)
    with refused_in_one_line(StorageDeniedError, f"{folder}/b", "user=mallory"):
        stranger.create(f"{folder}/b", b"x")
    assert [info.location for info in storage.list(folder)] == [f"{folder}/a"]


# ------------------------------------------------------------------------------------------------ what fails


@pytest.mark.parametrize(
    ("location", "kind", "words"),
    [
        ("hdfs://nowhere.invalid/a", StorageError, ["nowhere.invalid", "Nameservices that are known: half, ns1"]),
        ("hdfs://127.0.0.1:1/a", StorageError, ["127.0.0.1:1", "refused"]),
        ("hdfs://host:port/a", ConfigurationError, ["no port"]),
        ("hdfs://half/a", ConfigurationError, ["dfs.namenode.rpc-address.half.b"]),
        ("viewfs://none/a", ConfigurationError, ["it has no mounts"]),
        ("viewfs:///a", ConfigurationError, ["viewfs://default", "it has no mounts"]),
        ("viewfs://merged/a", ConfigurationError, ["linkMergeSlash", "hdfs.client"]),
    ],
)
def test_a_cluster_that_is_not_there_is_said_in_a_line(
    cluster: HdfsCluster, location: str, kind: type[IcebergError], words: list[str]
) -> None:
    half = {"dfs.ha.namenodes.half": "a,b", "dfs.namenode.rpc-address.half.a": f"127.0.0.1:{cluster.ports[0]}"}
    merged = {"fs.viewfs.mounttable.merged.linkMergeSlash": cluster.nameservice}
    settings = {**cluster.settings, **half, **merged}
    for call in (ArrowStorage(settings).read, lambda place: ArrowStorage(settings).create(place, b"x")):
        with refused_in_one_line(kind, *words):
            call(location)


def test_without_a_default_the_cluster_is_asked_for() -> None:
    pytest.importorskip("hdfs_native", reason="needs hdfs-native: pip install 'hms_iceberg[hdfs]'")
    with refused_in_one_line(ConfigurationError, "HADOOP_CONF_DIR", "fs.defaultFS", "hdfs.host"):
        ArrowStorage().read("hdfs:///a")


def test_a_cluster_that_ends_in_the_middle_is_said_in_a_line(cluster: HdfsCluster) -> None:
    with ForwardedPort(cluster.ports[0]) as way:
        settings = {"dfs.ha.namenodes.gone": "a", "dfs.namenode.rpc-address.gone.a": f"127.0.0.1:{way.port}"}
        gone = ArrowStorage(settings)
        assert not gone.exists("hdfs://gone/a")
    with refused_in_one_line(StorageError, "hdfs://gone/a", "refused"):
        gone.read("hdfs://gone/a")


def test_a_cluster_without_kerberos_is_not_used_as_if_it_had_it(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str
) -> None:
    storage.create(f"{folder}/a", b"x")
    name, allowed = "hadoop.security.authentication", "ipc.client.fallback-to-simple-auth-allowed"
    for location in (f"{folder}/a", cluster.address + folder.removeprefix(cluster.nameservice) + "/a"):
        settings = {**cluster.settings, name: "kerberos"}
        with refused_in_one_line(ConfigurationError, "the cluster has no Kerberos", f"{allowed}=true"):
            ArrowStorage(settings).read(location)
        assert ArrowStorage({**settings, allowed: "true"}).read(location) == b"x"


def test_what_takes_connections_and_never_answers_is_said_in_a_line() -> None:
    pytest.importorskip("hdfs_native", reason="needs hdfs-native: pip install 'hms_iceberg[hdfs]'")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"hdfs://127.0.0.1:{silent.getsockname()[1]}"
        with refused_in_one_line(StorageError, place, "has not answered"):
            ArrowStorage().read(f"{place}/a")


def test_what_answers_and_is_no_namenode_is_said_in_a_line(metastore: EmbeddedMetastore) -> None:
    place = f"hdfs://127.0.0.1:{metastore.port}"
    with refused_in_one_line(StorageError, place):
        ArrowStorage().read(f"{place}/a")


def test_in_safe_mode_nothing_is_written_and_all_is_read(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str
) -> None:
    storage.create(f"{folder}/a", b"x")
    cluster.dfsadmin("-safemode", "enter")
    try:
        assert storage.read(f"{folder}/a") == b"x"
        with refused_in_one_line(StorageError, f"{folder}/b", "safe mode"):
            storage.create(f"{folder}/b", b"x")
        with refused_in_one_line(StorageError, f"{folder}/a", "safe mode"):
            storage.delete(f"{folder}/a")
    finally:
        cluster.dfsadmin("-safemode", "leave")
    assert [info.location for info in storage.list(folder)] == [f"{folder}/a"]


@pytest.mark.parametrize("quota", [("-setQuota", "2"), ("-setSpaceQuota", "1k")])
def test_a_full_quota_leaves_nothing_half_written(
    cluster: HdfsCluster, storage: ArrowStorage, folder: str, quota: tuple[str, str]
) -> None:
    storage.create(f"{folder}/a", b"x")
    cluster.dfsadmin(*quota, folder.removeprefix(cluster.nameservice))
    with refused_in_one_line(StorageError, f"{folder}/b", "quota"):
        storage.create(f"{folder}/b", b"x" * 5000)
    assert [info.location for info in storage.list(folder)] == [f"{folder}/a"]


def test_without_a_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hms_iceberg.arrow.storage.hdfs.opening.find_spec", lambda name: None)
    with refused_in_one_line(MissingDependencyError, "pip install 'hms_iceberg[hdfs]'"):
        ArrowStorage().read("hdfs://host/a")


def test_properties_that_mean_nothing_are_refused(cluster: HdfsCluster) -> None:
    for name, value in (("hdfs.client", "java"), ("hdfs.port", "b"), ("dfs.replication", "c"), ("dfs.blocksize", "1x")):
        with refused_in_one_line(ConfigurationError, name, repr(value)):
            ArrowStorage(
                {"hdfs.host": "127.0.0.1", "hdfs.port": str(cluster.ports[0]), **cluster.settings, name: value}
            ).read("hdfs:///a")
