"""Work that once grew faster than what it was done on."""

from __future__ import annotations

import atexit
import math
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.expressions.tree import AlwaysTrue
from hms_iceberg.maintenance import remove_orphan_files
from hms_iceberg.maintenance.rewrite.options import RewriteOptions
from hms_iceberg.maintenance.rewrite.rewrite_plan import plan_rewrite
from hms_iceberg.report.gather import _history
from hms_iceberg.scan.metadata_tables.history_tables import metadata_log_entries
from hms_iceberg.scan.metadata_tables.request import MetadataRequest
from hms_iceberg.spark.reading.plan_answer import AnswerForm, plan_answer
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.metadata.metadata_snapshots import remove_snapshots
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.storage import FileInfo
from hms_iceberg.table import Table
from hms_iceberg.transaction.transaction import Created, Transaction
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.overwrite import Overwrite, ReplacePartitions
from hms_iceberg.updates.snapshots.expire_snapshots import ExpireSnapshots, unreachable_files
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.memory_storage import InMemoryStorage
from tests.support.snapshots import LOCATION, ManifestTable

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "part", LongType()))
ROWS_READ = 2_000
FILES_IN_MANIFEST = 8_000
FILES_IN_LARGE = 20_000
BY_PART = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))


@dataclass(frozen=True)
class Wall:
    """Work of any size.

    Args:
        what: what is done.
        make: prepares a size, and gives the work.
        sizes: what sizes are measured.
        small: a size whose work is counted, with that of twice and four times as much.
    """

    what: str
    make: Callable[[int], Callable[[], Any]]
    sizes: tuple[int, ...]
    small: int


def exponent(sizes: tuple[int, int], values: tuple[float, float]) -> float:
    """The power of the size by which a value grows."""
    return math.log(max(values[1], 1e-9) / max(values[0], 1e-9)) / math.log(sizes[1] / sizes[0])


def planned(kind: DataFileContent, of_keys: int = 1) -> Callable[[int], Callable[[], int]]:
    """Planning a partition to which each of many commits added a data file and a delete file; of them, about one in
    `of_keys` has keys in common."""

    def make(size: int) -> Callable[[], int]:
        table = checkpoints(size, kind, of_keys)

        def work() -> int:
            plan = table.plan()
            assert sum(len(task.delete_files) for task in plan.tasks()) or size < 3
            return plan.assignments.height

        return work

    return make


def answered(kind: DataFileContent) -> Callable[[int], Callable[[], int]]:
    """Telling Spark the plan of a partition to which each of many commits added a data file and a delete file."""

    def make(size: int) -> Callable[[], int]:
        plan = checkpoints(size, kind, 1).plan()
        return lambda: len(plan_answer(plan, "t", AnswerForm()))

    return make


def checkpoints(size: int, kind: DataFileContent, of_keys: int) -> ManifestTable:
    """A partition to which each of many commits added a data file, and deletes of earlier rows anywhere."""
    table, source = ManifestTable(SCHEMA, BY_PART), random.Random(size)
    keys = {"equality_ids": (1,)} if kind is DataFileContent.EQUALITY_DELETES else {}

    def made(number: int, name: str, content: DataFileContent, **more: Any) -> ManifestEntry:
        low = source.randrange(10 * of_keys)
        bounds = {"lower_bounds": {1: to_bytes(LongType(), low)}, "upper_bounds": {1: to_bytes(LongType(), low + 9)}}
        counts = {"value_counts": {1: 9}, "null_value_counts": {1: 0}}
        return entry(number, file(f"{name}/{number}", content, **counts, **bounds, **more))

    table.commit(
        *(made(number, "data", DataFileContent.DATA) for number in range(size)),
        *(made(number, "deletes", kind, **keys) for number in range(size)),
    )
    return table


def read(size: int) -> Callable[[], Any]:
    """Reading a table to which each of many commits wrote some rows anew: their keys, then the rows."""
    folder = tempfile.mkdtemp(prefix="scale-")
    atexit.register(shutil.rmtree, folder)
    table, storage, source = ManifestTable(SCHEMA), ArrowStorage(), random.Random(size)
    arrow_schema, entries = to_arrow(SCHEMA), []
    for number in range(size):
        keys = sorted(source.sample(range(ROWS_READ * 100), ROWS_READ))
        rows = pa.table([pa.array(keys, pa.int64()), pa.array([1] * ROWS_READ, pa.int64())], schema=arrow_schema)
        for content, ids in ((DataFileContent.EQUALITY_DELETES, (1,)), (DataFileContent.DATA, None)):
            path = f"{folder}/{number}-{content.name}.parquet"
            pq.write_table(rows, path)
            made = file("", content, equality_ids=ids)
            made = replace(made, file_path=path, record_count=ROWS_READ, file_size_in_bytes=os.path.getsize(path))
            entries.append(entry(number, replace(made, partition=())))
    table.commit(*entries)

    def work() -> int:
        tasks = reversed(list(table.plan().tasks()))  # most tables' plans are of the newest files first
        batches = read_tasks(tasks, SCHEMA, SCHEMA, table.metadata, storage)
        return sum(batch.num_rows for batch in batches)

    return work


def expired(size: int) -> Callable[[], Any]:
    """Finding the files that only an expired snapshot needed, in a table of so many large manifests."""
    table = ManifestTable(SCHEMA, BY_PART)
    many = [entry(number, file(f"data/{number:0200}", DataFileContent.DATA)) for number in range(FILES_IN_LARGE)]
    table.commit(*many)
    (manifest,) = table.manifests
    manifests = []
    for number in range(size):
        path = f"{LOCATION}/metadata/copy-{number}.avro"
        table.storage.files[path] = table.storage.files[manifest.manifest_path]
        manifests.append(replace(manifest, manifest_path=path))
    before = table.commit(entry(1, file("data/old", DataFileContent.DATA)))
    table.commit_manifests(manifests, 10_000_000)
    metadata = remove_snapshots(table.metadata, {before.snapshot_id}, table.metadata.last_updated_ms)

    def work() -> None:
        found = unreachable_files(table.metadata, metadata, table.storage)
        assert found.data_files == (f"{LOCATION}/data/old.parquet",)

    return work


def removed(row_filter: str | None, apart: bool) -> Callable[[int], Callable[[], Any]]:
    """Removing one partition from a table of partitions of 100 files: by a filter, or by files of it that come."""

    def make(size: int) -> Callable[[], Any]:
        table, partitions = ManifestTable(SCHEMA, BY_PART), max(1, size // 100)
        bounds = {"lower_bounds": {1: to_bytes(LongType(), 0)}, "upper_bounds": {1: to_bytes(LongType(), 9)}}
        for start in range(0, size, FILES_IN_MANIFEST):
            numbers = range(start, min(start + FILES_IN_MANIFEST, size))
            table.commit(
                *(
                    replace(
                        file(f"data/{number}", DataFileContent.DATA, value_counts={1: 9}, **bounds),
                        partition=(1 + (number // 100 if apart else number % partitions),),
                    )
                    for number in numbers
                )
            )
        update: Update = ReplacePartitions((file("data/new", DataFileContent.DATA),))
        if row_filter is not None:
            update = Overwrite(row_filter=parse(row_filter))

        def work() -> None:
            made = update.apply(table.metadata, FileWorkspace(table.storage))
            assert int(made.current_snapshot().summary["deleted-data-files"]) == min(100, size)  # type: ignore

        return work

    return make


def orphans(size: int) -> Callable[[], Any]:
    """Looking for files that nobody names in a listing of so many files, in folders of 1,000; there are ten."""
    made = ManifestTable(SCHEMA, BY_PART)
    names = [f"data/part={number // 1_000}/{number:060}" for number in range(size)]
    for start in range(0, size, FILES_IN_MANIFEST):
        made.commit(*(file(name, DataFileContent.DATA) for name in names[start : start + FILES_IN_MANIFEST]))
    metastore = InMemoryMetastore()
    metastore.create_namespace("db", {})
    committed = Transaction(("db", "t"), Created(made.metadata), metastore, made.storage).commit()
    table = Table(("db", "t"), committed, metastore, made.storage)
    names += [f"data/part=0/lost-{number}" for number in range(10)]

    def work() -> None:
        listed = (FileInfo(f"{LOCATION}/{name}.parquet", 100, 1) for name in names)
        assert len(remove_orphan_files(table, dry_run=True, files=listed).locations) == 10

    return work


def compacted(size: int) -> Callable[[], Any]:
    """Planning the rewriting of a partition whose files, but for one in a hundred, are large enough."""
    table = ManifestTable(SCHEMA, BY_PART)
    for start in range(0, size, FILES_IN_MANIFEST):
        numbers = range(start, min(start + FILES_IN_MANIFEST, size))
        table.commit(
            *(
                replace(file(f"data/{number}", DataFileContent.DATA), file_size_in_bytes=100 if number % 100 else 1)
                for number in numbers
            )
        )
    options = RewriteOptions({"target-file-size-bytes": "100"}, "rewrite_data_files", "t")
    sizes, rules = options.sizes(100), options.data_files()

    def work() -> None:
        snapshot = table.metadata.current_snapshot()
        made = plan_rewrite(table.metadata, snapshot, table.storage, sizes, rules, AlwaysTrue(), True)
        assert made.input_files == size // 100 or size < 500

    return work


def compacted_parts(size: int) -> Callable[[], Any]:
    """Planning the rewriting of partitions of ten small files."""
    table = ManifestTable(SCHEMA, BY_PART)
    files = (replace(file(f"data/{each}", DataFileContent.DATA), partition=(each // 10,)) for each in range(size))
    table.commit(*files)
    options = RewriteOptions({"target-file-size-bytes": "1000"}, "rewrite_data_files", "t")
    sizes, rules = options.sizes(1000), options.data_files()

    def work() -> None:
        snapshot = table.metadata.current_snapshot()
        made = plan_rewrite(table.metadata, snapshot, table.storage, sizes, rules, AlwaysTrue(), True)
        assert len(made.groups) == size // 10

    return work


def branched(size: int) -> TableMetadata:
    """A table of so many snapshots in a row, a branch at every third of them, and a log of as many versions."""
    snapshots = tuple(
        Snapshot(number, number - 1 or None, number, number, f"{LOCATION}/{number}") for number in range(1, size + 1)
    )
    refs = {f"b{number}": SnapshotRef(number, max_ref_age_ms=1) for number in range(1, size, 3)}
    return replace(
        ManifestTable(SCHEMA).metadata,
        snapshots=snapshots,
        refs={**refs, **{f"k{number}": SnapshotRef(number) for number in range(2, size, 3)}, "main": SnapshotRef(size)},
        current_snapshot_id=size,
        last_sequence_number=size,
        last_updated_ms=size,
        snapshot_log=tuple(SnapshotLogEntry(number, number) for number in range(1, size + 1)),
        metadata_log=tuple(MetadataLogEntry(f"{LOCATION}/{number}.json", number) for number in range(1, size + 1)),
    )


def expired_refs(size: int) -> Callable[[], Any]:
    """Finding out what branches keep, of which a half is too old."""
    metadata, workspace = branched(size), FileWorkspace(InMemoryStorage())
    update = ExpireSnapshots(older_than_ms=0, at_ms=size + 2)
    return lambda: update.apply(metadata, workspace)


def logged(size: int) -> Callable[[], Any]:
    """Reading the metadata table of versions, and a report's history."""
    metadata = branched(size)
    request = MetadataRequest(metadata, InMemoryStorage())

    def work() -> None:
        assert metadata_log_entries(request).frame.height == size
        assert len(_history(metadata)) == size

    return work


def file(name: str, content: DataFileContent, **more: Any) -> DataFile:
    """A file of one partition."""
    return DataFile(
        file_path=f"{LOCATION}/{name}.parquet",
        file_format="PARQUET",
        record_count=9,
        file_size_in_bytes=100,
        content=content,
        partition=(1,),
        **more,
    )


def entry(number: int, added: DataFile) -> ManifestEntry:
    """An entry of a file that one of many commits added."""
    return ManifestEntry(ManifestEntryStatus.EXISTING, number + 1, number + 1, number + 1, added)


WALLS = {
    "equality deletes, planned": Wall(
        "a partition of so many commits, each a data file and an equality delete file",
        planned(DataFileContent.EQUALITY_DELETES),
        (1_000, 3_000, 10_000),
        100,
    ),
    "equality deletes of few keys, planned": Wall(
        "the same, of which one in fifty has keys in common with a data file",
        planned(DataFileContent.EQUALITY_DELETES, 50),
        (1_000, 3_000, 10_000),
        100,
    ),
    "position deletes, planned": Wall(
        "a partition of so many commits, each a data file and a position delete file of the partition",
        planned(DataFileContent.POSITION_DELETES),
        (1_000, 3_000, 10_000),
        100,
    ),
    "equality deletes, told to Spark": Wall(
        "the plan of such a partition with equality deletes, as the JVM gets it",
        answered(DataFileContent.EQUALITY_DELETES),
        (1_000, 3_000, 10_000),
        100,
    ),
    "position deletes, told to Spark": Wall(
        "the plan of such a partition with position deletes, as the JVM gets it",
        answered(DataFileContent.POSITION_DELETES),
        (1_000, 3_000, 10_000),
        100,
    ),
    "equality deletes, read": Wall(
        "a table of so many commits, each of 2,000 rows written anew by their key", read, (100, 200, 400), 24
    ),
    "expiry": Wall(
        "a table of so many manifests of 20,000 files, of which one snapshot expires", expired, (64, 128, 256), 24
    ),
    "partition, overwritten": Wall(
        "a table of so many files, each manifest of partitions of its own: one partition is overwritten",
        removed(None, apart=True),
        (40_000, 80_000, 160_000),
        1_000,
    ),
    "partition, deleted": Wall(
        "a table of so many files, each manifest of partitions of its own: one partition is deleted by a filter",
        removed("part = 1", apart=True),
        (40_000, 80_000, 160_000),
        1_000,
    ),
    "partition in every manifest, deleted": Wall(
        "a table of so many files, each manifest of all partitions: one partition is deleted by a filter",
        removed("part = 1", apart=False),
        (40_000, 80_000, 160_000),
        1_000,
    ),
    "compaction, planned": Wall(
        "a partition of so many files, of which one in a hundred is too small",
        compacted,
        (40_000, 80_000, 160_000),
        1_000,
    ),
    "compaction of small partitions, planned": Wall(
        "so many files, all of them too small, in partitions of ten", compacted_parts, (10_000, 20_000, 40_000), 1_000
    ),
    "orphan files, found": Wall(
        "a table of so many files, all of them listed, with ten more", orphans, (100_000, 200_000, 400_000), 1_000
    ),
    "branches, expired": Wall("so many snapshots, two branches for three of them", expired_refs, (2_000, 8_000), 100),
    "versions and history, read": Wall("so many versions and snapshots", logged, (2_000, 8_000), 100),
}
