"""Setting and removing table properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.spec.metadata.metadata_changes import (
    FORMAT_VERSION_PROPERTY,
    remove_properties,
    set_properties,
    split_properties,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import check_properties
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class SetProperties(Update):
    """Sets some table properties and removes others.

    Changes of different keys commute. A key that somebody else changed in the meantime, to another value than this
    change wants, is a conflict. The reserved key `format-version` upgrades the table's format.
    """

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        both = self.removals & self.updates.keys()
        if both:
            raise InvalidInputError(f"Cannot both set and remove the table properties {sorted(both)}. Do one of them.")
        check_properties(split_properties(self.updates)[0])
        if not all(isinstance(name, str) for name in self.removals):
            raise InvalidInputError(
                f"Cannot remove table properties: expected names, got {sorted(self.removals, key=str)}."
            )

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses keys that were changed concurrently to something else."""
        wanted: dict[str, str | None] = {**self.updates, **dict.fromkeys(self.removals)}
        for key, value in wanted.items():
            if key == FORMAT_VERSION_PROPERTY:
                continue  # an upgrade that somebody else made, or went beyond, is told when this one is applied
            before, now = start.properties.get(key), base.properties.get(key)
            if now not in (before, value):
                raise CommitConflictError(
                    f"Cannot {'remove' if value is None else f'set to {value!r}'} the property {key!r} of the table at "
                    f"{base.location}: it was {before!r} when this change was made, and a concurrent commit made it "
                    f"{now!r}. Refresh the table and decide again."
                )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the properties changed; the same object if nothing changes."""
        return remove_properties(set_properties(base, self.updates), self.removals)
