"""Tables in need of care, to which one side after the other comes as they were."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from hms_iceberg.arrow.storage.filesystems import parse_location
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.data_types import LongType, NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import to_bytes
from hms_iceberg.table import Table

NUMBERS = Schema(*(NestedField(number, f"c{number}", LongType()) for number in range(1, 11)))
NAMES = [field.name for field in NUMBERS.fields]
BY_FIRST = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "c1"))
LARGEST = 10**6  # values are below it
FILES_A_COMMIT = 20


class Original:
    """A table that is brought back as it was made: its files are kept as links in a folder beside it."""

    def __init__(self, catalog: Catalog, table: Table) -> None:
        self._catalog = catalog
        self.name = ".".join(table.identifier)
        self._metadata_location = table.metadata_location
        self._folder = Path(parse_location(table.location()).path)
        self._kept = self._folder.with_name(self._folder.name + "_kept")
        shutil.copytree(self._folder, self._kept, copy_function=os.link)

    def restored(self) -> Table:
        """The table as it was made."""
        self._catalog.drop_table(self.name)
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._kept, self._folder, copy_function=os.link)
        return self._catalog.register_table(self.name, self._metadata_location)

    def files(self, folder: str) -> set[str]:
        """The files below a folder of the table."""
        return {str(path.relative_to(self._folder)) for path in (self._folder / folder).rglob("*") if path.is_file()}


def empty_table(catalog: Catalog, name: str, spec: PartitionSpec = UNPARTITIONED, **properties: str) -> Table:
    """A table of ten columns of numbers."""
    given = {"commit.manifest-merge.enabled": "false"} | properties
    return catalog.create_table(f"bench.{name}", NUMBERS, partition_spec=spec, properties=given)


def table_of_rows(catalog: Catalog, name: str, files: int, rows: int, **properties: str) -> Table:
    """So many files with so many random rows each, in one snapshot."""
    table = empty_table(catalog, name, **properties)
    rng = np.random.default_rng(1)
    change = table.new_fast_append()
    for _ in range(files):
        columns = [pa.array(rng.integers(0, LARGEST, rows)) for _ in NAMES]
        for file in write_data_files(table.metadata, table.storage, pa.table(columns, NAMES)):
            change.append_file(file)
    change.commit()
    return table.refresh()


def table_of_snapshots(catalog: Catalog, name: str, snapshots: int) -> Table:
    """Snapshots that each take the files of the one before away."""
    table = empty_table(catalog, name, **{"write.metadata.previous-versions-max": "1"})
    last: Sequence[DataFile] = ()
    with table.transaction() as transaction:
        for number in range(snapshots):
            new = [_fake_file(table, number * FILES_A_COMMIT + each) for each in range(FILES_A_COMMIT)]
            change = transaction.new_overwrite()
            for file in last:
                change.delete_file(file)
            for file in new:
                change.add_file(file)
            change.commit()
            last = new
    return table.refresh()


def table_with_orphans(catalog: Catalog, name: str, files: int, orphans: int) -> Table:
    """Files long since written, some of which no snapshot names."""
    table = empty_table(catalog, name)
    change = table.new_fast_append()
    for number in range(files):
        change.append_file(_fake_file(table, number))
    change.commit()
    for number in range(orphans):
        table.storage.create(f"{table.location()}/data/lost-{number}.parquet", b"x")
    for info in table.storage.list(f"{table.location()}/data"):
        os.utime(parse_location(info.location).path, (0, 0))
    return table.refresh()


def table_of_manifests(catalog: Catalog, name: str, manifests: int, files: int) -> Table:
    """Manifests that each hold files of every partition, which do not exist."""
    table = empty_table(catalog, name, BY_FIRST)
    with table.transaction() as transaction:
        for number in range(manifests):
            change = transaction.new_fast_append()
            for each in range(files):
                change.append_file(_fake_file(table, number * files + each, made=False))
            change.commit()
    return table.refresh()


def _fake_file(table: Table, number: int, made: bool = True) -> DataFile:
    """A file that nobody reads, in one of a hundred partitions where the table has them."""
    location = f"{table.location()}/data/{number:07}.parquet"
    if made:
        table.storage.create(location, b"x")
    bound = {field.field_id: to_bytes(LongType(), number) for field in NUMBERS.fields}
    counts = dict.fromkeys(bound, 1000)
    return DataFile(
        file_path=location,
        file_format="PARQUET",
        record_count=1000,
        file_size_in_bytes=1,
        partition=() if table.spec().is_unpartitioned() else (number % 100,),
        value_counts=counts,
        null_value_counts=dict.fromkeys(bound, 0),
        column_sizes=counts,
        lower_bounds=bound,
        upper_bounds=bound,
    )
