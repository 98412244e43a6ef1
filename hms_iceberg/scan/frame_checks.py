"""Decoded manifests against what their manifest lists say, on whole columns.

Source: Iceberg specification, "Manifest Lists".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hms_iceberg.errors import CorruptManifestError, IcebergError
from hms_iceberg.lazy import pl
from hms_iceberg.scan.partition_columns import PartitionColumns
from hms_iceberg.spec.manifests.manifest import ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.manifests.manifest_counts import Count, check_contents, check_counts
from hms_iceberg.spec.types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)
from hms_iceberg.spec.values.single_values import from_bytes

# The column that says to which of several manifests an entry belongs.
MANIFEST = "manifest"
# Types whose stored values have one order for all who write them.
_ORDERED = (
    IntegerType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
    StringType,
)


def check_frame(entries: pl.DataFrame, manifests: Sequence[ManifestFile], partitions: PartitionColumns) -> None:
    """Compares entries with the rows of the manifest list: counts, contents, and the range of partitions.

    Args:
        entries: all entries, with the columns of the files and `MANIFEST`.
        manifests: the manifests that they are of.
        partitions: the table's partition columns.

    Raises:
        CorruptManifestError: a manifest is not what its manifest list says.
    """
    found: list[dict[int, Count]] = [{} for _ in manifests]
    contents: list[set[int]] = [set() for _ in manifests]
    content = pl.col("content").fill_null(0) if "content" in entries.columns else pl.lit(0)
    groups = entries.group_by(MANIFEST, "status", content.alias("content")).agg(pl.len(), pl.sum("record_count"))
    for number, status, kind, files, rows in groups.iter_rows():
        before = found[number].get(status, (0, 0))
        found[number][status] = before[0] + files, before[1] + rows
        contents[number].add(kind)
    for manifest, counts, kinds in zip(manifests, found, contents, strict=True):
        check_counts(manifest, counts)
        check_contents(manifest, kinds)
    _check_partitions(entries, manifests, partitions)


def _check_partitions(entries: pl.DataFrame, manifests: Sequence[ManifestFile], partitions: PartitionColumns) -> None:
    spec_id = manifests[0].partition_spec_id
    fields = partitions.structs[spec_id].fields
    names = partitions.columns(spec_id)
    ordered = [
        place
        for place, (name, field) in enumerate(zip(names, fields, strict=True))
        if isinstance(field.field_type, _ORDERED) and name in entries.columns
    ]
    if not ordered:
        return
    live = entries.filter(entries["status"] != int(ManifestEntryStatus.DELETED))
    ranges = live.group_by(MANIFEST).agg(
        *(pl.min(names[place]).alias(f"low{place}") for place in ordered),
        *(pl.max(names[place]).alias(f"high{place}") for place in ordered),
    )
    for row in ranges.iter_rows(named=True):
        manifest = manifests[row[MANIFEST]]
        summaries = manifest.partitions
        if summaries is None or len(summaries) != len(fields):
            continue
        for place in ordered:
            low, high, summary = row[f"low{place}"], row[f"high{place}"], summaries[place]
            if low is None:
                continue
            least = _bound(fields[place].field_type, summary.lower_bound, low, manifest)
            most = _bound(fields[place].field_type, summary.upper_bound, high, manifest)
            if low < least or high > most:
                raise CorruptManifestError(
                    f"Cannot read manifest {manifest.manifest_path}: its files have partition values "
                    f"{fields[place].name} from {low!r} to {high!r}, the manifest list says {least!r} to {most!r}. The "
                    "file was damaged or replaced. Restore it, or go back to a snapshot that does not use it."
                )


def _bound(kind: IcebergType, bound: bytes | None, found: Any, manifest: ManifestFile) -> Any:
    """A bound of a summary; the value found where there is none or it is not of the kind."""
    try:
        value = found if bound is None else from_bytes(kind, bound)
    except IcebergError as error:
        raise CorruptManifestError(
            f"Cannot read the partition summaries of manifest {manifest.manifest_path}: {error}"
        ) from error
    return value if isinstance(value, type(found)) else found
