"""How eager a commit is: what its attempts take for granted.

An optimistic attempt costs the fewest calls if nobody else commits, and is lost if others do. So the first one
may be optimistic, and every later one takes the table's lock before it looks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_iceberg.spec.table_properties import COMMIT_NUM_RETRIES

# How long a version counts as the current one.
VERIFIED_SECONDS = 1.0


class Approach(Enum):
    """How an attempt begins.

    Attributes:
        TRUST: the version at hand is changed as it is, since it was the current one a moment ago.
        LOOK: the newest version is loaded, and the lock taken when it comes to the swap.
        LOCK: the lock is taken, then the newest version loaded, so that nobody else can be first.
    """

    TRUST = "trust"
    LOOK = "look"
    LOCK = "lock"


@dataclass(frozen=True)
class Eagerness:
    """The approaches of one commit's attempts.

    Attributes:
        first: that of the first attempt; all others take the lock.
    """

    first: Approach = Approach.LOOK

    @classmethod
    def of(cls, first: Approach, properties: Mapping[str, str]) -> Eagerness:
        """That of a commit to a table with these properties: without retries nothing is risked."""
        return cls(first if COMMIT_NUM_RETRIES.of(properties) > 0 else Approach.LOCK)

    def approach(self, attempt: int) -> Approach:
        """How an attempt begins, counted from 1."""
        return self.first if attempt == 1 else Approach.LOCK

    def goes_on_at_once(self, attempt: int) -> bool:
        """Whether an attempt that was lost says nothing of other writers, so that the next one need not wait."""
        return self.approach(attempt) is Approach.TRUST


@dataclass(frozen=True)
class Freshness:
    """How fresh a version is that somebody holds of a table, and whether others commit to the table as well.

    Attributes:
        seen_at: when it was the current one (`time.monotonic`).
        is_contended: whether somebody else committed between the last two commits made from here.
    """

    seen_at: float = field(default_factory=time.monotonic)
    is_contended: bool = False

    @classmethod
    def of(cls, seen_at: float | None) -> Freshness:
        """That of a version that was the current one at a time, or nobody knows when."""
        return cls(-math.inf if seen_at is None else seen_at)

    def renewed(self) -> Freshness:
        """The same version was the current one just now."""
        return Freshness(is_contended=self.is_contended)

    def first_approach(self) -> Approach:
        """How a commit from here begins."""
        if self.is_contended:
            return Approach.LOCK
        return Approach.TRUST if time.monotonic() - self.seen_at < VERIFIED_SECONDS else Approach.LOOK
