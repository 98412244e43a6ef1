"""Data and delete files of branches that are gone, or cannot be read any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hms_iceberg.errors import IcebergError, StorageError
from hms_iceberg.maintenance.check.digests import file_key
from hms_iceberg.maintenance.check.file_check import count_records
from hms_iceberg.maintenance.repair.examination import DAMAGE, Examination
from hms_iceberg.maintenance.repair.steps import RepairStep
from hms_iceberg.maintenance.side_by_side import in_parallel
from hms_iceberg.spec.manifests.manifest_values import DataFile
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
    """By branch, the files of its newest snapshot that are lost. A file of several branches is looked at once.

    Raises:
        StorageError: the storage does not say whether a file is there.
    """
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
