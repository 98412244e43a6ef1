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


class Stand(Enum):
    """How far the row of one table has come."""

    BASE = "base"  # it shows the version that the transaction was made on
    MOVED = "moved"  # it shows the transaction's version
    FOLLOWED = "followed"  # somebody has committed on top of the transaction's version
    PASSED = "passed"  # it moved on without the transaction, which can never get in
    GONE = "gone"  # there is no such row, or it is another table's


_IN = (Stand.MOVED, Stand.FOLLOWED)


def stand_of(
    base: str, new: str, location: str, previous: str, is_marked: bool, history: Callable[[], Collection[str]]
) -> Stand:
    """How far a row has come that shows the metadata file `location`, and names the one before; `is_marked` if it has
    the transaction's mark, and `history` reads its metadata log, only if nothing else tells."""
    if location == new:
        return Stand.MOVED
    if location == base:
        return Stand.BASE
    if is_marked or previous == new:
        return Stand.FOLLOWED
    if previous == base:
        return Stand.PASSED
    return Stand.FOLLOWED if new in history() else Stand.PASSED


def shows_base(stand: Stand, deciding: Stand) -> bool:
    """Whether a reader sees a marked row's base instead of what it shows, given the stand of the deciding row: commits
    on top of it are hidden only while the transaction may be carried forward."""
    if deciding in (*_IN, Stand.GONE):
        return False
    return stand is Stand.MOVED or (stand is Stand.FOLLOWED and deciding is Stand.BASE)


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


def is_committed(stands: Sequence[Stand]) -> bool:
    """Whether the transaction is committed, given the stands of all rows, the one that decides last."""
    if stands[-1] is Stand.GONE:  # it tells nothing any more; what has moved everywhere else is kept
        return len(stands) > 1 and all(each in (*_IN, Stand.GONE) for each in stands[:-1])
    return stands[-1] in _IN


class Way(Enum):
    """Where those who finish a transaction take it; the first of them says so in a file, and all others follow."""

    FORWARD = "forward"
    BACK = "back"


def is_torn(stands: Sequence[Stand]) -> bool:
    """Whether others built on a part of the transaction, and another part of it can never get in."""
    return Stand.FOLLOWED in stands and not is_committed(stands) and not _may_get_in(stands)


def proposed_way(stands: Sequence[Stand]) -> Way:
    """Where an open transaction is to be taken: forward if others have built on a part of it, and the rest can follow.
    What others have committed is never undone."""
    return Way.FORWARD if Stand.FOLLOWED in stands and _may_get_in(stands) else Way.BACK


def _may_get_in(stands: Sequence[Stand]) -> bool:
    return not {Stand.PASSED, Stand.GONE} & set(stands)


def next_step(stands: Sequence[Stand], marked: Sequence[bool], way: Way | None, *, owner: bool = False) -> Step | None:
    """The next step of whoever finishes a transaction, None if it can be closed; each depends on what the rows show
    (`stands`, in moving order, and whether `marked`) and compares, so that several who go on do no harm. `way` is
    needed while it is open (`proposed_way`); an `owner` without requests under way leaves alone what has not moved."""
    last = len(stands) - 1
    if is_committed(stands):
        return _first(Action.CLEAR, [number for number in range(last) if marked[number]])
    if way is Way.FORWARD and _may_get_in(stands):
        return _first(Action.MOVE, [number for number, stand in enumerate(stands) if stand is Stand.BASE])
    if stands[last] is Stand.BASE and not owner:
        return Step(Action.TAKE_BACK, last)
    for number in range(last):
        stand, is_marked = stands[number], marked[number]
        if (stand is Stand.MOVED and is_marked) or (stand is Stand.BASE and not owner):
            return Step(Action.TAKE_BACK, number)
        if stand is Stand.FOLLOWED and is_marked:
            return Step(Action.CLEAR, number)
    return None


def _first(action: Action, numbers: Sequence[int]) -> Step | None:
    return Step(action, numbers[0]) if numbers else None
