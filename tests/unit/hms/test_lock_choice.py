"""Which lock a commit takes, as table, catalog and server have it; and what is known of a server without asking it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hms_iceberg.errors import (
    ConfigurationError,
    InvalidInputError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from hms_iceberg.hms.commit import capability, scratch_rows
from hms_iceberg.hms.commit.capability import MODIFIED, PARAMETER, Capability
from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.locking.table_lock import TableLock
from hms_iceberg.hms.locking.writer_lock import LocalLock
from hms_iceberg.processes import system_mark

NAME = ("db", "t")


class ScratchClient:
    """A server that compares, or does not, or refuses what `refused` says.

    Attributes:
        tables: its rows, by database and name.
        lost: so many answers to a create are lost.
        calls: databases of scratch views that were created.
    """

    def __init__(self, compares: Any = True, release: Any = None) -> None:
        self.pool = SimpleNamespace(settings=SimpleNamespace(attempts=3))
        self.compares = compares
        self.told = release
        self.tables: dict[tuple[str, str], ttypes.Table] = {}
        self.calls: list[str] = []
        self.lost = 0
        self.asked = 0
        self.refused: Mapping[str, Exception] = {}

    def release(self) -> tuple[int, ...] | None:
        self.asked += 1
        if isinstance(self.told, Exception):
            raise self.told
        return cast("tuple[int, ...] | None", self.told)

    def create_table(self, row: ttypes.Table) -> None:
        self.calls.append(row.dbName)
        if row.dbName in self.refused:
            raise self.refused[row.dbName]
        self.tables[row.dbName, row.tableName] = row
        if self.lost:
            self.lost -= 1
            raise MetastoreAnswerLostError("cut")

    def alter_table(self, database: str, name: str, row: ttypes.Table, environment: Mapping[str, str]) -> None:
        expected = environment[capability.EXPECTED_VALUE]
        if isinstance(self.compares, Exception):
            raise self.compares
        is_equal = self.tables[database, name].parameters[environment[capability.EXPECTED_KEY]] == expected
        if self.compares == "never" or (self.compares and not is_equal):
            raise MetastoreError(f"{MODIFIED}. The parameter has another value")
        self.tables[database, name] = row

    def get_table(self, database: str, name: str) -> ttypes.Table:
        return self.tables[database, name]

    def get_tables(self, database: str, names: list[str]) -> list[ttypes.Table]:
        return [self.tables[database, name] for name in names]

    def drop_table(self, database: str, name: str) -> None:
        if "drop" in self.refused:
            raise self.refused["drop"]
        del self.tables[database, name]

    def list_tables(self, database: str, pattern: str = "*") -> list[str]:
        if "list" in self.refused:
            raise self.refused["list"]
        return [name for place, name in self.tables if place == database]


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of this machine has noted anything yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def known(client: ScratchClient) -> Capability:
    return Capability(cast(HmsClient, client))


# --------------------------------------------------------------------------------------------- capability


@pytest.mark.parametrize(
    ("release", "told"),
    [
        ((4, 0, 0), None),
        ((4, 0, 1), True),
        ((10, 0, 0), True),
        ((3,), False),
        ((2,), None),
        (None, None),
        (MetastoreError("no such call"), None),
    ],
)
def test_what_a_server_tells_of_itself_makes_a_probe_needless_but_a_no_binds_nobody_without_a_lock(
    release: Any, told: bool | None
) -> None:
    client = ScratchClient(compares=True, release=release)
    assert capability.compares_by_release(cast(HmsClient, client)) is told
    assert known(client).compares_under_a_lock() is (told is not False)
    assert client.calls == ([] if told is not None else ["default"])
    client.calls.clear()
    certain = known(client)
    assert certain.compares_for_certain("db") and certain.compares_for_certain("db") and certain.compares_under_a_lock()
    assert client.calls == ([] if told else ["default"]) and client.tables == {}


@pytest.mark.parametrize(("compares", "found"), [(True, True), (False, False), ("never", False)])
def test_a_server_is_known_by_what_it_refuses_and_what_it_makes(compares: Any, found: bool) -> None:
    client = ScratchClient(compares)
    assert known(client).compares_for_certain("db") is found and client.tables == {}
    client.calls.clear()
    for _ in range(2):
        assert known(client).compares_under_a_lock() is found, "as it was noted"
    assert client.calls == []


def test_a_note_grows_old_and_one_that_cannot_be_read_or_written_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ScratchClient()
    known(client).compares_under_a_lock()
    note = capability._note(str(client.pool))
    for text in ("false", "odd", "", "trué"):
        note.write_text(text, encoding="utf-8")
        assert capability._read_note(str(client.pool)) is (False if text == "false" else None)
    note.write_text("false")
    for age, is_read in ((86_300, True), (86_500, False)):
        os.utime(note, (time.time() - age,) * 2)
        assert known(client).compares_under_a_lock() is (not is_read)

    def refuse() -> Path:
        raise OSError("of somebody else")

    monkeypatch.setattr(capability, "shared_folder", refuse)
    assert known(client).compares_under_a_lock()


def test_a_probe_whose_answer_is_lost_is_repeated_as_often_as_a_request_is() -> None:
    client = ScratchClient()
    client.lost = 2
    assert known(client).compares_for_certain("db")
    assert client.calls == ["default"] * 3
    client.lost = 3
    with pytest.raises(MetastoreUnavailableError, match="before anything was committed"):
        known(client).compares_for_certain("db")
    assert client.calls == ["default"] * 6


def test_a_scratch_view_that_exists_already_is_ones_own() -> None:
    client = ScratchClient()
    create = client.create_table

    def twice(row: ttypes.Table) -> None:
        create(row)
        raise TableAlreadyExistsError("exists")

    client.create_table = twice  # type: ignore[method-assign]
    assert known(client).compares_for_certain("db") and client.tables == {}


def test_a_namespace_of_the_user_is_tried_only_where_a_commit_must_know_and_the_default_one_refuses() -> None:
    client = ScratchClient()
    client.refused = {"default": MetastoreError("no permission")}
    asks = known(client)
    assert not asks.compares_under_a_lock() and not asks.compares_under_a_lock()
    assert client.calls == ["default"]
    assert asks.compares_for_certain("db") and client.calls == ["default", "default", "db"]
    client.refused = {"default": MetastoreError("no permission"), "db": MetastoreError("nor here")}
    for database in ("db", "default"):
        with pytest.raises(MetastoreError, match=rf"{database}\.hms_iceberg_probe_.*engine\.hive\.lock-enabled=true"):
            known(client).compares_for_certain(database)
    client.calls.clear()
    client.refused = {"default": MetastoreUnavailableError("away")}
    with pytest.raises(MetastoreUnavailableError):
        known(client).compares_for_certain("db")
    assert client.calls == ["default"]


@pytest.mark.parametrize("error", [MetastoreError("another reason"), MetastoreUnavailableError("away")])
def test_a_refusal_for_another_reason_proves_nothing_and_the_scratch_view_goes(error: Exception) -> None:
    client = ScratchClient(error)
    with pytest.raises(type(error)):
        known(client).compares_for_certain("db")
    assert client.tables == {} and capability._read_note(str(client.pool)) is None
    client = ScratchClient(release=MetastoreUnavailableError("away"))
    with pytest.raises(MetastoreUnavailableError):
        known(client).compares_under_a_lock()
    assert client.calls == []


@pytest.mark.parametrize("error", [MetastoreError("another reason"), MetastoreUnavailableError("away")])
def test_an_error_at_the_change_that_should_be_made_proves_nothing_either(error: Exception) -> None:
    client = ScratchClient()
    alter = client.alter_table

    def refuse(database: str, name: str, row: ttypes.Table, environment: Mapping[str, str]) -> None:
        alter(database, name, row, environment)
        raise error

    client.alter_table = refuse  # type: ignore[method-assign]
    with pytest.raises(type(error), match=str(error)):
        known(client).compares_for_certain("db")
    assert client.tables == {}


# -------------------------------------------------------------------------------------------- scratch rows


def ended() -> int:
    """The number of a process that ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_scratch_views_of_processes_that_ended_go_with_the_next_probe_and_nothing_else() -> None:
    now, mark, gone = int(time.time()), system_mark(), ended()
    names = {
        scratch_rows.new_name(): False,
        f"hms_iceberg_probe_{mark}_{gone}_{now}_abc": True,
        f"hms_iceberg_probe_{mark}_{os.getpid()}_{now - 3700}_abc": True,
        f"hms_iceberg_probe_{'0' * 12}_{gone}_{now}_abc": False,
        f"hms_iceberg_probe_{'0' * 12}_{gone}_{now - 3500}_abc": False,
        f"hms_iceberg_probe_{'0' * 12}_{gone}_{now - 3700}_abc": True,
        f"hms_iceberg_probe_{mark}_{gone}_{now - 9999}_xyz": False,
        f"my_hms_iceberg_probe_{mark}_{gone}_{now - 9999}_abc": False,
    }
    client = ScratchClient()
    for name in names:
        client.tables["default", name] = scratch_rows.scratch_row("default", name, "1")
    of_user = f"hms_iceberg_probe_{mark}_{gone}_{now}_def"
    client.tables["default", of_user] = ttypes.Table(dbName="default", tableName=of_user, parameters=None)
    assert known(client).compares_for_certain("db")
    assert {name for _, name in client.tables} == {of_user, *(name for name, goes in names.items() if not goes)}


def test_a_scratch_view_that_cannot_be_dropped_or_looked_for_stops_nobody() -> None:
    for refused in ({"drop": MetastoreError("no")}, {"drop": NoSuchTableError("gone")}, {"list": MetastoreError("no")}):
        client = ScratchClient()
        client.refused = refused
        assert known(client).compares_for_certain("db")
        assert len(client.tables) == ("drop" in refused)


def test_a_namespace_loses_its_scratch_views_only_if_it_holds_nothing_else() -> None:
    client, drop = ScratchClient(), scratch_rows.drop_only_scratch_rows
    scratch, table = scratch_rows.new_name(), ttypes.Table(dbName="db", tableName="t", parameters={})
    client.tables["db", scratch] = scratch_rows.scratch_row("db", scratch, "1")
    client.tables["db", "t"] = table
    assert not drop(cast(HmsClient, client), "db") and len(client.tables) == 2
    del client.tables["db", "t"]
    client.tables["db", "hms_iceberg_probe_of_a_user"] = table
    assert not drop(cast(HmsClient, client), "db") and len(client.tables) == 2
    del client.tables["db", "hms_iceberg_probe_of_a_user"]
    assert drop(cast(HmsClient, client), "db") and client.tables == {} and drop(cast(HmsClient, client), "db")
    row = scratch_rows.scratch_row("db", "name", "7")
    assert (row.parameters, row.tableType, row.sd.location) == ({PARAMETER: "7"}, "VIRTUAL_VIEW", None)


# ---------------------------------------------------------------------------------------------- the choice


def choice(client: ScratchClient, properties: Mapping[str, str] | None = None) -> LockChoice:
    return LockChoice.from_properties(cast(HmsClient, client), properties or {})


@pytest.mark.parametrize(
    ("catalog", "table", "mode"),
    [
        ({}, {}, "true"),
        ({"engine.hive.lock-enabled": "false"}, {}, "false"),
        ({"iceberg.engine.hive.lock-enabled": " Auto "}, {}, "auto"),
        ({"iceberg.engine.hive.lock-enabled": "auto", "engine.hive.lock-enabled": "false"}, {}, "auto"),
        ({"engine.hive.lock-enabled": "false"}, {"engine.hive.lock-enabled": "TRUE"}, "true"),
    ],
)
def test_the_table_says_before_the_catalog_whether_it_is_locked(
    catalog: dict[str, str], table: dict[str, str], mode: str
) -> None:
    assert choice(ScratchClient(), catalog).mode(table) == mode


def test_neither_table_nor_catalog_may_say_anything_else() -> None:
    with pytest.raises(ConfigurationError, match=r"iceberg\.engine\.hive\.lock-enabled.*'maybe'"):
        choice(ScratchClient(), {"engine.hive.lock-enabled": "maybe"})
    with pytest.raises(ConfigurationError, match=r"'engine\.hive\.lock-enabled'.*'1'"):
        choice(ScratchClient()).mode({"engine.hive.lock-enabled": "1"})


@pytest.mark.parametrize(
    ("mode", "compares", "kind"),
    [
        ("true", True, TableLock),
        ("true", False, TableLock),
        ("auto", True, LocalLock),
        ("auto", False, TableLock),
        ("false", True, LocalLock),
        ("false", False, None),
    ],
)
def test_a_commit_does_without_a_lock_only_where_the_server_compares(mode: str, compares: bool, kind: Any) -> None:
    client = ScratchClient(compares)
    locks = choice(client)
    if kind is None:
        with pytest.raises(UnsupportedError, match=r"db\.t without a lock.*HIVE-26882"):
            locks.new_lock(NAME, mode)
        return
    lock = locks.new_lock(NAME, mode)
    assert type(lock) is kind
    assert client.calls, "it is found out before the lock is held"
    assert locks.compares(lock) is compares


def test_where_the_default_database_is_closed_it_is_tried_out_in_the_table_s_own() -> None:
    for ask in (
        lambda locks: locks.new_lock(NAME, "auto"),
        lambda locks: locks.check_name(("db", "t" * 129), {"engine.hive.lock-enabled": "auto"}),
    ):
        client = ScratchClient()
        client.refused = {"default": MetastoreError("no permission")}
        ask(choice(client))
        assert client.calls == ["default", "db"]


def test_a_server_is_not_asked_to_compare_under_a_lock_where_the_catalog_says_so() -> None:
    client = ScratchClient()
    locks = choice(client, {"iceberg.hive.lock-compare-enabled": "false"})
    assert not locks.compares(locks.new_lock(NAME, "true")) and client.calls == []
    assert locks.settings == LockSettings(compare=False)
    assert locks.compares(locks.new_lock(NAME, "auto"))


@pytest.mark.parametrize(
    ("length", "mode", "compares", "is_refused"),
    [
        (128, "true", True, False),
        (129, "true", True, True),
        (129, "false", True, False),
        (129, "auto", False, True),
        (128, "auto", False, False),
    ],
)
def test_a_name_too_long_for_a_lock_is_refused_where_one_is_needed(
    length: int, mode: str, compares: bool, is_refused: bool
) -> None:
    client = ScratchClient(compares)
    check: Callable[[], None] = lambda: choice(client).check_name(  # noqa: E731
        ("db", "t" * length), {"engine.hive.lock-enabled": mode}
    )
    if is_refused:
        with pytest.raises(InvalidInputError, match=f"{length} characters"):
            check()
    else:
        check()
    assert bool(client.calls) is (length == 129 and mode != "true")
