"""Drops from the metadata what is gone from storage: data and delete files, snapshots, statistics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from hms_iceberg.arrow.parallel import in_parallel
from hms_iceberg.errors import IcebergError, MissingFileError, StorageError
from hms_iceberg.maintenance.check.digests import file_key
from hms_iceberg.maintenance.check.file_check import count_records
from hms_iceberg.maintenance.check.statistics_check import partition_statistics_damage, statistics_damage
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination, RepairStep
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_snapshots import (
    remove_partition_statistics,
    remove_ref,
    remove_snapshots,
    remove_statistics,
    set_branch_snapshot,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.storage import Storage

_SHOWN = 5


@dataclass(frozen=True)
class LostFiles:
    """Files of a branch that are lost.

    Attributes:
        branch: the branch.
        files: the data files, delete files and vectors.
        hopeless: files with a wrong size that are whole all the same, about which nothing is done.
    """

    branch: str
    files: tuple[DataFile, ...]
    hopeless: tuple[RepairStep, ...] = ()

    @property
    def step(self) -> RepairStep:
        """The repair step for them."""
        names = sorted({file.file_path for file in self.files})
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        damage = f"Of the branch {self.branch}, {len(names)} files are not there, or damaged: {shown}."
        remedy = "They are taken out of the table, in a snapshot of its own."
        data = [file for file in self.files if file.is_data]
        deletes = [file for file in self.files if not file.is_data]
        lost = []
        if data:
            lost.append(f"{sum(file.record_count for file in data):,} rows of {len(data)} data files")
        if deletes:
            lost.append(
                f"{sum(file.record_count for file in deletes):,} deletes of {len(deletes)} delete files: "
                "the rows that they deleted come back"
            )
        return RepairStep("files", damage, remedy, " and ".join(lost))


def lost_files(metadata: TableMetadata, examination: Examination, record_counts: bool) -> dict[str, LostFiles]:
    """The files of each branch's newest snapshot that are gone or damaged; a file of several is looked at once."""
    heads = {name: _manifests(examination, ref.snapshot_id) for name, ref in metadata.refs.items() if ref.is_branch}
    unseen = _unseen(examination, list(dict.fromkeys(each for head in heads.values() for each in head)))
    states = in_parallel(
        lambda file: (file_key(file), _state(file, examination.storage, record_counts)), unseen, metadata.location
    )
    wrong = {key: state for key, state in states if state != "whole"}
    found = {}
    for name, head in heads.items() if wrong else ():
        known = [(file, wrong.get(file_key(file))) for file in _live(examination, head) if file_key(file) in wrong]
        lost = tuple(file for file, state in known if state == "lost")
        odd = [file for file, state in known if state == "odd"]
        if known:
            found[name] = LostFiles(name, lost, tuple(_odd(odd)))
    return found


def _manifests(examination: Examination, snapshot_id: int) -> list[str]:
    """The manifests of a snapshot; none if it is damaged."""
    return [row.manifest_path for row, _ in examination.listed(snapshot_id) or ()]


def _live(examination: Examination, manifests: Sequence[str]) -> Iterator[DataFile]:
    for location in manifests:
        yield from (entry.data_file for entry in examination.entries.each(location) if entry.is_live)


def _unseen(examination: Examination, manifests: Sequence[str]) -> Iterator[DataFile]:
    """The live files of manifests, each once."""
    seen: set[bytes] = set()
    for file in _live(examination, manifests):
        if (key := file_key(file)) not in seen:
            seen.add(key)
            yield file


def _state(file: DataFile, storage: Storage, record_counts: bool) -> str:
    """`whole`, `lost`, or `odd`: of another size, and readable all the same."""
    try:
        same_size = storage.length(file.file_path) == file.file_size_in_bytes
        if same_size and not record_counts:
            return "whole"
        rows = count_records(storage, file)
    except DAMAGE:
        return "lost"
    except StorageError:
        raise
    except IcebergError:
        return "lost"
    if rows != file.record_count:
        return "lost"
    return "whole" if same_size else "odd"


def _odd(files: Sequence[DataFile]) -> list[RepairStep]:
    return [
        RepairStep(
            "files",
            f"The file {file.file_path} has not the {file.file_size_in_bytes:,} bytes that its manifest says, and "
            f"{file.record_count:,} rows as it says: it was replaced by another one. Restore it.",
            None,
        )
        for file in files
    ]


def without_snapshots(metadata: TableMetadata, lost: Collection[int]) -> tuple[TableMetadata, str, str]:
    """The metadata without some snapshots, what was done, and what is lost, as sentences. Branches go back to the
    newest ancestor that is left, tags go."""
    done, loses = [], [f"the snapshots {', '.join(map(str, sorted(lost)))} for time travel"]
    for name, ref in list(metadata.refs.items()):
        if ref.snapshot_id not in lost:
            continue
        whole = [each for each in metadata.ancestors_of(ref.snapshot_id) if each.snapshot_id not in lost]
        if ref.is_branch and whole:
            metadata = set_branch_snapshot(metadata, whole[0].snapshot_id, name)
            done.append(f"the branch {name} goes back to snapshot {whole[0].snapshot_id}")
            loses.append(f"what the snapshots after {whole[0].snapshot_id} changed on the branch {name}")
        else:
            metadata = remove_ref(metadata, name)
            done.append(f"the {'branch' if ref.is_branch else 'tag'} {name} goes")
            loses.append(f"all rows on the branch {name}" if ref.is_branch else f"the tag {name}")
    told = f"; {'; '.join(done)}" if done else ""
    remedy = f"Nothing is known of what they held, so that they are taken out of the table{told}."
    return remove_snapshots(metadata, lost), remedy, "; ".join(loses)


def without_lost_statistics(
    metadata: TableMetadata, examination: Examination
) -> tuple[TableMetadata, list[RepairStep]]:
    """The metadata without missing or damaged statistics files, which can be computed again; a step for each."""
    steps, storage = [], examination.storage
    for file in metadata.statistics:
        wrong = _wrong(file.statistics_path, partial(statistics_damage, storage, file))
        if wrong is not None:
            metadata = remove_statistics(metadata, file.snapshot_id)
            steps.append(_step(wrong, "compute-table-stats"))
    for partitions in metadata.partition_statistics:
        counts = examination.counts(partitions.snapshot_id)
        wrong = _wrong(
            partitions.statistics_path,
            partial(partition_statistics_damage, storage, partitions, counts),
        )
        if wrong is not None:
            metadata = remove_partition_statistics(metadata, partitions.snapshot_id)
            steps.append(_step(wrong, "compute-partition-stats"))
    return metadata, steps


def _step(wrong: str, command: str) -> RepairStep:
    return RepairStep("statistics", wrong, f"The table no longer names it; `hms-iceberg {command}` makes another one.")


def _wrong(location: str, damage: Callable[[], str | None]) -> str | None:
    try:
        return damage()
    except MissingFileError:
        return f"The statistics file {location} is not there."
