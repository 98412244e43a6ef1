"""What PyIceberg's users reach from a table: the same names, arguments and meaning."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import (
    InvalidInputError,
    InvalidSchemaError,
    MissingDependencyError,
    MissingFileError,
    UnknownColumnError,
)
from hms_iceberg.expressions import EqualTo
from hms_iceberg.expressions.binding import bind
from hms_iceberg.expressions.text.parser import parse
from hms_iceberg.partitioning import PartitionField, PartitionFieldValue, PartitionKey, PartitionSpec
from hms_iceberg.schema import Schema, prune_columns
from hms_iceberg.spec.data_types import DateType, DoubleType, NestedField, StringType, StructType, TimestampType
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Operation
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform, MonthTransform
from hms_iceberg.table import Table
from hms_iceberg.table.metadata import TableMetadataV1, TableMetadataV2, TableMetadataV3
from hms_iceberg.table.sorting import SortField, SortOrder
from hms_iceberg.table.update.schema import UpdateSchema
from hms_iceberg.table.update.snapshot import ManageSnapshots, UpdateSnapshot
from hms_iceberg.table.update.sorting import UpdateSortOrder
from hms_iceberg.table.update.spec import UpdateSpec
from tests.support.memory_metastore import InMemoryMetastore
from tests.support.tables import QUICK

ARROW = pa.schema([("id", pa.int64()), ("city", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog("memory", InMemoryMetastore(), ArrowStorage({}), {"warehouse": str(tmp_path)})
    catalog.create_namespace("db", {"location": str(tmp_path / "db.db")})
    made = catalog.create_table("db.events", ARROW, properties=QUICK)
    with made.update_spec() as spec:
        spec.add_field("city", IdentityTransform())
    made.append(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Rome"]}, schema=ARROW))
    return made


def test_a_snapshot_tells_its_operation_its_summary_and_its_manifests(table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary.operation is Operation.APPEND
    assert snapshot.summary.additional_properties["added-records"] == "3"
    assert "operation" not in snapshot.summary.additional_properties
    assert snapshot.summary["no-such-key"] is None
    (manifest,) = snapshot.manifests(table.io)
    assert (manifest.has_added_files(), manifest.has_existing_files()) == (True, False)
    entries = manifest.fetch_manifest_entry(table.io)
    assert sum(entry.data_file.record_count for entry in entries) == 3


def test_removed_files_are_among_the_entries_of_a_manifest_only_when_asked_for(table: Table) -> None:
    table.delete("city = 'Oslo'")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    assert [
        sum(len(each.fetch_manifest_entry(table.io, discard)) for each in manifests) for discard in (True, False)
    ] == [1, 2]


def test_files_are_written_and_read_through_the_table_s_io(table: Table) -> None:
    location = table.location_provider().new_metadata_location("note.txt")
    assert location == f"{table.location()}/metadata/note.txt"
    output = table.io.new_output(location)
    with pytest.raises(MissingFileError):
        output.to_input_file()
    with output.create() as stream:
        stream.write(b"hello")
    with table.io.new_output(location).create(overwrite=True) as stream:
        stream.write(b"hi")
    read = output.to_input_file()
    assert (read.exists(), len(read), read.open().read(), table.io.read(location)) == (True, 2, b"hi", b"hi")
    table.io.delete(read)
    assert not table.io.new_input(location).exists()


@pytest.mark.parametrize(
    ("properties", "partition", "expected"),
    [
        ({}, None, "{table}/data/a.parquet"),
        ({}, "city=Oslo", "{table}/data/city=Oslo/a.parquet"),
        ({"write.data.path": "/elsewhere"}, None, "/elsewhere/a.parquet"),
        ({"write.object-storage.enabled": "true"}, None, "{table}/data/0111/0000/0111/10110101/a.parquet"),
    ],
)
def test_the_location_of_a_data_file_follows_the_table_s_properties(
    table: Table, properties: dict[str, str], partition: str | None, expected: str
) -> None:
    table.set_properties(properties)
    location = table.location_provider().new_data_location("a.parquet", partition)
    assert location == expected.format(table=table.location())


def test_a_table_knows_its_catalog_and_what_it_was_configured_with(table: Table) -> None:
    assert table.catalog is not None
    assert table.catalog.load_table("db.events") == table
    assert table.config == table.catalog.properties
    assert table.last_partition_id() == 1000


def test_a_schema_becomes_an_arrow_schema_with_field_ids(table: Table) -> None:
    schema = table.schema()
    arrow = schema.as_arrow()
    assert arrow.equals(table.scan().to_arrow().schema, check_metadata=True)
    assert (schema.columns, schema.field_ids) == (schema.fields, {1, 2})


def test_metadata_goes_through_json_and_back(table: Table) -> None:
    metadata = table.metadata
    text = metadata.model_dump_json()
    assert TableMetadata.model_validate_json(text) == metadata
    assert metadata.model_dump()["current-snapshot-id"] == metadata.current_snapshot_id


def test_a_transaction_shows_its_metadata_and_takes_files(table: Table) -> None:
    files = [task.file for task in table.scan("city = 'Rome'").plan_files()]
    with table.transaction() as transaction:
        with transaction.update_snapshot({"job": "7"}).delete() as delete:
            delete.delete_by_predicate("city = 'Oslo'")
        with transaction.update_snapshot().overwrite() as overwrite:
            overwrite.delete_data_file(files[0])
        with transaction.update_snapshot(branch=None).fast_append() as append:
            append.append_data_file(files[0])
        assert transaction.table_metadata is transaction.metadata
        assert len(transaction.table_metadata.snapshots) == 4
    assert table.snapshots()[1].summary["job"] == "7"
    assert table.scan().count() == 0, "the last one was staged"


def test_branches_and_tags_are_created_by_snapshot_and_name(table: Table) -> None:
    snapshot_id = table.metadata.current_snapshot_id
    assert snapshot_id is not None
    table.manage_snapshots().create_tag(snapshot_id, "v1").create_branch(None, "audit", 1000).commit()
    assert {name: ref.snapshot_id for name, ref in table.refs().items()} == dict.fromkeys(
        ("main", "v1", "audit"), snapshot_id
    )
    with pytest.raises(InvalidInputError, match="the snapshot's id comes first"):
        table.manage_snapshots().create_tag("v2", snapshot_id)  # type: ignore[arg-type]


def test_partitions_are_inspected_by_a_filter(table: Table) -> None:
    inspected = table.inspect.partitions(row_filter="city = 'Rome' and id > 0")
    assert inspected["partition"].to_pylist() == [{"city": "Rome"}]
    assert inspected["record_count"].to_pylist() == [2]
    assert table.inspect.partitions(row_filter="id = 17").num_rows == 2, "partitions say nothing of the column"


def test_snapshots_expire_step_by_step_with_the_files_that_only_they_needed(table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.delete("city = 'Oslo'")
    builder = table.maintenance.expire_snapshots().older_than(dt.datetime(2000, 1, 1)).by_id(first)
    assert builder.dry_run().snapshot_ids == (first,)
    kept = table.snapshots()[0].manifests(table.io)[0].manifest_path
    result = builder.clean_expired_files(False).commit()
    assert (result.snapshot_ids, result.deleted, len(table.snapshots())) == ((first,), 0, 1)
    assert table.io.new_input(kept).exists()
    second = table.metadata.current_snapshot_id
    assert second is not None
    table.append(pa.table({"id": [4], "city": ["Rome"]}, schema=ARROW))
    with table.maintenance.expire_snapshots() as expiry:
        expiry.by_ids([second])
    assert [each.snapshot_id for each in table.snapshots()] == [table.metadata.current_snapshot_id]
    assert table.maintenance.check().findings == ()


@pytest.mark.parametrize("library", ["daft", "ray", "bodo"])
def test_a_library_that_is_not_there_is_named(table: Table, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=f"pip install .*{library}"):
        getattr(table.scan(), f"to_{library}")()


def test_metadata_is_of_the_class_of_its_format_version(table: Table) -> None:
    assert isinstance(table.metadata, TableMetadataV2) and not isinstance(table.metadata, TableMetadataV1)
    assert TableMetadataV2.model_validate_json(table.metadata.model_dump_json()) == table.metadata
    assert table.metadata.model_copy(update={"location": "elsewhere"}).location == "elsewhere"
    with pytest.raises(InvalidInputError, match="format version 2"):
        TableMetadataV3.model_validate(table.metadata.model_dump())


def test_an_expression_binds_itself_to_a_schema(table: Table) -> None:
    assert EqualTo("ID", 1).bind(table.schema(), case_sensitive=False) == bind(table.schema(), parse("id = 1"))
    with pytest.raises(UnknownColumnError):
        (EqualTo("id", 1) & EqualTo("gone", 1)).bind(table.schema())


def test_a_partition_key_takes_values_of_python_and_gives_the_folder_of_a_file(table: Table) -> None:
    schema = Schema(NestedField(1, "at", TimestampType()), NestedField(2, "day", DateType()))
    day, month = PartitionField(2, 1000, IdentityTransform(), "day"), PartitionField(1, 1001, MonthTransform(), "month")
    values = [PartitionFieldValue(month, 13), PartitionFieldValue(day, dt.date(1970, 1, 3))]
    key = PartitionKey(values, PartitionSpec(day, month), schema)
    assert (key.partition, key.to_path()) == ((2, 13), "day=1970-01-03/month=1971-02")
    assert (
        table.location_provider()
        .new_data_location("x.parquet", key)
        .endswith("/day=1970-01-03/month=1971-02/x.parquet")
    )
    with pytest.raises(InvalidInputError, match="'month'"):
        PartitionKey(values[1:], PartitionSpec(day, month), schema).to_path()


def test_the_builders_of_changes_are_found_where_pyiceberg_has_them(table: Table) -> None:
    with table.transaction() as transaction:
        assert isinstance(transaction.update_schema(), UpdateSchema)
        assert isinstance(transaction.update_spec(), UpdateSpec)
        assert isinstance(transaction.update_sort_order(), UpdateSortOrder)
        assert isinstance(transaction.update_snapshot(), UpdateSnapshot)
    assert isinstance(table.manage_snapshots(), ManageSnapshots)
    assert prune_columns(table.schema(), {2}).column_names == ["city"]


def test_columns_of_text_come_as_dictionaries_if_asked_for(table: Table) -> None:
    scan = table.scan().filter(expr="id > 1")
    for rows in (
        scan.to_arrow(dictionary_columns=("city", "id")),
        scan.to_arrow_batch_reader(dictionary_columns=("city",)).read_all(),
        table.scan("id > 1", limit=2).to_arrow(dictionary_columns=("city",)),
    ):
        assert rows.schema.types == [pa.int64(), pa.dictionary(pa.int32(), pa.string())]
        assert rows.to_pylist() == [{"id": 2, "city": "Rome"}, {"id": 3, "city": "Rome"}]
    with pytest.raises(InvalidInputError):
        scan.to_arrow(dictionary_columns="city")  # type: ignore[arg-type]


def test_a_schema_and_a_scan_tell_names_and_partitions_as_pyiceberg_does(table: Table) -> None:
    assert table.schema().find_column_name(column_id=2) == "city"
    assert table.schema().name_mapping.to_json() == (
        '[{"field-id":1,"names":["id"]},{"field-id":2,"names":["city"]}]'
    ).replace(",", ", ").replace(":", ": ")
    filters = table.scan("city = 'Rome' and id > 1").partition_filters
    assert {spec_id: str(each) for spec_id, each in filters.items()} == {0: "true", 1: "city = 'Rome'"}
    with table.update_schema() as change:
        change.move_after(path="id", after_name="city").union_by_name(
            pa.schema([("more", pa.int32())]), format_version=2
        )
    assert table.schema().column_names == ["city", "id", "more"]


def test_the_first_example_of_pyicebergs_api_makes_a_table(table: Table, tmp_path: Path) -> None:
    assert table.catalog is not None
    details = StructType(NestedField(field_id=4, name="created_by", field_type=StringType(), required=False))
    schema = Schema(
        NestedField(field_id=1, name="datetime", field_type=TimestampType(), required=True),
        NestedField(field_id=2, name="symbol", field_type=StringType(), required=True),
        NestedField(field_id=4, name="ask", field_type=DoubleType(), required=False),
        NestedField(field_id=5, name="details", field_type=details, required=False),
    )
    spec = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=MonthTransform(), name="month"))
    order = SortOrder(SortField(source_id=2, transform=IdentityTransform()))
    made = table.catalog.create_table("db.bids", schema, partition_spec=spec, sort_order=order)
    assert made.schema().index_by_name == {"datetime": 1, "symbol": 2, "ask": 3, "details": 4, "details.created_by": 5}
    assert (made.spec().fields[0].source_id, made.sort_order().fields[0].source_id) == (1, 2)
    ambiguous = PartitionSpec(PartitionField(source_id=4, field_id=1000, transform=IdentityTransform(), name="x"))
    with pytest.raises(InvalidSchemaError, match="field id 4 is used by both"):
        table.catalog.create_table("db.other", schema, partition_spec=ambiguous)
