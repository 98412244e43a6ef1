"""What a manifest list says of a manifest, against what the manifest holds.

Avro has no checksums, and a changed byte of a compressed block often still inflates. Whatever is said twice is
therefore compared when a manifest is read: how many files and rows it has of each status, and what kind of files.

Source: Iceberg specification, "Manifest Lists".
"""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.spec.manifests.manifest_values import (
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)

_NAMES = {
    ManifestEntryStatus.EXISTING: "existing",
    ManifestEntryStatus.ADDED: "added",
    ManifestEntryStatus.DELETED: "deleted",
}
_CONTENTS = {
    ManifestContent.DATA: (DataFileContent.DATA,),
    ManifestContent.DELETES: (DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES),
}
# Files and rows of one status.
Count = tuple[int, int]


def check_counts(manifest: ManifestFile, found: Mapping[int, Count]) -> None:
    """Compares the entries of a manifest with what its manifest list says; what that leaves open is not compared.

    Args:
        manifest: the row of the manifest list.
        found: files and rows by the number of their status.

    Raises:
        CorruptManifestError: they differ, or there is a status that the specification does not have.
    """
    for status in found:
        if status not in _NAMES:
            raise _corrupt(manifest, f"an entry has status {status}, expected one of 0, 1 and 2")
    for status, name in _NAMES.items():
        files, rows = found.get(status, (0, 0))
        listed_files = getattr(manifest, f"{name}_files_count")
        listed_rows = getattr(manifest, f"{name}_rows_count")
        if listed_files is not None and listed_files != files:
            raise _corrupt(manifest, f"it has {files:,} {name} files, the manifest list says {listed_files:,}")
        if listed_rows is not None and listed_rows != rows:
            raise _corrupt(manifest, f"its {name} files have {rows:,} rows, the manifest list says {listed_rows:,}")


def check_contents(manifest: ManifestFile, contents: set[int]) -> None:
    """Compares the kinds of a manifest's files with what its manifest list says.

    Raises:
        CorruptManifestError: a data manifest has delete files, or the other way round.
    """
    other = contents.difference(_CONTENTS[manifest.content])
    if other:
        raise _corrupt(
            manifest, f"it holds files of content {min(other)}, the manifest list says {manifest.content.label}"
        )


def check_entries(manifest: ManifestFile, entries: list[ManifestEntry]) -> None:
    """Both checks over decoded entries.

    Raises:
        CorruptManifestError: the manifest is not what its manifest list says.
    """
    found: dict[int, Count] = {}
    for entry in entries:
        files, rows = found.get(entry.status, (0, 0))
        found[entry.status] = files + 1, rows + entry.data_file.record_count
    check_counts(manifest, found)
    check_contents(manifest, {entry.data_file.content for entry in entries})


def check_listed(manifest: ManifestFile) -> str | None:
    """The first contradiction between fields of one manifest list entry, in words; None if there is none."""
    numbers = {"manifest_length": manifest.manifest_length, "sequence_number": manifest.sequence_number}
    for name in _NAMES.values():
        files, rows = getattr(manifest, f"{name}_files_count"), getattr(manifest, f"{name}_rows_count")
        numbers |= {f"{name}_files_count": files, f"{name}_rows_count": rows}
        if files == 0 and rows:
            return f"it has {rows:,} {name} rows in no file"
    for field, number in numbers.items():
        if number is not None and number < 0:
            return f"its {field} is {number:,}"
    return None if manifest.manifest_path else "its location is empty"


def _corrupt(manifest: ManifestFile, what: str) -> CorruptManifestError:
    return CorruptManifestError(
        f"Cannot read manifest {manifest.manifest_path}: {what}. The file was damaged or replaced. Restore it, or go "
        "back to a snapshot that does not use it."
    )
