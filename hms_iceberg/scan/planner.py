"""Planning a scan: manifest list, manifests, files, deletes.

Source: Iceberg specification, "Scan Planning".
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import islice

from hms_iceberg.errors import NoSuchSnapshotError
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.residuals import inclusive_projection, strict_projection
from hms_iceberg.expressions.tree import AlwaysFalse, AlwaysTrue, BooleanExpression
from hms_iceberg.expressions.visitors import complement
from hms_iceberg.lazy import pl
from hms_iceberg.reports import ScanReport, tell
from hms_iceberg.scan.delete_index import DeleteIndex
from hms_iceberg.scan.delete_keys import key_metric_columns
from hms_iceberg.scan.manifests.cache import ManifestFrame, cache_of
from hms_iceberg.scan.manifests.entry_frames import DELETE_ONLY, FILE_COLUMNS, METRIC_COLUMNS, file_dtypes
from hms_iceberg.scan.manifests.manifest_source import ManifestSource, manifests_of, named_snapshot, named_table
from hms_iceberg.scan.manifests.metric_columns import Metric
from hms_iceberg.scan.metadata_filter import FileFilter, is_of_table, keep_manifests, only_tests
from hms_iceberg.scan.metrics_filter import may_match, metrics_of
from hms_iceberg.scan.partition_columns import as_text, field_types, partition_columns, partition_predicate
from hms_iceberg.scan.tasks import PlanMetrics, ScanPlan, ScanRequest
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.manifests.manifest_values import (
    DELETE_FILE_PATH_ID,
    DataFileContent,
    ManifestContent,
    ManifestFile,
)
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from hms_iceberg.storage import Storage

# Files that a part of a plan looks at; and as how many a manifest counts whose list does not say.
_PART_ENTRIES = 100_000
_UNKNOWN_ENTRIES = 1_000
ALL_MATCH = "all_match"
_DATA_COLUMNS = tuple(name for name in FILE_COLUMNS if name not in DELETE_ONLY)
_DELETE_COLUMNS = FILE_COLUMNS


def plan_scan(request: ScanRequest, storage: Storage) -> ScanPlan:
    """Finds the files that a scan must read and the deletes that apply to them; it may find files without matching
    rows, but misses none that has one."""
    (plan,) = plan_parts(request, storage, None)
    return plan


def plan_parts(request: ScanRequest, storage: Storage, entries: int | None = _PART_ENTRIES) -> Iterator[ScanPlan]:
    """The plan of a scan in parts (at least one) that are made as they are asked for, each of data manifests of about
    so many entries; None makes one part. Memory is bounded by one part and the table's delete files."""
    started = time.perf_counter()
    begun = begin_plan(request, storage)
    planner, snapshot = begun.planner, begun.snapshot
    with begun.naming_errors():
        deletes = planner.of(ManifestContent.DELETES).delete_files(begun.manifests(ManifestContent.DELETES))
    for part in _parts(begun.manifests(ManifestContent.DATA), entries):
        with begun.naming_errors():
            plan = planner.plan(snapshot, planner.data_files(part, deletes.key_types), deletes, started)
        yield plan
        started = time.perf_counter()


def plan_part(request: ScanRequest, storage: Storage, part: int, entries: int) -> ScanPlan | None:
    """One of the parts that :func:`plan_parts` makes, without those before it; None if there are not so many."""
    started = time.perf_counter()
    begun = begin_plan(request, storage)
    planner = begun.planner
    manifests = next(islice(_parts(begun.manifests(ManifestContent.DATA), entries), part, None), None)
    if manifests is None:
        return None
    with begun.naming_errors():
        deletes = planner.of(ManifestContent.DELETES).delete_files(begun.manifests(ManifestContent.DELETES))
        return planner.plan(begun.snapshot, planner.data_files(manifests, deletes.key_types), deletes, started)


@dataclass(frozen=True)
class BegunPlan:
    """A plan whose manifest list was read, and no manifest yet."""

    planner: Planner
    snapshot: Snapshot | None
    listed: Sequence[ManifestFile]

    def manifests(self, content: ManifestContent) -> list[ManifestFile]:
        """The manifests of data files, or of delete files."""
        return [each for each in self.listed if each.content is content]

    def count_parts(self, entries: int) -> int:
        """How many parts of about so many files the plan has; at least one."""
        return sum(1 for _ in _parts(self.manifests(ManifestContent.DATA), entries))

    def naming_errors(self) -> AbstractContextManager[None]:
        """Errors of files that are gone or damaged name the snapshot and the table."""
        snapshot_id = None if self.snapshot is None else self.snapshot.snapshot_id
        return named_snapshot(snapshot_id, self.planner.metadata.location)


def begin_plan(request: ScanRequest, storage: Storage) -> BegunPlan:
    """Reads the manifest list of the snapshot to plan; arguments and errors are those of :func:`plan_scan`."""
    snapshot = _snapshot(request)
    schema = _schema(request, snapshot)
    with named_table(request.metadata.location, request.table_name):
        row_filter = bind(schema, request.row_filter, request.case_sensitive)
    source = manifest_source(request.metadata, storage)
    planner = Planner(
        request.metadata,
        schema,
        row_filter,
        source,
        request.decide,
        request.whole_files,
        request.stats,
        request.all_deletes,
        request.table_name,
    )
    begun = BegunPlan(planner, snapshot, ())
    if snapshot is None or isinstance(row_filter, AlwaysFalse):
        return begun
    with begun.naming_errors():
        return replace(begun, listed=manifests_of(snapshot, storage))


def file_metrics(plan: ScanPlan, storage: Storage, types: Mapping[int, IcebergType]) -> pl.DataFrame:
    """The data files of a plan with the metrics of some fields."""
    planner = Planner(plan.metadata, plan.schema, plan.row_filter, manifest_source(plan.metadata, storage))
    manifests = [] if plan.snapshot is None else manifests_of(plan.snapshot, storage)
    found = planner.data_files([each for each in manifests if each.content is ManifestContent.DATA], types).frame
    names = [name for field_id in types for name in key_metric_columns(field_id)]
    if not found.height:
        return found.with_columns(pl.lit(None, pl.Int64).alias(name) for name in names)
    return found.join(plan.files.select("file_path"), on="file_path", how="semi")


def _parts(manifests: Sequence[ManifestFile], entries: int | None) -> Iterator[list[ManifestFile]]:
    """Manifests in runs of about so many entries; at least one run."""
    part: list[ManifestFile] = []
    size = 0
    for manifest in manifests:
        part.append(manifest)
        size += manifest.entries_count or _UNKNOWN_ENTRIES
        if entries is not None and size >= entries:
            yield part
            part, size = [], 0
    if part or not manifests:
        yield part


def manifest_source(metadata: TableMetadata, storage: Storage) -> ManifestSource:
    """The manifests of a table, through the cache of the storage's catalog."""
    return ManifestSource(storage, partition_columns(metadata), cache_of(storage))


def _snapshot(request: ScanRequest) -> Snapshot | None:
    if request.snapshot_id is None:
        return request.metadata.current_snapshot()
    snapshot = request.metadata.snapshot_by_id(request.snapshot_id)
    if snapshot is None:
        raise NoSuchSnapshotError(
            f"Cannot scan the table at {request.metadata.location}: it has no snapshot {request.snapshot_id}; it may "
            "have expired. List the snapshots that there are with table.snapshots()"
        )
    return snapshot


def _schema(request: ScanRequest, snapshot: Snapshot | None) -> Schema:
    if request.schema is not None:
        return request.schema
    if request.snapshot_id is not None and snapshot is not None:
        return request.metadata.schema_for_snapshot(snapshot)
    return request.metadata.schema()


@dataclass(frozen=True)
class KeptFiles:
    """The data or delete files that may matter."""

    frame: pl.DataFrame  # with the metrics of the keys of equality deletes
    key_types: Mapping[int, IcebergType] = field(default_factory=dict)  # of delete files, the types of these keys
    manifests_total: int = 0
    manifests_kept: int = 0
    total: int = 0  # files in the manifests that were read


class Planner:
    """The steps of one plan; the filter is bound. `decide` finds files of which every row matches, `whole_files` wants
    all their live rows, `stats` are the metrics that data files get, `all_deletes` ignores the filter."""

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        row_filter: BooleanExpression,
        source: ManifestSource,
        decide: bool = False,
        whole_files: bool = False,
        stats: Mapping[int, IcebergType] | None = None,
        all_deletes: bool = False,
        table_name: str | None = None,
    ) -> None:
        self.metadata = metadata
        self._table_name = table_name or metadata.location
        self.schema = schema
        self.row_filter = row_filter
        self._partitions = source.partitions
        self._source = source
        self._whole_files = whole_files
        self._stats = stats or {}
        self._all_deletes = all_deletes or whole_files
        self._of_files = FileFilter(row_filter, source.partitions)
        self._by_metrics = only_tests(row_filter, is_of_table)
        self._complement = only_tests(complement(row_filter), is_of_table) if decide else None
        self._projections: dict[tuple[int, bool], BooleanExpression] = {}

    def of(self, content: ManifestContent) -> Planner:
        """The planner of data files, or of delete files: where rows are changed, the filter leaves out no delete."""
        if content is ManifestContent.DELETES and self._all_deletes:
            return Planner(self.metadata, self.schema, AlwaysTrue(), self._source)
        return self

    def keep(self, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The manifests that may hold a file that matters, by their partition summaries."""
        return keep_manifests(manifests, self._projection, self._partitions)

    def delete_files(self, manifests: Sequence[ManifestFile]) -> KeptFiles:
        """The delete files that may apply to a row that is wanted. As in Apache Iceberg, they are left out by their own
        partitions, not by those of the data files that they name."""
        kept = self.keep(manifests)
        if not kept:
            return KeptFiles(self._frame([], _DELETE_COLUMNS), manifests_total=len(manifests))
        paths = [(name, DELETE_FILE_PATH_ID) for name in ("lower_bounds", "upper_bounds")]
        loaded = self._source.map(kept, lambda spec_id, decoded: (spec_id, decoded), lambda spec_id: paths)
        key_types = _key_types((decoded.frame for _, decoded in loaded), self.metadata)
        frames = [self._keep_deletes(spec_id, decoded, key_types) for spec_id, decoded in loaded]
        return KeptFiles(
            self._frame(frames, _DELETE_COLUMNS),
            key_types,
            len(manifests),
            len(kept),
            sum(decoded.frame.height for _, decoded in loaded),
        )

    def data_files(self, manifests: Sequence[ManifestFile], key_types: Mapping[int, IcebergType]) -> KeptFiles:
        """The data files that may hold a row that matches."""
        kept, key_types = self.keep(manifests), {**key_types, **self._stats}
        found = self._source.map(
            kept,
            lambda spec_id, decoded: self.keep_files(spec_id, decoded, key_types),
            lambda spec_id: self._metrics_at_once(spec_id, key_types),
        )
        frame = self._frame([each for each, _ in found], _DATA_COLUMNS)
        if self._complement is not None and ALL_MATCH not in frame.columns:
            frame = frame.with_columns(pl.lit(False).alias(ALL_MATCH))
        return KeptFiles(frame, key_types, len(manifests), len(kept), sum(total for _, total in found))

    def plan(self, snapshot: Snapshot | None, data: KeptFiles, deletes: KeptFiles | None, started: float) -> ScanPlan:
        """The plan of the files that were kept; without deletes if those are None."""
        deletes = deletes or KeptFiles(self._frame([], _DELETE_COLUMNS))
        unpartitioned = [spec.spec_id for spec in self.metadata.partition_specs if spec.is_unpartitioned()]
        index = DeleteIndex(self._partitions, unpartitioned, deletes.key_types)
        delete_files, assignments = index.assign(data.frame, deletes.frame)
        metrics = [name for field_id in deletes.key_types for name in key_metric_columns(field_id)]
        of_keys_only = [name for key in deletes.key_types.keys() - self._stats for name in key_metric_columns(key)]
        plan = ScanPlan(
            metadata=self.metadata,
            snapshot=snapshot,
            schema=self.schema,
            row_filter=AlwaysTrue() if self._whole_files else self.row_filter,
            file_filter=self.row_filter if self._whole_files else None,
            partitions=self._partitions,
            files=_without(data.frame, of_keys_only),
            delete_files=_without(delete_files, metrics),
            assignments=assignments,
            metrics=PlanMetrics(
                manifests_total=data.manifests_total,
                manifests_kept=data.manifests_kept,
                delete_manifests_total=deletes.manifests_total,
                delete_manifests_kept=deletes.manifests_kept,
                manifests_cached=self._source.cached,
                files_total=data.total,
                files_kept=data.frame.height,
                delete_files_total=deletes.total,
                delete_files_kept=delete_files.height,
                seconds=time.perf_counter() - started,
            ),
        )
        tell(lambda: self._report(plan))
        return plan

    def _report(self, plan: ScanPlan) -> ScanReport:
        snapshot_id = None if plan.snapshot is None else plan.snapshot.snapshot_id
        uuid, schema = str(plan.metadata.table_uuid), plan.schema
        size = int(plan.files["file_size_in_bytes"].sum() or 0)
        return ScanReport(
            self._table_name, uuid, snapshot_id, schema.schema_id, schema, self.row_filter, plan.metrics, size
        )

    def _projection(self, spec_id: int, strict: bool = False) -> BooleanExpression:
        """The filter over the partition tuples of a spec, bound to its partition type."""
        key = (spec_id, strict)
        if key not in self._projections:
            project = strict_projection if strict else inclusive_projection
            projected = project(self.schema, self.metadata.spec_by_id(spec_id))(self.row_filter)
            self._projections[key] = bind(self._partitions.structs[spec_id], projected)
        return self._projections[key]

    def _partition_mask(self, spec_id: int, frame: pl.DataFrame, strict: bool = False) -> pl.Series | None:
        """A mask of the files whose partition matches, or `strict` of which every row does; None if all do."""
        projected = self._projection(spec_id, strict)
        if isinstance(projected, AlwaysTrue):
            return None
        struct = self._partitions.structs[spec_id]
        names = self._partitions.columns(spec_id)
        columns = {each.field_id: name for each, name in zip(struct.fields, names, strict=True)}
        return frame.with_columns(keep=partition_predicate(projected, columns))["keep"]

    def _metrics_at_once(self, spec_id: int, key_types: Mapping[int, IcebergType]) -> Sequence[Metric]:
        """The metrics to decode together with the files, if no partition is likely to make them superfluous."""
        is_decided = isinstance(self._projection(spec_id), AlwaysTrue)
        of_filter = metrics_of(self._by_metrics) if is_decided else ()
        return list(dict.fromkeys((*of_filter, *_metrics_of_keys(key_types))))

    def keep_files(
        self, spec_id: int, decoded: ManifestFrame, key_types: Mapping[int, IcebergType]
    ) -> tuple[pl.DataFrame, int]:
        """The files of a manifest that may hold a row that matches, and of how many."""
        mask = self._partition_mask(spec_id, decoded.frame)
        if self._of_files.has_tests:
            of_files = self._of_files.mask(spec_id, decoded.frame)
            mask = of_files if mask is None or of_files is None else mask & of_files
        if not isinstance(self.row_filter, AlwaysTrue) and (mask is None or mask.any()):
            matching = self._metrics_mask(spec_id, decoded, mask)
            mask = matching if mask is None else mask & matching
        names = list(self._partitions.columns(spec_id))
        frame = decoded.frame
        if self._complement is not None:
            frame = frame.with_columns(self._all_match(spec_id, decoded, mask).alias(ALL_MATCH))
            names.append(ALL_MATCH)
        frame = frame if mask is None else frame.filter(mask)
        chosen = frame[[*_DATA_COLUMNS, *names]]
        if frame.height == 0:
            return chosen, decoded.frame.height
        metrics = _key_metrics(decoded, key_types)
        if mask is not None:
            metrics = [each.filter(mask) for each in metrics]
        return chosen.hstack(metrics), decoded.frame.height

    def _metrics_mask(self, spec_id: int, decoded: ManifestFrame, mask: pl.Series | None) -> pl.Series:
        """Which files may hold matching rows by their metrics, which are read only where partitions do not decide the
        filter."""
        all_match = None if mask is None else self._partition_mask(spec_id, decoded.frame, strict=True)
        if mask is not None and all_match is not None and (all_match | ~mask).all():
            return all_match
        return may_match(self._by_metrics, decoded.metrics)

    def _all_match(self, spec_id: int, decoded: ManifestFrame, mask: pl.Series | None) -> pl.Series:
        """The files all of whose rows match, among those of the mask: told by metrics where partitions do not."""
        assert self._complement is not None
        by_partition = self._partition_mask(spec_id, decoded.frame, strict=True)
        if mask is not None and by_partition is not None and (by_partition | ~mask).all():
            return by_partition
        by_metrics = ~may_match(self._complement, decoded.metrics)
        return by_metrics if by_partition is None else by_metrics | by_partition

    def _keep_deletes(self, spec_id: int, decoded: ManifestFrame, key_types: Mapping[int, IcebergType]) -> pl.DataFrame:
        names = self._partitions.columns(spec_id)
        frame = decoded.frame[[*_DELETE_COLUMNS, *names]].hstack(_key_metrics(decoded, key_types))
        frame = frame.with_columns(_referenced_data_file(decoded))
        mask = self._partition_mask(spec_id, frame)
        if not isinstance(self.row_filter, AlwaysTrue):
            matching = self._deletes_may_match(decoded)
            mask = matching if mask is None else mask & matching
        return frame if mask is None else frame.filter(mask)

    def _deletes_may_match(self, decoded: ManifestFrame) -> pl.Series:
        """Which delete files may delete a wanted row: of equality deletes only the key columns count, as their rows may
        differ from the deleted ones in others; position deletes say nothing of rows."""
        keys = [None if ids is None else tuple(ids) for ids in decoded.frame["equality_ids"].to_list()]
        result = pl.Series([key is None for key in keys], dtype=pl.Boolean)
        for key in sorted({key for key in keys if key is not None}):
            has_key = pl.Series([each == key for each in keys], dtype=pl.Boolean)
            result = result | (has_key & may_match(self._by_metrics, decoded.metrics, only=set(key)))
        return result

    def _frame(self, frames: Iterable[pl.DataFrame], columns: Sequence[str]) -> pl.DataFrame:
        """Frames of any specs below one another, with the partition columns of all specs."""
        dtypes = file_dtypes()
        wanted = [*((name, dtypes[name]) for name in columns), *self._partitions.dtypes.items()]
        found = [frame for frame in frames if frame.height]
        if len(found) == 1 and [*found[0].schema.items()][: len(wanted)] == wanted:
            return found[0]  # the usual case, for which joining takes longer than all the rest
        return pl.concat([pl.DataFrame(schema=dict(wanted)), *found], how="diagonal_relaxed")


def _without(frame: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    return frame[[name for name in frame.columns if name not in names]]


def _key_types(frames: Iterable[pl.DataFrame], metadata: TableMetadata) -> dict[int, IcebergType]:
    """The types of all keys of equality deletes; a key that no schema has is left out."""
    columns = [frame["equality_ids"] for frame in frames]
    ids = {key for ids in columns if ids.null_count() < len(ids) for key in ids.explode().drop_nulls().unique()}
    types = field_types(metadata) if ids else {}
    return {field_id: types[field_id] for field_id in sorted(ids) if field_id in types}


def _metrics_of_keys(key_types: Mapping[int, IcebergType]) -> list[Metric]:
    return [(name, field_id) for field_id in key_types for name in METRIC_COLUMNS]


def _key_metrics(decoded: ManifestFrame, key_types: Mapping[int, IcebergType]) -> list[pl.Series]:
    columns = []
    decoded.metrics.prepare(_metrics_of_keys(key_types))
    for field_id in key_types:
        values, nulls, nans, lower, upper = key_metric_columns(field_id)
        stored_lower, stored_upper = decoded.metrics.stored_bounds(field_id)
        columns += [
            decoded.metrics.value_counts(field_id).alias(values),
            decoded.metrics.null_counts(field_id).alias(nulls),
            decoded.metrics.nan_counts(field_id).alias(nans),
            stored_lower.alias(lower),
            stored_upper.alias(upper),
        ]
    return columns


def _referenced_data_file(decoded: ManifestFrame) -> pl.Series:
    """The only data file that each position delete file applies to, as recorded or by equal bounds of its paths; else
    null."""
    named = decoded.frame["referenced_data_file"]
    lower, upper = decoded.metrics.stored_bounds(DELETE_FILE_PATH_ID)
    is_position = decoded.frame["content"] == int(DataFileContent.POSITION_DELETES)
    single = (lower == upper).fill_null(False) & is_position & named.is_null()
    if not single.any():
        return named
    path = lower.zip_with(single, pl.Series([None], dtype=pl.Binary).new_from_index(0, len(lower)))
    return named.zip_with(named.is_not_null(), as_text(path)).alias("referenced_data_file")
