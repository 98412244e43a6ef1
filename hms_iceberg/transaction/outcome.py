"""The outcome of a commit's attempts, told by the newest version of the table.

What the metastore says of an attempt is not enough: a server may tell of its own success as a conflict. So an attempt
that is not known to be lost is looked for in the history of the newest version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Generic

from tenacity import Retrying

from hms_iceberg.metastore import TablePointer, V


class Outcome(Enum):
    """The outcome of a commit.

    Attributes:
        MADE: it is part of the table.
        LOST: it is not, and never will be; its files are deleted.
        UNKNOWN: nobody can tell; no file is deleted.
    """

    MADE = "made"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Newest(Generic[V]):
    """The newest version of a name, as somebody has just seen it."""

    location: str
    read: Callable[[str], V]  # reads it, if it is needed
    before: str = ""  # what the metastore's row names as the one before; empty if it names none

    @classmethod
    def at(cls, pointer: TablePointer, read: Callable[[str], V]) -> Newest[V]:
        """The version that a row points at, which is read when it is first needed."""
        return cls(
            pointer.metadata_location, lru_cache(1)(read), pointer.properties.get("previous_metadata_location", "")
        )

    @classmethod
    def of(cls, version: V) -> Newest[V]:
        """A version that was read already."""
        return cls(version.location, lambda _: version)

    @property
    def version(self) -> V:
        return self.read(self.location)

    def history(self) -> tuple[str, ...]:
        """Locations of metadata files, oldest first, as far as they are known; its own is the last."""
        return (*filter(None, self.version.previous or (self.before,)), self.location)


@dataclass(frozen=True, eq=False)
class Attempt(Generic[V]):
    """A swap that was asked for."""

    base: V | None
    new: V
    used: frozenset[str]  # the files created that `new` uses
    looks: Retrying  # how often to look what became of it. It is read from the properties before anything is sent.
    is_refused: bool = False  # the metastore said that it was not made, and so it is not under way any more
    refuses_late: bool = False  # the metastore refuses it once another version has taken the base's place; see `Lease`

    def outcome(self, newest: Newest[V] | None, shows: Callable[[str, V], bool]) -> Outcome:
        """The outcome, as the newest version shows it; None if there is no such name."""
        unless_pending = Outcome.LOST if self.is_refused else Outcome.UNKNOWN
        if newest is None:
            # It may have been made, and renamed since; but a create is refused for a name of another kind as well.
            return unless_pending if self.base is None else Outcome.UNKNOWN
        if shows(newest.location, self.new):
            return Outcome.MADE
        if self.base is not None and newest.location == self.base.location:
            return unless_pending
        version, history = newest.version, newest.history()
        follows_base = self.base is None or self.base.location in history
        after = history if self.base is None or not follows_base else history[history.index(self.base.location) + 1 :]
        # One metadata file follows another only once.
        if self.new.location in after or (follows_base and shows(after[0], self.new)):
            # The log of a file that somebody registered may name another that was there before.
            return Outcome.MADE if self.new.location in self.used else Outcome.UNKNOWN
        if self.base is None:
            # A create that is under way is made when the name is free again.
            return Outcome.UNKNOWN if version.uuid == self.new.uuid else unless_pending
        drawn = self.new.snapshot_ids - self.base.snapshot_ids
        # A REST server gives the metadata file a name of its own.
        is_drawn_here = not follows_base or self.new.location in self.used
        if is_drawn_here and version.uuid == self.new.uuid and drawn & version.snapshot_ids:
            return Outcome.MADE
        if follows_base:
            return Outcome.LOST if self.refuses_late else unless_pending
        return Outcome.UNKNOWN
