"""What a manifest list says of a manifest (partition summaries, counts), made from and compared with the manifest.

Avro has no checksums, and a changed byte of a compressed block often still inflates. Whatever is said twice is
therefore compared when a manifest is read: how many files and rows it has of each status, and what kind of files.

Source: Iceberg specification, "Manifest Lists".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import CorruptManifestError
from hms_iceberg.spec.data_types import DoubleType, FloatType, IcebergType, StructType
from hms_iceberg.spec.manifests.manifest_values import (
    DataFileContent,
    FieldSummary,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.values.single_values import to_bytes

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


class PartitionSummary:
    """Gathers nulls, NaN and bounds of the partitions of a manifest, field by field."""

    def __init__(self, partition_type: StructType) -> None:
        self._fields = [_FieldStatistics(field.field_type) for field in partition_type.fields]
        # Two zeros of different sign are equal to a set, but not to a bound.
        self._distinct = not any(
            isinstance(field.field_type, FloatType | DoubleType) for field in partition_type.fields
        )
        self._seen: set[tuple[Any, ...]] = set()

    def add(self, partition: tuple[Any, ...]) -> None:
        """Take one file's partition into account."""
        if self._distinct:
            if partition in self._seen:
                return
            self._seen.add(partition)
        for statistics, value in zip(self._fields, partition, strict=False):
            statistics.add(value)

    def summaries(self) -> tuple[FieldSummary, ...]:
        """One summary per partition field, in the spec's order."""
        return tuple(statistics.summary() for statistics in self._fields)


class _FieldStatistics:
    def __init__(self, field_type: IcebergType) -> None:
        self._type = field_type
        self._is_floating = isinstance(field_type, FloatType | DoubleType)
        self._contains_null = False
        self._contains_nan = False
        self._lower: Any = None
        self._upper: Any = None

    def add(self, value: Any) -> None:
        if value is None:
            self._contains_null = True
        elif self._is_floating and math.isnan(value):
            self._contains_nan = True
        else:
            if self._lower is None or self._before(value, self._lower):
                self._lower = value
            if self._upper is None or self._before(self._upper, value):
                self._upper = value

    def summary(self) -> FieldSummary:
        lower = None if self._lower is None else to_bytes(self._type, self._lower)
        upper = None if self._upper is None else to_bytes(self._type, self._upper)
        return FieldSummary(self._contains_null, self._contains_nan, lower, upper)

    def _before(self, left: Any, right: Any) -> bool:
        if self._is_floating and left == right:
            # -0.0 comes before 0.0, so that a bound never hides one of the two.
            return math.copysign(1.0, left) < math.copysign(1.0, right)
        return bool(left < right)
