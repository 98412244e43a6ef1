"""Every operation on every format version, read by Apache Iceberg (Java), which then goes on with the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.arrow.write import write_data_files
from hms_iceberg.catalog import Catalog
from hms_iceberg.spec.manifests import DataFile
from hms_iceberg.spec.partitioning import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms import IdentityTransform
from hms_iceberg.spec.types import LongType, NestedField, StringType
from hms_iceberg.table import Table
from tests.support.tables import check_snapshot

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "city", StringType()))
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))


def rows(*ids: int, city: str = "Bonn") -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids)}, schema=ARROW)


def written(table: Table, *ids: int, city: str = "Bonn") -> DataFile:
    (file,) = write_data_files(table.metadata, table.storage, rows(*ids, city=city))
    return file


def live(table: Table, city: str = "Bonn") -> DataFile:
    """A data file of a city."""
    return next(task.file for task in table.scan(f"city = '{city}'").plan_files())


def append(table: Table) -> None:
    table.append(rows(20))


def merge_append(table: Table) -> None:
    table.set_properties({"commit.manifest.min-count-to-merge": "2"})
    table.new_append().append_file(written(table, 20)).commit()


def delete_by_filter(table: Table) -> None:
    table.delete("city = 'Köln'")


def delete_files(table: Table) -> None:
    table.new_delete().delete_file(live(table)).commit()


def delete_some_rows(table: Table) -> None:
    table.delete("id in (1, 11)")


def overwrite_by_filter(table: Table) -> None:
    table.overwrite(rows(30, 31, city="Köln"), "city = 'Köln'")


def overwrite_everything(table: Table) -> None:
    table.overwrite(rows(40))


def overwrite_files(table: Table) -> None:
    table.new_overwrite().delete_file(live(table)).add_file(written(table, 50)).isolation("serializable").commit()


def replace_partitions(table: Table) -> None:
    table.dynamic_partition_overwrite(rows(60, 61, city="Köln"))


def rewrite_files(table: Table) -> None:
    table.rewrite_files().delete_file(live(table)).add_file(written(table, 1, 2, 3)).commit()


def rewrite_manifests(table: Table) -> None:
    table.rewrite_manifests().commit()


def rollback(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()


def cherry_pick(table: Table) -> None:
    table.new_append().append_file(written(table, 70)).stage_only().set("wap.id", "w1").commit()
    staged = table.snapshots()[-1].snapshot_id
    table.append(rows(71))
    table.manage_snapshots().cherrypick(staged).commit()


def branches_and_tags(table: Table) -> None:
    table.manage_snapshots().create_branch("audit").create_tag("v1", max_ref_age_ms=10**12).commit()
    table.append(rows(80), branch="audit")
    table.manage_snapshots().fast_forward_branch("main", "audit").rename_branch("audit", "done").commit()


def expire(table: Table) -> None:
    table.append(rows(90))
    table.expire_snapshots().older_than(table.metadata.last_updated_ms + 1).commit()


def evolve_schema(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("note", StringType()).rename_column("id", "key").move_first("note")
    table.append(
        pa.table(
            {"note": ["n"], "key": [100], "city": ["Ulm"]},
            schema=pa.schema([pa.field("note", pa.string()), pa.field("key", pa.int64(), False), ARROW.field("city")]),
        )
    )


def evolve_partitioning(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("city").add_field("id", "bucket[4]")
    table.append(rows(110, 111))
    table.update_spec().add_identity("city").commit()
    table.append(rows(112))


def sort(table: Table) -> None:
    table.update_sort_order().desc("city").asc("id").commit()
    table.append(rows(121, 120))


def upgrade(table: Table) -> None:
    table.set_properties({"format-version": "3"})
    table.append(rows(130))


def several_at_once(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.append(rows(140))
        transaction.delete("city = 'Köln'")
        transaction.append(rows(141, city="Köln"))
        transaction.set_properties({"touched": "yes"})


OPERATIONS: dict[str, Callable[[Table], None]] = {
    each.__name__: each
    for each in (
        append,
        merge_append,
        delete_by_filter,
        delete_files,
        delete_some_rows,
        overwrite_by_filter,
        overwrite_everything,
        overwrite_files,
        replace_partitions,
        rewrite_files,
        rewrite_manifests,
        rollback,
        cherry_pick,
        branches_and_tags,
        expire,
        evolve_schema,
        evolve_partitioning,
        sort,
        upgrade,
        several_at_once,
    )
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_java_reads_and_continues_what_an_operation_left(
    iceberg_java: Any, catalog: Catalog, namespace: str, operation: str, version: int
) -> None:
    table = catalog.create_table(
        (namespace, "events"),
        SCHEMA,
        partition_spec=BY_CITY,
        properties={"format-version": str(version), "write.delete.mode": "copy-on-write"},
    )
    table.append(rows(1, 2, 3))
    table.append(rows(10, 11, 12, city="Köln"))
    OPERATIONS[operation](table)
    name = f"ice.{namespace}.events"
    key = table.schema().find_column_name(1)
    expected = table.scan().to_arrow().to_pylist()

    java = iceberg_java.sql(f"select * from {name}")
    columns = table.schema().column_names
    assert in_order([dict(zip(columns, row, strict=True)) for row in java], key) == in_order(expected, key)
    for snapshot in table.snapshots():
        check_snapshot(table.metadata, snapshot, table.storage)  # type: ignore[arg-type]
    files = iceberg_java.sql(f"select count(*), sum(record_count) from {name}.files")
    assert files == [[len(list(table.scan().plan_files())), len(expected)]]
    assert len(iceberg_java.sql(f"select * from {name}.snapshots")) == len(table.snapshots())
    refs = iceberg_java.sql(f"select name, snapshot_id from {name}.refs order by name")
    assert refs == [[ref, table.refs()[ref].snapshot_id] for ref in sorted(table.refs())]

    iceberg_java.sql(f"insert into {name} ({key}, city) values (999, 'Java')")
    iceberg_java.sql(f"delete from {name} where {key} = 1")
    gone = [row for row in expected if row[key] != 1]
    found = catalog.load_table((namespace, "events")).scan().to_arrow().to_pylist()
    assert in_order(found, key) == in_order([*gone, {**dict.fromkeys(columns), key: 999, "city": "Java"}], key)


def in_order(found: list[dict[str, Any]], key: str | None) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: row[key])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_java_reads_a_replaced_table_and_its_past(
    iceberg_java: Any, catalog: Catalog, namespace: str, version: int
) -> None:
    table = catalog.create_table((namespace, "events"), SCHEMA, properties={"format-version": str(version)})
    table.append(rows(1, 2))
    (old,) = table.snapshots()
    other = pa.schema([("city", pa.string()), ("score", pa.float64())])
    transaction = catalog.replace_table_transaction((namespace, "events"), other)
    transaction.append(pa.table({"city": ["Ulm"], "score": [1.5]}, schema=other))
    transaction.commit_transaction()
    name = f"ice.{namespace}.events"
    assert iceberg_java.sql(f"select * from {name}") == [["Ulm", 1.5]]
    past = iceberg_java.sql(f"select * from {name} version as of {old.snapshot_id} order by id")
    assert past == [[1, "Bonn"], [2, "Bonn"]]
