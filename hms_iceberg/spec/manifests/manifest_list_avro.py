"""Manifest lists in Avro, both ways.

Writing assigns what manifests leave to the commit: sequence numbers, and in v3 the row ids. Reading accepts every
version and matches fields by their ids.

Source: Iceberg specification, "Manifest Lists", "First Row ID Assignment".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hms_iceberg.errors import CorruptFileError, CorruptManifestError, InvalidInputError
from hms_iceberg.spec.manifests.avro_container import (
    DEFAULT_CODEC,
    AvroContainer,
    read_container,
    read_records,
    write_container,
)
from hms_iceberg.spec.manifests.manifest_counts import check_listed
from hms_iceberg.spec.manifests.manifest_layout import ManifestListLayout, manifest_list_layout
from hms_iceberg.spec.manifests.manifest_schema import manifest_list_schema
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestContent, ManifestFile


def encode_manifest_list(
    manifests: Iterable[ManifestFile],
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    next_row_id: int | None = None,
    codec: str = DEFAULT_CODEC,
) -> tuple[bytes, int | None]:
    """Write a manifest list to memory, assigning what is left to the commit.

    Args:
        manifests: the snapshot's manifests, in order.
        format_version: the table's format version.
        snapshot_id: the snapshot the list is for.
        parent_snapshot_id: the snapshot before it, None for a first one.
        sequence_number: the commit's sequence number, given to manifests that have none (0 in v1).
        next_row_id: v3: the table's next row id, from which data manifests without row ids get theirs.
        codec: Avro block compression, Iceberg's or Avro's name.

    Returns:
        The file, and the first row id that the snapshot leaves free (v3; None before).

    Raises:
        InvalidInputError: a manifest without sequence number is of another snapshot, a v1 list would hold delete
            manifests, or a v3 list has no row id to start from.
    """
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
    """Read a manifest list of any version.

    Args:
        data: the Avro file.
        location: where it is stored, for messages.
        snapshot_id: whose list it is to be; None if that does not matter.
        checked: whether rows that contradict themselves are refused.

    Returns:
        The manifests in the file's order; what v1 does not store has its default (content data, sequence number 0).

    Raises:
        CorruptManifestError: the file cannot be read as a manifest list, or is that of another snapshot.
    """
    what = f"manifest list {location}"
    try:
        container = read_container(data, what)
        layout = manifest_list_layout(container.schema_json, what)
        _check_snapshot(container, snapshot_id, what)
        manifests = [_decode_manifest_file(record, layout) for record in read_records(container, layout.parsed, what)]
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
