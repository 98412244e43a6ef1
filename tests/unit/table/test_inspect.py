from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.arrow_schema import to_arrow
from hms_iceberg.scan.metadata_tables import METADATA_TABLES
from hms_iceberg.spec.data_types import NestedField
from hms_iceberg.spec.manifests.manifest_values import DataFileContent
from hms_iceberg.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POSITION, DELETE_FILE_ROW_ID
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import TruncateTransform
from hms_iceberg.table.inspect import InspectTable
from tests.support.row_tables import create, live, numbered
from tests.support.tables import BY_CITY, World, data_file, metadata


def world() -> World:
    made = World.with_table(metadata(spec=BY_CITY))
    made.append(data_file(0, 9, "Oslo"), data_file(10, 19, None, partition=(None,)))
    return made


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_every_metadata_table_is_a_valid_arrow_table(name: str) -> None:
    made = world()
    table = InspectTable(made.version(), made.storage).table(name)
    table.validate(full=True)
    assert (table.num_rows == 0) == ("delete" in name)


def test_maps_structs_and_times_have_their_arrow_types() -> None:
    made = world()
    inspect = InspectTable(made.version(), made.storage)
    files = inspect.files()
    assert str(files.schema.field("value_counts").type) == "map<int32, int64>"
    assert files.column("value_counts").to_pylist() == [[(1, 10)], [(1, 10)]]
    assert files.column("partition").to_pylist() == [{"city": "Oslo"}, {"city": None}]
    assert files.column("column_sizes").null_count == 2
    entry = inspect.entries().column("data_file").to_pylist()[0]
    assert entry["null_value_counts"] == [(1, 0)]
    snapshots = inspect.snapshots()
    assert snapshots.schema.field("committed_at").type == pa.timestamp("us", tz="UTC")
    assert dict(snapshots.column("summary").to_pylist()[0])["added-data-files"] == "2"


def test_partitions_of_two_specs_whose_fields_have_one_name_are_told_apart(tmp_path: Path) -> None:
    table = create(tmp_path, 2)
    for width in (1, 2):
        with table.update_spec() as spec:
            spec.add_field("city", TruncateTransform(width), "place")
        table.append(numbered(0, 2))  # Oslo, Rome
        with table.update_spec() as spec:
            spec.remove_field("place")
    expected = {
        (each[:width] if width == 1 else None, each[:width] if width == 2 else None)
        for width in (1, 2)
        for each in ("Oslo", "Rome")
    }
    for rows in (
        table.inspect.partitions().column("partition"),
        table.inspect.files().column("partition"),
        table.scan(selected_fields=("_partition",)).to_arrow().column("_partition"),
    ):
        assert {(each["place_1000"], each["place"]) for each in rows.to_pylist()} == expected
        assert len(rows) == len(expected)


@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_are_all_deleted_positions_with_the_file_that_says_so(tmp_path: Path, version: int) -> None:
    table = create(tmp_path, version, "merge-on-read", spec=BY_CITY)
    assert table.inspect.position_deletes().num_rows == 0
    table.append(numbered(0, 9))
    first = table.current_snapshot()
    table.delete("id in (0, 3, 4)")
    with table.update_spec() as spec:
        spec.remove_field("city")
    table.append(numbered(20, 23))
    table.delete("id = 21")
    deletes = table.inspect.position_deletes()
    deletes.validate(full=True)
    vectors = ["content_offset", "content_size_in_bytes"] if version == 3 else []
    names = ["file_path", "pos", "row", "partition", "spec_id", "delete_file_path", *vectors]
    assert deletes.schema.names == names
    assert deletes.schema.field("row").type.names == ["id", "city", "amount"]
    paths = {file.file_path for file in live(table) if file.is_data}
    found = deletes.to_pylist()
    assert {each["file_path"] for each in found} <= paths
    assert sorted((each["spec_id"], each["partition"]["city"], each["pos"]) for each in found) == [
        (0, "Oslo", 0),
        (0, "Oslo", 1),
        (0, "Rome", 1),
        (1, None, 1),
    ]
    delete_files = {file.file_path: file for file in live(table) if not file.is_data}
    for each in found:
        file = delete_files[each["delete_file_path"]]
        assert each["row"] is None
        if version == 3:
            assert (each["content_size_in_bytes"] or 0) > 0 and each["content_offset"] is not None
        assert file.spec_id == each["spec_id"]
    assert first is not None
    assert table.inspect.table("position_deletes", first.snapshot_id).num_rows == 0


def test_the_row_that_a_position_delete_carries_is_shown(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(numbered(0, 3))
    (data,) = live(table)
    row = NestedField(DELETE_FILE_ROW_ID, "row", table.schema().as_struct())
    schema = to_arrow(Schema(DELETE_FILE_PATH, DELETE_FILE_POSITION, row))
    location = str(tmp_path / "deletes.parquet")
    rows = {"file_path": data.file_path, "pos": 1, "row": {"id": 1, "city": "Rome", "amount": 2}}
    pq.write_table(pa.Table.from_pylist([rows], schema=schema), location)
    file = replace(
        data_file(0, 0, file_path=location),
        content=DataFileContent.POSITION_DELETES,
        file_size_in_bytes=Path(location).stat().st_size,
    )
    with table.new_row_delta() as delta:
        delta.add_files(file)
    (found,) = table.inspect.position_deletes().to_pylist()
    assert "partition" not in found
    assert found == {**rows, "spec_id": 0, "delete_file_path": location}
