"""Position deletes that name their data file apply to it whatever its spec and partition, and whatever is done next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CommitConflictError
from hms_iceberg.maintenance import check_table, expire_snapshots
from hms_iceberg.maintenance.rewrite.data_files import rewrite_data_files
from hms_iceberg.maintenance.rewrite.rewrite_deletes import remove_dangling_deletes, rewrite_position_delete_files
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.path_deletes import commit_deletes, path_delete
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64()), ("city", pa.string())])
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
Rows = list[tuple[int, str]]

# Format version, format of delete files, how they name their file.
KINDS = [
    *((2, file_format, how) for file_format in ("parquet", "orc", "avro") for how in ("named", "bounds")),
    (3, "parquet", "named"),
]
# Spec and partition of the deletes; the data file is of spec 0 and partition Oslo.
HOMES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "other spec": (1, ("Rome", 3)),
    "other partition": (0, ("Rome",)),
}


@dataclass
class Case:
    """A table with rows 0 to 5 in Oslo and 6 to 9 in Rome, of which 1 and 4 are deleted by path."""

    catalog: Catalog
    table: Table
    rows: Rows
    home: tuple[int, tuple[Any, ...]]
    how: str

    def file(self, city: str = "Oslo") -> DataFile:
        (task,) = self.table.scan(f"city = '{city}'").plan_files()
        return task.file

    def delete(self, *positions: int) -> None:
        commit_deletes(self.table, path_delete(self.table, self.file(), positions, *self.home, self.how))

    def left(self) -> Rows:
        return whole(self.table)


def whole(table: Table) -> Rows:
    found = table.scan().to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["city"].to_pylist(), strict=True))


def made(folder: Path, kind: tuple[int, str, str], home: str, mode: str = "merge-on-read") -> Case:
    version, file_format, how = kind
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(folder)})
    catalog.create_namespace("db", {"location": str(folder / "db")})
    modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    properties = {**QUICK, **modes, "format-version": str(version), "write.delete.format.default": file_format}
    table = catalog.create_table("db.t", ARROW, partition_spec=BY_CITY, properties=properties)
    rows = [(number, "Oslo" if number < 6 else "Rome") for number in range(10)]
    table.append(pa.Table.from_pylist([{"id": key, "city": city} for key, city in rows], schema=ARROW))
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    case = Case(catalog, table, rows, HOMES[home], how)
    case.delete(1, 4)
    case.rows = [row for row in rows if row[0] not in (1, 4)]
    return case


def copied(case: Case) -> None:
    case.table.set_properties({"write.delete.mode": "copy-on-write"})
    case.table.delete("city = 'Oslo' and id = 2")
    case.rows.remove((2, "Oslo"))


def merged(case: Case) -> None:
    case.table.delete("city = 'Oslo' and id = 2")
    case.rows.remove((2, "Oslo"))


def updated(case: Case) -> None:
    case.table.update({"id": 100}, "city = 'Oslo' and id <= 2")
    case.rows = [row for row in case.rows if row not in ((0, "Oslo"), (2, "Oslo"))] + [(100, "Oslo")] * 2


def twice(case: Case) -> None:
    if case.table.format_version == 2:
        case.delete(0)
        case.rows.remove((0, "Oslo"))
    merged(case)


def upgraded(case: Case) -> None:
    case.table.set_properties({"format-version": "3"})
    merged(case)


def fewer_deletes(case: Case) -> None:
    rewrite_position_delete_files(case.table, options={"rewrite-all": True})


def fewer_deletes_of_two_partitions(case: Case) -> None:
    if case.table.format_version == 2:
        commit_deletes(case.table, path_delete(case.table, case.file(), [0], 0, ("Oslo",), "named"))
        case.rows.remove((0, "Oslo"))
        case.table.set_properties({"format-version": "3"})
    result = rewrite_position_delete_files(case.table, options={"rewrite-all": True})
    assert result.failures == ()


ACTIONS: list[Callable[[Case], object]] = [
    copied,
    merged,
    updated,
    twice,
    upgraded,
    fewer_deletes,
    fewer_deletes_of_two_partitions,
    lambda case: rewrite_data_files(case.table, options={"rewrite-all": True}),
    lambda case: rewrite_data_files(case.table, where="city = 'Oslo'", options={"rewrite-all": True}),
    lambda case: remove_dangling_deletes(case.table),
    lambda case: expire_snapshots(case.table, older_than=2**62),
    lambda case: case.table.rewrite_manifests().commit(),
]


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind)))
def test_deletes_by_path_apply_whatever_is_done_next(kind: tuple[int, str, str], home: str, tmp_path: Path) -> None:
    for number, action in enumerate(ACTIONS if kind[1] == "parquet" else [merged]):
        case = made(tmp_path / str(number), kind, home)
        assert case.left() == case.rows, number
        assert case.table.scan().count() == len(case.rows)
        assert case.table.scan("id < 6").count() == len([row for row in case.rows if row[0] < 6])
        action(case)
        assert case.left() == sorted(case.rows), number
        assert check_table(case.table.refresh(), record_counts=True).ok


@pytest.mark.parametrize("kind", [(2, "parquet", "named"), (2, "avro", "bounds"), (3, "parquet", "named")], ids=str)
def test_a_file_that_is_written_anew_meanwhile_conflicts_with_deletes_by_its_path(
    kind: tuple[int, str, str], tmp_path: Path
) -> None:
    for mode in ("copy-on-write", "merge-on-read"):
        case = made(tmp_path / mode, kind, "other spec", mode)
        # Deletes that come while rows are written anew.
        late = case.catalog.load_table("db.t")
        begun = late.transaction()
        begun.delete("city = 'Oslo' and id = 2")
        if kind[0] == 2:
            case.delete(5)
        else:
            case.table.delete("id = 5")
        case.rows.remove((5, "Oslo"))
        if mode == "copy-on-write" or kind[0] == 3:
            with pytest.raises(CommitConflictError):
                begun.commit_transaction()
        assert case.left() == case.rows
    # Data that is written anew while deletes are made.
    case = made(tmp_path / "compacted", kind, "other spec")
    deletes = path_delete(case.table, case.file(), [5], *case.home, case.how)
    stale = case.catalog.load_table("db.t")
    rewrite_data_files(case.table, options={"rewrite-all": True})
    with pytest.raises(CommitConflictError, match="removed a data file that the change refers to"):
        commit_deletes(stale, deletes)
    assert case.left() == case.rows


def test_a_delete_that_does_not_apply_is_not_made_to_by_rewriting_deletes(tmp_path: Path) -> None:
    case = made(tmp_path, (2, "parquet", "named"), "other partition")
    # Of several files by its bounds, so that its partition counts: none of its rows is of a file of that partition.
    oslo, table = case.file(), case.table
    table.set_properties({"write.delete.granularity": "partition"})
    first = path_delete(table, oslo, [0], 0, ("Rome",), "bounds")
    both = replace(first, lower_bounds=None, upper_bounds=None)
    commit_deletes(table, both)
    assert whole(table) == case.rows
    rewrite_position_delete_files(table, options={"rewrite-all": True})
    assert whole(table) == case.rows
