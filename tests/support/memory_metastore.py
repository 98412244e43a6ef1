"""A metastore in memory whose swaps can be told how to end: conflicts, lost answers, a server that dies."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from hms_iceberg.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    MetastoreUnavailableError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotAnIcebergTableError,
    TableAlreadyExistsError,
)
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer

Swap = Callable[[], None]
Outcome = Callable[["InMemoryMetastore", Identifier, Swap], None]


def conflict(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """The swap is refused although nobody else was there."""
    raise CommitFailedError(f"Cannot commit to {identifier}: scripted conflict.")


def lost_answer_after_success(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """The swap is made, and its answer lost."""
    swap()
    raise CommitStateUnknownError(f"Lost the answer to the swap of {identifier}.")


def lost_answer_after_failure(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """The request is lost on its way."""
    raise CommitStateUnknownError(f"Lost the request to swap {identifier}.")


def success_reported_as_conflict(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """The swap is made, repeated by somebody in between, and the repetition refused."""
    swap()
    raise CommitFailedError(f"Cannot commit to {identifier}: the table has been modified.")


def success_reported_as_existing(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """The create is made, repeated by the server, and the repetition refused."""
    swap()
    raise TableAlreadyExistsError(f"Table {identifier} exists already.")


def interrupt(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """The user presses Ctrl-C while the request is under way."""
    raise KeyboardInterrupt


def server_gone(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
    """No server answers; nothing was sent."""
    metastore.down = True
    raise MetastoreUnavailableError("No metastore answers.")


def after(action: Callable[[], None]) -> Outcome:
    """The swap is tried after `action`, a concurrent commit for example."""

    def outcome(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
        action()
        swap()

    return outcome


class InMemoryMetastore:
    """Implements `CatalogMetastore`. `script` holds how the next swaps end; an empty one lets them be made.

    `on_release` is called when a lease has ended. Without `compares`, a request may be carried out late.
    """

    def __init__(self) -> None:
        self.compares = True
        self.script: deque[Outcome] = deque()
        self.down = False
        self.loads = 0
        self.swaps = 0
        self.locks_taken = 0
        self.next_acquire_fails: BaseException | None = None
        self.on_release: Callable[[], None] = lambda: None
        self._namespaces: dict[str, dict[str, str]] = {}
        self._rows: dict[Identifier, TablePointer | None] = {}
        self._mutex = threading.RLock()
        self._locks: dict[Identifier, threading.Lock] = {}

    # ------------------------------------------------------------------------------------------ commits

    def load(self, identifier: Identifier) -> TablePointer:
        """The current pointer."""
        self._check_up()
        self.loads += 1
        if identifier not in self._rows:
            raise NoSuchTableError(f"Table {'.'.join(identifier)} does not exist.")
        row = self._rows[identifier]
        if row is None:
            name = ".".join(identifier)
            raise NotAnIcebergTableError(f"{name} is not an Iceberg table. Migrate it: hms-iceberg migrate {name}")
        return row

    def swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> None:
        """Compares and swaps, or ends as scripted."""
        self._check_up()
        self.swaps += 1
        outcome = self.script.popleft() if self.script else None
        if outcome is None:
            self._swap(identifier, base, new)
        else:
            outcome(self, identifier, lambda: self._swap(identifier, base, new))

    def _swap(self, identifier: Identifier, base: MetadataVersion | None, new: MetadataVersion) -> None:
        with self._mutex:
            self._require_namespace(identifier[0])
            exists = identifier in self._rows
            row = self._rows.get(identifier)
            if base is None:
                if exists:
                    raise TableAlreadyExistsError(f"Table {'.'.join(identifier)} exists already.")
            elif not exists:
                raise NoSuchTableError(f"Table {'.'.join(identifier)} does not exist.")
            elif row is None or row.metadata_location != base.location:
                raise CommitFailedError(f"Cannot commit to {'.'.join(identifier)}: the table moved on.")
            self._rows[identifier] = TablePointer(
                identifier,
                new.location,
                {"table_type": "ICEBERG", "metadata_location": new.location},
                new.metadata.location,
            )

    def shows(self, location: str, new: MetadataVersion) -> bool:
        """Whether the metadata file at `location` is `new`."""
        return location == new.location

    @contextmanager
    def lease(self, identifier: Identifier, properties: Mapping[str, str]) -> Iterator[InMemoryLease]:
        """Its lock is one of this process."""
        with self._mutex:
            lock = self._locks.setdefault(identifier, threading.Lock())
        lease = InMemoryLease(self, identifier, lock)
        try:
            yield lease
        finally:
            lease.release()
            self.on_release()

    def _check_up(self) -> None:
        if self.down:
            raise MetastoreUnavailableError("No metastore answers at memory://. Start it.")

    # ------------------------------------------------------------------------------------------ names

    def add_foreign_table(self, identifier: Identifier) -> None:
        """Adds a table that is not Iceberg's."""
        self._rows[identifier] = None

    def create_namespace(self, name: str, properties: Mapping[str, str]) -> None:
        """Creates a namespace."""
        self._check_up()
        if name in self._namespaces:
            raise NamespaceAlreadyExistsError(f"Namespace {name} exists already.")
        self._namespaces[name] = {"location": f"mem://warehouse/{name}.db", **properties}

    def list_namespaces(self) -> list[str]:
        """All names, sorted."""
        self._check_up()
        return sorted(self._namespaces)

    def check_new_name(self, identifier: Identifier) -> None:
        """Takes every name."""

    def namespace_properties(self, name: str) -> dict[str, str]:
        """A copy of the properties."""
        self._require_namespace(name)
        return dict(self._namespaces[name])

    def update_namespace(self, name: str, updates: Mapping[str, str], removals: Collection[str] = ()) -> None:
        """Sets and removes properties."""
        self._require_namespace(name)
        kept = {key: value for key, value in self._namespaces[name].items() if key not in set(removals)}
        self._namespaces[name] = {**kept, **updates}

    def drop_namespace(self, name: str) -> None:
        """Drops an empty namespace."""
        self._require_namespace(name)
        if any(identifier[0] == name for identifier in self._rows):
            raise NamespaceNotEmptyError(f"Namespace {name} still holds tables.")
        del self._namespaces[name]

    def _require_namespace(self, name: str) -> None:
        self._check_up()
        if name not in self._namespaces:
            raise NoSuchNamespaceError(f"Namespace {name} does not exist.")

    def list_iceberg_tables(self, namespace: str) -> list[Identifier]:
        """Iceberg tables only, sorted."""
        self._require_namespace(namespace)
        return sorted(identifier for identifier, row in self._rows.items() if identifier[0] == namespace and row)

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether an Iceberg table of that name exists."""
        self._check_up()
        return self._rows.get(identifier) is not None

    def drop_table(self, identifier: Identifier) -> None:
        """Drops the row."""
        self.load(identifier)
        del self._rows[identifier]

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Renames the row."""
        row = self.load(source)
        self._require_namespace(target[0])
        if target in self._rows:
            raise TableAlreadyExistsError(f"Table {'.'.join(target)} exists already.")
        del self._rows[source]
        self._rows[target] = replace(row, identifier=target)


class InMemoryLease:
    """Implements `Lease`."""

    blocks_others = False

    def __init__(self, metastore: InMemoryMetastore, identifier: Identifier, lock: threading.Lock) -> None:
        self.refuses_late = metastore.compares
        self._metastore = metastore
        self._identifier = identifier
        self._lock = lock
        self._is_held = False

    def load(self) -> TablePointer:
        """The current pointer."""
        return self._metastore.load(self._identifier)

    def acquire(self) -> None:
        """Waits for the lock."""
        self._metastore._check_up()
        error, self._metastore.next_acquire_fails = self._metastore.next_acquire_fails, None
        if error is not None:
            raise error
        if not self._is_held:
            self._is_held = self._lock.acquire()
            self._metastore.locks_taken += 1

    def swap(self, base: MetadataVersion | None, new: MetadataVersion) -> None:
        """Compares and swaps, or ends as scripted."""
        try:
            self._metastore.swap(self._identifier, base, new)
        except CommitFailedError:
            self.release()
            raise

    def release(self) -> None:
        """Frees the lock."""
        if self._is_held:
            self._is_held = False
            self._lock.release()
