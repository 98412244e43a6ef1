"""What became of a commit, as the newest version tells it: a table of all that may be found."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    MetastoreUnavailableError,
    NoSuchTableError,
    NotAnIcebergTableError,
    StaleBaseError,
    StorageError,
    TableAlreadyExistsError,
)
from hms_iceberg.metastore import Identifier, TablePointer
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.transaction.commit import Commit
from hms_iceberg.transaction.outcome import Newest, Outcome
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.rows.append import FastAppend
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.tables import NAME, World, data_file, metadata

UUID, OTHER = "mine", "another"
MADE, LOST, UNKNOWN = Outcome.MADE, Outcome.LOST, Outcome.UNKNOWN
ONCE = metadata(properties={"commit.status-check.num-retries": "0"})


@dataclass(frozen=True)
class Version:
    """A version as far as an outcome is told by it; its location is one letter."""

    location: str
    previous: tuple[str, ...] = ()
    snapshot_ids: frozenset[int] = frozenset()
    uuid: str = UUID
    metadata: TableMetadata = ONCE


BASE, NEW = Version("b", snapshot_ids=frozenset({1})), Version("n", ("b",), frozenset({1, 2}))


@dataclass
class Pointers:
    """A metastore that answers all alike: with an error, or the location that a name shows."""

    shown: frozenset[str] = frozenset("n")
    answer: Exception | str = field(default_factory=lambda: MetastoreUnavailableError("No metastore answers."))
    looks: int = 0

    def load(self, identifier: Identifier) -> TablePointer:
        self.looks += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return TablePointer(identifier, self.answer)

    def shows(self, location: str, new: Any) -> bool:
        return location in self.shown


@dataclass
class Lease:
    """A lease whose swap ends as it is told."""

    end: BaseException | Version | None
    refuses_late: bool = False

    def swap(self, base: Any, new: Any) -> Any:
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


def commit_of(
    end: BaseException,
    base: Version | None = BASE,
    refuses_late: bool = False,
    is_written: bool = True,
    shown: str = "n",
) -> Commit[Any]:
    """A commit with one attempt whose swap ended so."""
    workspace = FileWorkspace(InMemoryStorage())
    if is_written:
        workspace.create(NEW.location, b"new")
    commit: Commit[Any] = Commit("table t", NAME, Pointers(frozenset(shown)), lambda location: BASE, workspace)
    with suppress(type(end)):
        commit.swap(Lease(end, refuses_late), base, NEW)  # type: ignore[arg-type]
    return commit


ENDS: dict[str, tuple[BaseException, bool]] = {
    "refused": (CommitFailedError("refused"), False),
    "under way": (CommitStateUnknownError("lost"), False),
    "under way, and refused if late": (CommitStateUnknownError("lost"), True),
}
ALL_LOST, ALL_MADE, ALL_UNKNOWN = (LOST,) * 3, (MADE,) * 3, (UNKNOWN,) * 3
# What is found, and what it tells of a swap that was refused, that is under way, and that is so but refused if late.
OF_CHANGES: dict[str, tuple[Version | None, tuple[Outcome, ...], dict[str, Any]]] = {
    "the name is gone, perhaps renamed": (None, ALL_UNKNOWN, {}),
    "it is the newest": (NEW, ALL_MADE, {}),
    "the newest is the same by another name": (Version("r"), ALL_MADE, {"shown": "nr"}),
    "the base is the newest still": (BASE, (LOST, UNKNOWN, UNKNOWN), {}),
    "another follows the base": (Version("x", ("b",)), (LOST, UNKNOWN, LOST), {}),
    "others follow the base": (Version("x", ("a", "b", "c")), (LOST, UNKNOWN, LOST), {}),
    "others follow it": (Version("x", ("b", "n", "c")), ALL_MADE, {}),
    "others follow it, and the log begins with it": (Version("x", ("n", "c")), ALL_MADE, {}),
    "others follow the same by another name": (Version("x", ("a", "b", "r")), ALL_MADE, {"shown": "nr"}),
    "it was there before the base": (Version("x", ("n", "b")), (LOST, UNKNOWN, LOST), {}),
    "a log names a file that was not written here": (Version("x", ("b", "n")), ALL_UNKNOWN, {"is_written": False}),
    "its snapshot is in the newest": (Version("x", ("c",), frozenset({2})), ALL_MADE, {}),
    "its snapshot is in the newest, by another name": (
        Version("x", ("c",), frozenset({2})),
        ALL_MADE,
        {"is_written": False},
    ),
    "its snapshot is there, and the log leaves its file out": (
        Version("x", ("b", "c"), frozenset({1, 2})),
        ALL_MADE,
        {},
    ),
    "its snapshot is there, and others followed the base of a file that was not written here": (
        Version("x", ("b", "c"), frozenset({1, 2})),
        (LOST, UNKNOWN, LOST),
        {"is_written": False},
    ),
    "the snapshots of the base alone are there": (Version("x", ("c",), frozenset({1})), ALL_UNKNOWN, {}),
    "its snapshot is in another table": (Version("x", ("c",), frozenset({2}), OTHER), ALL_UNKNOWN, {}),
    "no log goes back to the base": (Version("x", ("c",)), ALL_UNKNOWN, {}),
    "no log goes back to the base, and the first is alike": (Version("x", ("r",)), ALL_UNKNOWN, {"shown": "nr"}),
}
OF_CREATES: dict[str, tuple[Version | None, tuple[Outcome, ...], dict[str, Any]]] = {
    "the name is free": (None, (LOST, UNKNOWN, UNKNOWN), {}),
    "it is the newest": (NEW, ALL_MADE, {}),
    "others follow it": (Version("x", ("n", "c")), ALL_MADE, {}),
    "others follow the same by another name": (Version("x", ("r", "c")), ALL_MADE, {"shown": "nr"}),
    "others follow, and the log has forgotten it": (Version("x", ("c",)), ALL_UNKNOWN, {}),
    "the name is another table's": (Version("x", ("c",), uuid=OTHER), (LOST, UNKNOWN, UNKNOWN), {}),
}
CASES = [
    pytest.param(base, found, ended, expected, how, id=f"{kind}: {name}, {ended}")
    for kind, base, table in (("change", BASE, OF_CHANGES), ("create", None, OF_CREATES))
    for name, (found, outcomes, how) in table.items()
    for ended, expected in zip(ENDS, outcomes, strict=True)
]


@pytest.mark.parametrize(("base", "found", "ended", "expected", "how"), CASES)
def test_an_outcome_is_what_the_newest_version_proves(
    base: Version | None, found: Version | None, ended: str, expected: Outcome, how: dict[str, Any]
) -> None:
    end, refuses_late = ENDS[ended]
    commit = commit_of(end, base, refuses_late, **how)
    is_made = commit.is_made(None if found is None else Newest(found.location, lambda _: found))  # type: ignore[arg-type]
    commit.give_up()
    assert (is_made, commit.outcome) == (expected is MADE, expected)
    files = commit.workspace.storage.files  # type: ignore[attr-defined]
    assert (NEW.location in files) is (how.get("is_written", True) and expected is not LOST)


def test_a_version_without_a_log_follows_the_one_that_its_row_names() -> None:
    for version, before, expected in (
        (Version("x"), "b", ("b", "x")),
        (Version("x"), "", ("x",)),
        (Version("x", ("a",)), "b", ("a", "x")),
    ):
        newest: Newest[Any] = Newest(version.location, lambda _, version=version: version, before)
        assert newest.history() == expected
    row = TablePointer(NAME, "x", {"previous_metadata_location": "b"})
    at: Newest[Any] = Newest.at(row, lambda location: Version(location))  # type: ignore[arg-type]
    assert (at.location, at.before, at.history()) == ("x", "b", ("b", "x"))


def test_nothing_is_told_of_a_commit_before_its_first_attempt() -> None:
    commit: Commit[Any] = Commit("t", NAME, Pointers(), lambda location: BASE, FileWorkspace(InMemoryStorage()))
    assert commit.outcome is None
    commit.give_up()
    assert commit.outcome is LOST


@dataclass(frozen=True)
class Ended:
    """How a commit ended: its result or error, its outcome, the files that are left, and the looks at the metastore."""

    result: Any
    outcome: Outcome | None
    files: set[str]
    looks: int


def run(
    *ends: BaseException | Version | None,
    base: Version | None = BASE,
    answer: Exception | str | None = None,
    then: BaseException | None = None,
    versions: dict[str, Version] | None = None,
) -> Ended:
    """A commit whose swaps end so, one after the other; the attempts end with an error if there is one."""
    pointers = Pointers() if answer is None else Pointers(answer=answer)
    known: dict[str, Any] = {"b": BASE, **(versions or {})}
    commit: Commit[Any] = Commit("t", NAME, pointers, known.__getitem__, FileWorkspace(InMemoryStorage()))

    try:
        with commit:
            for number, end in enumerate(ends):
                commit.workspace.begin_attempt()
                new = NEW if number == 0 else replace(NEW, location=f"n{number}")
                commit.workspace.create(new.location, b"new")
                try:
                    commit.swap(Lease(end), base, new)  # type: ignore[arg-type]
                except CommitFailedError:
                    if number == len(ends) - 1 and then is None:
                        raise
            if then is not None:
                raise then
        result: Any = commit.made
    except BaseException as error:
        result = error
    return Ended(result, commit.outcome, set(commit.workspace.storage.files), pointers.looks)  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [StaleBaseError("stale"), StorageError("not sent")])
def test_what_was_never_sent_is_lost_without_a_look_and_leaves_no_file(error: Exception) -> None:
    assert run(error) == Ended(error, LOST, set(), 0)


def test_an_interrupt_leaves_no_file_if_nothing_was_sent_and_all_if_something_was() -> None:
    interrupt = KeyboardInterrupt()
    assert run(StaleBaseError("stale"), StaleBaseError("stale"), then=interrupt) == Ended(interrupt, LOST, set(), 0)
    assert run(interrupt) == Ended(interrupt, UNKNOWN, {"n"}, 0)


@pytest.mark.parametrize(
    ("stored", "kept"),
    [(None, {"n"}), (NEW, {"n"}), (replace(NEW, location="r"), set())],
    ids=["nothing told", "the file that was written", "a file of the server's own"],
)
def test_a_file_that_was_written_stays_unless_the_server_keeps_another_in_its_place(
    stored: Version | None, kept: set[str]
) -> None:
    made = run(stored)
    assert (made.result.version, made.result.base, made.files) == (stored or NEW, BASE, kept)


def test_an_error_after_a_commit_that_was_made_is_none_and_nobody_is_asked() -> None:
    made = run(None, then=OSError("broken"))
    assert (made.result.version, made.outcome, made.files, made.looks) == (NEW, MADE, {"n"}, 0)


@pytest.mark.parametrize("newest", [NEW, Version("x", ("b", "n"))], ids=["it is the newest", "others follow it"])
def test_what_was_told_as_lost_and_is_found_is_made(newest: Version) -> None:
    refused = CommitFailedError("refused")
    made = run(refused, answer=newest.location, versions={newest.location: newest})
    assert (made.result.version, made.outcome, made.files, made.looks) == (newest, MADE, {"n"}, 1)


def test_of_several_attempts_that_may_have_been_made_the_files_of_all_stay() -> None:
    refused, newest = CommitFailedError("refused"), Version("x", ("c",), frozenset({2}))
    made = run(refused, refused, answer="x", versions={"x": newest})
    assert (made.result.version, made.files) == (newest, {"n", "n1"})
    newest = Version("n1", ("b",), frozenset({2}))
    assert run(refused, refused, answer="n1", versions={"n1": newest}).files <= {"n", "n1"}


NAME_IS_GONE, NAME_IS_ANOTHERS = NoSuchTableError("gone"), NotAnIcebergTableError("a Hive table")
REFUSED, EXISTS, LOST_ANSWER = (
    CommitFailedError("refused"),
    TableAlreadyExistsError("exists"),
    CommitStateUnknownError("lost"),
)


@pytest.mark.parametrize(
    ("answer", "base", "end", "expected"),
    [
        (NAME_IS_GONE, None, EXISTS, LOST),
        (NAME_IS_GONE, None, LOST_ANSWER, UNKNOWN),
        (NAME_IS_GONE, BASE, REFUSED, UNKNOWN),
        (NAME_IS_GONE, BASE, LOST_ANSWER, UNKNOWN),
        (NAME_IS_ANOTHERS, None, EXISTS, LOST),
        (NAME_IS_ANOTHERS, None, LOST_ANSWER, UNKNOWN),
        (NAME_IS_ANOTHERS, BASE, REFUSED, UNKNOWN),
        (NAME_IS_ANOTHERS, BASE, LOST_ANSWER, UNKNOWN),
        ("b", BASE, REFUSED, LOST),
        ("b", BASE, LOST_ANSWER, UNKNOWN),
        ("x", BASE, OSError("cut"), UNKNOWN),
        (None, BASE, REFUSED, UNKNOWN),
    ],
)
def test_a_name_that_is_gone_or_anothers_proves_that_a_refused_create_was_not_made_and_nothing_else(
    answer: Exception | str | None, base: Version | None, end: Exception, expected: Outcome
) -> None:
    ended = run(end, base=base, answer=answer, versions={"x": Version("x", ("b",))})
    assert (ended.outcome, ended.files) == (expected, set() if expected is LOST else {"n"})
    is_told = isinstance(ended.result, CommitStateUnknownError)
    assert is_told == (end not in (REFUSED, EXISTS) or answer is None), (
        "a refusal is told as such if the table was looked at"
    )


@pytest.mark.parametrize(("end", "looks"), [(REFUSED, 1), (LOST_ANSWER, 3)])
def test_one_looks_again_only_for_what_may_still_be_made(end: Exception, looks: int) -> None:
    patient = {"commit.status-check.num-retries": "2", "commit.status-check.min-wait-ms": "0"}
    pointers = Pointers(answer="b")
    commit: Commit[Any] = Commit("t", NAME, pointers, lambda location: BASE, FileWorkspace(InMemoryStorage()))
    new = replace(NEW, metadata=metadata(properties=patient))
    with pytest.raises(type(end)), commit:
        commit.swap(Lease(end), BASE, new)  # type: ignore[arg-type]
    assert pointers.looks == looks


@pytest.mark.parametrize(
    ("end", "why"), [(LOST_ANSWER, "lost"), (OSError("cut"), r"OSError: cut\.")], ids=["ours", "another"]
)
def test_whoever_cannot_tell_says_how_to_find_out(end: Exception, why: str) -> None:
    world = World.with_table(metadata(properties={"commit.status-check.num-retries": "0"}))
    world.append(data_file())
    update = FastAppend((data_file(),))
    transaction = world.begin(update)

    def cut(metastore: InMemoryMetastore, identifier: Identifier, swap: Callable[[], None]) -> None:
        metastore.down = True
        raise end

    world.metastore.script.append(cut)
    with pytest.raises(CommitStateUnknownError) as told:
        transaction.commit()
    assert re.search(
        rf"table db\.events was made: {why} No file was deleted.*metadata location mem:\S*/00002-\S* "
        rf"\(as current, or in the metadata log\) or the snapshot id {update.snapshot_id}: if",
        str(told.value),
    )
    for base, sought in ((BASE, "n or the snapshot id 2"), (NEW, "n")):
        assert f"look for the metadata location {sought}: if" in str(run(LOST_ANSWER, base=base).result)
