"""Rows of a manifest list that contradict themselves, and files that a snapshot names twice."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.maintenance.check.digests import Listed, file_key, repeated
from hms_iceberg.maintenance.check.findings import check_owner
from hms_iceberg.maintenance.repair.examination import Examination, RepairStep
from hms_iceberg.maintenance.repair.main_branch import CURRENT, LAST_SEQUENCE_NUMBER, main_branch
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestEntry
from hms_iceberg.spec.metadata.metadata_json import metadata_from_dict
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage

_GZIP = b"\x1f\x8b"


def without_contradictions(
    pointer: TablePointer, damage: str, storage: Storage
) -> tuple[MetadataVersion, RepairStep] | None:
    """Mends references within the current version; None if that makes no valid version of this table."""
    location = pointer.metadata_location
    try:
        data = storage.read(location)
        members = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        done, lost = _put_right(members, pointer.properties.get(CURRENT), storage)
        version = MetadataVersion(location, metadata_from_dict(members))
    except (MissingFileError, CorruptMetadataError, ValueError, OSError, EOFError, KeyError, TypeError, AttributeError):
        return None
    if not done or check_owner(version, pointer, storage) is not None:
        return None
    return version, RepairStep("metadata", damage, " ".join(done), ", ".join(lost) or None)


def _put_right(members: dict[str, Any], row: str | None, storage: Storage) -> tuple[list[str], list[str]]:
    """Changes the references in a metadata file so that they agree; returns what was done, and what is lost."""
    done: list[str] = []
    lost: list[str] = []
    numbers = {each["snapshot-id"]: each.get("sequence-number", 0) for each in members["snapshots"]}
    refs = members.setdefault("refs", {})
    for name in [name for name, ref in refs.items() if ref["snapshot-id"] not in numbers and name != MAIN_BRANCH]:
        lost.append(f"the {refs[name]['type']} {name}")
        done.append(f"The {refs[name]['type']} {name} points at a snapshot that is not there, and goes.")
        del refs[name]
    main = main_branch(members, row, storage)
    if main is not None:
        done.append(main.put_into(members))
        lost += main.loses
    highest = max(numbers.values(), default=0)
    if members.get("format-version", 1) > 1 and highest > members.get(LAST_SEQUENCE_NUMBER, 0):
        members[LAST_SEQUENCE_NUMBER] = highest
        done.append(f"The last sequence number is {highest}, that of the newest snapshot.")
    return done, lost


_SHOWN = 5
Place = tuple[int, int]


@dataclass
class Duplicates:
    """Duplicate files, and the snapshots from which they are taken out."""

    # by snapshot, the place of each entry to drop: its manifest among those of the list, and its own
    places: dict[int, set[Place]] = field(default_factory=dict)
    # how many times each file is one too many, in the snapshot that has it most often
    files: dict[str, int] = field(default_factory=dict)
    # files of which deletes came between their entries, so that some rows are deleted in one only
    doubtful: set[str] = field(default_factory=set)

    @property
    def step(self) -> RepairStep:
        """The repair step that takes the second listing of these files away."""
        names = sorted(self.files)
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        damage = f"{len(names)} files are in the table more than once: {shown}."
        remedy = f"Each stays once; {sum(self.files.values())} entries are left out of {len(self.places)} snapshots."
        loses = None
        if self.doubtful:
            loses = f"rows of {len(self.doubtful)} files that were deleted before the file was added again"
        return RepairStep("duplicates", damage, remedy, loses)


def find_duplicates(examination: Examination) -> Duplicates:
    """The entries of live files that are one too many, in every snapshot that can be read whole. Of a data file the
    oldest entry stays, as all deletes apply to it; of a delete file the newest, which applies to most."""
    found = Duplicates()
    for snapshot_id in examination.lists:
        listed = examination.listed(snapshot_id)
        if listed is not None:
            _find(examination, snapshot_id, listed, found)
    return found


def _find(examination: Examination, snapshot_id: int, listed: Sequence[Listed], found: Duplicates) -> None:
    by_file: dict[bytes, list[tuple[Place, ManifestEntry]]] = {}
    for place, entry in _entries_at(examination, listed, repeated(listed, "file")):
        by_file.setdefault(file_key(entry.data_file), []).append((place, entry))
    again = {key: entries for key, entries in by_file.items() if len(entries) > 1}
    if not again:
        return
    deletes = _delete_numbers(examination, listed)
    for entries in again.values():
        location = entries[0][1].data_file.file_path
        ordered = sorted(entries, key=lambda each: _number(each[1]), reverse=not entries[0][1].data_file.is_data)
        found.places.setdefault(snapshot_id, set()).update(place for place, _ in ordered[1:])
        found.files[location] = max(len(entries) - 1, found.files.get(location, 0))
        first, last = _number(ordered[0][1]), _number(ordered[-1][1])
        if any(first <= number <= last and first < last for number in deletes) and entries[0][1].data_file.is_data:
            found.doubtful.add(location)


def _entries_at(
    examination: Examination, listed: Sequence[Listed], places: Sequence[Place]
) -> list[tuple[Place, ManifestEntry]]:
    wanted: dict[int, set[int]] = {}
    for manifest, number in places:
        wanted.setdefault(manifest, set()).add(number)
    return [
        ((manifest, number), entry)
        for manifest, numbers in wanted.items()
        for number, entry in enumerate(examination.entries.each(listed[manifest][0].manifest_path))
        if number in numbers
    ]


def _delete_numbers(examination: Examination, listed: Sequence[Listed]) -> set[int]:
    """The sequence numbers of live delete files."""
    return {
        _number(entry)
        for row, _ in listed
        if row.content is ManifestContent.DELETES
        for entry in examination.entries.each(row.manifest_path)
        if entry.is_live
    }


def _number(entry: ManifestEntry) -> int:
    return entry.sequence_number or 0
