from __future__ import annotations

import pyarrow as pa
import pytest

from hms_iceberg.scan.metadata_tables import METADATA_TABLES
from hms_iceberg.table.inspect import InspectTable
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
