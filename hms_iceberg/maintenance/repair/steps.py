"""What a repair does, a step for each damage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RepairStep:
    """One damage and what is done about it. `str()` tells all of it in a sentence or two.

    Attributes:
        kind: what is damaged: `metadata`, `metastore row`, `manifest list`, `manifest`, `duplicates`, `summary`,
            `statistics` or `files`.
        damage: what was found.
        remedy: what is done; None if nothing can be.
        loses: what is lost for good; None if nothing is.
    """

    kind: str
    damage: str
    remedy: str | None
    loses: str | None = None

    @property
    def is_possible(self) -> bool:
        """Whether anything can be done."""
        return self.remedy is not None

    def __str__(self) -> str:
        lost = f" LOST: {self.loses}." if self.loses else ""
        return f"{self.damage} {self.remedy or 'Nothing can be done about it.'}{lost}"
