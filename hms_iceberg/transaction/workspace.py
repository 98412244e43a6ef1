"""The files of one transaction: recorded when created, deleted when the outcome is certain and leaves them unused."""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, TypeVar, cast

from hms_iceberg.errors import FileAlreadyExistsError
from hms_iceberg.storage import Storage

T = TypeVar("T")
logger = logging.getLogger(__name__)


class FileWorkspace:
    """Creates files for updates and remembers which attempt uses which.

    A file created within `once` belongs to every attempt that asks for the same key; every other file belongs to the
    attempt that was running. Files that were written before (data files) are `track`ed and belong to all attempts, but
    those that release them.
    """

    def __init__(self, storage: Storage, clock_ms: Callable[[], int] | None = None) -> None:
        self.storage = storage
        self.commit_id = str(uuid.uuid4())
        self._clock_ms = clock_ms or (lambda: time.time_ns() // 1_000_000)
        self._created: dict[str, None] = {}
        self._tracked: dict[str, None] = {}
        self._used: set[str] = set()
        self._once: dict[Hashable, tuple[Any, frozenset[str]]] = {}
        self._numbers: Counter[str] = Counter()

    @property
    def created(self) -> tuple[str, ...]:
        """Locations of all files created so far, in order; tracked ones are not among them."""
        return tuple(self._created)

    def read(self, location: str) -> bytes:
        """The whole object at `location`."""
        return self.storage.read(location)

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._clock_ms()

    def next_number(self, kind: str) -> int:
        """0, 1, 2 … for each `kind` of file name."""
        self._numbers[kind] += 1
        return self._numbers[kind] - 1

    def create(self, location: str, data: bytes) -> None:
        """Writes a new file; it is recorded first, so that a write that fails half-way is cleaned up as well."""
        self._created[location] = None
        self._used.add(location)
        try:
            self.storage.create(location, data)
        except FileAlreadyExistsError:  # somebody else's file: never ours to delete
            del self._created[location]
            raise

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of the first successful `make` for `key`; its files are used by the current attempt."""
        if key not in self._once:
            before = set(self._created)
            result = make()
            self._once[key] = (result, frozenset(self._created.keys() - before))
        result, files = self._once[key]
        self._used |= files
        return cast(T, result)

    def release(self, location: str) -> None:
        """Says that the current attempt does not use a file after all."""
        self._used.discard(location)

    def track(self, location: str) -> None:
        """Notes a file that was written for this transaction, so that a certain failure deletes it."""
        self._tracked[location] = None
        self._used.add(location)

    def begin_attempt(self) -> None:
        """Starts anew with the files that the attempt uses; nothing is deleted yet."""
        self._used = set(self._tracked)

    def used(self) -> frozenset[str]:
        """The files that the current attempt uses."""
        return frozenset(self._used)

    def clean_up(self, committed: frozenset[str] | None) -> list[str]:
        """Deletes what the certain outcome leaves unused, and forgets it.

        Args:
            committed: what the committed attempt uses; None after a failure.

        Returns the locations deleted. A file that cannot be deleted is logged and left: the outcome stands.
        """
        doomed = [each for each in (*self._created, *self._tracked) if each not in (committed or ())]
        deleted = []
        for location in doomed:
            try:
                self.storage.delete(location)
                deleted.append(location)
            except Exception as error:
                logger.warning("Could not delete the unused file %s: %s", location, error)
        self._created.clear()
        self._tracked.clear()
        self._once.clear()
        return deleted

    def delete_quietly(self, location: str) -> None:
        """Deletes a file that nobody needs any more; a failure does not matter."""
        with suppress(Exception):
            self.storage.delete(location)
