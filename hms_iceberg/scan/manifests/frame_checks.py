"""Decoded manifests against what their manifest lists say, on whole columns.

Source: Iceberg specification, "Manifest Lists".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_iceberg.errors import CorruptManifestError, IcebergError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.data_types import (
    IcebergType,
    NestedField,
    PrimitiveType,
    StringType,
)
from hms_iceberg.spec.manifests.manifest_list_avro import Count, check_contents, check_counts
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.values.single_values import from_bytes

# The column that says to which of several manifests an entry belongs.
MANIFEST = "manifest"


def check_frame(entries: pl.DataFrame, manifests: Sequence[ManifestFile], partitions: PartitionColumns) -> None:
    """Compares entries with the rows of the manifest list: counts, contents, and the range of partitions."""
    fields = _ordered_fields(entries, manifests[0], partitions)
    width = len(partitions.columns(manifests[0].partition_spec_id))
    found: list[dict[int, Count]] = [{} for _ in manifests]
    contents: list[set[int]] = [set() for _ in manifests]
    groups = _groups(entries, [name for name, _ in fields.values()])
    for number, status, kind, files, rows, *_ in groups:
        before = found[number].get(status, (0, 0))
        found[number][status] = before[0] + files, before[1] + rows
        contents[number].add(kind)
    for manifest, counts, kinds in zip(manifests, found, contents, strict=True):
        check_counts(manifest, counts)
        check_contents(manifest, kinds)
    for number, status, _, _, _, *ends in groups:
        summaries = manifests[number].partitions
        if status == int(ManifestEntryStatus.DELETED) or summaries is None or len(summaries) != width:
            continue
        for (place, (_, field)), low, high in zip(fields.items(), ends[::2], ends[1::2], strict=True):
            if low is not None:
                _check_range(manifests[number], summaries[place], field, low, high)


def _groups(entries: pl.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Entries by manifest, status and content: their number, their rows, and least and greatest value of columns."""
    content = entries["content"] if "content" in entries.columns else pl.Series([0]).new_from_index(0, entries.height)
    content = content.fill_null(0) if content.null_count() else content
    keys = [entries[MANIFEST], entries["status"], content]
    if entries.height and all(key.min() == key.max() for key in keys):
        # The usual case, for which grouping takes longer than all the rest.
        ends = [end for name in names for end in (entries[name].min(), entries[name].max())]
        return [(*(key[0] for key in keys), entries.height, entries["record_count"].sum(), *ends)]
    ranges = [
        each for name in names for each in (pl.min(name).alias(f"{name} low"), pl.max(name).alias(f"{name} high"))
    ]
    grouped = entries.group_by(MANIFEST, "status", content.alias("content"))
    return grouped.agg(pl.len(), pl.sum("record_count"), *ranges).rows()


def _ordered_fields(
    entries: pl.DataFrame, manifest: ManifestFile, partitions: PartitionColumns
) -> dict[int, tuple[str, NestedField]]:
    """The partition fields whose values can be compared with a manifest list: by their places, with their columns."""
    spec_id = manifest.partition_spec_id
    columns = zip(partitions.columns(spec_id), partitions.structs[spec_id].fields, strict=True)
    return {
        place: (name, field)
        for place, (name, field) in enumerate(columns)
        if _has_one_order(field.field_type) and name in entries.columns
    }


def _has_one_order(kind: IcebergType) -> bool:
    """Whether all who write stored values of a type order them alike."""
    return isinstance(kind, StringType) or (isinstance(kind, PrimitiveType) and kind.integer_bits > 0)


def _check_range(manifest: ManifestFile, summary: FieldSummary, field: NestedField, low: Any, high: Any) -> None:
    """Compares the partition values of a field in live entries with the manifest list."""
    least = _bound(field.field_type, summary.lower_bound, low, manifest)
    most = _bound(field.field_type, summary.upper_bound, high, manifest)
    if low < least or high > most:
        raise CorruptManifestError(
            f"Cannot read manifest {manifest.manifest_path}: its files have partition values {field.name} from {low!r} "
            f"to {high!r}, the manifest list says {least!r} to {most!r}. The file was damaged or replaced. Restore it, "
            "or go back to a snapshot that does not use it."
        )


def _bound(kind: IcebergType, bound: bytes | None, found: Any, manifest: ManifestFile) -> Any:
    """A bound of a summary; the value found if there is none or it is not of the kind."""
    try:
        value = found if bound is None else from_bytes(kind, bound)
    except IcebergError as error:
        raise CorruptManifestError(
            f"Cannot read the partition summaries of manifest {manifest.manifest_path}: {error}"
        ) from error
    return value if isinstance(value, type(found)) else found
