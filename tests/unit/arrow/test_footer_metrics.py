from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.metrics.footer_metrics import (
    COUNTS,
    FULL,
    NONE,
    TRUNCATE_16,
    MetricsMode,
    data_file_from_parquet,
    metrics_modes,
    split_offsets,
)
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import ConfigurationError, CorruptDataFileError, MissingFileError
from hms_iceberg.spec.data_types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata_columns import LINEAGE
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortField, SortOrder
from hms_iceberg.spec.table_properties import COLUMN_METRICS_MODE
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from hms_iceberg.spec.values.single_values import from_bytes


def described(folder: Path, column: pa.Array | pa.ChunkedArray, kind: IcebergType, **options: object) -> DataFile:
    schema = Schema(NestedField(1, "c", kind))
    location = str(folder / "f.parquet")
    pq.write_table(pa.table({"c": column}), location, **options)
    return data_file_from_parquet(ArrowStorage(), location, schema, name_mapping=create_name_mapping(schema))


def bounds(file: DataFile, kind: IcebergType) -> tuple[object, object]:
    lower, upper = (file.lower_bounds or {}).get(1), (file.upper_bounds or {}).get(1)
    return (None if lower is None else from_bytes(kind, lower), None if upper is None else from_bytes(kind, upper))


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array([3, None, -7], pa.int32()), IntegerType(), (-7, 3)),
        (pa.array([3, -7], pa.int32()), LongType(), (-7, 3)),
        (pa.array([2**32 - 1, 5], pa.uint32()), LongType(), (5, 2**32 - 1)),
        (pa.array([1.5, float("nan")], pa.float32()), DoubleType(), (1.5, 1.5)),
        (pa.array([5], pa.date32()), DateType(), (5, 5)),
        (pa.array([7], pa.time32("ms")), TimeType(), (7000, 7000)),
        (pa.array([-1_999, 1_001], pa.timestamp("ns")), TimestampType(), (-2, 2)),
        (pa.array([-3, 4], pa.timestamp("ms")), TimestampType(), (-3000, 4000)),
        (pa.array([-3, 4], pa.timestamp("us")), TimestampNanoType(), (-3000, 4000)),
        (
            pa.array([Decimal("-1.50"), Decimal("99999.25")], pa.decimal128(7, 2)),
            DecimalType(7, 2),
            ("-1.50", "99999.25"),
        ),
        (pa.array([Decimal("-1.5")], pa.decimal128(25, 1)), DecimalType(30, 3), ("-1.500", "-1.500")),
        (pa.array(["b", "a" * 20]), StringType(), ("a" * 16, "b")),
        (pa.array([b"\x01", b"\xff" * 20]), BinaryType(), (b"\x01", None)),
        (pa.array([UUID(int=2**127).bytes, UUID(int=1).bytes], pa.uuid()), UUIDType(), (UUID(int=1), UUID(int=2**127))),
        (pa.array([None, None], pa.int32()), IntegerType(), (None, None)),
        (pa.array([1], pa.int64()), StringType(), (None, None)),
    ],
)
def test_bounds_are_stored_values_of_the_tables_type(
    tmp_path: Path, column: pa.Array, kind: IcebergType, expected: tuple[object, object]
) -> None:
    found = bounds(described(tmp_path, column, kind), kind)
    if isinstance(kind, DecimalType):
        found = (str(found[0]), str(found[1]))
    assert found == expected


def test_bounds_span_all_row_groups_and_null_groups_do_not_hide_them(tmp_path: Path) -> None:
    column = pa.array([5, 6, None, None, -1, 2], pa.int64())
    file = described(tmp_path, column, LongType(), row_group_size=2)
    assert bounds(file, LongType()) == (-1, 6)
    assert file.value_counts == {1: 6}
    assert file.null_value_counts == {1: 2}
    assert len(file.split_offsets or ()) == 3


def test_negative_zero_is_the_lower_bound_of_zeros(tmp_path: Path) -> None:
    file = described(tmp_path, pa.array([0.0, -0.0, 0.0]), DoubleType(), row_group_size=1)
    assert tuple(map(str, bounds(file, DoubleType()))) == ("-0.0", "0.0")


def test_a_file_without_statistics_has_sizes_and_counts_of_values_only(tmp_path: Path) -> None:
    file = described(tmp_path, pa.array([1, None], pa.int64()), LongType(), write_statistics=False)
    assert (file.value_counts, file.null_value_counts, file.lower_bounds) == ({1: 2}, {}, {})
    assert file.column_sizes[1] > 0


def test_int96_timestamps_have_no_bounds(tmp_path: Path) -> None:
    column = pa.array([1_000], pa.timestamp("ns"))
    file = described(tmp_path, column, TimestampType(), use_deprecated_int96_timestamps=True)
    assert bounds(file, TimestampType()) == (None, None)
    assert file.record_count == 1


def test_fields_in_lists_and_maps_have_sizes_only(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "l", ListType(2, LongType(), False)),
        NestedField(3, "m", MapType(4, StringType(), 5, LongType(), False)),
        NestedField(6, "s", StructType(NestedField(7, "x", LongType()))),
    )
    rows = pa.table(
        {
            "l": [[1, 2], None],
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "s": [{"x": 4}, None],
        }
    )
    location = str(tmp_path / "f.parquet")
    pq.write_table(rows, location)
    file = data_file_from_parquet(ArrowStorage(), location, schema, name_mapping=create_name_mapping(schema))
    assert set(file.column_sizes) == {2, 4, 5, 7}
    assert file.value_counts == {7: 2}
    assert file.null_value_counts == {7: 1}
    assert set(file.lower_bounds) == {7}


def test_split_offsets_of_an_empty_file_are_absent(tmp_path: Path) -> None:
    location = str(tmp_path / "f.parquet")
    with pq.ParquetWriter(location, pa.schema([("c", pa.int32())])):
        pass
    assert split_offsets(pq.read_metadata(location)) is None


def test_a_footer_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    location = tmp_path / "f.parquet"
    with pytest.raises(MissingFileError, match=r"f\.parquet"):
        data_file_from_parquet(ArrowStorage(), str(location), Schema())
    location.write_bytes(b"PAR1 this is not a footer PAR1")
    with pytest.raises(CorruptDataFileError, match=r"f\.parquet"):
        data_file_from_parquet(ArrowStorage(), str(location), Schema())


# ---------------------------------------------------------------------------------------------- metrics modes


def test_only_the_first_hundred_columns_have_metrics_unless_asked_for() -> None:
    columns = [NestedField(number, f"c{number}", LongType()) for number in range(1, 121)]
    schema = Schema(*columns)
    modes = metrics_modes(schema, {})
    assert [modes[number] for number in (1, 100, 101, 120)] == [TRUNCATE_16, TRUNCATE_16, NONE, NONE]
    assert set(metrics_modes(schema, {"write.metadata.metrics.default": "full"}).values()) == {FULL}
    few = metrics_modes(schema, {"write.metadata.metrics.max-inferred-column-defaults": "3"})
    assert [number for number, mode in few.items() if mode.counts] == [1, 2, 3]
    chosen = metrics_modes(schema, {"write.metadata.metrics.column.c110": "counts"})
    assert chosen[110] == COUNTS


def test_columns_of_the_sort_order_always_have_bounds() -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
    order = SortOrder(SortField(2, IdentityTransform()))
    modes = metrics_modes(schema, {"write.metadata.metrics.default": "none"}, order)
    assert (modes[1], modes[2]) == (NONE, TRUNCATE_16)


@pytest.mark.parametrize(
    ("text", "mode"),
    [(" Truncate( 8 ) ", MetricsMode(True, True, 8)), ("truncate(016)", TRUNCATE_16), ("FULL", FULL), ("none ", NONE)],
)
def test_a_mode_is_read_in_any_case_and_with_spaces(text: str, mode: MetricsMode) -> None:
    schema = Schema(NestedField(1, "a", LongType()))
    assert metrics_modes(schema, {"write.metadata.metrics.column.a": text})[1] == mode
    COLUMN_METRICS_MODE.check(text)


@pytest.mark.parametrize("text", ["most", "truncate(0)", "truncate(x)", "truncate(8) or so", "countſ", ""])
def test_a_mode_that_is_none_of_the_four_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="truncate"):
        COLUMN_METRICS_MODE.check(text)
    schema = Schema(NestedField(1, "a", LongType()))
    assert metrics_modes(schema, {"write.metadata.metrics.column.a": text})[1] == TRUNCATE_16


def test_settings_of_metrics_that_say_no_mode_are_passed_over_as_in_java(caplog: pytest.LogCaptureFixture) -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
    settings = {"write.metadata.metrics.column.a": "most", "write.metadata.metrics.column.b": "counts"}
    assert metrics_modes(schema, settings) == {1: TRUNCATE_16, 2: COUNTS} | dict.fromkeys(LINEAGE, TRUNCATE_16)
    assert "write.metadata.metrics.column.a is 'most', expected none, counts" in caplog.text
    assert set(metrics_modes(schema, {"write.metadata.metrics.default": "truncate(x)"}).values()) == {TRUNCATE_16}
    few = metrics_modes(schema, {"write.metadata.metrics.max-inferred-column-defaults": "-1"})
    assert set(few.values()) == {TRUNCATE_16}
