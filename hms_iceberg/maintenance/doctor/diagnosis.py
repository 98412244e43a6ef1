"""The doctor's diagnosis of one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Health(str, Enum):
    """The state that a check found; the values are the words that are shown."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was looked at.

    Attributes:
        subject: what it is about, in a word or two.
        state: how it is.
        said: what was found.
        remedy: what to do, a line that can be copied if there is one; None if nothing is to be done.
    """

    subject: str
    state: Health
    said: str
    remedy: str | None = None


def good(subject: str, said: str) -> Diagnosis:
    return Diagnosis(subject, Health.GOOD, said)


def doubtful(subject: str, said: str, remedy: str) -> Diagnosis:
    """The diagnosis of something that may do harm."""
    return Diagnosis(subject, Health.DOUBTFUL, said, remedy)


def bad(subject: str, said: str, remedy: str) -> Diagnosis:
    """The diagnosis of something that does not work."""
    return Diagnosis(subject, Health.BAD, said, remedy)
