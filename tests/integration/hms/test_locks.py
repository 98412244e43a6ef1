"""The lock on a table: waiting, time-out, signs of life, dead holders and the doctor."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from click.testing import CliRunner

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.care.check import doctor as doctor_command
from hms_iceberg.cli.servers.embedded_metastore import locks as locks_command
from hms_iceberg.errors import CommitFailedError, LockError, LockTimeoutError, MetastoreError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.embedded import EmbeddedMetastore
from hms_iceberg.hms.hive_metastore import hive_client
from hms_iceberg.hms.locking import host_lock
from hms_iceberg.hms.locking.lock_admin import blocked_by, is_abandoned, list_locks, release_lock
from hms_iceberg.hms.locking.lock_info import ACQUIRED, AGENTS, LockAgents
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.locking.table_lock import TableLock
from tests.support.commit_operations import MODES, OPERATIONS
from tests.support.commit_victims import Victims
from tests.support.thrift_proxy import Fault, ThriftProxy

QUICK = LockSettings(timeout=1.0, check_min_wait=0.01, check_max_wait=0.05)

HOLDER = """
import sys, time
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.locking.table_lock import TableLock
from hms_iceberg.hms.locking.lock_info import ACQUIRED
from hms_iceberg.hms.hive_metastore import hive_client
from hms_iceberg.hms.connection.client_settings import ClientSettings
from hms_iceberg.hms.locking.lock_settings import LockSettings
client = HmsClient(ClientSettings.from_properties({"uri": sys.argv[1]}))
lock = TableLock(client, sys.argv[2], "t", LockSettings())
lock.acquire()
print(lock.lock_id, flush=True)
time.sleep(float(sys.argv[3]))
lock.release()
"""


@pytest.fixture
def foreign_lock(client: HmsClient, database: str) -> Iterator[int]:
    """A lock of somebody else's, of another machine."""
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=database, tablename="t"
    )
    request = ttypes.LockRequest([component], user="joe", hostname="far-away", agentInfo="Iceberg-of-joe")
    lock_id = client.lock(request, "t").lockid
    yield lock_id
    client.unlock(lock_id, "t")


@pytest.fixture
def holder(metastore: EmbeddedMetastore, database: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process of this machine that holds the lock, and the lock's number."""
    arguments = [sys.executable, "-c", HOLDER, metastore.uri, database, "60"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


def table_lock(client: HmsClient, database: str, settings: LockSettings = QUICK) -> TableLock:
    return TableLock(client, database, "t", settings)


def test_a_lock_is_taken_kept_and_given_back(client: HmsClient, database: str) -> None:
    mine = table_lock(client, database)
    mine.acquire()
    mine.ensure_active()
    (found,) = list_locks(client, database)
    assert (found.lock_id, found.state, found.type, found.table) == (mine.lock_id, "acquired", "exclusive", "t")
    assert found.agent.startswith("Iceberg-") and found.agent.endswith(f"pid={os.getpid()}")
    assert found.age is not None and found.age < 30
    mine.release()
    assert list_locks(client, database) == []
    mine.release()
    with pytest.raises(LockError, match="was lost"):
        mine.ensure_active()


def test_a_time_out_names_the_holder_and_gives_the_request_back(
    client: HmsClient, database: str, foreign_lock: int
) -> None:
    began = time.monotonic()
    with pytest.raises(LockTimeoutError) as caught:
        table_lock(client, database).acquire()
    assert time.monotonic() - began > 0.8
    assert isinstance(caught.value, CommitFailedError) and not caught.value.retryable
    message = str(caught.value)
    doctor = f"hms-iceberg locks list {database}.t"
    for word in (f"lock {foreign_lock}", "user joe", "host far-away", "Iceberg-of-joe", "held for", doctor):
        assert word in message
    assert [found.lock_id for found in list_locks(client, database)] == [foreign_lock]


def test_a_lock_is_waited_for_until_it_is_free(client: HmsClient, database: str, foreign_lock: int) -> None:
    threading.Timer(0.3, client.unlock, (foreign_lock, "t")).start()
    mine = table_lock(client, database, LockSettings(timeout=30, check_min_wait=0.01))
    began = time.monotonic()
    mine.acquire()
    assert time.monotonic() - began > 0.2
    mine.release()


def test_a_lock_that_is_taken_is_not_waited_for_but_queued_for(
    client: HmsClient, database: str, foreign_lock: int
) -> None:
    mine = table_lock(client, database, LockSettings(timeout=30, check_min_wait=0.01))
    assert mine.try_acquire() is False
    assert [found.state for found in list_locks(client, database)] == ["acquired", "waiting"]
    place = mine.lock_id
    client.unlock(foreign_lock, "t")
    mine.acquire()
    assert mine.lock_id == place
    mine.release()


def test_a_user_with_a_quote_in_the_name_gets_a_lock(
    client: HmsClient, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hms_iceberg.hms.locking.table_lock.current_user", lambda: "o'hara\\")
    mine = table_lock(client, database)
    mine.acquire()
    assert [found.user for found in list_locks(client, database)] == ["o_hara_"]
    mine.release()


def test_a_request_that_the_metastore_dropped_is_made_again(
    client: HmsClient, database: str, foreign_lock: int
) -> None:
    mine = table_lock(client, database, LockSettings(timeout=30, check_min_wait=0.01))
    assert mine.try_acquire() is False
    dropped = mine.lock_id
    assert dropped is not None
    client.unlock(dropped, "t")
    threading.Timer(0.3, client.unlock, (foreign_lock, "t")).start()
    mine.acquire()
    assert mine.lock_id is not None and mine.lock_id > dropped
    mine.release()


def test_threads_are_granted_the_lock_one_at_a_time_in_order(
    client: HmsClient, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, waits = fcntl.flock, threading.Semaphore(0)

    def told(file: int, how: int) -> None:
        if how == fcntl.LOCK_EX:
            waits.release()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", told)
    monkeypatch.setattr(host_lock, "_HOST_SECONDS", 600.0)
    first = table_lock(client, database, LockSettings(timeout=30))
    first.acquire()
    granted: list[int] = []

    def work(number: int) -> None:
        mine = table_lock(client, database, LockSettings(timeout=600, check_min_wait=0.01))
        mine.acquire()
        granted.append(number)
        mine.release()

    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        waits.acquire()
        time.sleep(0.2)  # until the kernel knows of it
    assert len(list_locks(client, database)) == 1, "only the first of a process asks the metastore"
    first.release()
    for thread in threads:
        thread.join()
    assert granted == list(range(5))


def test_a_lock_that_the_metastore_dropped_is_noticed_by_its_heartbeat(client: HmsClient, database: str) -> None:
    mine = table_lock(client, database, LockSettings(heartbeat_interval=3))
    mine.acquire()
    assert mine.lock_id is not None
    client.unlock(mine.lock_id, "t")

    def watch() -> None:
        for _ in range(3000):
            mine.ensure_active()
            time.sleep(0.02)

    with pytest.raises(LockError, match="lock-heartbeat-interval-ms"):
        watch()
    mine.release()


def test_a_lock_of_a_killed_process_of_this_machine_stops_nobody(
    client: HmsClient, database: str, holder: tuple[subprocess.Popen[str], int]
) -> None:
    process, _ = holder
    process.send_signal(signal.SIGKILL)
    process.wait()
    mine = table_lock(client, database, LockSettings(timeout=30, check_min_wait=0.01))
    mine.acquire()
    mine.release()
    assert list_locks(client, database) == []


def test_a_lock_that_this_process_left_behind_stops_it_not(
    client: HmsClient, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = table_lock(client, database)
    left.acquire()
    with monkeypatch.context() as patch:
        patch.setattr(client, "unlock", lambda *arguments: (_ for _ in ()).throw(LockError("away")))
        left.release()
    assert len(list_locks(client, database)) == 1
    mine = table_lock(client, database)
    mine.acquire()
    mine.release()
    assert list_locks(client, database) == []


def test_a_program_that_ends_after_its_commit_leaves_no_lock(
    metastore: EmbeddedMetastore, client: HmsClient, database: str
) -> None:
    script = HOLDER.replace("lock.release()", "lock.release(); import os; os._exit(0)")
    subprocess.run([sys.executable, "-c", script, metastore.uri, database, "0"], check=True, timeout=60)
    assert list_locks(client, database) == []


def test_a_lock_that_is_granted_after_nobody_waits_for_it_any_more_is_given_back_soon(
    metastore: EmbeddedMetastore, client: HmsClient, database: str
) -> None:
    """Else it would block other machines until the metastore drops it: here for five minutes."""
    with ThriftProxy(metastore.port) as proxy:
        proxy.late_seconds = 2.0
        proxy.on("lock", Fault.LATE_REQUEST)
        late = HmsClient(ClientSettings.from_properties({"uri": proxy.uri}))
        mine = table_lock(late, database, LockSettings(timeout=30, creation_min_wait=0.01))
        mine.acquire()
        mine.release()
        assert list_locks(client, database) == []
        assert wait_until(lambda: list_locks(client, database)), "it did not arrive"
        assert wait_until(lambda: not list_locks(client, database)), "it blocks others"
        late.close()


def wait_until(is_true: Callable[[], object], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.02)
    return False


def test_a_lock_in_use_by_this_process_is_never_taken_for_one_left_behind() -> None:
    agents = LockAgents()
    mine, others = agents.new(), LockAgents().new()
    assert not agents.is_left_behind(mine)
    assert not agents.is_left_behind(others)
    assert not agents.is_left_behind("Iceberg-of-joe")
    agents.retire(mine)
    assert agents.is_left_behind(mine)


def test_a_lock_that_is_given_back_while_locks_are_listed_is_not_taken_for_one_left_behind(
    client: HmsClient, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    agent, listed = AGENTS.new(), client.show_locks
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=database, tablename="t"
    )
    held = client.lock(ttypes.LockRequest([component], user="me", hostname="here", agentInfo=agent), "t").lockid

    def show_locks(*arguments: object) -> list[ttypes.ShowLocksResponseElement]:
        rows = listed(*arguments)
        if agent in AGENTS.in_use:
            client.unlock(held, "t")
            AGENTS.retire(agent)
        return rows

    monkeypatch.setattr(client, "show_locks", show_locks)
    mine = table_lock(client, database)
    mine.acquire()
    mine.release()
    assert "nobody uses" not in caplog.text
    assert list_locks(client, database) == []


def test_a_lock_that_somebody_released_is_given_back_without_a_word(
    client: HmsClient, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    mine = table_lock(client, database)
    mine.acquire()
    assert mine.lock_id is not None
    client.unlock(mine.lock_id, "t")
    mine.release()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


def test_a_metastore_that_cannot_lock_is_a_clear_error(
    client: HmsClient, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(*arguments: object) -> None:
        asked.append(arguments)
        raise MetastoreError("MetaException: Unable to update transaction database: HIVE_LOCKS does not exist")

    monkeypatch.setattr(client, "lock", refuse)
    with pytest.raises(LockError, match=r"engine\.hive\.lock-enabled=false"):
        table_lock(client, database).acquire()
    assert len(asked) == 1, "what cannot get better is not tried again"


def test_a_name_that_is_too_long_for_a_lock_is_a_clear_error(client: HmsClient, database: str) -> None:
    fits, too_long = "t" * 128, "t" * 129
    mine = TableLock(client, database, fits, QUICK)
    mine.acquire()
    mine.release()
    with pytest.raises(LockError, match=r"more than 128 characters.*iceberg\.engine\.hive\.lock-enabled=false"):
        TableLock(client, database, too_long, QUICK).acquire()


# ----------------------------------------------------------------------------------------------- the doctor


def test_the_doctor_lists_who_holds_and_who_waits(client: HmsClient, database: str, foreign_lock: int) -> None:
    mine = table_lock(client, database)
    assert mine.try_acquire() is False
    held, waiting = list_locks(client, database.upper(), "T")
    assert (held.lock_id, held.user, held.host) == (foreign_lock, "joe", "far-away")
    assert blocked_by(held, [held, waiting]) == [waiting]
    assert not is_abandoned(held)
    assert list_locks(client, database, "other") == []
    assert foreign_lock in [found.lock_id for found in list_locks(client)]
    mine.release()


def test_the_doctor_releases_a_lock_that_beats_only_when_forced(
    client: HmsClient, database: str, foreign_lock: int
) -> None:
    with pytest.raises(LockError, match="its holder may live"):
        release_lock(client, foreign_lock)
    assert release_lock(client, foreign_lock, force=True).user == "joe"
    with pytest.raises(LockError, match=f"no lock {foreign_lock}"):
        release_lock(client, foreign_lock)


def test_the_doctor_releases_a_lock_that_was_silent_for_long(
    client: HmsClient, database: str, foreign_lock: int
) -> None:
    time.sleep(0.2)
    assert release_lock(client, foreign_lock, silence=0.1).lock_id == foreign_lock


def test_the_command_shows_a_killed_writer_and_releases_its_lock(
    metastore: EmbeddedMetastore, database: str, holder: tuple[subprocess.Popen[str], int]
) -> None:
    process, number = holder
    run, uri = CliRunner().invoke, ["--uri", metastore.uri]
    living = run(locks_command, ["list", f"{database}.t", *uri])
    assert f"exclusive lock {number} on {database}.t (acquired)" in living.output
    assert "DEAD" not in living.output
    refused = run(locks_command, ["release", str(number), *uri])
    assert isinstance(refused.exception, LockError)
    process.send_signal(signal.SIGKILL)
    process.wait()
    seen = run(doctor_command, [*uri, "--output", "json"])
    (left,) = [each for each in json.loads(seen.output) if str(number) in (each["remedy"] or "")]
    assert (left["state"], left["remedy"]) == ("doubtful", f"hms-iceberg locks release {number}")
    dead = run(locks_command, ["list", database, *uri]).output
    assert "ITS HOLDER IS DEAD" in dead and dead.endswith(f"which nobody uses: hms-iceberg locks release {number}\n")
    assert run(locks_command, ["release", str(number), *uri]).output.startswith(f"Released: exclusive lock {number}")
    assert run(locks_command, ["list", database, *uri]).output == "No locks.\n"


def test_the_command_shows_a_writer_that_was_killed_in_the_middle_of_its_commit(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str
) -> None:
    """The next writer waits for it only where it is on another machine; here a place in the queue is kept for one."""
    run, uri, name = CliRunner().invoke, ["--uri", metastore.uri], f"{namespace}.t"
    OPERATIONS["append"].prepare(catalog, name)
    with Victims() as victims:
        assert victims.run(metastore.uri, MODES["lock"], "append", name, "answered lock") == "answered lock"
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=namespace, tablename="t"
    )
    client = hive_client(catalog.metastore)
    waiting = client.lock(ttypes.LockRequest([component], user="joe", hostname="far-away", agentInfo="x"), "t")
    held, queued, remedy = run(locks_command, ["list", name, *uri]).output.splitlines()
    assert "(acquired)" in held and held.endswith("1 waiting for it, ITS HOLDER IS DEAD")
    assert "(waiting)" in queued and "user joe on host far-away" in queued
    assert "hms-iceberg locks release" in remedy
    number = held.split()[2]
    assert run(locks_command, ["release", number, *uri]).output.startswith(
        f"Released: exclusive lock {number} on {name}"
    )
    assert client.check_lock(waiting.lockid, "t").state == ACQUIRED, "joe gets it at once"
    client.unlock(waiting.lockid, "t")
    assert OPERATIONS["append"].is_made(catalog, name) is False
    catalog.load_table(name).append(pa.table({"id": [1]}))
    assert OPERATIONS["append"].is_made(catalog, name)


ENDED_TWICE = """
import signal, sys
from hms_iceberg.cli.main import main
from hms_iceberg.hms.connection.client import HmsClient

unlock = HmsClient.unlock

def ended_meanwhile(*words):
    signal.raise_signal(signal.SIGTERM)
    return unlock(*words)

HmsClient.unlock = ended_meanwhile
sys.exit(main())
"""


def test_a_command_that_waits_says_for_whom_and_takes_its_waiting_lock_along_when_it_is_ended(
    metastore: EmbeddedMetastore, catalog: Catalog, namespace: str, client: HmsClient
) -> None:
    name = f"{namespace}.t"
    catalog.create_table(name, pa.schema([("id", pa.int64())]))
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname=namespace, tablename="t"
    )
    held = client.lock(ttypes.LockRequest([component], user="joe", hostname="far-away", agentInfo="x"), "t").lockid
    words = ["properties", "set", "table", name, "a", "1", "--uri", metastore.uri]
    with subprocess.Popen(
        [sys.executable, "-c", ENDED_TWICE, *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as command:
        assert command.stderr is not None
        told = command.stderr.readline()
        assert told.startswith(f"Waiting for the lock on table {name}, for up to 180 s")
        assert f"lock {held} on {name} (acquired) of user joe on host far-away" in told and "held for" in told
        assert f"hms-iceberg locks list {name}" in told
        assert len(list_locks(client, namespace, "t")) == 2
        command.send_signal(signal.SIGTERM)
        rest = command.stderr.read()
    assert (command.returncode, rest) == (143, "")
    assert [lock.lock_id for lock in list_locks(client, namespace, "t")] == [held]
    client.unlock(held, "t")


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_request_for_a_lock_that_is_interrupted_leaves_no_lock(
    client: HmsClient, database: str, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    real = client.lock

    def interrupted(*arguments: object) -> None:
        real(*arguments)
        raise error

    monkeypatch.setattr(client, "lock", interrupted)
    with pytest.raises(error):
        table_lock(client, database).acquire()
    assert list_locks(client, database) == []


# ------------------------------------------------------------------------------------ server-side expiry


@pytest.mark.slow
def test_the_server_drops_a_silent_lock_and_the_next_writer_gets_through() -> None:
    with EmbeddedMetastore(lock_expiry_seconds=4) as server:
        client = HmsClient(ClientSettings.from_properties({"uri": server.uri}))
        component = ttypes.LockComponent(
            type=ttypes.LockType.EXCLUSIVE, level=ttypes.LockLevel.TABLE, dbname="db", tablename="t"
        )
        client.lock(ttypes.LockRequest([component], user="joe", hostname="far-away", agentInfo="x"), "t")
        mine = TableLock(client, "db", "t", LockSettings(timeout=30, heartbeat_interval=3))
        mine.acquire()
        time.sleep(6)
        mine.ensure_active()
        assert [found.lock_id for found in list_locks(client, "db")] == [mine.lock_id], "kept by its heartbeat"
        mine.release()
        client.close()
