"""Which lock a writer takes, and whether the server compares as well, by the settings of table, catalog and server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hms_iceberg.errors import ConfigurationError, UnsupportedError
from hms_iceberg.hms.commit.capability import Capability
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.locking.lock_settings import LockSettings
from hms_iceberg.hms.locking.table_lock import TableLock
from hms_iceberg.hms.locking.writer_lock import LocalLock, WriterLock
from hms_iceberg.hms.rows.namespaces import MOST_OF_A_LOCK, check_lockable
from hms_iceberg.metastore import Identifier
from hms_iceberg.spec.table_properties import LOCK_ENABLED

CATALOG_LOCK_ENABLED = f"iceberg.{LOCK_ENABLED.name}"
_MODES = ("true", "false", "auto")


@dataclass(frozen=True)
class LockChoice:
    """Decides whether the commits to a metastore take its lock, or compare and swap. `default` is `true`, `false`, or
    `auto` for no lock if the server can compare."""

    client: HmsClient
    capability: Capability
    settings: LockSettings
    default: str

    @classmethod
    def from_properties(cls, client: HmsClient, properties: Mapping[str, str]) -> LockChoice:
        default = properties.get(CATALOG_LOCK_ENABLED, properties.get(LOCK_ENABLED.name, "true"))
        return cls(
            client, Capability(client), LockSettings.from_properties(properties), _mode(default, CATALOG_LOCK_ENABLED)
        )

    def mode(self, properties: Mapping[str, str]) -> str:
        """Whether a table with these properties is locked: `true`, `false` or `auto`."""
        return _mode(properties.get(LOCK_ENABLED.name, self.default), LOCK_ENABLED.name)

    def check_name(self, identifier: Identifier, properties: Mapping[str, str]) -> None:
        """Refuses a new name for which the metastore could give no lock, if commits need locks."""
        if len(identifier[1]) <= MOST_OF_A_LOCK:
            return  # and nobody has to be asked
        if self.mode(properties) == "true" or not self.capability.compares_for_certain(identifier[0]):
            check_lockable(identifier)

    def new_lock(self, identifier: Identifier, mode: str) -> WriterLock:
        """A lock for one commit, not taken yet."""
        if mode != "true":
            if self.capability.compares_for_certain(identifier[0]):
                return LocalLock(str(self.client.pool), identifier, self.settings.timeout)
            if mode == "false":
                raise UnsupportedError(
                    f"Cannot commit to table {'.'.join(identifier)} without a lock ({LOCK_ENABLED}=false): the "
                    f"metastore at {self.client.pool} does not compare before it alters (HIVE-26882), so that a "
                    f"concurrent commit could be lost. Set {LOCK_ENABLED}=true for every writer, or upgrade it."
                )
        return self._table_lock([identifier])

    def new_locks(self, modes: Mapping[Identifier, str]) -> dict[Identifier, WriterLock]:
        """Locks for one commit to tables with such modes, not taken yet; one for all that the metastore is to lock."""
        alone = {name: self.new_lock(name, mode) for name, mode in modes.items() if mode != "true"}
        locked = [name for name in modes if name not in alone or alone[name].excludes_all]
        shared = self._table_lock(locked) if locked else None
        return {**alone, **({} if shared is None else dict.fromkeys(locked, shared))}

    def _table_lock(self, identifiers: Sequence[Identifier]) -> TableLock:
        if self.settings.compare:
            self.capability.compares_under_a_lock()  # not to be found out with the lock in hand
        (database, table), *more = identifiers
        return TableLock(self.client, database, table, self.settings, *more)

    def compares(self, lock: WriterLock) -> bool:
        """Whether the server is to compare: always without a lock, and with one if it is known to be able to."""
        return not lock.excludes_all or (self.settings.compare and self.capability.compares_under_a_lock())


def _mode(text: str, name: str) -> str:
    mode = text.strip().lower()
    if mode not in _MODES:
        raise ConfigurationError(f"Property {name!r}: expected true, false or auto, got {text!r}.")
    return mode
