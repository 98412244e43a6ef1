"""The rules of a commit to several tables: what it has come to, what a reader sees, and what is to be done next.

The rows move one after the other, in one order, each with a mark that names the transaction. The last one decides: as
long as it has not moved nothing was committed, and everybody who knows of marks sees the bases of the rows that have.
Its move commits all at once, and nothing that can fail is left to be done. A move compares; so whoever takes a
transaction over gives that row first another file with the content of the base, after which the owner can decide
nothing any more, and whether the owner is dead need not be known for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum


class RowState(Enum):
    """How far the row of one table has come."""

    BASE = "base"  # it shows the version that the transaction was made on
    MOVED = "moved"  # it shows the transaction's version
    FOLLOWED = "followed"  # somebody has committed on top of the transaction's version
    PASSED = "passed"  # it moved on without the transaction, which can never get in
    GONE = "gone"  # there is no such row, or it is another table's


_IN = (RowState.MOVED, RowState.FOLLOWED)


def row_state_of(
    base: str, new: str, location: str, previous: str, is_marked: bool, history: Callable[[], Collection[str]]
) -> RowState:
    """How far a row has come that shows the metadata file `location`, and names the one before; `is_marked` if it has
    the transaction's mark, and `history` reads its metadata log, only if nothing else tells."""
    if location == new:
        return RowState.MOVED
    if location == base:
        return RowState.BASE
    if is_marked or previous == new:
        return RowState.FOLLOWED
    if previous == base:
        return RowState.PASSED
    return RowState.FOLLOWED if new in history() else RowState.PASSED


def shows_base(state: RowState, deciding: RowState) -> bool:
    """Whether a reader sees a marked row's base instead of what it shows, given the state of the deciding row: commits
    on top of it are hidden only while the transaction may be carried forward."""
    if deciding in (*_IN, RowState.GONE):
        return False
    return state is RowState.MOVED or (state is RowState.FOLLOWED and deciding is RowState.BASE)


class Action(Enum):
    """An action on one row."""

    MOVE = "move"  # it moves to the transaction's version, with the mark
    # it gets another file with the base's content, without the mark, so that a request of the owner that is still
    # under way is refused; the owner itself gives it the base
    TAKE_BACK = "take back"
    CLEAR = "clear"  # the mark is removed


@dataclass(frozen=True)
class Step:
    """An action on the row of the table with a number."""

    action: Action
    table: int


def is_committed(states: Sequence[RowState]) -> bool:
    """Whether the transaction is committed, given the states of all rows, the one that decides last."""
    if states[-1] is RowState.GONE:  # it tells nothing any more; what has moved everywhere else is kept
        return len(states) > 1 and all(each in (*_IN, RowState.GONE) for each in states[:-1])
    return states[-1] in _IN


class Way(Enum):
    """Where those who finish a transaction take it; the first of them says so in a file, and all others follow."""

    FORWARD = "forward"
    BACK = "back"


def is_torn(states: Sequence[RowState]) -> bool:
    """Whether others built on a part of the transaction, and another part of it can never get in."""
    return RowState.FOLLOWED in states and not is_committed(states) and not _may_get_in(states)


def proposed_way(states: Sequence[RowState]) -> Way:
    """Where an open transaction is to be taken: forward if others have built on a part of it, and the rest can follow.
    What others have committed is never undone."""
    return Way.FORWARD if RowState.FOLLOWED in states and _may_get_in(states) else Way.BACK


def _may_get_in(states: Sequence[RowState]) -> bool:
    return not {RowState.PASSED, RowState.GONE} & set(states)


def next_step(
    states: Sequence[RowState], marked: Sequence[bool], way: Way | None, *, owner: bool = False
) -> Step | None:
    """The next step of whoever finishes a transaction, None if it can be closed; each depends on what the rows show
    (`states`, in moving order, and whether `marked`) and compares, so that several who go on do no harm. `way` is
    needed while it is open (`proposed_way`); an `owner` without requests under way leaves alone what has not moved."""
    last = len(states) - 1
    if is_committed(states):
        return _first(Action.CLEAR, [number for number in range(last) if marked[number]])
    if way is Way.FORWARD and _may_get_in(states):
        return _first(Action.MOVE, [number for number, state in enumerate(states) if state is RowState.BASE])
    if states[last] is RowState.BASE and not owner:
        return Step(Action.TAKE_BACK, last)
    for number in range(last):
        state, is_marked = states[number], marked[number]
        if (state is RowState.MOVED and is_marked) or (state is RowState.BASE and not owner):
            return Step(Action.TAKE_BACK, number)
        if state is RowState.FOLLOWED and is_marked:
            return Step(Action.CLEAR, number)
    return None


def _first(action: Action, numbers: Sequence[int]) -> Step | None:
    return Step(action, numbers[0]) if numbers else None
