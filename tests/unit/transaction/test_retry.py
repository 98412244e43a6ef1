"""How long a commit that was beaten waits before it tries again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_iceberg.errors import CommitFailedError
from hms_iceberg.transaction.outcome import commit_policy


def waits_of(
    properties: dict[str, str], error: CommitFailedError, at_once: Callable[[int], bool] = lambda attempt: False
) -> list[float]:
    """Seconds between the attempts of a commit that always loses."""
    waits: list[float] = []
    policy = commit_policy(properties, at_once)
    policy.sleep = waits.append

    def lose() -> None:
        raise error

    with pytest.raises(CommitFailedError):
        policy(lose)
    return waits


def test_one_that_loses_again_and_again_waits_longer_but_is_not_left_behind() -> None:
    waits = waits_of({}, CommitFailedError("another one was first"))
    assert len(waits) == 20
    assert all(wait <= 0.1 * 1.3**number for number, wait in enumerate(waits))
    assert len(set(waits)) > 10, "jittered"


def test_no_wait_is_longer_than_the_table_says() -> None:
    properties = {"commit.retry.num-retries": "40", "commit.retry.max-wait-ms": "150"}
    waits = waits_of(properties, CommitFailedError("another one was first"))
    assert len(waits) == 40 and 0.1 < max(waits) <= 0.15


def test_one_that_others_wait_for_does_not_wait() -> None:
    assert set(waits_of({}, CommitFailedError("the lock is taken"), lambda attempt: True)) == {0.0}
    waits = waits_of({}, CommitFailedError("the lock is taken"), lambda attempt: attempt == 1)
    assert (waits[0], len(set(waits)) > 10) == (0.0, True)
