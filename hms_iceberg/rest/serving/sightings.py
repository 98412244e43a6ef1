"""Which version of a table this process saw last as the newest one. It may be outdated: whoever relies on it checks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hms_iceberg.bounded_cache import BoundedCache
from hms_iceberg.metastore import Identifier
from hms_iceberg.spec.places import Place
from hms_iceberg.transaction.outcome import VERIFIED_SECONDS

_SHARED_SECONDS = 60.0


@dataclass(frozen=True)
class _Sighting:
    """A version's metadata file, when it was the newest, and when somebody else was found to have changed the table.

    Attributes:
        own: tells the table's folders, as the metastore's row had them.
    """

    location: str
    own: Callable[[], Iterable[Place]]
    moment: float
    changed_by_others: float


class Sightings:
    """Metadata files of the newest versions of tables, as they were seen. Safe for threads."""

    def __init__(self) -> None:
        self._seen: BoundedCache[_Sighting] = BoundedCache(10_000)

    def note(
        self, identifier: Identifier, location: str, own: Callable[[], Iterable[Place]], made_from: str | None = None
    ) -> None:
        """Notes what is the newest version of a table now.

        Args:
            identifier: the table.
            location: the version's metadata file.
            own: tells the table's folders, as the metastore's row has them.
            made_from: the one that it was made from, if it was made here.
        """
        before, now = self._seen.get(identifier), time.monotonic()
        changed_by_others = -math.inf if before is None else before.changed_by_others
        if before is not None and before.location not in (location, made_from):
            changed_by_others = now
        self._seen.put(identifier, _Sighting(location, own, now, changed_by_others))

    def own_folders(self, identifier: Identifier, location: str) -> tuple[Place, ...]:
        """The folders of a table as its row told them together with a version's metadata file; none if nobody looked.

        Args:
            identifier: the table.
            location: the version's metadata file.
        """
        seen = self._seen.get(identifier)
        return tuple(seen.own()) if seen is not None and seen.location == location else ()

    def newest(self, identifier: Identifier) -> str | None:
        """The version that was the newest one a moment ago; None if nobody looked, or others change the table as well.

        A change that begins with an outdated version writes a metadata file in vain.
        """
        seen, now = self._seen.get(identifier), time.monotonic()
        if seen is None or now - seen.moment > VERIFIED_SECONDS or now - seen.changed_by_others < _SHARED_SECONDS:
            return None
        return seen.location
