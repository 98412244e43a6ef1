"""A table's row in the metastore, made from its metadata."""

from __future__ import annotations

import copy
import json
import logging
from dataclasses import replace

import pytest

from hms_iceberg.errors import NoSuchTableError, NotAnIcebergTableError
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import RowSettings, is_iceberg_table, new_row, table_pointer, update_row
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.metadata.metadata_definition import remove_properties, set_properties
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.snapshots_and_refs import Snapshot
from tests.support.tables import BY_CITY, World, data_file, metadata

NAME = ("db", "events")
SETTINGS = RowSettings()


def version(content: TableMetadata, number: int = 0) -> MetadataVersion:
    return MetadataVersion(f"{content.location}/metadata/{number:05d}-x.metadata.json", content)


def created(content: TableMetadata | None = None, settings: RowSettings = SETTINGS) -> ttypes.Table:
    row = new_row(NAME, version(content or metadata()), settings)
    del row.parameters["DO_NOT_UPDATE_STATS"]  # as the server does
    return row


def test_a_new_row_is_an_external_unpartitioned_table_that_points_at_its_metadata() -> None:
    content = metadata(spec=BY_CITY, properties={"hive.metastore.table.owner": "etl"})
    row = new_row(NAME, version(content), SETTINGS)
    assert (row.dbName, row.tableName, row.tableType, row.partitionKeys) == (*NAME, "EXTERNAL_TABLE", [])
    assert row.owner == "etl"
    assert row.parameters["EXTERNAL"] == "TRUE"
    assert row.parameters["table_type"] == "ICEBERG"
    assert row.parameters["metadata_location"] == version(content).location
    assert row.parameters["uuid"] == content.table_uuid
    assert row.parameters["DO_NOT_UPDATE_STATS"] == "true"
    assert "previous_metadata_location" not in row.parameters
    assert "hive.metastore.table.owner" not in row.parameters
    assert row.sd.location == content.location
    assert [(column.name, column.type) for column in row.sd.cols] == [
        ("id", "bigint"),
        ("city", "string"),
        ("amount", "int"),
    ]
    assert json.loads(row.parameters["default-partition-spec"])["fields"][0]["name"] == "city"
    assert json.loads(row.parameters["current-schema"])["type"] == "struct"
    assert row.parameters["snapshot-count"] == "0"
    assert is_iceberg_table(row)


def test_what_is_not_icebergs_survives_an_update_and_what_was_removed_is_removed() -> None:
    base = version(metadata(properties={"kept": "1", "dropped": "1", "gc.enabled": "false"}), 0)
    row = created(base.metadata)
    assert row.parameters["external.table.purge"] == "false"
    row.parameters.update({"comment": "of a user", "COLUMN_STATS_ACCURATE": "{}", "numRows": "17"})
    row.owner, row.privileges = "somebody", ttypes.PrincipalPrivilegeSet()
    changed = remove_properties(set_properties(base.metadata, {"kept": "2"}), ["dropped", "gc.enabled"])
    update_row(row, base, version(changed, 1), SETTINGS)
    assert row.parameters["comment"] == "of a user"
    assert row.parameters["kept"] == "2"
    assert row.parameters["previous_metadata_location"] == base.location
    for gone in ("dropped", "gc.enabled", "external.table.purge", "COLUMN_STATS_ACCURATE", "numRows"):
        assert gone not in row.parameters
    assert row.owner == "somebody" and row.privileges is not None


def test_statistics_and_the_snapshot_are_shown() -> None:
    world = World.with_table()
    content = world.append(data_file(0, 9), data_file(10, 19))
    row = created(content)
    assert (row.parameters["numFiles"], row.parameters["numRows"]) == ("2", "20")
    assert row.parameters["totalSize"] == "2000"
    assert row.parameters["current-snapshot-id"] == str(content.current_snapshot_id)
    assert row.parameters["snapshot-count"] == "1"
    assert json.loads(row.parameters["current-snapshot-summary"])["added-records"] == "20"


def test_statistics_of_an_older_snapshot_do_not_stay() -> None:
    world = World.with_table()
    base = version(world.append(data_file()), 0)
    row = created(base.metadata)
    update_row(row, base, version(replace(base.metadata, current_snapshot_id=None), 1), SETTINGS)
    assert not {"numFiles", "numRows", "totalSize", "current-snapshot-id"} & row.parameters.keys()


def test_a_table_property_never_takes_the_place_of_what_the_row_says_of_itself() -> None:
    row = created(metadata(properties={"metadata_location": "elsewhere", "EXTERNAL": "FALSE", "table_type": "x"}))
    assert row.parameters["metadata_location"].endswith("00000-x.metadata.json")
    assert (row.parameters["EXTERNAL"], row.parameters["table_type"]) == ("TRUE", "ICEBERG")


def test_what_the_metastore_cannot_hold_is_left_out_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    base = version(metadata(properties={"long": "short"}), 0)
    row = created(base.metadata)
    row.tableName = "of_the_warning"
    content = set_properties(base.metadata, {"long": "x" * 5000, "k" * 300: "1"})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            update_row(row, base, version(content, 1), RowSettings(max_value_length=4000))
    assert "long" not in row.parameters and "k" * 300 not in row.parameters
    assert len([record for record in caplog.records if "Property long of" in record.getMessage()]) == 1
    assert row.parameters["metadata_location"] == version(content, 1).location


def test_a_limit_of_zero_shows_no_schema_and_leaves_nothing_else_out() -> None:
    world = World.with_table(metadata(spec=BY_CITY, properties={"long": "x" * 40000}))
    row = created(world.append(data_file(city="Oslo")), RowSettings(max_value_length=0))
    shown = {"current-schema", "current-snapshot-id", "current-snapshot-summary", "default-partition-spec"}
    assert not shown & row.parameters.keys()
    assert len(row.parameters["long"]) == 40000


@pytest.mark.parametrize(
    ("of_table", "of_catalog", "for_hive"),
    [(None, False, False), (None, True, True), ("true", False, True), ("false", True, False)],
)
def test_the_table_property_decides_before_the_catalog_whether_hive_reads_it(
    of_table: str | None, of_catalog: bool, for_hive: bool
) -> None:
    properties = {} if of_table is None else {"engine.hive.enabled": of_table}
    row = created(metadata(properties=properties), RowSettings(hive_engine=of_catalog))
    handler = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
    assert (row.parameters.get("storage_handler") == handler) is for_hive
    assert ("iceberg" in row.sd.serdeInfo.serializationLib) is for_hive


def test_hives_storage_handler_is_removed_when_hive_is_switched_off() -> None:
    base = version(metadata(properties={"engine.hive.enabled": "true"}), 0)
    row = created(base.metadata)
    update_row(row, base, version(set_properties(base.metadata, {"engine.hive.enabled": "false"}), 1), SETTINGS)
    assert "storage_handler" not in row.parameters
    assert row.sd.inputFormat == "org.apache.hadoop.mapred.FileInputFormat"


def test_a_pointer_is_read_from_an_iceberg_row_in_any_case_of_its_type() -> None:
    row = created()
    row.parameters["table_type"] = "iceberg"
    pointer = table_pointer(row)
    assert (pointer.identifier, pointer.metadata_location) == (NAME, row.parameters["metadata_location"])
    assert pointer.properties["EXTERNAL"] == "TRUE"


@pytest.mark.parametrize("change", [{"table_type": "DELTA"}, {"table_type": None}])
def test_another_kind_of_table_is_refused_with_the_way_to_migrate_it(change: dict[str, str | None]) -> None:
    row = created()
    row.parameters = {key: value for key, value in {**row.parameters, **change}.items() if value is not None}
    assert not is_iceberg_table(row)
    with pytest.raises(NotAnIcebergTableError, match=r"hms-iceberg migrate db\.events"):
        table_pointer(row)


@pytest.mark.parametrize("location", [None, ""])
def test_an_iceberg_row_without_its_metadata_location_is_told_by_that(location: str | None) -> None:
    row = created()
    row.parameters["metadata_location"] = location
    with pytest.raises(NotAnIcebergTableError, match=rf"parameter metadata_location is {location!r}\."):
        table_pointer(row)


def test_a_view_is_no_table() -> None:
    row = copy.copy(created())
    row.tableType = "VIRTUAL_VIEW"
    assert not is_iceberg_table(row)
    with pytest.raises(NoSuchTableError, match="is a view"):
        table_pointer(row)


def test_a_snapshot_without_statistics_shows_none() -> None:
    content = metadata()
    snapshot = Snapshot(7, sequence_number=1, timestamp_ms=1, manifest_list="x", summary={"operation": "append"})
    row = created(replace(content, snapshots=(snapshot,), current_snapshot_id=7, last_sequence_number=1))
    assert row.parameters["current-snapshot-id"] == "7"
    assert "numRows" not in row.parameters
