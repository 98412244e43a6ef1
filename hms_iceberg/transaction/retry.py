"""When a commit is tried again: the policies built from `commit.retry.*` and `commit.status-check.*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    properties: Mapping[str, str], goes_on_at_once: Callable[[int], bool] = lambda attempt: False
) -> Retrying:
    """Retries what says of itself that it is retryable, with growing jittered waits; the last error is raised as is.

    Args:
        properties: the table's.
        goes_on_at_once: whether no wait follows the attempt of this number, counted from 1.
    """
    jittered = wait_random_exponential(
        multiplier=COMMIT_MIN_RETRY_WAIT_MS.of(properties) / 1000,
        max=COMMIT_MAX_RETRY_WAIT_MS.of(properties) / 1000,
        exp_base=_GROWTH,
    )
    return Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, IcebergError) and error.retryable),
        stop=stop_after_attempt(1 + max(0, COMMIT_NUM_RETRIES.of(properties)))
        | stop_after_delay(COMMIT_TOTAL_RETRY_TIME_MS.of(properties) / 1000),
        wait=lambda state: 0.0 if goes_on_at_once(state.attempt_number) else jittered(state),
        reraise=True,
    )


def status_policy(properties: Mapping[str, str]) -> Retrying:
    """Repeats a look at the table until it says yes or no, or the checks are used up and nobody knows (None)."""
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
