"""Why a Hive table cannot become an Iceberg table in place, and what its owner can do; names of its partition keys."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.rows.hive_rows import HiveTable


def partition_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A key that is equal for two sets of partition values only if they are the same partition.

    Args:
        values: as Iceberg stores them.
    """
    return tuple(_bits(value) if isinstance(value, float) else value for value in values)


def _bits(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)


class Remedy(enum.Enum):
    """The remedy for a reason."""

    OPTION = "option"
    REWRITE = "rewrite"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Reason:
    """One reason: its text, and what helps."""

    text: str
    remedy: Remedy = Remedy.NOTHING


@dataclass(frozen=True)
class Refusal:
    """A table that cannot be migrated in place, and every reason that was found.

    Attributes:
        table: the Hive table.
        reasons: at least one.
    """

    table: HiveTable
    reasons: tuple[Reason, ...]

    @property
    def remedy(self) -> Remedy:
        """The remedy for all reasons together."""
        remedies = {reason.remedy for reason in self.reasons}
        for remedy in (Remedy.NOTHING, Remedy.REWRITE):
            if remedy in remedies:
                return remedy
        return Remedy.OPTION

    def error(self) -> UnsupportedError:
        """The error that names every reason."""
        texts = [reason.text for reason in self.reasons]
        text = texts[0] if len(texts) == 1 else "".join(f"\n  - {each}" for each in texts)
        hint = "\nWith --rewrite, Spark copies it into a new table." if self.remedy is Remedy.REWRITE else ""
        return UnsupportedError(
            f"Table {self.table} cannot be migrated to Iceberg in place: {text}{hint}\nNothing was changed."
        )


def of_texts(texts: Sequence[str], remedy: Remedy) -> list[Reason]:
    """Reasons against which the same helps."""
    return [Reason(text, remedy) for text in texts]
