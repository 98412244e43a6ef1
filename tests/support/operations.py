"""Every operation that a table can undergo, by name, each on a small table of two cities.

Tests run them all and look at what they leave: through this project's own check, and through peers.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from hms_iceberg import maintenance
from hms_iceberg.arrow.deletes.puffin import PuffinBlob, write_puffin
from hms_iceberg.arrow.reading.row_rewrites import RowRewriter
from hms_iceberg.arrow.writing.write import write_data_files
from hms_iceberg.spec.data_types import DoubleType, IntegerType, LongType, NestedField, StringType
from hms_iceberg.spec.manifests.manifest_values import DataFile, ManifestContent
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.snapshots_and_refs import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.table import Table
from hms_iceberg.updates.rewrite_manifests import RewriteManifests

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "amount", IntegerType()),
    identifier_field_ids=[1],
)
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string()), ("amount", pa.int32())])
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
MERGE_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
ALL, WITH_DELETES, LINEAGE = (1, 2, 3), (2, 3), (3,)


@dataclass(frozen=True)
class TableOperation:
    """One operation.

    Attributes:
        run: does it to a table that `begin` made; returns the table where that is another one.
        versions: the format versions that know it.
        properties: of the table.
        java_lineage: whether Apache Iceberg tells the row ids of the table's files.
    """

    run: Callable[[Table], None]
    versions: tuple[int, ...] = ALL
    properties: Mapping[str, str] = field(default_factory=dict)
    java_lineage: bool = True


OPERATIONS: dict[str, TableOperation] = {}


def _operation(
    versions: tuple[int, ...] = ALL, properties: Mapping[str, str] | None = None, java_lineage: bool = True
) -> Callable[[Callable[[Table], None]], Callable[[Table], None]]:
    def register(run: Callable[[Table], None]) -> Callable[[Table], None]:
        OPERATIONS[run.__name__] = TableOperation(run, versions, properties or {}, java_lineage)
        return run

    return register


def begin(table: Table) -> None:
    """The rows that every operation finds: 1, 2, 3 of Bonn and 10, 11, 12 of Köln, in two snapshots."""
    table.append(rows(1, 2, 3))
    table.append(rows(10, 11, 12, city="Köln"))


def rows(*ids: int, city: str | None = "Bonn", amount: int | None = None) -> pa.Table:
    """Rows of one city."""
    amounts = [each * 2 if amount is None else amount for each in ids]
    return pa.table({"id": list(ids), "city": [city] * len(ids), "amount": amounts}, schema=ARROW)


def written(table: Table, *ids: int, city: str = "Bonn") -> DataFile:
    """A data file of rows, which is no part of the table yet."""
    (file,) = write_data_files(table.metadata, table.storage, rows(*ids, city=city))
    return file


def live(table: Table, city: str = "Bonn") -> DataFile:
    """A data file of a city."""
    return next(task.file for task in table.scan(f"city = '{city}'").plan_files())


def compacted(table: Table, city: str) -> DataFile:
    """The live rows of a city in one new file, with the lineage they have."""
    schema = RowRewriter(table.metadata, table.storage).schema
    found = table.scan(f"city = '{city}'").select(*schema.column_names).to_arrow()
    (file,) = write_data_files(table.metadata, table.storage, found, schema=schema)
    return file


# ------------------------------------------------------------------------------------------------- appending


@_operation()
def append(table: Table) -> None:
    table.append(rows(20))


@_operation()
def fast_append_of_files(table: Table) -> None:
    table.new_fast_append().append_file(written(table, 20)).append_file(written(table, 21, city="Ulm")).commit()


@_operation(properties={"commit.manifest.min-count-to-merge": "2"})
def merge_append(table: Table) -> None:
    table.new_append().append_file(written(table, 20)).commit()


@_operation()
def add_files_by_name(table: Table) -> None:
    folder = Path(table.location().removeprefix("file:")) / "imported" / "city=Ulm"
    folder.mkdir(parents=True)
    plain = pa.table({"id": pa.array([30, 31], pa.int64()), "amount": pa.array([60, None], pa.int32())})
    pq.write_table(plain, folder / "a.parquet")
    orc.write_table(plain, folder / "b.orc")
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "id", "type": "long"}, {"name": "amount", "type": "int"}],
    }
    with open(folder / "c.avro", "wb") as file:
        fastavro.writer(file, schema, [{"id": 32, "amount": 64}])
    table.add_files([str(folder / name) for name in ("a.parquet", "b.orc", "c.avro")])
    with table.update_schema() as change:
        change.rename_column("amount", "total")


# -------------------------------------------------------------------------------------------------- removing


@_operation()
def delete_by_filter(table: Table) -> None:
    table.delete("city = 'Köln'")


@_operation()
def delete_files(table: Table) -> None:
    table.new_delete().delete_file(live(table)).commit()


@_operation()
def delete_rows_copy_on_write(table: Table) -> None:
    table.delete("id in (2, 11)")


@_operation(WITH_DELETES, MERGE_ON_READ)
def delete_rows_merge_on_read(table: Table) -> None:
    table.delete("id in (2, 11)")
    table.delete("id = 3")


@_operation(WITH_DELETES, {**MERGE_ON_READ, "write.delete.granularity": "partition"})
def delete_rows_by_partition(table: Table) -> None:
    table.append(rows(4, 5))
    table.delete("id in (2, 5, 11)")


@_operation(WITH_DELETES)
def equality_deletes(table: Table) -> None:
    with table.new_row_delta() as delta:
        delta.delete_equal(rows(2).select(["id", "city"]), ["id"])
        delta.add_rows(rows(2, amount=-2))
    with table.update_spec() as spec:
        spec.remove_field("city")  # deletes of an unpartitioned spec apply everywhere
    table.new_row_delta().delete_equal(pa.table({"id": [12]}), ["id"]).commit()


@_operation(WITH_DELETES)
def row_delta(table: Table) -> None:
    where = table.scan("id = 10").select("_file", "_pos").to_arrow().rename_columns(["file_path", "pos"])
    with table.new_row_delta() as delta:
        delta.delete_positions(where)
        delta.delete_equal(rows(1).select(["id", "city"]), ["id"])
        delta.add_rows(rows(21, 22))


# ------------------------------------------------------------------------------------------------- replacing


@_operation()
def overwrite_by_filter(table: Table) -> None:
    table.overwrite(rows(30, 31, city="Köln"), "city = 'Köln'")


@_operation()
def overwrite_everything(table: Table) -> None:
    table.overwrite(rows(40))


@_operation()
def overwrite_files(table: Table) -> None:
    table.new_overwrite().delete_file(live(table)).add_file(written(table, 50)).isolation("serializable").commit()


@_operation()
def dynamic_partition_overwrite(table: Table) -> None:
    table.dynamic_partition_overwrite(rows(60, 61, city="Köln"))


@_operation()
def update_copy_on_write(table: Table) -> None:
    table.update({"amount": -1, "city": "Ulm"}, "id in (2, 11)")


@_operation(WITH_DELETES, MERGE_ON_READ)
def update_merge_on_read(table: Table) -> None:
    table.update({"amount": -1, "city": "Ulm"}, "id in (2, 11)")


@_operation()
def upsert_copy_on_write(table: Table) -> None:
    table.upsert(pa.concat_tables([rows(2, amount=0), rows(3), rows(13, city="Ulm")]))


@_operation(WITH_DELETES, MERGE_ON_READ)
def upsert_merge_on_read(table: Table) -> None:
    table.upsert(pa.concat_tables([rows(2, amount=0), rows(3), rows(13, city="Ulm")]))


# ------------------------------------------------------------------------------------------------- rewriting


@_operation()
def rewrite_files(table: Table) -> None:
    table.append(rows(4))
    change = table.rewrite_files()
    for task in table.scan("city = 'Bonn'").plan_files():
        change.delete_file(task.file)
    change.add_file(compacted(table, "Bonn")).commit()


@_operation(WITH_DELETES, MERGE_ON_READ)
def rewrite_files_with_deletes(table: Table) -> None:
    sequence_number = table.last_sequence_number
    table.delete("id = 2")
    change = table.rewrite_files().data_sequence_number(sequence_number)
    for task in table.scan("city = 'Bonn'").plan_files():
        change.delete_file(task.file)
        for deletes in task.delete_files:
            change.delete_file(deletes)
    change.add_file(compacted(table, "Bonn")).commit()


@_operation()
def rewrite_manifests(table: Table) -> None:
    table.rewrite_manifests().commit()


@_operation(WITH_DELETES, MERGE_ON_READ)
def rewrite_delete_manifests(table: Table) -> None:
    table.delete("id = 2")
    table.delete("id = 11")
    with table.transaction() as transaction:
        transaction.add(RewriteManifests(content=ManifestContent.DELETES))


# ------------------------------------------------------------------------------------- snapshots and references


@_operation()
def rollback_to_snapshot(table: Table) -> None:
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()


@_operation()
def rollback_to_timestamp(table: Table) -> None:
    first, second = table.snapshots()
    assert first.timestamp_ms < second.timestamp_ms
    table.manage_snapshots().rollback_to_timestamp(second.timestamp_ms).commit()


@_operation()
def set_current_snapshot(table: Table) -> None:
    newest = table.snapshots()[1].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    table.manage_snapshots().set_current_snapshot(newest).commit()


@_operation()
def branches_and_tags(table: Table) -> None:
    table.manage_snapshots().create_branch(None, "audit").create_tag(None, "v1", max_ref_age_ms=10**12).commit()
    table.append(rows(80), branch="audit")
    table.manage_snapshots().fast_forward_branch("main", "audit").rename_branch("audit", "done").commit()
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().replace_tag("v1", first).create_branch(first, "old", min_snapshots_to_keep=2).commit()
    table.delete("id = 1", branch="old")


@_operation(properties={"write.wap.enabled": "true"})
def write_audit_publish(table: Table) -> None:
    table.append(rows(72), {"wap.id": "a"})
    table.update({"amount": 0}, "id = 1", {"wap.id": "b"})
    table.append(rows(73), {"wap.branch": "audit"})
    staged = [each.snapshot_id for each in table.snapshots() if "wap.id" in each.summary]
    table.manage_snapshots().cherrypick(staged[0]).commit()


@_operation()
def cherry_pick_an_append(table: Table) -> None:
    table.new_append().append_file(written(table, 70)).stage_only().set("wap.id", "w1").commit()
    staged = table.snapshots()[-1].snapshot_id
    table.append(rows(71))
    table.manage_snapshots().cherrypick(staged).commit()


@_operation()
def cherry_pick_replaced_partitions(table: Table) -> None:
    table.manage_snapshots().create_branch(None, "audit").commit()
    table.dynamic_partition_overwrite(rows(60, 61, city="Köln"), branch="audit")
    picked = table.refs()["audit"].snapshot_id
    table.append(rows(71))
    table.manage_snapshots().cherrypick(picked).commit()


@_operation()
def cherry_pick_fast_forward(table: Table) -> None:
    table.new_overwrite().delete_file(live(table)).add_file(written(table, 70)).stage_only().commit()
    table.manage_snapshots().cherrypick(table.snapshots()[-1].snapshot_id).commit()


@_operation()
def expire_snapshots(table: Table) -> None:
    table.delete("city = 'Köln'")
    table.append(rows(90))
    table.expire_snapshots().older_than(table.metadata.last_updated_ms + 1).commit()


@_operation(properties={"write.delete.mode": "copy-on-write"})
def expire_snapshots_and_files(table: Table) -> None:
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first").commit()
    table.delete("id in (2, 11)")
    table.rewrite_manifests().commit()
    maintenance.expire_snapshots(table, older_than=table.metadata.last_updated_ms + 1)


@_operation()
def statistics_files(table: Table) -> None:
    snapshot = table.snapshots()[-1]
    blob = PuffinBlob("example-v1", (1,), b"\x01\x02", {"ndv": "6"}, snapshot.snapshot_id, snapshot.sequence_number)
    path = f"{table.location()}/metadata/{snapshot.snapshot_id}.stats"
    size = write_puffin(table.storage, path, [blob]).size
    content = table.storage.read(path)
    footer = int.from_bytes(content[-12:-8], "little") + 16
    blobs = (BlobMetadata(blob.type, snapshot.snapshot_id, snapshot.sequence_number, (1,), dict(blob.properties)),)
    first = table.snapshots()[0]
    partitions = f"{table.location()}/metadata/partition-stats-{first.snapshot_id}.parquet"
    counts = {"data_record_count": "total-records", "data_file_count": "total-data-files"}
    written = io.BytesIO()
    pq.write_table(pa.table({name: [int(first.summary[key])] for name, key in counts.items()}), written)
    table.storage.create(partitions, written.getvalue())
    change = table.update_statistics()
    change.set_statistics(StatisticsFile(snapshot.snapshot_id, path, size, footer, blobs))
    change.set_statistics(PartitionStatisticsFile(first.snapshot_id, partitions, len(written.getvalue())))
    change.commit()


# ---------------------------------------------------------------------------------------------------- definition


@_operation()
def evolve_schema(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("note", StringType()).move_first("note")
        schema.rename_column("id", "key").update_column("amount", field_type=LongType())
    new = {"note": ["n"], "key": [100], "city": ["Ulm"], "amount": [2**40]}
    kinds = [("note", pa.string()), pa.field("key", pa.int64(), False), ("city", pa.string()), ("amount", pa.int64())]
    table.append(pa.table(new, schema=pa.schema(kinds)))
    with table.update_schema() as schema:
        schema.delete_column("amount")


@_operation(LINEAGE)
def default_values(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("rate", DoubleType(), default_value=2.5)
    table.append(rows(100))


@_operation()
def evolve_partitioning(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("city").add_field("id", "bucket[4]")
    table.append(rows(110, 111))
    table.update_spec().add_identity("city").commit()
    table.append(rows(112))


@_operation()
def sort_order(table: Table) -> None:
    table.update_sort_order().desc("city").asc("id").commit()
    table.append(rows(121, 120))


@_operation((1, 2))
def upgrade(table: Table) -> None:
    table.set_properties({"format-version": str(table.format_version + 1)})
    table.append(rows(130))
    if table.format_version == 2:
        table.set_properties({"format-version": "3"})
        table.update({"amount": 0}, "id = 130")


@_operation()
def several_at_once(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.append(rows(140))
        transaction.delete("city = 'Köln'")
        transaction.append(rows(141, city="Köln"))
        transaction.set_properties({"touched": "yes"})


# --------------------------------------------------------------------------------------------------- file formats


def _of_format(name: str) -> dict[str, str]:
    return {"write.format.default": name, "write.delete.format.default": name, **MERGE_ON_READ}


@_operation(properties={"write.format.default": "orc"}, java_lineage=False)
def orc_data(table: Table) -> None:
    table.delete("id = 2")
    table.upsert(pa.concat_tables([rows(3, amount=0), rows(13)]))


@_operation(properties={"write.format.default": "avro"}, java_lineage=False)
def avro_data(table: Table) -> None:
    table.delete("id = 2")
    table.upsert(pa.concat_tables([rows(3, amount=0), rows(13)]))


@_operation(WITH_DELETES, _of_format("orc"), java_lineage=False)
def orc_data_and_deletes(table: Table) -> None:
    table.delete("id = 2")
    table.new_row_delta().delete_equal(rows(11, city="Köln").select(["id", "city"]), ["id"]).commit()


@_operation(WITH_DELETES, _of_format("avro"), java_lineage=False)
def avro_data_and_deletes(table: Table) -> None:
    table.delete("id = 2")
    table.new_row_delta().delete_equal(rows(11, city="Köln").select(["id", "city"]), ["id"]).commit()
