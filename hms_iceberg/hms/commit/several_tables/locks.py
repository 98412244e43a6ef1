"""The locks of several tables: one request for those that are locked, and the comparison for the others."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.hms.commit.lock_choice import LockChoice
from hms_iceberg.hms.locking.writer_lock import WriterLock
from hms_iceberg.metastore import Identifier


class SeveralLocks:
    """The locks that a transaction on several tables takes, by lower-case name: the metastore grants a request's all at
    once, and this machine's are taken in one order, so that no two writers wait for each other."""

    def __init__(self, locks: LockChoice, properties: Mapping[Identifier, Mapping[str, str]]) -> None:
        self._locks = locks
        self._by_table = locks.new_locks({name: locks.mode(each) for name, each in properties.items()})

    @property
    def exclude_all(self) -> bool:
        """Whether they keep writers of other machines away from every table."""
        return all(each.excludes_all for each in self._by_table.values())

    @property
    def compare(self) -> bool:
        """Whether the server compares for every table, so that a late request is refused."""
        return all(self._locks.compares(each) for each in self._by_table.values())

    def of(self, identifier: Identifier) -> WriterLock:
        return self._by_table[identifier]

    def compares(self, identifier: Identifier) -> bool:
        """Whether the server is to compare for a table."""
        return self._locks.compares(self._by_table[identifier])

    def try_acquire(self) -> bool:
        """Takes them if all are free; otherwise some keep a place in their queue, until `acquire` or `release`."""
        return all(each.try_acquire() for each in self._distinct())

    def acquire(self) -> None:
        for each in self._distinct():
            each.acquire()

    def release(self) -> None:
        """Releases all; a second call does nothing."""
        for each in reversed(self._distinct()):
            each.release()

    def _distinct(self) -> list[WriterLock]:
        """Each lock once, those of this machine before the metastore's."""
        found = {id(each): each for _, each in sorted(self._by_table.items())}
        return sorted(found.values(), key=lambda each: each.excludes_all)
