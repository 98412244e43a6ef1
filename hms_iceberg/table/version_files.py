"""The version files of a table that is a folder: `v<V>.metadata.json`, and `version-hint.text`, which names the last.

Versions have no gaps, but for old ones that commits delete. The hint is written after the file that it names: if it
names one that is not there, the table's newest changes are gone, or somebody changed the hint. What is left is then not
taken for the table; nor does Iceberg Java.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import NamedTuple

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.storage import Storage

logger = logging.getLogger(__name__)

HINT = "version-hint.text"
_VERSION_FILE = re.compile(r"(?:^|/)v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?$")
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_NUMBER = re.compile(r"-?[0-9]{1,10}")


class VersionFile(NamedTuple):
    """The number of a version of a table in a folder, and the location of its file."""

    number: int
    location: str


class VersionDamage(NamedTuple):
    """The reason, as text, why readers of a table in a folder do not reach its newest version."""

    hint: str  # location of the version hint
    named: int  # the version that it names
    reached: VersionFile | None  # the last version from there on; None if the named one is not there
    newest: VersionFile  # the newest version that is there

    def __str__(self) -> str:
        if self.reached is None:
            return (
                f"The version hint {self.hint} names version {self.named}, which is not there: the newest file is "
                f"{self.newest.location}."
            )
        return (
            f"The version hint {self.hint} leads to {self.reached.location}, and not to {self.newest.location}: the "
            "versions in between are missing."
        )


class VersionFiles:
    """The version files in a metadata folder, which is given without a slash at its end."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder

    def current(self) -> VersionFile | None:
        """The version that the hint names, or a later one; the newest if no hint can be read; None without versions. A
        hint at a version that is not there, while others are, is a CorruptMetadataError."""
        hinted = self.hinted()
        if hinted is None:
            return self.newest()
        found = self._without_gap(hinted)
        damage = self.damage() if found is None else None
        if damage is not None:
            raise CorruptMetadataError(
                f"{damage} Restore the file of that version, or see what `hms-iceberg repair` would do."
            )
        return found

    def damage(self) -> VersionDamage | None:
        """The damage that keeps readers from the newest version; None for none. The hint names a version that is not
        there, or a version in between is missing."""
        hinted, newest = self.hinted(), self.newest()
        if hinted is None or newest is None:
            return None
        reached = self._without_gap(hinted)
        if reached is not None and reached.number >= newest.number:
            return None
        return VersionDamage(f"{self._folder}/{HINT}", hinted, reached, newest)

    def hinted(self) -> int | None:
        """The number in the hint; None if there is no hint, or none in it."""
        with suppress(MissingFileError):
            text = self._storage.read(f"{self._folder}/{HINT}").decode("ascii", "replace").strip()
            first = text.partition("\n")[0].strip()
            if _NUMBER.fullmatch(first):
                return int(first)
            logger.warning("The version hint %s/%s has no number in it: %r", self._folder, HINT, first[:40])
        return None

    def newest(self) -> VersionFile | None:
        """The highest version in the folder, whatever the hint says; None if there is none."""
        names = (_VERSION_FILE.search(file.location) for file in self._storage.list(self._folder))
        last = max((int(match[1]) for match in names if match), default=None)
        return None if last is None else self._without_gap(last)

    def existing(self, number: int) -> str | None:
        """Location of the file of a version; None if there is none."""
        candidates = (f"{self._folder}/v{number}{suffix}" for suffix in _SUFFIXES)
        return next((location for location in candidates if self._storage.exists(location)), None)

    def _without_gap(self, number: int) -> VersionFile | None:
        """The last version from one on without a gap; None if that one is not there."""
        found = None
        while (location := self.existing(number)) is not None:
            found = VersionFile(number, location)
            number += 1
        return found


def version_number(location: str) -> int | None:
    """The number in the name of a version file; None for another name."""
    match = _VERSION_FILE.search(location)
    return None if match is None else int(match[1])
