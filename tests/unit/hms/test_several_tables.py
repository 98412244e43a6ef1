"""A model of one commit to several tables: every order in which its owner, those who finish it, and others can act.

The model's rows are those of the metastore, its writers follow the real rules, and it is searched to the end. A request
compares the metadata file that a row shows, and nothing else of the row. Requests of an owner that died may arrive
late. Others commit in two steps, read and compare; those who know nothing of the rules keep what a row has besides
(Apache Iceberg's Java and PyIceberg do).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

from hms_iceberg.hms.commit.several_tables.rules import (
    Action,
    RowState,
    Way,
    is_committed,
    next_step,
    proposed_way,
    row_state_of,
    shows_base,
)

BASE, KEPT, NEW = "base", "kept", "new"


class Row(NamedTuple):
    """What a row shows: its metadata file, the log of that, and whether the row has the transaction's mark."""

    file: str
    log: tuple[str, ...]
    is_marked: bool

    @property
    def has_transaction(self) -> bool:
        return NEW in (self.file, *self.log)

    @property
    def row_state(self) -> RowState:
        before = self.log[-1] if self.log else ""
        return row_state_of(BASE, NEW, self.file, before, self.is_marked, lambda: self.log)


class Finisher(NamedTuple):
    """Somebody who reads the rows one after the other, does the next step, and begins anew."""

    seen: tuple[Row, ...] = ()


NOBODY_SEEN = Finisher()


class Others(NamedTuple):
    """A commit of somebody else that is under way: the table, and its row as it was read."""

    table: int
    seen: Row
    knows_rules: bool
    keeps_marks: bool


@dataclass(frozen=True, slots=True)
class State:
    """Everything that anybody could see; `owner` is the number of moves made, then `done`, `giving up` or `dead`."""

    rows: tuple[Row, ...]
    intent: bool = True
    way: Way | None = None
    owner: int | str = 0
    owning: Finisher = NOBODY_SEEN
    late: int | None = None  # the table of a request of the dead owner that may still arrive
    finishers: tuple[Finisher | None, ...] = ()
    others: Others | None = None
    commits_left: int = 1
    made: tuple[tuple[int, str], ...] = ()  # commits of others, with their tables
    is_acknowledged: bool = False

    def with_row(self, table: int, row: Row) -> State:
        return replace(self, rows=(*self.rows[:table], row, *self.rows[table + 1 :]))

    # ---------------------------------------------------------------------------------------------- what is seen

    def sees_transaction(self, table: int) -> bool:
        row, last = self.rows[table], len(self.rows) - 1
        is_hidden = table != last and row.is_marked and shows_base(row.row_state, self.rows[last].row_state)
        return row.has_transaction and not is_hidden

    @property
    def seen(self) -> set[bool]:
        return {self.sees_transaction(table) for table in range(len(self.rows))}

    @property
    def is_torn(self) -> bool:
        """Whether others built on a part of it, and another part can never get in: users are told, nobody can help."""
        followed = any(row.has_transaction and row.file != NEW for row in self.rows[:-1])
        return followed and any(not row.has_transaction and row.file != BASE for row in self.rows)


def moved(row: Row) -> Row:
    return Row(NEW, (BASE,), True)


def taken_back(row: Row, is_by_owner: bool) -> Row:
    return Row(BASE, (), False) if is_by_owner else Row(KEPT, (BASE,), False)


def carry_out(state: State, seen: tuple[Row, ...], is_owner: bool) -> tuple[State, bool]:
    """The next step of somebody who has seen all rows, and whether there is nothing left to do."""
    row_states = [each.row_state for each in seen]
    if state.way is None and not is_committed(row_states):
        return replace(state, way=proposed_way(row_states)), False  # of several, one says it first
    step = next_step(row_states, [each.is_marked for each in seen], state.way, owner=is_owner)
    if step is None:
        return replace(state, intent=False), True
    row = seen[step.table]
    if state.rows[step.table].file != row.file:  # the metastore compares
        return state, False
    after = {
        Action.MOVE: lambda: moved(row),
        Action.TAKE_BACK: lambda: taken_back(row, is_owner),
        Action.CLEAR: lambda: row._replace(is_marked=False),
    }[step.action]()
    return state.with_row(step.table, after), False


def finish(state: State, finisher: Finisher, is_owner: bool = False) -> tuple[State, Finisher | None]:
    """One call of somebody who finishes the transaction."""
    if len(finisher.seen) < len(state.rows):
        return state, Finisher((*finisher.seen, state.rows[len(finisher.seen)]))
    after, is_closed = carry_out(state, finisher.seen, is_owner)
    return after, None if is_closed else Finisher()


def next_states(state: State) -> Iterator[State]:
    yield from owners_steps(state)
    for number, each in enumerate(state.finishers):
        if each is not None:
            after, finisher = finish(state, each)
            rest = (*state.finishers[:number], finisher, *state.finishers[number + 1 :])
            yield replace(after, finishers=tuple(sorted(rest, key=repr)))
    yield from others_steps(state)


def owners_steps(state: State) -> Iterator[State]:
    owner, last = state.owner, len(state.rows) - 1
    if state.late is not None:
        row = state.rows[state.late]
        yield replace(state.with_row(state.late, moved(row)) if row.file == BASE else state, late=None)
    if isinstance(owner, int):
        row = state.rows[owner]
        yield replace(state, owner="dead")
        yield replace(state, owner="dead", late=owner)
        if row.file != BASE:
            yield replace(state, owner="giving up")
        elif owner == last:
            yield replace(state.with_row(owner, moved(row)), owner="done", is_acknowledged=True)
        else:
            yield replace(state.with_row(owner, moved(row)), owner=owner + 1)
    elif owner in ("done", "giving up"):
        yield replace(state, owner="dead")
        after, finisher = finish(state, state.owning, is_owner=True)
        yield replace(after, owning=finisher or Finisher(), owner=owner if finisher else "dead")


def others_steps(state: State) -> Iterator[State]:
    if state.others is None and state.commits_left:
        for table, row in enumerate(state.rows):
            if not row.is_marked or (table == len(state.rows) - 1 and not state.intent):
                yield replace(state, others=Others(table, row, True, False), commits_left=state.commits_left - 1)
            # Who drops the mark of another row than the last shows at once what was not decided yet: see the guide.
            for keeps in (True, False) if table == len(state.rows) - 1 else (True,):
                yield replace(state, others=Others(table, row, False, keeps), commits_left=state.commits_left - 1)
    elif state.others is not None:
        other, now = state.others, state.rows[state.others.table]
        after = replace(state, others=None)
        if now.file == other.seen.file:
            name = f"other {state.commits_left}"
            row = Row(name, (*other.seen.log, other.seen.file), other.keeps_marks and other.seen.is_marked)
            after = replace(after.with_row(other.table, row), made=(*state.made, (other.table, name)))
        yield after


def check(state: State) -> None:
    for table, name in state.made:
        row = state.rows[table]
        assert name in (row.file, *row.log), "a commit of somebody else was undone"
    if state.is_torn:
        return
    assert len(state.seen) == 1, "one table shows the transaction, and another does not"
    assert not state.is_acknowledged or state.seen == {True}, "what was told as committed is not there"


def check_step(before: State, after: State) -> None:
    if before.seen == {True} and not after.is_torn:
        assert after.seen == {True}, "a committed transaction went away"
    if not before.intent and not is_committed([row.row_state for row in before.rows]):
        moved_late = [row.file for row in after.rows if row.file == NEW and row not in before.rows]
        assert not moved_late, "a row shows a file that may be deleted, as the transaction was taken back and closed"


def check_end(state: State) -> None:
    """Whoever finishes it alone, once the owner is dead, leaves nothing behind and changes nothing that is decided."""
    alone = replace(state, owner="dead", late=None, others=None)
    finisher: Finisher | None = Finisher()
    for _ in range(100):
        if finisher is None:
            break
        alone, finisher = finish(alone, finisher)
    assert finisher is None, "it is never finished"
    assert not alone.intent and not any(row.is_marked for row in alone.rows[:-1])
    check(alone)
    check_step(replace(state, intent=True), alone)
    assert not alone.is_torn or state.is_torn or state.way is Way.BACK, "it could have been carried forward"
    assert len({row.has_transaction for row in alone.rows}) == 1 or alone.is_torn


def search(start: State) -> tuple[int, int]:
    """Visits every state that can be reached; returns how many there are, and in how many the commit is torn."""
    found, waiting, torn = {start}, [start], 0
    while waiting:
        state = waiting.pop()
        torn += state.is_torn
        check(state)
        check_end(state)
        for after in next_states(state):
            check_step(state, after)
            if after not in found:
                found.add(after)
                waiting.append(after)
    return len(found), torn


def start(tables: int, *, finishers: int, commits: int) -> State:
    rows = tuple(Row(BASE, (), False) for _ in range(tables))
    return State(rows, finishers=(Finisher(),) * finishers, commits_left=commits)


@pytest.mark.parametrize(
    ("tables", "finishers", "commits"), [(2, 1, 1), (2, 0, 2), (2, 2, 0), (3, 1, 0)], ids=lambda number: str(number)
)
def test_nobody_ever_sees_a_part_of_a_transaction(tables: int, finishers: int, commits: int) -> None:
    states, torn = search(start(tables, finishers=finishers, commits=commits))
    assert states > 1000
    assert bool(torn) is bool(commits), "only a commit of others, on top of what was not decided, can tear it"


def test_a_transaction_that_nobody_takes_over_is_torn_by_no_single_commit_of_others() -> None:
    states, torn = search(start(3, finishers=0, commits=1))
    assert (states > 500, torn) == (True, 0)


def test_a_mark_tells_that_a_row_has_moved_after_its_log_has_forgotten_it() -> None:
    for is_marked, row_state in ((True, RowState.FOLLOWED), (False, RowState.PASSED)):
        assert row_state_of(BASE, NEW, "much later", "later", is_marked, tuple) is row_state
