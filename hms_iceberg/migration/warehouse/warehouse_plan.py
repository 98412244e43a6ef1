"""The plan of a warehouse's migration, which can be kept as a file, looked at and changed."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hms_iceberg.errors import InvalidInputError

_FORMAT = 1


class State(enum.Enum):
    """The state of a table before its migration."""

    READY = "ready"
    CHOICES = "ready with choices"
    REWRITE = "to be rewritten"
    IMPOSSIBLE = "impossible"
    UNFINISHED = "begun"
    ICEBERG = "Iceberg already"
    BACKUP = "backup of a migration"


class Outcome(enum.Enum):
    """The outcome of a table's migration."""

    MIGRATED = "migrated"
    REWRITTEN = "rewritten"
    FAILED = "failed"
    LEFT = "left"


@dataclass(frozen=True)
class TablePlan:
    """One table of a plan.

    Attributes:
        table: its name.
        state: its state before the migration.
        reasons: why it is not ready.
        choices: options that make it ready, as `MigrationOptions` names them; empty unless it has choices.
        skip: whether to leave it alone; for its owner to set in the file.
        partitions, files, rows, bytes: its size, as far as it was examined.
        seconds: estimated duration of its migration.
        outcome: the outcome of its migration; None before it was tried.
        message: the message of a failure.
        took: seconds that its migration took.
    """

    table: str
    state: State
    reasons: tuple[str, ...] = ()
    choices: Mapping[str, Any] = field(default_factory=dict)
    skip: bool = False
    partitions: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    outcome: Outcome | None = None
    message: str = ""
    took: float = 0.0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        done = self.outcome in (Outcome.MIGRATED, Outcome.REWRITTEN)
        return done or self.skip or self.state in (State.ICEBERG, State.BACKUP)

    def to_json(self) -> dict[str, Any]:
        """The entry as an object of JSON."""
        values = asdict(self)
        return {**values, "state": self.state.value, "outcome": self.outcome.value if self.outcome else None}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TablePlan:
        """Reads an entry from its JSON object."""
        outcome = values.get("outcome")
        return cls(
            **{
                **values,
                "state": State(values["state"]),
                "outcome": Outcome(outcome) if outcome else None,
                "reasons": tuple(values.get("reasons", ())),
            }
        )


@dataclass(frozen=True)
class WarehousePlan:
    """The tables of a plan, in the order of their names."""

    tables: tuple[TablePlan, ...]

    @property
    def seconds(self) -> float:
        """Estimated seconds of all that is left, one table after the other."""
        return sum(each.seconds for each in self.tables if not each.is_done)

    def with_table(self, changed: TablePlan) -> WarehousePlan:
        """A copy of the plan in which one table's entry is replaced."""
        return replace(self, tables=tuple(changed if each.table == changed.table else each for each in self.tables))

    def write(self, path: Path) -> None:
        """Writes the plan to a file; a reader sees the old one or the new one."""
        content = {"format": _FORMAT, "tables": [each.to_json() for each in self.tables]}
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> WarehousePlan:
        """Reads a plan from its file.

        Raises:
            InvalidInputError: it is no plan.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                raise ValueError("it was written by another version of this package")
            return cls(tuple(map(TablePlan.from_json, content["tables"])))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(
                f"Cannot read the plan {path}: {error}. Delete it to have a new one made."
            ) from error


def shown_state(entry: TablePlan) -> str:
    """The outcome of a table, or its state if it has none yet."""
    if entry.skip:
        return "skipped"
    return entry.outcome.value if entry.outcome else entry.state.value


def shown_why(entry: TablePlan) -> str:
    """Why a table is not migrated, and the remedy; empty if there is nothing to say."""
    choices = ", ".join(f"{name}={value}" for name, value in entry.choices.items())
    reasons = [entry.message or " ".join(entry.reasons)] if not entry.outcome or entry.message else []
    return "\n".join([*filter(None, reasons), *([f"Chosen: {choices}"] if choices else [])])


def human_size(size: float) -> str:
    """Bytes as people read them: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
