"""Where the readers of a source have got to, kept in the table itself: each change of it is made exactly once.

A reader has a name, and an offset for each part of its source: the next one to read. The summary of the snapshot that
applies its events has the offsets of all parts under `hms_iceberg.offsets.<name>`, as JSON. The nearest ancestor that
has them tells, so that after a rollback older offsets are found, and events are applied again rather than lost. Since
that ancestor may expire, a table property of the same key says the last offsets of each branch, and of which snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hms_iceberg.errors import CommitConflictError, CorruptMetadataError, InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_definition import set_properties
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH, Snapshot
from hms_iceberg.updates.machinery.new_snapshot import parent_on
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace

OFFSETS = "hms_iceberg.offsets."
"""What the keys of a summary and of the table's properties begin with; the name of the reader follows."""


KNOWN_OFFSETS = "hms_iceberg.known-offsets."
"""What the keys of a statement's snapshot properties begin with that say what was applied before; they are not kept."""


def applied_offsets(metadata: TableMetadata, name: str, branch: str = MAIN_BRANCH) -> dict[str, int]:
    """The offsets that a reader has applied to a branch; empty if it has applied none. An InvalidInputError if the
    snapshots that say so have expired and the property does not tell of this history."""
    key = OFFSETS + name
    head = parent_on(metadata, branch)
    oldest = None
    for snapshot in metadata.ancestors_of(head.snapshot_id if head else None):
        if key in snapshot.summary:
            return _offsets(snapshot.summary[key], metadata, key)
        oldest = snapshot
    if oldest is None or oldest.parent_snapshot_id is None or key not in metadata.properties:
        return {}
    return _remembered(metadata, name, branch, oldest)


def _remembered(metadata: TableMetadata, name: str, branch: str, oldest: Snapshot) -> dict[str, int]:
    """The offsets by the property, if its snapshot is an expired ancestor of the oldest one that a branch has."""
    known = _last_applied(metadata, OFFSETS + name)
    if not known:
        return {}
    last = known.get(branch) or known.get(MAIN_BRANCH)
    if last is None or last.snapshot_id in metadata.snapshots_by_id or not last.is_before(oldest):
        last_known = "no other is known" if last is None else f"the last that is known are {last.offsets}"
        raise InvalidInputError(
            f"Cannot tell which offsets of {name!r} are in branch {branch!r} of the table at {metadata.location}: the "
            f"snapshots that say so have expired, and the branch was rolled back or made of an older snapshot "
            f"({last_known}). Find out how far the rows go, and go on from there under another name."
        )
    return dict(last.offsets)


@dataclass(frozen=True)
class _LastApplied:
    """The property's record of one branch: its offsets, the snapshot that has them, and the UUID of the table, since a
    table that is made like another may take its properties over."""

    table_uuid: str | None
    snapshot_id: int
    sequence_number: int
    timestamp_ms: int
    offsets: Mapping[str, int]

    def is_before(self, snapshot: Snapshot) -> bool:
        """Whether it was made before a snapshot; those of format version 1 have no sequence numbers."""
        if snapshot.sequence_number and self.sequence_number:
            return self.sequence_number < snapshot.sequence_number
        return self.timestamp_ms < snapshot.timestamp_ms


def _last_applied(metadata: TableMetadata, key: str) -> dict[str, _LastApplied]:
    """The last offsets of each branch, from the table property; empty without it."""
    text = metadata.properties.get(key)
    if text is None:
        return {}
    try:
        found = {
            branch: _LastApplied(
                each["table-uuid"],
                each["snapshot-id"],
                each["sequence-number"],
                each["timestamp-ms"],
                _checked(each["offsets"]),
            )
            for branch, each in json.loads(text).items()
        }
        return {branch: each for branch, each in found.items() if each.table_uuid == _uuid(metadata)}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _corrupt(metadata, key, text) from error


def _uuid(metadata: TableMetadata) -> str | None:
    return None if metadata.table_uuid is None else str(metadata.table_uuid)


def _offsets(text: str, metadata: TableMetadata, key: str) -> dict[str, int]:
    try:
        return _checked(json.loads(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise _corrupt(metadata, key, text) from error


def _checked(offsets: Any) -> dict[str, int]:
    found = {str(part): offset for part, offset in offsets.items()}
    if not all(type(offset) is int for offset in found.values()):
        raise TypeError("offsets are integers")
    return found


def _corrupt(metadata: TableMetadata, key: str, text: str) -> CorruptMetadataError:
    return CorruptMetadataError(
        f"The offsets {key!r} of the table at {metadata.location} cannot be read: {text!r}. Somebody has changed them; "
        "set them to what they were."
    )


def as_text(offsets: Mapping[str, int]) -> str:
    """Offsets as a snapshot's summary has them."""
    return json.dumps(dict(sorted(offsets.items())), separators=(",", ":"), ensure_ascii=False)


def is_applied(given: Mapping[str, int], applied: Mapping[str, int]) -> bool:
    """Whether a reader's offsets do not go beyond those that are applied."""
    return all(offset <= applied.get(part, -1) for part, offset in given.items())


@dataclass(frozen=True)
class SourceReader:
    """The reader of a source, and what it has read."""

    name: str
    offsets: Mapping[str, int]  # where it reads on, by part
    since: Mapping[str, int]  # where it began to read, by part, as far as it says so
    known: Mapping[str, int]  # the offsets that it believed to be applied when it was asked to apply more

    def check(self, applied: Mapping[str, int], table: str) -> None:
        """Refuses events of which some are applied already, or before which some are missing."""
        if applied != self.known:
            raise self._refused(table, f"its offsets were {dict(self.known)} a moment ago, and are {dict(applied)} now")
        for part, offset in self.offsets.items():
            if offset < applied.get(part, offset):
                raise self._refused(
                    table,
                    f"its offset of {part!r} is {offset}, and events up to {applied[part]} are applied already, while "
                    "other parts go beyond what is applied",
                )
        for part, start in self.since.items():
            if applied.get(part, start) != start:
                raise self._refused(
                    table, f"its events of {part!r} begin at {start}, and those up to {applied[part]} are applied"
                )

    def _refused(self, table: str, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"Cannot apply changes to table {table} from {self.name!r}: {why}. Events would be missing, or be applied "
            "twice. Load the table again, and read on from Table.applied_offsets."
        )


@dataclass(frozen=True)
class ApplyOffsets(Update):
    """Another update, once: it moves the offsets of a reader, and is left out where they have moved already. Each
    attempt looks, since a repeated call may race with a commit that nobody knows the outcome of."""

    update: Update  # makes one snapshot on the branch, whose summary has the offsets
    name: str
    before: Mapping[str, int]  # the offsets that the change was made for
    after: Mapping[str, int]
    branch: str = MAIN_BRANCH

    @property
    def new_files(self) -> tuple[DataFile, ...]:
        """The data files that the wrapped update adds."""
        return self.update.new_files

    def _is_in(self, metadata: TableMetadata) -> bool:
        return is_applied(self.after, applied_offsets(metadata, self.name, self.branch))

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Validates the wrapped change, unless its offsets are applied already."""
        if not self._is_in(base):
            self.update.validate(start, base, reader)

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The change, and the property that outlives its snapshot; nothing if the offsets are there, and the files
        are not needed."""
        if self._is_in(base):
            for file in self.new_files:
                workspace.release(file.file_path)
            return base
        now = applied_offsets(base, self.name, self.branch)
        if now != self.before:
            raise CommitConflictError(
                f"Cannot apply changes from {self.name!r} to ",
                base.location,
                f": its offsets were {dict(self.before)}, and a concurrent commit made them {now}. Two readers of one "
                "name are at work, or the branch was rolled back.",
            )
        made = self.update.apply(base, workspace)
        head = parent_on(made, self.branch)
        assert head is not None
        return set_properties(made, {OFFSETS + self.name: self._property(base, head)}, made.last_updated_ms)

    def _property(self, base: TableMetadata, head: Snapshot) -> str:
        last = _last_applied(base, OFFSETS + self.name)
        last = {branch: each for branch, each in last.items() if branch in base.refs}
        last[self.branch] = _LastApplied(
            _uuid(base),
            head.snapshot_id,
            head.sequence_number or 0,
            head.timestamp_ms,
            dict(sorted(self.after.items())),
        )
        shown = {
            branch: {
                "table-uuid": each.table_uuid,
                "snapshot-id": each.snapshot_id,
                "sequence-number": each.sequence_number,
                "timestamp-ms": each.timestamp_ms,
                "offsets": dict(each.offsets),
            }
            for branch, each in sorted(last.items())
        }
        return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def moved_by(
    properties: Mapping[str, str], metadata: TableMetadata, branch: str
) -> tuple[dict[str, str], Callable[[Update], Update] | None]:
    """The properties of a statement's snapshot, and if they move a reader's offsets what makes the update do so."""
    kept = {key: value for key, value in properties.items() if not key.startswith(KNOWN_OFFSETS)}
    for known in properties.keys() - kept.keys():
        name = known[len(KNOWN_OFFSETS) :]
        before = _offsets(properties[known], metadata, known)
        after = _offsets(kept.get(OFFSETS + name, "{}"), metadata, OFFSETS + name)
        return kept, partial(_moved, name=name, before=before, after=after, branch=branch)
    return kept, None


def _moved(update: Update, name: str, before: Mapping[str, int], after: Mapping[str, int], branch: str) -> ApplyOffsets:
    return ApplyOffsets(update, name, before, after, branch)
