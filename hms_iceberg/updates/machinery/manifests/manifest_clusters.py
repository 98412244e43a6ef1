"""Manifests put together and sorted by partition, of which every entry is copied as it is but for its status.

Decoding and encoding entries one by one costs most of it, and changes hardly a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hms_iceberg.lazy import pl
from hms_iceberg.scan.manifests.manifest_bytes import EntryBytes
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder, columnar_schema
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.avro_container import DEFAULT_CODEC, pack_blocks, read_container
from hms_iceberg.spec.manifests.manifest_values import ManifestEntryStatus, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.updates.machinery.manifests.manifest_splice import changed_fields, write_spliced
from hms_iceberg.updates.machinery.update import Workspace

_READERS = 8


def cluster_manifests(
    manifests: Sequence[ManifestFile],
    cluster_by: Sequence[str],
    base: TableMetadata,
    snapshot_id: int,
    workspace: Workspace,
) -> tuple[tuple[ManifestFile, ...], int] | None:
    """Manifests of the same live files, sorted by partition, nulls first, and of the target size.

    Args:
        manifests: of one content and partition spec.
        cluster_by: names of partition fields to sort by first.
        base: the table.
        snapshot_id: of the snapshot that they are written for.
        workspace: takes the new manifests.

    Returns:
        The new manifests and how many files they hold; None if entries have to be encoded anew: manifests of an
        older format, of several layouts, or of an unusual one.

    Raises:
        CorruptManifestError: a manifest cannot be read, or is not what its list says.
    """
    with ThreadPoolExecutor(_READERS, thread_name_prefix="iceberg-read") as pool:
        contents = list(pool.map(lambda each: workspace.read(each.manifest_path), manifests))
    partitions = partition_columns(base)
    read = list(zip(contents, manifests, strict=True))
    if len({columnar_schema(data, each, partitions) for data, each in read}) > 1:
        return None
    headers = [read_container(data, f"manifest {each.manifest_path}") for data, each in read]
    if any(header.text("format-version") != str(base.format_version) for header in headers):
        return None
    entries = EntryBytes.of(ManifestDecoder(read, partitions))
    if entries is None or not entries.has(changed_fields(base)):
        return None
    spec_id = manifests[0].partition_spec_id
    columns = dict(
        zip((field.name for field in base.spec_by_id(spec_id).fields), partitions.columns(spec_id), strict=True)
    )
    first = [columns[name] for name in cluster_by]
    order = [*first, *(column for column in columns.values() if column not in first)]
    files = entries.files.with_row_index("row").filter(pl.col("status") != int(ManifestEntryStatus.DELETED))
    files = files.with_columns(pl.lit(int(ManifestEntryStatus.EXISTING), files.schema["status"]).alias("status"))
    if order:
        files = files.sort(order, nulls_last=False, maintain_order=True)
    values = {name: files[name].to_list() for name in changed_fields(base)}
    packed = pack_blocks(entries.with_values(files["row"].to_numpy(), values), DEFAULT_CODEC)
    written = write_spliced(packed, files, manifests[0], headers[0].schema_json, snapshot_id, workspace, base)
    return written, len(files)
