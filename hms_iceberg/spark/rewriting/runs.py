"""Rewritings that Spark carries out, one group after the other, and how it distributes their rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from hms_iceberg.errors import IcebergError, InvalidInputError, StorageError
from hms_iceberg.maintenance.rewrite.rewrite_plan import TaskGroup
from hms_iceberg.maintenance.rewrite.rewriting import DataFileRewrite, RewriteResult
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.scan.tasks import ScanPlan
from hms_iceberg.spark.catalogs import version_name
from hms_iceberg.spark.rowlevel.begin_rows import with_lineage
from hms_iceberg.spark.writing.begin_write import begun
from hms_iceberg.spark.writing.commit_write import data_files
from hms_iceberg.spark.writing.distribution import Distribution, clustered_order, quoted, sort_key, write_distribution
from hms_iceberg.spark.writing.write_questions import BeginWrite, CommitWrite
from hms_iceberg.spark.writing.write_settings import WriteSettings
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED
from hms_iceberg.storage import Storage

_OVERHEAD = 5 * 1024 * 1024  # of a split, so that a group is not cut into one file too many


def split_size(group: TaskGroup) -> int:
    """How much of a group one task reads: as much as becomes one file."""
    return int(min(group.input_bytes // max(1, group.output_files) + _OVERHEAD, max(group.output_bytes, _OVERHEAD)))


def write_settings(rewrite: DataFileRewrite, group: TaskGroup, session: Mapping[str, str]) -> WriteSettings:
    """The settings of a group's write: what the plan says, before the session and the table's properties."""
    options = {
        "target-file-size-bytes": str(group.output_bytes),
        "output-spec-id": str(rewrite.plan.output_spec_id),
    }
    if rewrite.layout.zorder:
        options["use-table-distribution-and-ordering"] = "false"  # the rows come along the curve
    elif rewrite.layout.order is not None:
        options["output-sort-order-id"] = str(rewrite.layout.order.order_id)
    else:
        options["distribution-mode"] = "range" if _moves(rewrite, group) else "none"
    return WriteSettings(rewrite.name, options, session, rewrite.table.metadata.properties)


def group_distribution(rewrite: DataFileRewrite, group: TaskGroup, settings: WriteSettings) -> Distribution:
    """How a group's rows are wanted: sorted into ranges, a file each, or as they come."""
    metadata = rewrite.table.metadata
    schema, spec = metadata.schema(), metadata.spec_by_id(rewrite.plan.output_spec_id)
    order = rewrite.layout.order
    if order is None:
        return write_distribution(settings, schema, spec, metadata.sort_order(), has_functions=True)
    into = spec if _moves(rewrite, group) else UNPARTITIONED
    keys = tuple(sort_key(each, schema) for each in clustered_order(into, order))
    return Distribution(ranges=keys, ordering=keys, fanout=False, partitions=max(1, group.output_files))


def _moves(rewrite: DataFileRewrite, group: TaskGroup) -> bool:
    """Whether the rows go into other partitions than they are in."""
    return group.items[0].file.spec_id != rewrite.plan.output_spec_id


Rows = Sequence[Sequence[Any]]


class SparkRewrite:
    """A planned rewriting of which Spark writes the groups. `rows` makes a procedure's rows of the result; `failure` is
    what ended the rewriting before its end."""

    def __init__(self, rewrite: DataFileRewrite, rows: Callable[[RewriteResult], Rows] = lambda result: ()) -> None:
        self.rewrite = rewrite
        self.storage: Storage = rewrite.table.storage
        self.failure: IcebergError | None = None
        self._rows = rows
        self._metadata = rewrite.table.metadata
        self._version_name = version_name(MetadataVersion(rewrite.table.metadata_location, rewrite.table.metadata))
        self._lock = threading.Lock()
        rewrite.commits.begin(len(rewrite.plan.groups))

    def header(self, number: int) -> dict[str, Any]:
        """The description of the rewriting with which the bridge begins."""
        groups, schema = self.rewrite.plan.groups, self._metadata.schema()
        return {
            "run": number,
            "name": self.rewrite.name,
            "metadata_location": self._version_name,
            "splits": [split_size(group) for group in groups],
            "rows": [group.items.record_count for group in groups],
            "files": [max(1, group.output_files) for group in groups],
            "curve": [quoted(schema, field_id) for field_id in self.rewrite.layout.zorder],
            "at_once": self.rewrite.groups_at_once,
            "lineage": self._metadata.format_version >= 3,
        }

    def is_stopped(self) -> bool:
        """Whether no further group is to be begun."""
        return self.rewrite.stop()

    def plan(self, number: int) -> ScanPlan:
        """The scan of one group's files."""
        return self.rewrite.plan.groups[number].items.plan

    def begin(self, number: int, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to the question with which a group's write begins; see `begin_write`."""
        group, metadata = self.rewrite.plan.groups[number], self._metadata
        asked = msgspec.convert(question, BeginWrite)
        settings = write_settings(self.rewrite, group, asked.session)
        distribution = group_distribution(self.rewrite, group, settings)
        schema = with_lineage(metadata.schema(), metadata.format_version >= 3)
        return begun(asked, settings, metadata, distribution, schema, self.storage)

    def commit(self, number: int, question: Mapping[str, Any]) -> None:
        """Takes a group that is written; raises what ends the rewriting, as `GroupCommits.take` does."""
        asked = msgspec.convert(question, CommitWrite)
        decided = asked.decided
        added = data_files(
            asked.files, self._metadata, decided.properties, self.storage, sort_order_id=decided.sort_order_id
        )
        with self._lock:
            try:
                self.rewrite.take(self.rewrite.plan.groups[number], added, tuple(file.path for file in asked.files))
            except IcebergError as error:
                self.failure = error
                raise

    def fail(self, number: int, message: str) -> None:
        """Takes note of a group that Spark could not write; raises what ends the rewriting."""
        with self._lock:
            if self.failure is not None:
                raise self.failure
            group = self.rewrite.plan.groups[number]
            error = StorageError(f"Spark could not rewrite {len(group.items)} files of {self.rewrite.name}: {message}")
            try:
                self.rewrite.commits.lose(group, error)
            except IcebergError as fatal:
                self.failure = fatal
                raise

    def end(self) -> Rows:
        """Commits what is left; the rows of the procedure's result."""
        with self._lock:
            self.rewrite.commits.end()
        return self._rows(self.rewrite.result())

    def abandon(self) -> None:
        """Deletes what is written and not committed."""
        with self._lock:
            self.rewrite.commits.abandon()


class OpenRewrites:
    """The rewritings that are under way, by number."""

    def __init__(self) -> None:
        self._runs: dict[int, SparkRewrite] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    def open(self, run: SparkRewrite) -> dict[str, Any]:
        """Keeps a rewriting until it ends; returns what the bridge is told of it."""
        with self._lock:
            number = next(self._numbers)
            self._runs[number] = run
        return run.header(number)

    def of(self, question: Mapping[str, Any]) -> SparkRewrite:
        """The rewriting that a question is about."""
        number = question["rewrite"]["run"]
        with self._lock:
            run = self._runs.get(number)
        if run is None:
            raise InvalidInputError(f"There is no rewriting of number {number}: it has ended.")
        return run

    def close(self, question: Mapping[str, Any]) -> None:
        """Forgets the rewriting that a question is about."""
        with self._lock:
            self._runs.pop(question["rewrite"]["run"], None)
