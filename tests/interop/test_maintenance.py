"""Our maintenance beside Apache Iceberg's on the same table: the same rows, the same live files, read by both."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.maintenance import (
    check_table,
    compute_partition_stats,
    compute_table_stats,
    convert_equality_deletes,
    expire_snapshots,
    remove_orphan_files,
    rewrite_data_files,
    rewrite_manifests,
    rewrite_position_delete_files,
    rewrite_table_path,
)
from hms_iceberg.spec.data_types import LongType, NestedField, StringType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from tests.support.hdfs_path import local_path, set_changed

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()), NestedField(3, "v", LongType()))
BY_P = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
MERGE_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "p": [["a", "b", None][each % 3] for each in ids], "v": [each * 10 for each in ids]})


def make(catalog: Catalog, name: str, version: int, keyed: bool = False, **properties: str) -> Table:
    """Four files a partition, rows of which are deleted by position, and by key where asked for."""
    given = MERGE_ON_READ | {"format-version": str(version)} | properties
    table = catalog.create_table(name, SCHEMA, partition_spec=BY_P, properties=given)
    for start in range(0, 48, 12):
        table.append(rows(*range(start, start + 12)))
    table.delete("id in (1, 14, 27)")
    table.delete("id in (2, 15)")
    if keyed:
        with table.new_row_delta() as delta:
            delta.delete_equal(pa.table({"id": [3, 40], "p": [None, "b"]}), columns=["id", "p"])
    return table


def java_rows(iceberg_java: Any, table: Table) -> list[list[Any]]:
    return sorted(iceberg_java.sql(f"select * from ice.{'.'.join(table.identifier)}"), key=repr)


def our_rows(table: Table) -> list[list[Any]]:
    return sorted(([*row.values()] for row in table.refresh().scan().to_arrow().to_pylist()), key=repr)


def read_by_all(iceberg_java: Any, pyiceberg_catalog: Any, table: Table) -> list[list[Any]]:
    """The rows, which Java and PyIceberg read as we do."""
    theirs = pyiceberg_catalog.load_table(".".join(table.identifier)).scan().to_arrow().to_pylist()
    found = our_rows(table)
    assert java_rows(iceberg_java, table) == sorted(([*row.values()] for row in theirs), key=repr) == found
    return found


def live_files(iceberg_java: Any, table: Table) -> list[list[Any]]:
    """Live files by kind and partition, with their rows, as Java tells them."""
    name = ".".join(table.identifier)
    query = f"select content, partition.p, count(*), sum(record_count) from ice.{name}.files group by 1, 2"
    return sorted(iceberg_java.sql(query), key=repr)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ({}, ""),
        ({"strategy": "sort", "sort_order": "v desc"}, ", strategy => 'sort', sort_order => 'v desc'"),
        ({"strategy": "sort", "sort_order": "zorder(id, v)"}, ", strategy => 'sort', sort_order => 'zorder(id, v)'"),
        ({"where": "p = 'a'"}, ", where => 'p = \"a\"'"),
    ],
)
def test_compaction_leaves_the_files_that_java_leaves(
    iceberg_java: Any,
    pyiceberg_catalog: Any,
    catalog: Catalog,
    namespace: str,
    version: int,
    arguments: dict[str, str],
    call: str,
) -> None:
    ours, theirs = (make(catalog, f"{namespace}.{name}", version) for name in ("ours", "theirs"))
    before = our_rows(ours)
    options = {"rewrite-all": "true", "remove-dangling-deletes": "true"}
    result = rewrite_data_files(ours, options=options, **arguments)
    ((rewritten, added, *_),) = iceberg_java.sql(
        f"call ice.system.rewrite_data_files(table => '{namespace}.theirs'{call},"
        " options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
    )
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (rewritten, added)
    assert read_by_all(iceberg_java, pyiceberg_catalog, ours) == before
    assert live_files(iceberg_java, ours) == live_files(iceberg_java, theirs)
    assert check_table(ours).findings == ()
    iceberg_java.sql(f"delete from ice.{namespace}.ours where id in (5, 6)")  # Java goes on where we left off
    assert java_rows(iceberg_java, ours) == our_rows(ours) == [row for row in before if row[0] not in (5, 6)]


def test_position_deletes_are_put_together_as_java_does(
    iceberg_java: Any, pyiceberg_catalog: Any, catalog: Catalog, namespace: str
) -> None:
    granular = {"write.delete.granularity": "partition"}
    ours, theirs = (make(catalog, f"{namespace}.{name}", 2, **granular) for name in ("ours", "theirs"))
    result = rewrite_position_delete_files(ours, options={"rewrite-all": "true"})
    ((rewritten, added, *_),) = iceberg_java.sql(
        f"call ice.system.rewrite_position_delete_files(table => '{namespace}.theirs',"
        " options => map('rewrite-all', 'true'))"
    )
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (rewritten, added)
    assert live_files(iceberg_java, ours) == live_files(iceberg_java, theirs)
    assert read_by_all(iceberg_java, pyiceberg_catalog, ours) == our_rows(theirs)


@pytest.mark.parametrize("version", [2, 3])
def test_java_reads_what_equality_deletes_became(
    iceberg_java: Any, pyiceberg_catalog: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    table = make(catalog, f"{namespace}.t", version, keyed=True)
    before = java_rows(iceberg_java, table)
    assert [3, None, 30] not in before and [40, "b", 400] not in before
    assert convert_equality_deletes(table).converted_equality_delete_files_count == 2
    assert read_by_all(iceberg_java, pyiceberg_catalog, table) == before
    kinds = iceberg_java.sql(f"select distinct content from ice.{namespace}.t.files order by 1")
    assert kinds == [[0], [1]]


@pytest.mark.parametrize("version", [2, 3])
def test_a_table_is_made_ready_to_be_copied_as_java_does(
    iceberg_java: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    table = make(catalog, f"{namespace}.t", version, keyed=True)
    source, target = table.location(), f"{table.location()}_copied"
    start = table.metadata.metadata_log[2].metadata_file.rsplit("/", 1)[-1]
    for chosen in ({}, {"start_version": start}):
        ours = rewrite_table_path(table, source, target, **chosen)
        arguments = "".join(f", {name} => '{value}'" for name, value in chosen.items())
        ((latest, file_list, manifests, deletes),) = iceberg_java.sql(
            f"call ice.system.rewrite_table_path(table => '{namespace}.t', source_prefix => '{source}',"
            f" target_prefix => '{target}'{arguments})"
        )
        assert (ours.latest_version, ours.rewritten_manifest_file_paths_count) == (latest, manifests)
        assert ours.rewritten_delete_file_paths_count == deletes
        staging = file_list.rsplit("/", 1)[0] + "/"
        theirs = dict(line.split(",") for line in table.storage.read(file_list).decode().splitlines())
        expected = {origin.replace(staging, ours.staging_location): place for origin, place in theirs.items()}
        assert ours.copies == expected
        if not chosen:
            for origin, place in ours.copies.items():
                table.storage.create(place, table.storage.read(origin))
    before = java_rows(iceberg_java, table)
    copied = catalog.register_table(f"{namespace}.copied", f"{target}/metadata/{ours.latest_version}")
    for info in list(table.storage.list(source)):
        table.storage.delete(info.location)
    assert java_rows(iceberg_java, copied) == our_rows(copied) == before
    iceberg_java.sql(f"delete from ice.{namespace}.copied where id = 5")
    assert java_rows(iceberg_java, copied) == our_rows(copied) == [row for row in before if row[0] != 5]


@pytest.mark.parametrize("version", [2, 3])
def test_manifests_are_put_together_as_java_does(
    iceberg_java: Any, pyiceberg_catalog: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    ours, theirs = (make(catalog, f"{namespace}.{name}", version) for name in ("ours", "theirs"))
    result = rewrite_manifests(ours)
    ((rewritten, added),) = iceberg_java.sql(f"call ice.system.rewrite_manifests('{namespace}.theirs')")
    assert (result.rewritten_manifests_count, result.added_manifests_count) == (rewritten, added)
    query = (
        "select content, partition_spec_id, added_data_files_count, existing_data_files_count,"
        " added_delete_files_count, existing_delete_files_count from ice.{}.manifests"
    )
    left = [sorted(iceberg_java.sql(query.format(f"{namespace}.{name}"))) for name in ("ours", "theirs")]
    assert left[0] == left[1]
    assert live_files(iceberg_java, ours) == live_files(iceberg_java, theirs)
    assert read_by_all(iceberg_java, pyiceberg_catalog, ours) == our_rows(theirs)
    assert check_table(ours).findings == ()


@pytest.mark.parametrize("version", [2, 3])
def test_snapshots_expire_with_the_files_that_java_deletes(
    iceberg_java: Any, pyiceberg_catalog: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    ours, theirs = (make(catalog, f"{namespace}.{name}", version, keyed=True) for name in ("ours", "theirs"))
    for table in (ours, theirs):
        compute_table_stats(table)
        convert_equality_deletes(table)
        rewrite_data_files(table, where="p = 'a'", options={"rewrite-all": "true", "remove-dangling-deletes": "true"})
    files = expire_snapshots(ours, older_than=2**62, retain_last=1).files
    (counts,) = iceberg_java.sql(
        f"call ice.system.expire_snapshots(table => '{namespace}.theirs', older_than => timestamp '2999-01-01',"
        " retain_last => 1)"
    )
    kinds = (files.data_files, files.position_delete_files, files.equality_delete_files)
    others = (files.manifests, files.manifest_lists, files.statistics_files)
    assert [len(kind) for kind in (*kinds, *others)] == counts
    assert live_files(iceberg_java, ours) == live_files(iceberg_java, theirs)
    assert read_by_all(iceberg_java, pyiceberg_catalog, ours) == our_rows(theirs)
    assert check_table(ours).findings == ()


def test_the_orphans_that_java_removes_are_removed(iceberg_java: Any, catalog: Catalog, namespace: str) -> None:
    left = []
    for name in ("ours", "theirs"):
        table = make(catalog, f"{namespace}.{name}", 2)
        lost = (
            "data/p=a/lost.parquet",
            "metadata/lost-m0.avro",
            "stray.orc",
            "data/_p=1/x.parquet",
            "data/new.parquet",
        )
        for each in (*lost, "data/_temporary/x.parquet", ".hidden/x.parquet", "data/.x.parquet"):
            table.storage.create(f"{table.location()}/{each}", b"x")
            if "new" not in each:
                set_changed(local_path(f"{table.location()}/{each}"), 10**9)  # nanoseconds: 0 is no time to us
        before = {info.location for info in table.storage.list(table.location())}
        if name == "ours":
            remove_orphan_files(table)
        else:
            iceberg_java.sql(f"call ice.system.remove_orphan_files(table => '{namespace}.theirs')")
        gone = before - {info.location for info in table.storage.list(table.location())}
        left.append(sorted(location.removeprefix(table.location()) for location in gone))
        assert java_rows(iceberg_java, table) == our_rows(table)
    assert left[0] == left[1] and len(left[0]) > 2


@pytest.mark.parametrize("version", [2, 3])
def test_partition_statistics_have_the_numbers_of_java(
    iceberg_java: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    table = make(catalog, f"{namespace}.t", version, keyed=True)
    for change in (lambda: None, lambda: table.append(rows(100, 101, 103))):
        change()
        theirs = _statistics_of_java(iceberg_java, table)
        ours = compute_partition_stats(table)
        assert ours is not None
        found = [{**row, "total_record_count": None} for row in _statistics_rows(ours.statistics_path)]
        assert found == [{**row, "total_record_count": None} for row in theirs]
        # Ours stay registered: Java counts on from them after the next change.


def _statistics_of_java(iceberg_java: Any, table: Table) -> list[dict[str, Any]]:
    """What Java counts for the current snapshot; its file is not registered any more afterwards."""
    name = ".".join(table.identifier)
    ((path,),) = iceberg_java.sql(f"call ice.system.compute_partition_stats(table => '{name}')")
    found = _statistics_rows(path)
    with table.refresh().update_statistics() as update:
        update.remove_partition_statistics(table.current_snapshot().snapshot_id)
    return found


def _statistics_rows(path: str) -> list[dict[str, Any]]:
    return sorted(pq.read_table(io.BytesIO(local_path(path).read_bytes())).to_pylist(), key=repr)


def test_java_uses_the_statistics(iceberg_java: Any, catalog: Catalog, namespace: str) -> None:
    table = make(catalog, f"{namespace}.t", 2)
    ours = compute_table_stats(table)
    ((path,),) = iceberg_java.sql(f"call ice.system.compute_table_stats(table => '{namespace}.t')")
    theirs = next(each for each in table.refresh().metadata.statistics if each.statistics_path == path)
    assert ours is not None

    def counts(file: Any) -> list[tuple[Any, ...]]:
        return sorted((blob.type, blob.fields, blob.properties["ndv"]) for blob in file.blob_metadata)

    assert counts(ours) == counts(theirs)
    assert compute_partition_stats(table) is not None
    # Java takes ours for its own, and counts on from there.
    table.append(rows(100))
    ((path,),) = iceberg_java.sql(f"call ice.system.compute_partition_stats(table => '{namespace}.t')")
    assert path
