"""Rows that were read before, where the metastore's notifications prove that nothing has changed since.

Hive's `DbNotificationListener` numbers every change, in the transaction that makes it. To ask for the last number takes
a metastore a fraction of the time in which it puts a table's row together.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.errors import ConfigurationError, MetastoreError, MetastoreUnavailableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.metastore import Identifier, TablePointer

logger = logging.getLogger(__name__)

TRUST_NOTIFICATIONS = "iceberg.hive.trust-notifications"

_LISTENERS = "hive.metastore.transactional.event.listeners"
_LISTENER = "DbNotificationListener"
_STORE = "hive.metastore.rawstore.impl"
_MAY_ASK = "hive.metastore.event.db.notification.api.auth"
_KEPT_CHARACTERS = 64 * 2**20
_CHECKED_SECONDS = 60.0


@dataclass(frozen=True)
class _Kept:
    """A pointer, and the last change that the metastore knew of before its row was read."""

    pointer: TablePointer
    change: int


class UnchangedRows:
    """Pointers of tables whose rows are read again only if the metastore has changed. Safe for threads. A pointer is
    right while the number of the last change is what it was *before* its row was read: servers draw numbers one after
    the other until the change is committed (HIVE-16886, Hive 3). Changes past the listener (another server, a metastore
    in a session's process) go unseen, so users say by a property that there are none."""

    def __init__(self, client: HmsClient) -> None:
        self._client = client
        self._kept: BoundedCache[_Kept] = BoundedCache(_KEPT_CHARACTERS, _characters)
        self._checked = -math.inf
        self._is_numbered: bool | None = None

    def pointer(self, identifier: Identifier, read: Callable[[], TablePointer]) -> TablePointer:
        """The pointer of a table (by its lower-case name) as it is now; `read` reads it from the table's row."""
        if not self._numbers_changes():
            return read()
        change = self._client.last_change()
        kept = self._kept.get(identifier)
        if kept is not None and kept.change == change:
            return kept.pointer
        return self._kept.put(identifier, _Kept(read(), change)).pointer

    def _numbers_changes(self) -> bool:
        """Whether the server still numbers its changes; looked at now and then, as a server may be started anew."""
        if time.monotonic() - self._checked > _CHECKED_SECONDS:
            try:
                self.check()
                self._is_numbered = True
            except ConfigurationError as error:
                if self._is_numbered is None:
                    raise
                if self._is_numbered:
                    logger.warning("Every row is read from now on. %s", error)
                self._is_numbered = False
            self._checked = time.monotonic()
        return bool(self._is_numbered)

    def check(self) -> None:
        """Refuses a metastore that does not number its changes, or does not tell, with the setting that it needs."""
        wrong = (
            f"Property {TRUST_NOTIFICATIONS} cannot be used with the metastore at {self._client.pool}: {{}}. "
            f"{{}}, or leave the property out."
        )
        if (self._client.release() or (2,)) < (3,):
            raise ConfigurationError(wrong.format("Hive 2 may give two changes one number", "Use Hive 3 or newer"))
        listeners = self._client.config_value(_LISTENERS, "")
        if _LISTENER not in listeners:
            remedy = f"Set {_LISTENERS}=org.apache.hive.hcatalog.listener.{_LISTENER} on every server of the metastore"
            raise ConfigurationError(wrong.format(f"its {_LISTENERS} is {listeners!r}", remedy))
        store = self._client.config_value(_STORE, "")
        if not store.endswith(".ObjectStore"):
            said = f"its {_STORE} is {store!r}, which may tell of a change before it tells the row"
            raise ConfigurationError(wrong.format(said, f"Set {_STORE} to Hive's ObjectStore"))
        try:
            self._client.last_change()
        except MetastoreUnavailableError:
            raise
        except MetastoreError as error:
            said = f"it does not tell this user of changes ({error})"
            remedy = f"Make the user a proxy user of the metastore (hadoop.proxyuser.*) or set {_MAY_ASK}=false there"
            raise ConfigurationError(wrong.format(said, remedy)) from error


def _characters(kept: _Kept) -> int:
    return 200 + sum(len(key) + len(value) for key, value in kept.pointer.properties.items())
