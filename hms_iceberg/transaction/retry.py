"""How often a commit is tried, how long it waits, and how each attempt begins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
    wait_random_exponential,
)

from hms_iceberg.errors import IcebergError
from hms_iceberg.spec.table_properties import (
    COMMIT_MAX_RETRY_WAIT_MS,
    COMMIT_MIN_RETRY_WAIT_MS,
    COMMIT_NUM_RETRIES,
    COMMIT_TOTAL_RETRY_TIME_MS,
    STATUS_CHECK_MAX_WAIT_MS,
    STATUS_CHECK_MIN_WAIT_MS,
    STATUS_CHECK_NUM_RETRIES,
    STATUS_CHECK_TOTAL_TIMEOUT_MS,
)

# A conflict means that another writer got through, and a late one does not get through any better than a prompt one:
# with waits that double, one that lost ten times would sit there for a minute while the others go on.
_GROWTH = 1.3


def commit_policy(
    properties: Mapping[str, str],
    retries_without_waiting: Callable[[int], bool] = lambda attempt: False,
    *,
    retried: type[IcebergError] | None = None,
) -> Retrying:
    """Retries retryable errors with growing, jittered waits, or without one after an attempt (from 1) that says so.
    `retried` is another kind of error, for work that begins anew after it."""
    jittered = wait_random_exponential(
        multiplier=COMMIT_MIN_RETRY_WAIT_MS.of(properties) / 1000,
        max=COMMIT_MAX_RETRY_WAIT_MS.of(properties) / 1000,
        exp_base=_GROWTH,
    )
    return Retrying(
        retry=retry_if_exception(
            lambda error: (
                isinstance(error, IcebergError) and error.retryable if retried is None else isinstance(error, retried)
            )
        ),
        stop=stop_after_attempt(1 + max(0, COMMIT_NUM_RETRIES.of(properties)))
        | stop_after_delay(COMMIT_TOTAL_RETRY_TIME_MS.of(properties) / 1000),
        wait=lambda state: 0.0 if retries_without_waiting(state.attempt_number) else jittered(state),
        reraise=True,
    )


def status_policy(properties: Mapping[str, str]) -> Retrying:
    """Repeats a look at the table until it says yes or no; None if the tries are used up."""
    return Retrying(
        retry=retry_if_result(lambda found: found is None) | retry_if_exception_type(Exception),
        stop=stop_after_attempt(1 + max(0, STATUS_CHECK_NUM_RETRIES.of(properties)))
        | stop_after_delay(STATUS_CHECK_TOTAL_TIMEOUT_MS.of(properties) / 1000),
        wait=wait_exponential(
            multiplier=STATUS_CHECK_MIN_WAIT_MS.of(properties) / 1000,
            max=STATUS_CHECK_MAX_WAIT_MS.of(properties) / 1000,
        ),
        retry_error_callback=_unknown,
    )


def _unknown(state: RetryCallState) -> None:
    """The result if every check failed: unknown."""


# How long a version counts as the current one.
VERIFIED_SECONDS = 1.0


class Approach(Enum):
    """How an attempt begins: which version it builds on, and when it takes the lock."""

    TRUST = "trust"  # the version at hand is changed as it is, since it was the current one a moment ago
    LOOK = "look"  # the newest version is loaded, and the lock taken when it comes to the swap
    LOCK = "lock"  # the lock is taken, then the newest version loaded, so that nobody else can be first


@dataclass(frozen=True)
class Eagerness:
    """The approaches of one commit's attempts."""

    first: Approach = Approach.LOOK  # that of the first attempt; all others take the lock

    @classmethod
    def of(cls, first: Approach, properties: Mapping[str, str]) -> Eagerness:
        """The approaches of a commit to a table with these properties; without retries, the first takes the lock."""
        return cls(first if COMMIT_NUM_RETRIES.of(properties) > 0 else Approach.LOCK)

    def approach(self, attempt: int) -> Approach:
        """How an attempt begins, counted from 1."""
        return self.first if attempt == 1 else Approach.LOCK

    def retries_without_waiting(self, attempt: int) -> bool:
        """Whether an attempt that was lost says nothing of other writers, so that the next one need not wait."""
        return self.approach(attempt) is Approach.TRUST


@dataclass(frozen=True)
class Freshness:
    """When a version was last known to be current, and whether others commit to the table as well."""

    seen_at: float = field(default_factory=time.monotonic)  # when it was the current one (`time.monotonic`)
    is_contended: bool = False  # whether somebody else committed between the last two commits made from here

    @classmethod
    def of(cls, seen_at: float | None) -> Freshness:
        """The freshness of a version that was current at a time (`time.monotonic`), or at an unknown time (None)."""
        return cls(-math.inf if seen_at is None else seen_at)

    def renewed(self) -> Freshness:
        """Notes that the version was found to be the current one just now."""
        return Freshness(is_contended=self.is_contended)

    def first_approach(self) -> Approach:
        """How a commit from here begins."""
        if self.is_contended:
            return Approach.LOCK
        return Approach.TRUST if time.monotonic() - self.seen_at < VERIFIED_SECONDS else Approach.LOOK
