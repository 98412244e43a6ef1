"""Which manifests may list files with matching rows, from the partition summaries in the manifest list.

Source: Iceberg specification, "Scan Planning" and "Manifest Lists" (field summary).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hms_iceberg.expressions.bound import BoundReference
from hms_iceberg.expressions.tree import AlwaysTrue, BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.metrics_filter import rows_may_match
from hms_iceberg.scan.partition_columns import PartitionColumns, decode_bounds
from hms_iceberg.spec.data_types import DoubleType, FloatType, StructType, UnknownType, UUIDType
from hms_iceberg.spec.manifests.manifest_values import FieldSummary, ManifestFile


def keep_manifests(
    manifests: Iterable[ManifestFile], projection: Callable[[int], BooleanExpression], partitions: PartitionColumns
) -> list[ManifestFile]:
    """The manifests that may hold a live file whose partition matches, in their order.

    Args:
        manifests: rows of a manifest list.
        projection: spec id to the predicate over the spec's partition tuples, bound to its partition type.
        partitions: the table's partition columns.
    """
    live = [manifest for manifest in manifests if manifest.has_live_files()]
    kept: set[int] = set()
    for spec_id in {manifest.partition_spec_id for manifest in live}:
        partitions.columns(spec_id)
        places = [place for place, manifest in enumerate(live) if manifest.partition_spec_id == spec_id]
        answers = manifests_may_match(
            projection(spec_id), partitions.structs[spec_id], [live[place] for place in places]
        )
        kept.update(place for place, answer in zip(places, answers, strict=True) if answer)
    return [manifest for place, manifest in enumerate(live) if place in kept]


def manifests_may_match(
    predicate: BooleanExpression, partition_type: StructType, manifests: Sequence[ManifestFile]
) -> list[bool]:
    """Of each manifest False only if certainly none of its partitions matches.

    Args:
        predicate: bound to the partition type, such as an inclusive projection.
        partition_type: of the manifests' partition spec.
        manifests: rows of a manifest list, all of that spec.
    """
    if isinstance(predicate, AlwaysTrue):
        return [True] * len(manifests)
    return rows_may_match(predicate, _PartitionSummaries(partition_type, manifests)).to_list()


class _PartitionSummaries:
    """What manifest lists say of the partition values in manifests; `ValueSummaries` for the rules.

    Without bounds all values are null or NaN, as the specification has it. Bounds of UUIDs are not used: Java orders
    UUIDs as two signed numbers, so that its bounds may exclude values that are there. Of a column that was dropped it
    says that there are no nulls: nothing is known of those.
    """

    def __init__(self, partition_type: StructType, manifests: Sequence[ManifestFile]) -> None:
        self._manifests = manifests
        self._places = {field.field_id: place for place, field in enumerate(partition_type.fields)}

    def __len__(self) -> int:
        return len(self._manifests)

    def lower(self, ref: BoundReference) -> pl.Series:
        """Lower bounds, comparable."""
        return self._bound(ref, 0)

    def upper(self, ref: BoundReference) -> pl.Series:
        """Upper bounds, comparable."""
        return self._bound(ref, 1)

    def bounds(self, ref: BoundReference) -> tuple[pl.Series, pl.Series]:
        """Both of them."""
        return self.lower(ref), self.upper(ref)

    def stored_bounds(self, field_id: int) -> tuple[pl.Series, pl.Series]:
        """Both of them as bytes."""
        summaries = self._of(field_id)
        lower = [None if each is None else each.lower_bound for each in summaries]
        upper = [None if each is None else each.upper_bound for each in summaries]
        return pl.Series(lower, dtype=pl.Binary), pl.Series(upper, dtype=pl.Binary)

    def may_be_null(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be null."""
        return self._where(ref, lambda each: each.contains_null)

    def may_be_value(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be no null."""
        return self._where(ref, lambda each: not each.contains_null or _has_bounds(each) or _has_nan(ref, each))

    def may_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be NaN."""
        return self._where(ref, lambda each: _has_nan(ref, each))

    def may_not_be_nan(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be null, or a value other than NaN."""
        return self._where(ref, lambda each: each.contains_null or not _only_nan(ref, each))

    def may_be_number(self, ref: BoundReference) -> pl.Series:
        """Where some partition may be neither null nor NaN."""
        return self._where(ref, lambda each: not _only_nan(ref, each)) & self.may_be_value(ref)

    def _where(self, ref: BoundReference, test: Callable[[FieldSummary], bool]) -> pl.Series:
        is_known = not isinstance(ref.type, UnknownType)
        answers = [each is None or not is_known or test(each) for each in self._of(ref.field_id)]
        return pl.Series(answers, dtype=pl.Boolean)

    def _bound(self, ref: BoundReference, side: int) -> pl.Series:
        stored = self.stored_bounds(ref.field_id)[side]
        return decode_bounds(stored.clear(len(stored)) if isinstance(ref.type, UUIDType) else stored, ref.type)

    def _of(self, field_id: int) -> list[FieldSummary | None]:
        """The summary of a field in each manifest; None if the writer left it, or all of them, out."""
        place, count = self._places[field_id], len(self._places)
        summaries = (manifest.partitions for manifest in self._manifests)
        return [None if each is None or len(each) != count else each[place] for each in summaries]


def _has_bounds(summary: FieldSummary) -> bool:
    return summary.lower_bound is not None or summary.upper_bound is not None


def _has_nan(ref: BoundReference, summary: FieldSummary) -> bool:
    """Whether there may be NaN: where the writer did not say, too."""
    return isinstance(ref.type, FloatType | DoubleType) and summary.contains_nan is not False


def _only_nan(ref: BoundReference, summary: FieldSummary) -> bool:
    """Whether all that is not null is certainly NaN."""
    return isinstance(ref.type, FloatType | DoubleType) and summary.contains_nan is True and not _has_bounds(summary)
