"""The plan of a repair: what is damaged, what is done about it, and the metadata that comes out."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from hms_iceberg.encryption.encrypted_tables import refuse_encrypted
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance.check.findings import WrongSummary
from hms_iceberg.maintenance.check.summary_check import check_summary
from hms_iceberg.maintenance.repair.contradictions import find_duplicates, without_contradictions
from hms_iceberg.maintenance.repair.examination import Examination, RepairStep, examine
from hms_iceberg.maintenance.repair.lost_files import LostFiles, lost_files, without_lost_statistics, without_snapshots
from hms_iceberg.maintenance.repair.rebuilt_lists import described, rebuild_lists
from hms_iceberg.maintenance.repair.rebuilt_manifests import Rebuilt, encoded, rebuild_manifests
from hms_iceberg.maintenance.repair.whole_versions import (
    current_version,
    goes_on,
    in_words,
    lost_snapshots,
    names_elsewhere,
    newest_whole_version,
    version_after,
)
from hms_iceberg.maintenance.repair.wrong_bounds import mended_bounds
from hms_iceberg.metastore import MetadataVersion, TablePointer, TableRows
from hms_iceberg.spec.manifests.manifest_list_avro import encode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestEntry, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot, Summary
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Places, Storage
from hms_iceberg.table.needed_files.needed_by_others import files_of_others
from hms_iceberg.table.version_files import VersionDamage
from hms_iceberg.transaction.workspace import read_version

_RELISTED = "It is made anew from the manifests that the snapshot's summary counts."


@dataclass(frozen=True)
class RepairPlan:
    """The steps of a repair; `str()` describes them.

    Attributes:
        pointer: what the metastore's row says.
        base: the version that the repaired one follows; None if no whole one was found.
        metadata: the repaired metadata; that of `base` if nothing in it changes.
        files: the metadata files to write, by location.
        gone: the files to take out of the table, by branch.
        steps: what is done.
        refused: what would lose something, and is only done if that is accepted.
        hopeless: damage that nothing can be done about.
    """

    pointer: TablePointer
    base: MetadataVersion | None
    metadata: TableMetadata | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    gone: Mapping[str, LostFiles] = field(default_factory=dict)
    steps: tuple[RepairStep, ...] = ()
    refused: tuple[RepairStep, ...] = ()
    hopeless: tuple[RepairStep, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not (self.steps or self.refused or self.hopeless)

    @property
    def swaps(self) -> bool:
        """Whether the table gets a new version before files are taken out of it."""
        return any(step.kind != "files" for step in self.steps)

    def __str__(self) -> str:
        name = ".".join(self.pointer.identifier)
        if self.is_sound:
            return f"{name}: nothing to repair"
        lines = [f"{name}: {len(self.steps)} repairs"]
        lines += [f"- {step}" for step in self.steps]
        lines += [f"- only with accepted loss: {step}" for step in self.refused]
        lines += [f"- {step}" for step in self.hopeless]
        return "\n".join(lines)


def plan_repair(
    pointer: TablePointer,
    storage: Storage,
    unreached: VersionDamage | None = None,
    rows: TableRows | None = None,
    *,
    accept_loss: bool = False,
    record_counts: bool = False,
) -> RepairPlan:
    """Looks at a table and plans its repair; nothing is written.

    Args:
        pointer: what the metastore's row says.
        storage: where the table's files are.
        unreached: what keeps readers of a table in a folder from the version that `pointer` names.
        rows: the metastore's tables, whose files are not taken for lost ones; None if it does not tell of them.
        accept_loss: whether steps are taken that lose something.
        record_counts: also open every live file, which finds damage that leaves its size.

    Raises:
        StorageError: the storage does not let a file be read, which says nothing about the file.
        UnsupportedError: the table is encrypted.
    """
    remedy = "What is damaged there may have been changed on purpose. Look with `check`, and restore the files."
    refuse_encrypted(pointer.properties, ".".join(pointer.identifier), "Cannot repair table", remedy)
    return _Planner(pointer, storage, accept_loss, rows).plan(unreached, record_counts)


class _Planner:
    def __init__(self, pointer: TablePointer, storage: Storage, accept_loss: bool, rows: TableRows | None) -> None:
        self._rows = rows
        self._pointer = pointer
        self._storage = storage
        self._accept_loss = accept_loss
        self._steps: list[RepairStep] = []
        self._refused: list[RepairStep] = []
        self._hopeless: list[RepairStep] = []
        self._files: dict[str, bytes] = {}
        self._id = uuid.uuid4()
        self._numbers = count()

    def plan(self, unreached: VersionDamage | None, record_counts: bool) -> RepairPlan:
        version = self._version()
        if version is None or (unreached is not None and not self._add(self._reached(unreached, version))):
            return self._made(None, None, {})
        version = self._checked_row(version)
        examination = examine(version.metadata, self._storage, partial(self._of_others, version))
        self._rebuild(examination)
        self._mend_bounds(examination, record_counts)
        metadata = self._with_sound_lists(examination)
        metadata = self._without_hopeless(metadata, examination)
        metadata = self._without_duplicates(metadata, examination)
        metadata = self._with_true_summaries(metadata, examination)
        metadata, lost = without_lost_statistics(metadata, examination)
        for step in lost:
            self._add(step)
        gone = {}
        for branch, found in lost_files(metadata, examination, record_counts).items():
            for step in found.hopeless:
                self._add(step)
            if found.files and self._add(found.step):
                gone[branch] = found
        return self._made(version, metadata, gone)

    def _of_others(self, version: MetadataVersion, locations: Iterable[str]) -> Collection[str]:
        """The files, of those given, that belong to other tables."""
        if self._rows is None:
            return ()
        return files_of_others(self._pointer.identifier, version, locations, self._storage, self._rows)

    def _made(
        self, base: MetadataVersion | None, metadata: TableMetadata | None, gone: Mapping[str, LostFiles]
    ) -> RepairPlan:
        steps, refused, hopeless = tuple(self._steps), tuple(self._refused), tuple(self._hopeless)
        return RepairPlan(self._pointer, base, metadata, self._files, gone, steps, refused, hopeless)

    def _add(self, step: RepairStep) -> bool:
        """Notes a step, and says whether it is to be taken."""
        if not step.is_possible:
            self._hopeless.append(step)
        elif step.loses and not self._accept_loss:
            self._refused.append(step)
        else:
            self._steps.append(step)
            return True
        return False

    # ------------------------------------------------------------------------------- metadata file and row

    def _version(self) -> MetadataVersion | None:
        version, damage = current_version(self._pointer, self._storage)
        if version is not None:
            return version
        mended = without_contradictions(self._pointer, damage, self._storage)
        if mended is not None:
            return mended[0] if self._add(mended[1]) else None
        newest = newest_whole_version(self._pointer, self._storage)
        if newest is None:
            self._add(RepairStep("metadata", damage, None))
            return None
        places = Places(self._storage)
        way = "gets its own newest version again," if names_elsewhere(self._pointer, places) else "goes back to"
        remedy = f"The table {way} {in_words(newest)}."
        taken = self._add(RepairStep("metadata", damage, remedy, lost_snapshots(newest, self._pointer, places)))
        return newest if taken else None

    def _reached(self, damage: VersionDamage, version: MetadataVersion) -> RepairStep:
        """The step by which readers of a table in a folder get its newest version again."""
        newest, loses = damage.newest.number, None
        if damage.reached is None and damage.named > newest:
            loses = f"every change of the table after version {newest}, up to version {damage.named}"
        elif damage.reached is not None and not goes_on(read_version(damage.reached.location, self._storage), version):
            loses = f"what the version {damage.reached.location} has, of which the newest one does not come"
        return RepairStep("version hint", str(damage), f"The table goes on from {in_words(version)}.", loses)

    def _checked_row(self, version: MetadataVersion) -> MetadataVersion:
        """The version that the metastore's row tells of, where it names one before that."""
        later = None if self._steps else version_after(version, self._pointer, self._storage)
        if later is not None:
            damage = f"The metastore's row names {in_words(version)}, and says that a later snapshot is current."
            self._add(RepairStep("metastore row", damage, f"The table goes on from {in_words(later)}."))
            return later
        current = version.metadata.current_snapshot_id
        true = {"uuid": version.uuid, "snapshot-count": str(len(version.metadata.snapshots))}
        true["current-snapshot-id"] = None if current is None else str(current)
        row = self._pointer.properties
        wrong = [f"{key} {row[key]}" for key, value in true.items() if key in row and value and row[key] != value]
        if wrong and not self._steps:
            damage = f"The metastore's row says {', '.join(wrong)}; the table's metadata does not."
            self._add(RepairStep("metastore row", damage, "The row is written anew from the metadata."))
        return version

    # ------------------------------------------------------------------------------------ lists, manifests

    def _rebuild(self, examination: Examination) -> None:
        """Rebuilds damaged manifest lists and manifests, as far as possible, and adds them to the examination."""
        lists = rebuild_lists(examination)
        manifests = rebuild_manifests(examination)
        for location, rebuilt in manifests.items():
            if self._add(self._of_manifest(examination, location, rebuilt)):
                examination.entries.make(location, rebuilt.entries)
        lists |= rebuild_lists(examination)
        for snapshot_id in lists:
            damage = examination.damaged_lists[snapshot_id]
            self._add(RepairStep("manifest list", damage, _RELISTED))
        for location, damage in examination.damaged_manifests.items():
            if location not in manifests and self._add(_dropped(examination.rows[location], damage)):
                examination.entries.make(location, ())
        for damage in examination.wrong_rows.values():
            self._add(RepairStep("manifest list", damage, "The manifest's row is counted anew."))

    def _mend_bounds(self, examination: Examination, record_counts: bool) -> None:
        for mended in mended_bounds(examination, record_counts):
            if self._add(mended.step):
                examination.entries.make(mended.location, mended.entries)
                examination.remade.add(mended.location)

    def _of_manifest(self, examination: Examination, location: str, rebuilt: Rebuilt) -> RepairStep:
        remedy = f"It is made anew {rebuilt.source}."
        return RepairStep("manifest", examination.damaged_manifests[location], remedy, rebuilt.loses)

    def _with_sound_lists(self, examination: Examination) -> TableMetadata:
        """The metadata whose snapshots have lists of whole manifests, if these could be had."""
        metadata = examination.metadata
        changed = {
            location: self._new_row(examination, row)
            for location, row in examination.rows.items()
            if location in examination.entries
            and (
                location in examination.damaged_manifests
                or location in examination.wrong_rows
                or location in examination.remade
            )
        }
        snapshots = []
        for snapshot in metadata.snapshots:
            listed = examination.lists.get(snapshot.snapshot_id)
            damaged = snapshot.snapshot_id in examination.damaged_lists
            if listed is not None and (damaged or any(each.manifest_path in changed for each in listed)):
                rows = [changed.get(each.manifest_path, each) for each in listed]
                kept = [row for row in rows if row is not None]
                examination.lists[snapshot.snapshot_id] = kept
                snapshot = replace(snapshot, manifest_list=self._write_list(metadata, snapshot, kept))
            snapshots.append(snapshot)
        return replace(metadata, snapshots=tuple(snapshots))

    def _without_duplicates(self, metadata: TableMetadata, examination: Examination) -> TableMetadata:
        """The metadata whose snapshots have each file once."""
        found = find_duplicates(examination)
        if not found.places or not self._add(found.step):
            return metadata
        made: dict[tuple[str, frozenset[int]], ManifestFile | None] = {}
        snapshots = []
        for snapshot in metadata.snapshots:
            places = found.places.get(snapshot.snapshot_id)
            if places:
                rows: list[ManifestFile | None] = []
                for number, row in enumerate(examination.lists[snapshot.snapshot_id]):
                    dropped = frozenset(entry for manifest, entry in places if manifest == number)
                    if dropped and (row.manifest_path, dropped) not in made:
                        made[row.manifest_path, dropped] = self._without_entries(examination, row, dropped)
                    rows.append(made[row.manifest_path, dropped] if dropped else row)
                kept = [row for row in rows if row is not None]
                examination.lists[snapshot.snapshot_id] = kept
                snapshot = replace(snapshot, manifest_list=self._write_list(metadata, snapshot, kept))
            snapshots.append(snapshot)
        return replace(metadata, snapshots=tuple(snapshots))

    def _without_entries(
        self, examination: Examination, row: ManifestFile, dropped: frozenset[int]
    ) -> ManifestFile | None:
        """A manifest without some of its entries; None if nothing is left."""
        old = examination.entries[row.manifest_path]
        entries = [entry for number, entry in enumerate(old) if number not in dropped]
        return self._written(examination, row, entries) if entries else None

    def _new_row(self, examination: Examination, row: ManifestFile) -> ManifestFile | None:
        """The new row of a manifest list for a rebuilt manifest; None if the manifest is left out as empty."""
        entries = examination.entries[row.manifest_path]
        if row.manifest_path in examination.wrong_rows and row.manifest_path not in examination.remade:
            return described(examination.metadata, row, entries)
        return self._written(examination, row, entries) if entries else None

    def _written(self, examination: Examination, row: ManifestFile, entries: list[ManifestEntry]) -> ManifestFile:
        """The row of a manifest of some entries, which is to be written."""
        location = self._location(examination.metadata, f"m{next(self._numbers)}.avro")
        self._files[location], made = encoded(examination.metadata, row, entries, location)
        examination.entries.write(made, self._files[location], entries)
        return made

    def _write_list(self, metadata: TableMetadata, snapshot: Snapshot, manifests: list[ManifestFile]) -> str:
        location = self._location(metadata, f"snap-{snapshot.snapshot_id}-{next(self._numbers)}.avro")
        self._files.pop(snapshot.manifest_list or "", None)  # one that this plan was to write
        version = metadata.format_version if snapshot.first_row_id is not None else min(metadata.format_version, 2)
        self._files[location], _ = encode_manifest_list(
            manifests,
            format_version=version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            next_row_id=snapshot.first_row_id if version >= 3 else None,
        )
        return location

    def _location(self, metadata: TableMetadata, name: str) -> str:
        return f"{metadata_folder(metadata.location, metadata.properties)}/repair-{self._id}-{name}"

    # ------------------------------------------------------------------------------- snapshots, summaries

    def _without_hopeless(self, metadata: TableMetadata, examination: Examination) -> TableMetadata:
        """The metadata without snapshots whose manifest list cannot be rebuilt."""
        lost = {id: damage for id, damage in examination.damaged_lists.items() if id not in examination.lists}
        if not lost:
            return metadata
        left, remedy, loses = without_snapshots(metadata, lost.keys())
        return left if self._add(RepairStep("manifest list", " ".join(lost.values()), remedy, loses)) else metadata

    def _with_true_summaries(self, metadata: TableMetadata, examination: Examination) -> TableMetadata:
        snapshots = []
        for snapshot in metadata.snapshots:
            found = examination.counts(snapshot.snapshot_id)
            wrong = [] if found is None else list(check_summary(snapshot, found))
            counts = {each.key: each for each in wrong if isinstance(each, WrongSummary)}
            if counts:
                said = ", ".join(f"{key}={each.recorded} and not {each.found}" for key, each in counts.items())
                damage = f"The summary of snapshot {snapshot.snapshot_id} says {said}."
                if self._add(RepairStep("summary", damage, "It is counted anew.")):
                    true = {key: str(each.found) for key, each in counts.items()}
                    snapshot = replace(snapshot, summary=Summary.of({**snapshot.summary, **true}))
            snapshots.append(snapshot)
        return replace(metadata, snapshots=tuple(snapshots))


def _dropped(manifest: ManifestFile, damage: str) -> RepairStep:
    """The step that leaves a manifest out of all lists."""
    files = _known(manifest.added_files_count, manifest.existing_files_count)
    rows = _known(manifest.added_rows_count, manifest.existing_rows_count)
    if manifest.content is ManifestContent.DELETES:
        loses = f"{files} delete files with {rows} deletes: the rows that they deleted come back"
    else:
        loses = f"{files} data files with {rows} rows"
    remedy = "What it held cannot be told: it is left out of the snapshots that have it."
    return RepairStep("manifest", damage, remedy, loses)


def _known(added: int | None, existing: int | None) -> str:
    return "an unknown number of" if added is None or existing is None else f"{added + existing:,}"


def checked_base(plan: RepairPlan) -> tuple[MetadataVersion, TableMetadata]:
    """The base version and repaired metadata of a plan; InvalidInputError if no whole version was found."""
    if plan.base is None or plan.metadata is None:
        name = ".".join(plan.pointer.identifier)
        raise InvalidInputError(f"Cannot repair table {name}: no whole version of its metadata was found. {plan}")
    return plan.base, plan.metadata
