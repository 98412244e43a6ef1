"""Work that once grew faster than what it was done on."""

from __future__ import annotations

import atexit
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
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus
from hms_iceberg.spec.metadata.metadata_changes import remove_snapshots
from hms_iceberg.spec.partition_transforms import IdentityTransform
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.transaction.workspace import FileWorkspace
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.rows.overwrite import Overwrite, ReplacePartitions
from hms_iceberg.updates.snapshots.expire_snapshots import unreachable_files
from tests.support.snapshots import LOCATION, ManifestTable

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "part", LongType()))
ROWS_READ = 2_000
FILES_IN_MANIFEST = 8_000
BY_PART = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))


@dataclass(frozen=True)
class Wall:
    """Work of any size.

    Args:
        what: what is done.
        make: prepares a size, and gives the work.
        sizes: what sizes are measured.
    """

    what: str
    make: Callable[[int], Callable[[], Any]]
    sizes: tuple[int, ...]


def planned(kind: DataFileContent) -> Callable[[int], Callable[[], Any]]:
    """Planning a partition to which each of many commits added a data file and a delete file."""

    def make(size: int) -> Callable[[], Any]:
        table = checkpoints(size, kind)
        return lambda: sum(len(task.delete_files) for task in table.plan().tasks())

    return make


def checkpoints(size: int, kind: DataFileContent) -> ManifestTable:
    """A partition to which each of many commits added a data file, and deletes of earlier rows anywhere."""
    table = ManifestTable(SCHEMA, BY_PART)
    bounds = {"lower_bounds": {1: to_bytes(LongType(), 0)}, "upper_bounds": {1: to_bytes(LongType(), 9)}}
    more: dict[str, Any] = {"value_counts": {1: 9}, "null_value_counts": {1: 0}, **bounds}
    keys = {"equality_ids": (1,)} if kind is DataFileContent.EQUALITY_DELETES else {}
    table.commit(
        *(entry(number, file(f"data/{number}", DataFileContent.DATA, **more)) for number in range(size)),
        *(entry(number, file(f"deletes/{number}", kind, **keys, **more)) for number in range(size)),
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
        tasks = table.plan().tasks()
        batches = read_tasks(tasks, SCHEMA, SCHEMA, table.metadata, storage)
        return sum(batch.num_rows for batch in batches)

    return work


def expired(size: int) -> Callable[[], Any]:
    """Finding the files that only an expired snapshot needed, in a table of so many large manifests."""
    table = ManifestTable(SCHEMA, BY_PART)
    many = [entry(number, file(f"data/{number:0200}", DataFileContent.DATA)) for number in range(20_000)]
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
    ),
    "position deletes, planned": Wall(
        "a partition of so many commits, each a data file and a position delete file of the partition",
        planned(DataFileContent.POSITION_DELETES),
        (1_000, 3_000, 10_000),
    ),
    "equality deletes, read": Wall(
        "a table of so many commits, each of 2,000 rows written anew by their key", read, (100, 200, 400)
    ),
    "expiry": Wall(
        "a table of so many manifests of 20,000 files, of which one snapshot expires", expired, (64, 128, 256)
    ),
    "partition, overwritten": Wall(
        "a table of so many files, each manifest of partitions of its own: one partition is overwritten",
        removed(None, apart=True),
        (40_000, 80_000, 160_000),
    ),
    "partition, deleted": Wall(
        "a table of so many files, each manifest of partitions of its own: one partition is deleted by a filter",
        removed("part = 1", apart=True),
        (40_000, 80_000, 160_000),
    ),
    "partition in every manifest, deleted": Wall(
        "a table of so many files, each manifest of all partitions: one partition is deleted by a filter",
        removed("part = 1", apart=False),
        (40_000, 80_000, 160_000),
    ),
}
