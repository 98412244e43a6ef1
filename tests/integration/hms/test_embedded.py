"""The embedded metastore: its life, its data and its errors."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_iceberg.catalog import load_catalog
from hms_iceberg.cli.servers.embedded_metastore import metastore as metastore_command
from hms_iceberg.errors import ConfigurationError, MetastoreUnavailableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.thrift_types import TException, ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore, detached
from hms_iceberg.hms.embedded import server as server_module
from hms_iceberg.hms.embedded.server import answers

OWNER = """
import os, signal, sys
from hms_iceberg.cli.main import main
from hms_iceberg.hms.embedded import EmbeddedMetastore

start = EmbeddedMetastore.start

def killed(server):
    start(server)
    print(server.pid, server.port, flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), int(sys.argv[2]))

EmbeddedMetastore.start = killed
sys.exit(main(["metastore", "start", "--data-dir", sys.argv[1]]))
"""


def wait_until_gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether the process ends in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_the_metastore_listens_on_loopback_only(metastore: EmbeddedMetastore) -> None:
    assert metastore.uri == f"thrift://127.0.0.1:{metastore.port}"
    assert answers("127.0.0.1", metastore.port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("no other interface on this machine")
        other = probe.getsockname()[0]
    assert other.startswith("127.") or not answers(other, metastore.port)


def test_expressions_as_bytes_are_refused_before_they_are_decoded(metastore: EmbeddedMetastore) -> None:
    client = HmsClient(ClientSettings.from_properties({"uri": metastore.uri}))
    folder = f"{metastore.warehouse}/refused_expressions"
    serde = ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")
    row = ttypes.Table(
        tableName="refused_expressions",
        dbName="default",
        sd=ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("id", "int", "")],
            location=folder,
            inputFormat="org.apache.hadoop.mapred.TextInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            serdeInfo=serde,
        ),
        partitionKeys=[ttypes.FieldSchema("day", "string", "")],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )
    client.pool.call("create_table", row, repeatable=False)
    try:
        asked = ttypes.PartitionsByExprRequest("default", "refused_expressions", b"\x01\x00java.lang.Runtime")
        with pytest.raises(TException, match="takes no serialized expressions"):
            client.pool.call("get_partitions_by_expr", asked, repeatable=True)
    finally:
        client.pool.call("drop_table", "default", "refused_expressions", False, repeatable=False)
        client.close()


def test_a_taken_port_is_an_error_that_names_it(metastore: EmbeddedMetastore, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"cannot listen on 127\.0\.0\.1:{metastore.port}"):
        EmbeddedMetastore(tmp_path, port=metastore.port).start()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_metastore_ends_with_an_owner_that_ends_before_it_is_released(tmp_path: Path, number: int) -> None:
    words = [sys.executable, "-c", OWNER, str(tmp_path), str(int(number))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, port = (int(word) for word in owner.stdout.readline().split())
        assert answers("127.0.0.1", port)
        owner.communicate("\n", timeout=60)
    assert wait_until_gone(pid)


@pytest.mark.slow
def test_a_detached_metastore_is_started_found_and_stopped_by_its_folder(tmp_path: Path) -> None:
    run = CliRunner().invoke
    folder = ["--data-dir", str(tmp_path / "data")]
    assert run(metastore_command, ["status", *folder]).exit_code == 3
    started = run(metastore_command, ["start", *folder])
    assert started.exit_code == 0, started.output
    try:
        status = detached.status(tmp_path / "data")
        assert status.running and status.answering and status.uri in started.output
        assert status.warehouse == f"file:{tmp_path / 'data' / 'warehouse'}"
        again = run(metastore_command, ["start", *folder])
        assert f"Already running: {status.uri} (process {status.pid})" in again.output
        assert run(metastore_command, ["status", *folder]).exit_code == 0
        with pytest.raises(ConfigurationError, match="Another metastore uses the data folder"):
            EmbeddedMetastore(tmp_path / "data").start()
    finally:
        stopped = run(metastore_command, ["stop", *folder])
    assert stopped.output == "Stopped.\n"
    assert wait_until_gone(status.pid)
    assert run(metastore_command, ["stop", *folder]).output == "No metastore was running.\n"


def test_a_pid_of_another_program_is_never_taken_for_a_metastore(tmp_path: Path) -> None:
    (tmp_path / "metastore.pid").write_text(
        f'{{"pid": {os.getpid()}, "uri": "thrift://127.0.0.1:1", "warehouse": "", "host": "127.0.0.1", "port": 1, '
        '"started_at": 0}'
    )
    assert not detached.status(tmp_path).running
    assert detached.stop(tmp_path) is False


@pytest.mark.slow
def test_a_folder_may_have_any_name_and_the_data_outlive_a_crash(tmp_path: Path) -> None:
    folder = tmp_path / "with space, ü, 'quote' and 🦆"
    with EmbeddedMetastore(folder) as server:
        with load_catalog("x", type="hive", uri=server.uri) as catalog:
            catalog.create_namespace("kept")
            assert catalog.load_namespace_properties("kept")["location"] == f"file:{folder}/warehouse/kept.db"
        assert "HiveConf" in server.log.read_text()
        port = server.port
        server.kill()
        assert not server.is_running() and server.pid is None
        server.start()
        assert server.port == port
        with load_catalog("x", type="hive", uri=server.uri) as catalog:
            assert ("kept",) in catalog.list_namespaces()
    assert folder.exists(), "a folder that was given is kept"


def test_a_server_that_was_never_started_has_no_port() -> None:
    with pytest.raises(ConfigurationError, match=r"call start\(\) first"):
        _ = EmbeddedMetastore().uri


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks the system for a process's time on the processor")
def test_a_server_that_stands_still_does_not_cost_the_prepared_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with EmbeddedMetastore(tmp_path / "first") as first:
        said, _errors, worked = first._signs_of_life()
        assert said > 0 and worked > 0
        (prepared,) = (tmp_path / "cache" / "hms_iceberg").glob("metastore-*")
    server = EmbeddedMetastore(tmp_path / "second", start_timeout=1.0)
    failed: list[Exception] = []

    def start() -> None:
        try:
            server.start()
        except MetastoreUnavailableError as error:
            failed.append(error)

    starting = threading.Thread(target=start)
    starting.start()
    while (pid := server.pid) is None:
        time.sleep(0.001)
    os.kill(pid, signal.SIGSTOP)
    starting.join()
    (error,) = failed
    assert "did nothing, for 1 s" in str(error)
    assert prepared.exists()
    with EmbeddedMetastore(tmp_path / "second"):  # on the database as it was left
        assert prepared.exists()


def test_a_slow_start_and_one_on_a_paused_machine_are_waited_for() -> None:
    looks = 0

    def signs_while_it_starts() -> tuple[int, ...]:
        nonlocal looks
        looks += 1
        if looks == 6:
            os.write(to_owner, b"READY 6\n")
        return (looks,)

    def none_while_paused() -> tuple[int, ...]:
        nonlocal looks
        looks += 1
        if looks == 8:
            time.sleep(2)
        if looks == 9:
            os.write(to_owner, b"READY 9\n")
        return ()

    from_server, to_owner = os.pipe()
    with open(from_server, "rb") as pipe, open(to_owner, "wb"):
        assert server_module._read_line(pipe, 0.1, signs_while_it_starts) == "READY 6"
        assert server_module._read_line(pipe, 1.5, none_while_paused) == "READY 9"


@pytest.mark.slow
def test_a_server_that_somebody_ends_while_it_starts_does_not_cost_the_prepared_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = tmp_path / "prepared"
    monkeypatch.setattr(server_module, "template_path", lambda jars: prepared)
    with EmbeddedMetastore(tmp_path / "first"):
        assert prepared.exists()
    server = EmbeddedMetastore(tmp_path / "second")

    def end() -> None:
        while (pid := server.pid) is None:
            time.sleep(0.001)
        os.kill(pid, signal.SIGKILL)

    ending = threading.Thread(target=end)
    ending.start()
    with pytest.raises(MetastoreUnavailableError, match="signal 9 ended it"):
        server.start()
    ending.join()
    assert prepared.exists()
