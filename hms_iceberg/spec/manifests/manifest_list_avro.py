"""Manifest lists in Avro, both ways, and what they say of manifests.

Partition summaries and counts are made from the manifest, and compared with it when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, InvalidInputError
from hms_iceberg.spec.data_types import DoubleType, FloatType, IcebergType, StructType
from hms_iceberg.spec.manifests.avro_container import (
    DEFAULT_CODEC,
    AvroContainer,
    read_container,
    read_records,
    write_container,
)
from hms_iceberg.spec.manifests.manifest_layout import ManifestListLayout, manifest_list_layout
from hms_iceberg.spec.manifests.manifest_schema import manifest_list_schema
from hms_iceberg.spec.manifests.manifest_values import (
    DataFileContent,
    FieldSummary,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.places import Place
from hms_iceberg.spec.values.single_values import from_bytes, to_bytes

# A list that was damaged names a manifest twice, or some.
_MOST_REPEATS = 100


def encode_manifest_list(
    manifests: Iterable[ManifestFile],
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    next_row_id: int | None = None,
    codec: str = DEFAULT_CODEC,
) -> tuple[bytes, int | None]:
    """Writes a manifest list to memory, assigning sequence numbers and first row ids; gives the next free row id too
    (v3). Manifests without a sequence number get the commit's (0 in v1); they must be of this snapshot."""
    if format_version >= 3 and next_row_id is None:
        raise InvalidInputError("Cannot write a v3 manifest list without the table's next row id")
    first_row_id, free_row_id = next_row_id, next_row_id if format_version >= 3 else None
    records: list[dict[str, Any]] = []
    for manifest in manifests:
        manifest = _assign_sequence_number(manifest, snapshot_id, sequence_number if format_version >= 2 else 0)
        if format_version == 1 and manifest.content is not ManifestContent.DATA:
            raise InvalidInputError(f"Cannot list delete manifest {manifest.manifest_path} in a v1 manifest list")
        if free_row_id is not None and manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            manifest = replace(manifest, first_row_id=free_row_id)
            # Existing files count too: those of snapshots before v3 have no row ids yet.
            free_row_id += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        records.append(_manifest_record(manifest, format_version))
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
    }
    if format_version >= 2:
        metadata["sequence-number"] = str(sequence_number)
    if format_version >= 3:
        metadata["first-row-id"] = str(first_row_id)
    metadata["format-version"] = str(format_version)
    avro = manifest_list_schema(format_version)
    return write_container(avro.parsed, avro.text, records, codec, metadata), free_row_id


def decode_manifest_list(
    data: bytes, location: str = "", snapshot_id: int | None = None, *, checked: bool = True
) -> list[ManifestFile]:
    """Reads a manifest list of any version in the file's order; v1 rows get content data and sequence number 0. The
    list must be that of `snapshot_id` if it is given; `checked` refuses rows that contradict themselves."""
    what = f"manifest list {location}"
    try:
        container = read_container(data, what)
        layout = manifest_list_layout(container.schema_json, what)
        _check_snapshot(container, snapshot_id, what)
        records = read_records(container, layout.parsed, what)
        decoded = (_decode_manifest_file(record, layout) for record in records)
        manifests = list(with_few_repeats(decoded, what))
    except CorruptManifestError:
        raise
    except CorruptFileError as error:
        raise CorruptManifestError(str(error)) from error
    except (KeyError, ValueError, TypeError) as error:
        raise CorruptManifestError(f"Cannot read {what}: a row is damaged ({error})") from error
    for manifest in manifests:
        wrong = check_listed(manifest) if checked else None
        if wrong is not None:
            raise CorruptManifestError(
                f"Cannot read {what}: the row of {manifest.manifest_path!r} is damaged ({wrong})"
            )
    return manifests


def with_few_repeats(manifests: Iterable[ManifestFile], what: str) -> Iterator[ManifestFile]:
    """The manifests of a list; refuses one that names them again and again, as reading them could take any time."""
    named, repeats = set[Place](), 0
    for manifest in manifests:
        place = Place.of(manifest.manifest_path)
        repeats += place in named
        if repeats > _MOST_REPEATS:
            raise CorruptManifestError(
                f"Cannot read {what}: it names the manifest {manifest.manifest_path!r} and others more than "
                f"{_MOST_REPEATS} times too often. See what `hms-iceberg repair` would do"
            )
        named.add(place)
        yield manifest


def _check_snapshot(container: AvroContainer, snapshot_id: int | None, what: str) -> None:
    written = container.text("snapshot-id")
    if snapshot_id is not None and written is not None and written != str(snapshot_id):
        raise CorruptManifestError(f"Cannot read {what}: it is that of snapshot {written}, expected {snapshot_id}")


def _manifest_record(manifest: ManifestFile, format_version: int) -> dict[str, Any]:
    counts = {
        "added_files_count": manifest.added_files_count,
        "existing_files_count": manifest.existing_files_count,
        "deleted_files_count": manifest.deleted_files_count,
        "added_rows_count": manifest.added_rows_count,
        "existing_rows_count": manifest.existing_rows_count,
        "deleted_rows_count": manifest.deleted_rows_count,
    }
    missing = [name for name, value in counts.items() if value is None]
    if format_version >= 2 and missing:
        raise InvalidInputError(
            f"Cannot list manifest {manifest.manifest_path}: format v{format_version} requires {', '.join(missing)}; "
            "read the manifest's entries to count them"
        )
    summaries = manifest.partitions
    return {
        "manifest_path": manifest.manifest_path,
        "manifest_length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "content": int(manifest.content),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        **counts,
        "partitions": None if summaries is None else ("array", [_summary_record(summary) for summary in summaries]),
        "key_metadata": manifest.key_metadata,
        "first_row_id": manifest.first_row_id if manifest.content is ManifestContent.DATA else None,
    }


def _summary_record(summary: FieldSummary) -> dict[str, Any]:
    return {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_bound": summary.lower_bound,
        "upper_bound": summary.upper_bound,
    }


def _assign_sequence_number(manifest: ManifestFile, snapshot_id: int, sequence_number: int) -> ManifestFile:
    if manifest.sequence_number is not None:
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise InvalidInputError(
            f"Cannot list manifest {manifest.manifest_path} in snapshot {snapshot_id}: it has no sequence number, but "
            f"was added by snapshot {manifest.added_snapshot_id}"
        )
    smallest = manifest.min_sequence_number
    return replace(
        manifest,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if smallest is None else smallest,
    )


def _decode_manifest_file(record: Mapping[str, Any], layout: ManifestListLayout) -> ManifestFile:
    values = layout.values(record)
    summaries = values.pop("partitions", None)
    return ManifestFile(
        content=ManifestContent(values.pop("content", None) or 0),
        sequence_number=values.pop("sequence_number", None) or 0,
        min_sequence_number=values.pop("min_sequence_number", None) or 0,
        partitions=None if summaries is None else tuple(FieldSummary(**layout.summary(each)) for each in summaries),
        **values,
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
    """Compares the counts in a manifest list with a manifest's entries by status; absent counts are skipped."""
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
    """Refuses a data manifest with delete files, or the other way round."""
    other = contents.difference(_CONTENTS[manifest.content])
    if other:
        raise _corrupt(
            manifest, f"it holds files of content {min(other)}, the manifest list says {manifest.content.label}"
        )


def check_entries(manifest: ManifestFile, entries: list[ManifestEntry]) -> None:
    found: dict[int, Count] = {}
    for entry in entries:
        files, rows = found.get(entry.status, (0, 0))
        found[entry.status] = files + 1, rows + entry.data_file.record_count
    check_counts(manifest, found)
    check_contents(manifest, {entry.data_file.content for entry in entries})


def check_listed(manifest: ManifestFile) -> str | None:
    """The first contradiction between fields of one manifest list entry, for messages; None if there is none."""
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
        if self._distinct:
            if partition in self._seen:
                return
            self._seen.add(partition)
        for statistics, value in zip(self._fields, partition, strict=False):
            statistics.add(value)

    def add_summaries(self, summaries: Iterable[FieldSummary]) -> None:
        """Adds what is known of partitions: one summary per partition field, in the spec's order."""
        for statistics, summary in zip(self._fields, summaries, strict=False):
            statistics.add_summary(summary)

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

    def add_summary(self, summary: FieldSummary) -> None:
        self._contains_null |= summary.contains_null
        self._contains_nan |= bool(summary.contains_nan)
        for bound in (summary.lower_bound, summary.upper_bound):
            if bound is not None:
                self.add(from_bytes(self._type, bound))

    def summary(self) -> FieldSummary:
        lower = None if self._lower is None else to_bytes(self._type, self._lower)
        upper = None if self._upper is None else to_bytes(self._type, self._upper)
        return FieldSummary(self._contains_null, self._contains_nan, lower, upper)

    def _before(self, left: Any, right: Any) -> bool:
        if self._is_floating and left == right:
            # -0.0 comes before 0.0, so that a bound never hides one of the two.
            return math.copysign(1.0, left) < math.copysign(1.0, right)
        return bool(left < right)
