"""Tables whose rows we deleted, updated, upserted and overwrote, read by Apache Iceberg (Java) and PyIceberg."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.sort_orders import SortField, SortOrder
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform
from hms_iceberg.table.table import Table
from tests.support.path_deletes import commit_deletes, path_delete
from tests.support.peer_rows import arrow_rows, json_rows

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "city", StringType()),
    NestedField(3, "amount", DoubleType()),
    NestedField(4, "at", TimestampType()),
    identifier_field_ids=[1],
)
BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
BY_BUCKET = PartitionSpec(PartitionField(1, 1000, BucketTransform(3), "id_bucket"))
CITIES = ("Oslo", "Rome", None)
Row = dict[str, Any]


def row(key: int, **other: Any) -> Row:
    at = dt.datetime(2024, 1, 1) + dt.timedelta(hours=key)
    return {"id": key, "city": CITIES[key % 3], "amount": key / 4, "at": at, **other}


def rows(*items: Row) -> pa.Table:
    fields = [("city", pa.string()), ("amount", pa.float64()), ("at", pa.timestamp("us"))]
    return pa.Table.from_pylist(list(items), schema=pa.schema([pa.field("id", pa.int64(), False), *fields]))


def many(start: int, stop: int) -> pa.Table:
    return rows(*(row(key) for key in range(start, stop)))


def deleted(table: Table, expected: dict[int, Row]) -> None:
    table.delete("id between 3 and 7 or id = 15")
    table.delete("id = 8")  # deletes of a file with deletes are merged
    table.delete("id >= 20")  # a whole file
    for key in [*range(3, 9), 15, *range(20, 30)]:
        del expected[key]


def updated(table: Table, expected: dict[int, Row]) -> None:
    doubled = pc.multiply(pc.field("amount"), 2.0)
    assert table.update({"amount": doubled, "city": "Bern"}, "id in (2, 11, 25)").rows_updated == 3
    assert table.update({"amount": -1.0}, "id = 11").rows_updated == 1
    for key in (2, 11, 25):
        expected[key] = row(key, city="Bern", amount=-1.0 if key == 11 else key / 2)


def upserted(table: Table, expected: dict[int, Row]) -> None:
    changes = [row(4, amount=44.0), row(5), row(22, city="Oslo", amount=None), row(30), row(31, city=None)]
    result = table.upsert(rows(*changes))
    assert (result.rows_updated, result.rows_inserted) == (2, 2)
    expected.update({each["id"]: each for each in changes})


def overwritten(table: Table, expected: dict[int, Row]) -> None:
    table.overwrite(rows(row(50), row(51)), "id < 4 or id >= 20")
    for key in [*range(4), *range(20, 30)]:
        del expected[key]
    expected.update({50: row(50), 51: row(51)})


OPERATIONS: list[Callable[[Table, dict[int, Row]], None]] = [deleted, updated, upserted, overwritten]


@pytest.fixture
def name(namespace: str) -> Callable[[], str]:
    return lambda: f"{namespace}.t_{uuid.uuid4().hex[:8]}"


def java_rows(iceberg_java: Any, names: list[str]) -> dict[str, list[str]]:
    """The rows of several tables in one statement, since each costs about a second."""
    parts = [f"select '{each}' as which, * from ice.{each}" for each in names]
    found: dict[str, list[list[Any]]] = {each: [] for each in names}
    for which, *values in iceberg_java.sql(" union all ".join(parts)):
        found[which].append(values)
    return {each: json_rows(values) for each, values in found.items()}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_every_peer_reads_the_rows_that_changes_leave(
    catalog: Any,
    iceberg_java: Any,
    pyiceberg_catalog: Any,
    name: Callable[[], str],
    version: str,
    mode: str,
) -> None:
    if (version, mode) == ("1", "merge-on-read"):
        pytest.skip("format version 1 has no deletes")
    properties = {"format-version": version, **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")}}
    expected: dict[str, list[str]] = {}
    for spec in (BY_BUCKET if version == "3" else PartitionSpec(), BY_CITY):
        for operation in OPERATIONS:
            table = catalog.create_table(each := name(), SCHEMA, partition_spec=spec, properties=properties)
            table.append(many(0, 20))
            table.append(many(20, 30))
            left = {key: row(key) for key in range(30)}
            operation(table, left)
            expected[each] = arrow_rows(rows(*left.values()))
            assert arrow_rows(table.scan().to_arrow()) == expected[each]
            assert arrow_rows(pyiceberg_catalog.load_table(each).scan().to_arrow()) == expected[each]
    assert java_rows(iceberg_java, list(expected)) == expected


@pytest.mark.parametrize("version", ["2", "3"])
def test_java_reads_equality_and_position_deletes_of_a_row_delta(
    catalog: Any, iceberg_java: Any, name: Callable[[], str], version: str
) -> None:
    expected: dict[str, list[str]] = {}
    for spec in (PartitionSpec(), BY_CITY):
        for file_format in ("parquet", "orc", "avro"):
            properties = {"format-version": version, "write.format.default": file_format}
            table = catalog.create_table(each := name(), SCHEMA, partition_spec=spec, properties=properties)
            table.append(many(0, 10))
            with table.new_row_delta() as delta:
                delta.delete_equal(many(2, 5).select(["id", "city"]), ["id"])
                delta.add_rows(rows(row(4, amount=0.5)))
            where = table.scan("id = 7").select("_file", "_pos").to_arrow().rename_columns(["file_path", "pos"])
            table.new_row_delta().delete_positions(where).commit()
            left = [*(row(key) for key in (0, 1, 5, 6, 8, 9)), row(4, amount=0.5)]
            expected[each] = arrow_rows(rows(*left))
            assert arrow_rows(table.scan().to_arrow()) == expected[each]
    assert java_rows(iceberg_java, list(expected)) == expected


DELETES_BY_PATH = [
    *(("2", each, how) for each in ("parquet", "orc", "avro") for how in ("named", "bounds")),
    ("3", "parquet", "named"),
]


def test_java_reads_deletes_by_path_that_we_wrote_anew_under_the_partition_of_their_file(
    catalog: Any, iceberg_java: Any, name: Callable[[], str]
) -> None:
    """Apache Iceberg applies them by path alone before 1.12; since then it refuses those of another partition."""
    left = [row(key) for key in range(10) if key not in (0, 6)]
    changed = [row(key) for key in range(10) if key not in (0, 3, 6)]
    own: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for version, file_format, how in DELETES_BY_PATH:
        modes = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update")}
        properties = {"format-version": version, "write.delete.format.default": file_format, **modes}
        for spec_id, partition in ((0, ("Oslo",)), (0, ("Rome",)), (1, ("Rome", 2))):
            table = catalog.create_table(each := name(), SCHEMA, partition_spec=BY_CITY, properties=properties)
            table.append(many(0, 10))
            with table.update_spec() as spec:
                spec.add_field("id", "bucket[3]")
            (task,) = table.scan("city = 'Oslo'").plan_files()
            commit_deletes(table, path_delete(table, task.file, [0, 2], spec_id, partition, how))  # ids 0 and 6
            assert arrow_rows(table.scan().to_arrow()) == arrow_rows(rows(*left))
            if partition == ("Oslo",):
                own[each] = arrow_rows(rows(*left))
                continue
            with pytest.raises(AssertionError, match="Mismatched partition"):
                iceberg_java.sql(f"select * from ice.{each}")
            table.delete("id = 3")
            if version == "2":
                table.maintenance.rewrite_position_delete_files(options={"rewrite-all": True})
            others[each] = arrow_rows(rows(*changed))
            assert arrow_rows(table.scan().to_arrow()) == others[each]
    assert java_rows(iceberg_java, [*own, *others]) == own | others
    for each in own:
        iceberg_java.sql(f"delete from ice.{each} where id = 3")
    ours = {each: arrow_rows(catalog.load_table(each).scan().to_arrow()) for each in own}
    assert ours == dict.fromkeys(own, arrow_rows(rows(*changed))) == java_rows(iceberg_java, list(own))


def test_java_reads_deletion_vectors_over_position_deletes_of_an_upgraded_table(
    catalog: Any, iceberg_java: Any, pyiceberg_catalog: Any, name: Callable[[], str]
) -> None:
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    table = catalog.create_table(each := name(), SCHEMA, properties=properties)
    table.append(many(0, 10))
    table.append(many(10, 20))
    table.delete("id in (1, 11)")
    table.set_properties({"format-version": "3"})
    table.delete("id in (2, 3)")
    expected = arrow_rows(rows(*(row(key) for key in range(20) if key not in (1, 2, 3, 11))))
    assert arrow_rows(table.scan().to_arrow()) == expected
    assert arrow_rows(pyiceberg_catalog.load_table(each).scan().to_arrow()) == expected
    assert java_rows(iceberg_java, [each])[each] == expected


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_java_sees_the_same_row_lineage(catalog: Any, iceberg_java: Any, name: Callable[[], str], mode: str) -> None:
    properties = {"format-version": "3", **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")}}
    table = catalog.create_table(each := name(), SCHEMA, properties=properties)
    table.append(many(0, 10))
    table.delete("id = 3")
    table.update({"amount": 1.5}, "id = 5")
    table.upsert(rows(row(6, amount=0.0), row(7), row(10)))
    columns = ["id", "amount", "_row_id", "_last_updated_sequence_number"]
    found = arrow_rows(table.scan().select(*columns).to_arrow())
    by_id = {
        line[0]: line[1:]
        for line in map(list, zip(*table.scan().select(*columns).to_arrow().to_pydict().values(), strict=True))
    }
    assert by_id[4][1:] == [4, 1]
    assert by_id[5][1:] == [5, 3]
    assert by_id[6][1:] == [6, 4]
    assert by_id[7][1:] == [7, 1]
    assert by_id[10][2] == 4
    assert json_rows(iceberg_java.sql(f"select {', '.join(columns)} from ice.{each}")) == found


EVERYTHING = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "price", DecimalType(12, 2)),
    NestedField(6, "day", DateType()),
    NestedField(7, "at", TimestampType()),
    NestedField(8, "at_utc", TimestamptzType()),
    NestedField(9, "raw", BinaryType()),
    NestedField(10, "code", FixedType(4)),
    NestedField(11, "tags", ListType(20, StringType(), element_required=False)),
    NestedField(12, "props", MapType(21, StringType(), 22, LongType(), value_required=False)),
    NestedField(13, "place", StructType(NestedField(23, "x", DoubleType()), NestedField(24, "label", StringType()))),
)


def everything(count: int) -> pa.Table:
    utc = dt.timezone.utc
    items: list[Row] = [
        {
            "id": key,
            "flag": key % 2 == 0,
            "small": -key,
            "ratio": key / 2,
            "price": Decimal(key) / 100,
            "day": dt.date(1969, 12, 30) + dt.timedelta(days=key),
            "at": dt.datetime(1970, 1, 1, 1, 2, 3, 4) + dt.timedelta(days=key),
            "at_utc": dt.datetime(2024, 1, 1, tzinfo=utc) + dt.timedelta(hours=key),
            "raw": bytes([key, 255]),
            "code": key.to_bytes(4, "big"),
            "tags": [f"t{key}", None] if key % 2 else [],
            "props": [(f"k{key}", key)],
            "place": {"x": key / 2, "label": None} if key % 3 else None,
        }
        for key in range(count)
    ]
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), False),
            ("flag", pa.bool_()),
            ("small", pa.int32()),
            ("ratio", pa.float32()),
            ("price", pa.decimal128(12, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us")),
            ("at_utc", pa.timestamp("us", tz="UTC")),
            ("raw", pa.binary()),
            ("code", pa.binary(4)),
            ("tags", pa.list_(pa.string())),
            ("props", pa.map_(pa.string(), pa.int64())),
            ("place", pa.struct([("x", pa.float64()), ("label", pa.string())])),
        ]
    )
    return pa.Table.from_pylist([*items, {"id": count}], schema=schema)


def test_java_reads_and_prunes_our_data_files_of_every_format(
    catalog: Any, iceberg_java: Any, name: Callable[[], str]
) -> None:
    order = SortOrder(SortField(1, IdentityTransform(), "desc"))  # type: ignore[arg-type]
    names = []
    for file_format in ("parquet", "orc", "avro"):
        properties = {"write.format.default": file_format}
        table = catalog.create_table(each := name(), EVERYTHING, sort_order=order, properties=properties)
        table.append(everything(6))
        table.append(everything(3))
        names.append(each)
    expected = sorted(arrow_rows(everything(6)) + arrow_rows(everything(3)))
    assert java_rows(iceberg_java, names) == dict.fromkeys(names, expected)
    counts = [f"select count(*) from ice.{each} where small < -4 and code = X'00000005'" for each in names]
    assert iceberg_java.sql(" union all ".join(counts)) == [[1], [1], [1]]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_java_reads_changes_of_files_whose_partition_column_is_gone(
    catalog: Any, iceberg_java: Any, name: Callable[[], str], mode: str
) -> None:
    properties = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    table = catalog.create_table(each := name(), SCHEMA, partition_spec=BY_CITY, properties=properties)
    table.append(many(0, 10))
    with table.update_spec() as update:
        update.remove_field("city")
    with table.update_schema() as change:
        change.delete_column("city")
    table.delete("amount = 0.25")
    expected = arrow_rows(many(0, 10).drop(["city"]).filter(pc.field("id") != 1))
    assert arrow_rows(table.scan().to_arrow()) == expected
    assert java_rows(iceberg_java, [each])[each] == expected
