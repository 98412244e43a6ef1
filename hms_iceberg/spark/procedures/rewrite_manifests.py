"""Manifests of one partition spec written anew, sorted by partition and of the table's target size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spark.procedures.procedure import TABLE, Call, Column, Parameter, Procedure, Row
from hms_iceberg.spec.manifests.manifest import ManifestContent, ManifestFile
from hms_iceberg.spec.partitioning import PartitionSpec
from hms_iceberg.spec.table_properties import int_property
from hms_iceberg.table import Table
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from hms_iceberg.updates.rewrite_manifests import RewriteManifests

_TARGET_SIZE = ("commit.manifest.target-size-bytes", 8 * 1024 * 1024)


def _rewrite_manifests(call: Call) -> list[Row]:
    table = call.table()
    spec = _spec(table, call.get("spec_id"))
    cluster_by = _cluster_by(spec, call.get("sort_by"))
    wanted = _worth_rewriting(table, spec)
    if not wanted:
        return [(0, 0)]

    def rewrite_if(manifest: ManifestFile) -> bool:
        return manifest.partition_spec_id == spec.spec_id and manifest.content in wanted

    update = RewriteManifests(rewrite_if, content=None, cluster_by=cluster_by)
    with table.transaction() as transaction:
        transaction.add(update)
    snapshot = table.metadata.snapshot_by_id(update.snapshot_id)
    summary: Mapping[str, str] = (snapshot.summary if snapshot else None) or {}
    return [(int(summary.get("manifests-replaced", 0)), int(summary.get("manifests-created", 0)))]


def _spec(table: Table, spec_id: int | None) -> PartitionSpec:
    if spec_id is None:
        return table.spec()
    specs = {spec.spec_id: spec for spec in table.metadata.partition_specs}
    if spec_id not in specs:
        raise InvalidInputError(f"Invalid spec id {spec_id}: the table has {', '.join(map(str, sorted(specs)))}.")
    return specs[spec_id]


def _worth_rewriting(table: Table, spec: PartitionSpec) -> set[ManifestContent]:
    """The kinds of manifests of which there are several, or one that is larger than the target."""
    snapshot = table.current_snapshot()
    sizes: dict[ManifestContent, list[int]] = {}
    for manifest in [] if snapshot is None else manifest_list_of(snapshot, table.storage):
        if manifest.partition_spec_id == spec.spec_id:
            sizes.setdefault(manifest.content, []).append(manifest.manifest_length)
    target = int_property(table.properties, _TARGET_SIZE)
    return {content for content, each in sizes.items() if len(each) > 1 or sum(each) > target}


def _cluster_by(spec: PartitionSpec, names: Sequence[str] | None) -> tuple[str, ...]:
    """The partition fields to sort files by first."""
    if names is None:
        return ()
    if not names:
        raise InvalidInputError("sort_by must not be empty when provided: name partition fields, or leave it out.")
    own = [field.name for field in spec.fields]
    unknown = [name for name in names if name not in own]
    if unknown:
        raise InvalidInputError(
            f"Cannot sort manifests by {', '.join(unknown)}: the partition fields of spec {spec.spec_id} are "
            f"{', '.join(own) or 'none'}."
        )
    return tuple(names)


REWRITE_MANIFESTS = Procedure(
    "rewrite_manifests",
    (
        TABLE,
        Parameter("use_caching", "boolean"),  # nothing is read twice here
        Parameter("spec_id", "int"),
        Parameter("sort_by", "array<string>"),
    ),
    (
        Column("rewritten_manifests_count", "int", nullable=False),
        Column("added_manifests_count", "int", nullable=False),
    ),
    _rewrite_manifests,
)
