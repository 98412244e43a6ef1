"""Plans whose manifests Spark's executors read, for tables that have too many for one machine.

The driver reads the manifest list and leaves out manifests by their partition summaries; each task of a Spark job then
does with a share of the others what the driver would do with all of them, and answers with the files that are left. A
plan asks for at most two jobs, for the delete files and for the data files, whose keys the delete files tell.

Source: Iceberg documentation, "Configuration": `read.data-planning-mode`, `read.delete-planning-mode`.
"""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.expressions.tree import BooleanExpression
from hms_iceberg.lazy import pl
from hms_iceberg.scan.appends import AppendRequest, plan_appends
from hms_iceberg.scan.planner import KeptFiles, Planner, begin_plan, manifest_source
from hms_iceberg.scan.tasks import ScanPlan, ScanRequest
from hms_iceberg.spark.read_questions import PlanScan
from hms_iceberg.spark.reading.worker_code import for_workers
from hms_iceberg.spark.reading.worker_files import slim_metadata
from hms_iceberg.spec.data_types import IcebergType
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.schema_json import type_from_json, type_to_json
from hms_iceberg.spec.table_properties import DATA_PLANNING_MODE, DELETE_PLANNING_MODE
from hms_iceberg.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

AUTO, LOCAL, DISTRIBUTED = "auto", "local", "distributed"
MODES = {ManifestContent.DATA: DATA_PLANNING_MODE.name, ManifestContent.DELETES: DELETE_PLANNING_MODE.name}
# Tasks for each slot of the executors, so that one large manifest holds up no others.
_TASKS_OF_SLOT = 2
# Apache Iceberg's: so many bytes of manifests the driver reads itself with each of its processors.
_LOCAL_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class Executors:
    """The executors that may read manifests.

    Args:
        slots: tasks that run at once; 0 leaves all to the driver.
        modes: planning modes of the session, by the names of the table's properties, which they go before.
        answers: what the tasks of earlier jobs of this plan answered, job by job.
    """

    slots: int = 0
    modes: Mapping[str, str] = field(default_factory=dict)
    answers: Sequence[Sequence[bytes]] = ()


@dataclass(frozen=True)
class PlanningJob:
    """Work for executors that must be done before a plan can be made.

    Args:
        command: the function that Spark's workers run.
        tasks: what each of them gets.
    """

    command: bytes
    tasks: Sequence[bytes]


def planned(
    metadata: TableMetadata,
    storage: Storage,
    asked: PlanScan,
    schema: Schema,
    row_filter: BooleanExpression,
) -> ScanPlan | PlanningJob:
    """The files of what was selected, or what executors have to do before.

    Args:
        metadata: the table.
        storage: where its files are.
        asked: the snapshots of what was selected.
        schema: the columns that the filter may name.
        row_filter: which rows are wanted.

    Returns:
        the plan; or the tasks that executors have to do before there is one.

    Raises:
        NoSuchSnapshotError: a snapshot has expired.
        InvalidInputError: the filter does not fit the table.
        CorruptManifestError, MissingFileError: manifests cannot be read.
    """
    start, end = asked.start_snapshot_id, asked.snapshot_id
    if start is None:
        executors = Executors(asked.slots, asked.planning_modes, asked.planned)
        request = ScanRequest(
            metadata,
            end,
            row_filter,
            schema=schema,
            whole_files=asked.whole_files,
            all_deletes=asked.all_deletes,
        )
        return plan_with_executors(request, storage, executors)
    return plan_appends(AppendRequest(metadata, start, end, row_filter=row_filter, schema=schema), storage)


def plan_with_executors(request: ScanRequest, storage: Storage, executors: Executors) -> ScanPlan | PlanningJob:
    """Plans a scan, of which executors read the manifests.

    Args:
        request: the table, the snapshot and the filter.
        storage: where manifest lists and manifests are read from.
        executors: who may read manifests, and what they answered so far.

    Returns:
        the plan; or the tasks of the next job, whose answers it needs.

    Raises:
        ConfigurationError: a planning mode is none that exists.
        IcebergError: as `hms_iceberg.scan.planner.plan_scan`.
    """
    started = time.perf_counter()
    begun = begin_plan(request, storage)
    answers = iter(executors.answers)

    def files(content: ManifestContent, keys: Mapping[int, IcebergType], has_keys: bool) -> KeptFiles | PlanningJob:
        listed, planner = begun.manifests(content), begun.planner.of(content)
        kept = planner.keep(listed)
        task = _Task(content, keys)
        if not _is_distributed(_mode(content, request.metadata, executors), kept, executors.slots, has_keys):
            with begun.naming_errors():
                return task.files(planner, listed)
        answered = next(answers, None)
        if answered is None:
            return _job(planner, storage, task, kept, executors.slots)
        return replace(_joined(answered), manifests_total=len(listed))

    summary = {} if begun.snapshot is None else begun.snapshot.summary
    deletes = files(ManifestContent.DELETES, {}, summary.get("total-equality-deletes", "1") != "0")
    if isinstance(deletes, PlanningJob):
        return deletes
    data = files(ManifestContent.DATA, deletes.key_types, bool(deletes.key_types))
    if isinstance(data, PlanningJob):
        return data
    return begun.planner.plan(begun.snapshot, data, deletes, started)


def _mode(content: ManifestContent, metadata: TableMetadata, executors: Executors) -> str:
    name = MODES[content]
    text = executors.modes.get(name) or metadata.properties.get(name, AUTO)
    mode = text.strip().lower()
    if mode not in (AUTO, LOCAL, DISTRIBUTED):
        raise ConfigurationError(
            f"Cannot read the table at {metadata.location}: {name} is {text!r}, expected {AUTO}, {LOCAL} or "
            f"{DISTRIBUTED}."
        )
    return mode


def _is_distributed(mode: str, manifests: Sequence[ManifestFile], slots: int, has_keys: bool) -> bool:
    """Whether executors read manifests: as in Apache Iceberg, of itself only if they are many, large and simple."""
    if mode == LOCAL or not slots or not manifests:
        return False
    processors = os.cpu_count() or 1
    is_large = sum(each.manifest_length for each in manifests) > processors * _LOCAL_BYTES
    is_worth_it = slots > processors and len(manifests) > 2 * processors and is_large
    return mode == DISTRIBUTED or (is_worth_it and not has_keys)


# ------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class _Task:
    """The work of one task: manifests, and the entries to find in them.

    Args:
        content: what they hold.
        keys: of data files, whose keys' metrics are needed.
        manifests: the manifests.
    """

    content: ManifestContent
    keys: Mapping[int, IcebergType]
    manifests: Sequence[ManifestFile] = ()

    def files(self, planner: Planner, manifests: Sequence[ManifestFile]) -> KeptFiles:
        """The files that may matter."""
        if self.content is ManifestContent.DELETES:
            return planner.delete_files(manifests)
        return planner.data_files(manifests, self.keys)


class _Found(msgspec.Struct, frozen=True):
    """What a task found; see `KeptFiles`.

    Args:
        frame: the files, in Arrow's file format.
        key_types: the types of the keys, as schemas have them in JSON.
        manifests_kept: manifests that were read.
        total: files in these.
    """

    frame: bytes
    key_types: dict[int, Any]
    manifests_kept: int
    total: int


@dataclass(frozen=True)
class _Planning:
    """What all tasks of a job have in common."""

    metadata: TableMetadata
    schema: Schema
    row_filter: BooleanExpression
    storage: Storage

    def planner(self) -> Planner:
        source = manifest_source(self.metadata, self.storage, None)
        return Planner(self.metadata, self.schema, self.row_filter, source)


def _job(planner: Planner, storage: Storage, task: _Task, manifests: Sequence[ManifestFile], slots: int) -> PlanningJob:
    planning = _Planning(slim_metadata(planner.metadata), planner.schema, planner.row_filter, storage)
    common = pickle.dumps(planning)

    def plan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from hms_iceberg.spark.reading.distributed_planning import plan_in_worker

        return plan_in_worker(common, batches)

    tasks = [pickle.dumps(replace(task, manifests=each)) for each in _shares(manifests, _TASKS_OF_SLOT * slots)]
    return PlanningJob(for_workers(plan, "the manifests of Iceberg tables"), tasks)


def _shares(manifests: Sequence[ManifestFile], count: int) -> list[list[ManifestFile]]:
    """The manifests in at most so many runs of about the same bytes."""
    total = sum(each.manifest_length for each in manifests)
    shares: list[list[ManifestFile]] = [[]]
    size = 0
    for manifest in manifests:
        if shares[-1] and size * count >= total * len(shares):
            shares.append([])
        shares[-1].append(manifest)
        size += manifest.manifest_length
    return shares


def plan_in_worker(common: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads manifests in Spark's Python workers.

    Args:
        common: the pickled part that all tasks share.
        batches: the tasks.

    Returns:
        a batch with one pickled answer for each task.
    """
    import pyarrow as pa

    planner = pickle.loads(common).planner()
    for batch in batches:
        for each in batch.column(0):
            task: _Task = pickle.loads(each.as_py())
            found = task.files(planner, task.manifests)
            frame = io.BytesIO()
            found.frame.write_ipc(frame, compression="zstd")
            keys = {field_id: type_to_json(kind) for field_id, kind in found.key_types.items()}
            answer = _Found(frame.getvalue(), keys, found.manifests_kept, found.total)
            yield pa.record_batch({"answer": pa.array([msgspec.msgpack.encode(answer)], pa.binary())})


def _joined(answers: Sequence[bytes]) -> KeptFiles:
    """Joins what all tasks of a job found."""
    parts = [msgspec.msgpack.decode(each, type=_Found) for each in answers]
    frames = [pl.read_ipc(io.BytesIO(part.frame)) for part in parts]
    return KeptFiles(
        pl.concat(frames, how="diagonal_relaxed"),
        {field_id: type_from_json(kind) for part in parts for field_id, kind in sorted(part.key_types.items())},
        manifests_kept=sum(part.manifests_kept for part in parts),
        total=sum(part.total for part in parts),
    )
