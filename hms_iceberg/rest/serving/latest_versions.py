"""The latest version of each table that this process saw. It may be outdated: whoever relies on it checks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.metastore import Identifier
from hms_iceberg.spec.places import Place
from hms_iceberg.transaction.retry import VERIFIED_SECONDS

_SHARED_SECONDS = 60.0


@dataclass(frozen=True)
class _LatestVersion:
    """A version's metadata file, when it was the latest, and when another writer was last seen to have changed the
    table. `own` gives the table's folders, from the metastore's row."""

    location: str
    own: Callable[[], Iterable[Place]]
    moment: float
    changed_by_others: float


class LatestVersions:
    """Metadata files of the latest versions of tables. Safe for threads."""

    def __init__(self) -> None:
        self._seen: BoundedCache[_LatestVersion] = BoundedCache(10_000)

    def note(
        self, identifier: Identifier, location: str, own: Callable[[], Iterable[Place]], made_from: str | None = None
    ) -> None:
        """Notes the latest version of a table, and the version that it was made from, if it was made here."""
        before, now = self._seen.get(identifier), time.monotonic()
        changed_by_others = -math.inf if before is None else before.changed_by_others
        if before is not None and before.location not in (location, made_from):
            changed_by_others = now
        self._seen.put(identifier, _LatestVersion(location, own, now, changed_by_others))

    def own_folders(self, identifier: Identifier, location: str) -> tuple[Place, ...]:
        """The folders of a table, from the row that had this metadata file; empty if the row was not seen."""
        seen = self._seen.get(identifier)
        return tuple(seen.own()) if seen is not None and seen.location == location else ()

    def latest(self, identifier: Identifier) -> str | None:
        """The latest version as of a moment ago; None if nobody looked, or others change the table as well, when a
        change on it would write a metadata file in vain."""
        seen, now = self._seen.get(identifier), time.monotonic()
        if seen is None or now - seen.moment > VERIFIED_SECONDS or now - seen.changed_by_others < _SHARED_SECONDS:
            return None
        return seen.location
