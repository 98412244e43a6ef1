"""A manifest against its row in the manifest list: counts, sequence numbers, partition summaries.

Source: Iceberg specification, "Manifests", "Manifest Lists".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hms_iceberg.errors import IcebergError
from hms_iceberg.maintenance.check import findings as found
from hms_iceberg.maintenance.check.findings import Finding
from hms_iceberg.spec.data_types import IcebergType, UnknownType, UUIDType
from hms_iceberg.spec.manifests.manifest_values import (
    FieldSummary,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.values.single_values import from_bytes

_STATUSES = (
    (ManifestEntryStatus.ADDED, "added"),
    (ManifestEntryStatus.EXISTING, "existing"),
    (ManifestEntryStatus.DELETED, "deleted"),
)


def check_manifest(
    metadata: TableMetadata, manifest: ManifestFile, entries: Sequence[ManifestEntry]
) -> Iterator[Finding]:
    """Differences between a manifest's entries, with everything inherited, and its row in the manifest list."""
    yield from _counts(manifest, entries)
    yield from _sequence_numbers(manifest, entries)
    yield from _places(metadata, manifest, entries)
    yield from _partition_summaries(metadata, manifest, entries)


def _counts(manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> Iterator[Finding]:
    for status, word in _STATUSES:
        rows = [entry.data_file.record_count for entry in entries if entry.status is status]
        for field, count in ((f"{word}_files_count", len(rows)), (f"{word}_rows_count", sum(rows))):
            recorded = getattr(manifest, field)
            if recorded is not None and recorded != count:
                yield found.WrongManifestCount(manifest.manifest_path, field, recorded, count)


def _sequence_numbers(manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> Iterator[Finding]:
    own = manifest.sequence_number or 0
    for entry in entries:
        if not entry.is_live:
            continue
        data, file = entry.sequence_number or 0, entry.file_sequence_number or 0
        where = f"the file {entry.data_file.file_path}"
        if data > file:
            yield found.WrongSequenceNumber(where, f"its data sequence number is {data}, the file's own {file}")
        if file > own:
            yield found.WrongSequenceNumber(where, f"it is {file}, that of its manifest {manifest.manifest_path} {own}")
    lowest = min((entry.sequence_number or 0 for entry in entries if entry.is_live), default=None)
    if lowest is not None and (manifest.min_sequence_number or 0) > lowest:
        yield found.WrongSequenceNumber(
            f"the manifest {manifest.manifest_path}",
            f"its minimum is said to be {manifest.min_sequence_number}, it holds a live file of {lowest}",
        )


def _places(metadata: TableMetadata, manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> Iterator[Finding]:
    spec = metadata.specs_by_id.get(manifest.partition_spec_id)
    for entry in entries:
        file, reason = entry.data_file, None
        if file.is_data is not (manifest.content is ManifestContent.DATA):
            reason = f"it is a file of {file.content.name.lower()}, the manifest one of {manifest.content.label}"
        elif spec is None:
            reason = f"the table has no partition spec {manifest.partition_spec_id}"
        elif len(file.partition) != len(spec.fields):
            reason = f"its partition has {len(file.partition)} values, its spec {len(spec.fields)} fields"
        if reason is not None:
            yield found.MisplacedFile(manifest.manifest_path, file.file_path, reason)


def _partition_summaries(
    metadata: TableMetadata, manifest: ManifestFile, entries: Sequence[ManifestEntry]
) -> Iterator[Finding]:
    spec = metadata.specs_by_id.get(manifest.partition_spec_id)
    if spec is None or manifest.partitions is None or len(manifest.partitions) != len(spec.fields):
        return
    kinds = [field.field_type for field in spec.partition_type(metadata.schema()).fields]
    live = [entry.data_file for entry in entries if entry.is_live and len(entry.data_file.partition) == len(kinds)]
    for position, (field, kind, summary) in enumerate(zip(spec.fields, kinds, manifest.partitions, strict=True)):
        if isinstance(kind, UnknownType):
            continue  # the source column is gone: no filter asks for it, and writers lose its values
        try:
            bounds = _bounds(kind, summary)
        except IcebergError as error:
            bounds = None, None
            yield found.UnreadableFile(
                manifest.manifest_path, f"summary of {field.name!r} for the manifest", str(error)
            )
        for file in live:
            reason = _left_out(file.partition[position], summary, bounds)
            if reason is not None:
                yield found.WrongPartitionSummary(manifest.manifest_path, field.name, file.file_path, reason)


def _bounds(kind: IcebergType, summary: FieldSummary) -> tuple[Any, Any]:
    """Lower and upper bound as Python values; None if one is missing, or for UUIDs, whose order is another one in
    Python."""
    if isinstance(kind, UUIDType):
        return None, None
    low, high = summary.lower_bound, summary.upper_bound
    return (
        None if low is None else from_bytes(kind, low),
        None if high is None else from_bytes(kind, high),
    )


def _left_out(value: Any, summary: FieldSummary, bounds: tuple[Any, Any]) -> str | None:
    """Why a partition value is not within a summary; None where it is."""
    if value is None:
        return None if summary.contains_null else "its value is null, the summary says there is none"
    if isinstance(value, float) and value != value:
        return "its value is NaN, the summary says there is none" if summary.contains_nan is False else None
    low, high = bounds
    if (low is not None and value < low) or (high is not None and value > high):
        return f"its value is {value!r}, the summary says {low!r} to {high!r}"
    return None
