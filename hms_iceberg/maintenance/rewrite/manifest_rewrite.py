"""Manifests of one partition spec written anew, sorted by partition and of the table's target size.

Source: Iceberg documentation, "Spark Procedures", `rewrite_manifests`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestFile
from hms_iceberg.spec.partitions.partition_specs import PartitionSpec
from hms_iceberg.spec.table_properties import MANIFEST_TARGET_SIZE_BYTES
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.rewrite_manifests import RewriteManifests


@dataclass(frozen=True)
class ManifestRewriteResult:
    """The result of rewriting manifests.

    Attributes:
        rewritten_manifests_count: manifests that went.
        added_manifests_count: manifests that took their place.
    """

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0


def rewrite_manifests(
    table: Table, *, spec_id: int | None = None, sort_by: Sequence[str] | None = None
) -> ManifestRewriteResult:
    """Puts the manifests of a partition spec together, so that planning reads fewer and leaves more of them out.

    Nothing is done for a kind of manifests, of data or of delete files, of which there is one that is not too large.

    Args:
        table: the table, which moves to its newest version.
        spec_id: the partition spec; the current one by default.
        sort_by: names of partition fields by which files are sorted first; as the spec has them by default.

    Returns:
        how many manifests were replaced, by how many; both 0 if nothing was worth it.

    Raises:
        InvalidInputError: the spec, or one of its fields, is not there.
        CommitFailedError, CommitStateUnknownError: see `TableTransaction.commit_transaction`.
    """
    table.refresh()
    spec = _spec(table, spec_id)
    cluster_by = _cluster_by(table, spec, sort_by)
    wanted = _worth_rewriting(table, spec)
    if not wanted:
        return ManifestRewriteResult()

    def rewrite_if(manifest: ManifestFile) -> bool:
        return manifest.partition_spec_id == spec.spec_id and manifest.content in wanted

    update = RewriteManifests(rewrite_if, content=None, cluster_by=cluster_by)
    with table.transaction() as transaction:
        transaction.add(update)
    snapshot = table.metadata.snapshot_by_id(update.snapshot_id)
    summary: Mapping[str, str] = (snapshot.summary if snapshot else None) or {}
    return ManifestRewriteResult(int(summary.get("manifests-replaced", 0)), int(summary.get("manifests-created", 0)))


def _spec(table: Table, spec_id: int | None) -> PartitionSpec:
    if spec_id is None:
        return table.spec()
    specs = {spec.spec_id: spec for spec in table.metadata.partition_specs}
    if spec_id not in specs:
        known = ", ".join(map(str, sorted(specs)))
        raise InvalidInputError(f"Invalid spec id {spec_id}: table {'.'.join(table.identifier)} has {known}.")
    return specs[spec_id]


def _cluster_by(table: Table, spec: PartitionSpec, names: Sequence[str] | None) -> tuple[str, ...]:
    """The partition fields to sort files by first."""
    if names is None:
        return ()
    if not names:
        raise InvalidInputError("sort_by must not be empty when provided: name partition fields, or leave it out.")
    own = [field.name for field in spec.fields]
    unknown = [name for name in names if name not in own]
    if unknown:
        raise InvalidInputError(
            f"Cannot sort manifests by {', '.join(unknown)}: the partition fields of spec {spec.spec_id} of table "
            f"{'.'.join(table.identifier)} are {', '.join(own) or 'none'}."
        )
    return tuple(names)


def _worth_rewriting(table: Table, spec: PartitionSpec) -> set[ManifestContent]:
    """The kinds of manifests of which there are several, or one that is larger than the target."""
    snapshot = table.current_snapshot()
    sizes: dict[ManifestContent, list[int]] = {}
    for manifest in [] if snapshot is None else manifest_list_of(snapshot, table.storage):
        if manifest.partition_spec_id == spec.spec_id:
            sizes.setdefault(manifest.content, []).append(manifest.manifest_length)
    target = MANIFEST_TARGET_SIZE_BYTES.of(table.properties)
    return {content for content, each in sizes.items() if len(each) > 1 or sum(each) > target}
