"""Setting and removing table properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_iceberg.errors import CommitConflictError, InvalidInputError
from hms_iceberg.spec.metadata import TableMetadata
from hms_iceberg.spec.metadata_changes import remove_properties, set_properties, upgrade_format_version
from hms_iceberg.updates.update import FileReader, Workspace

FORMAT_VERSION = "format-version"


@dataclass(frozen=True)
class SetProperties:
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
        for key, value in self.updates.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidInputError(
                    f"Table property {key!r}: expected text, got {value!r} of type {type(value).__name__}."
                )

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Refuses keys that were changed concurrently to something else."""
        wanted: dict[str, str | None] = {**self.updates, **dict.fromkeys(self.removals)}
        for key, value in wanted.items():
            before, now = start.properties.get(key), base.properties.get(key)
            if now not in (before, value):
                raise CommitConflictError(
                    f"Cannot {'remove' if value is None else f'set to {value!r}'} the property {key!r} of the table at "
                    f"{base.location}: it was {before!r} when this change was made, and a concurrent commit made it "
                    f"{now!r}. Refresh the table and decide again."
                )

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the properties changed; the same object where nothing changes."""
        updates = dict(self.updates)
        version = updates.pop(FORMAT_VERSION, None)
        metadata = base
        if version is not None:
            metadata = upgrade_format_version(metadata, _format_version(version, base))
        if updates and any(metadata.properties.get(key) != value for key, value in updates.items()):
            metadata = set_properties(metadata, updates)
        if any(key in metadata.properties for key in self.removals):
            metadata = remove_properties(metadata, self.removals)
        return metadata


def _format_version(text: str, base: TableMetadata) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(
            f"Table property 'format-version' of the table at {base.location}: expected 1, 2 or 3, got {text!r}."
        ) from None
