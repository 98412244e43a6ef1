"""Parquet, ORC and Avro files of one table are read in the JVM: data, and what such files delete."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyarrow import orc

from hms_iceberg.types import DecimalType, DoubleType, IntegerType, LongType, StringType, TimestampType
from tests.support.spark_tables import Rows, arrow_of, data_files, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

ROWS = Rows(
    {"n": pa.int64(), "text": pa.string(), "pair": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])}
)


def rows(start: int, count: int = 10) -> pa.Table:
    return ROWS(
        (n, f"text {n}" if n % 7 else None, {"a": n, "b": ["x", None]} if n % 3 else None)
        for n in range(start, start + count)
    )


def set_format(table: Table, name: str, key: str = "write.format.default") -> None:
    with table.transaction() as transaction:
        transaction.set_properties({key: name})
    table.refresh()


@pytest.fixture
def mixed(catalog: Catalog, namespace: str) -> Table:
    """Ten rows in each of a Parquet, an ORC and an Avro file."""
    table = catalog.create_table(f"{namespace}.mixed", ROWS.schema)
    for start, name in ((0, "parquet"), (100, "orc"), (200, "avro")):
        set_format(table, name)
        table.append(rows(start))
    assert [file.file_format for file in data_files(table)] == ["PARQUET", "ORC", "AVRO"]
    return table


def test_a_table_may_have_files_of_all_formats(spark: SparkSession, mixed: Table, namespace: str) -> None:
    name = f"{namespace}.mixed"
    wanted = [(n, f"text {n}" if n % 7 else None) for start in (0, 100, 200) for n in range(start, start + 10)]
    assert rows_of(spark, f"select n, text from {name}") == wanted
    assert rows_of(spark, f"select pair.a, pair.b[0] from {name} where n in (1, 101, 202, 3)") == [
        (1, "x"), (101, "x"), (202, "x"), (None, None)
    ]  # fmt: skip
    assert rows_of(spark, f"select n from {name} where text is null and n > 6") == [(7,), (105,), (203,)]
    assert rows_of(spark, f"select count(*), count(pair) from {name} where n % 2 = 0") == [(15, 10)]
    assert rows_of(spark, f"select a.n from {name} a join {name} b on a.n = b.n + 100 where b.text like '%6'") == [
        (106,), (206,)
    ]  # fmt: skip
    assert len(spark.sql(f"select * from {name} limit 25").collect()) == 25


def test_no_file_goes_through_python(spark: SparkSession, mixed: Table, namespace: str) -> None:
    frame = spark.sql(f"select n, monotonically_increasing_id() from {namespace}.mixed where n > 5")
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    assert plan.count("BatchScan") == 1 and "Python" not in plan
    ids = rows_of(spark, f"select monotonically_increasing_id() from {namespace}.mixed")
    assert len(set(ids)) == 30


def test_metadata_columns_of_all_formats(spark: SparkSession, mixed: Table, namespace: str) -> None:
    found = rows_of(spark, f"select n, _pos, _file from {namespace}.mixed where _pos = 3")
    assert [row[:2] for row in found] == [(3, 3), (103, 3), (203, 3)]
    assert [row[2] for row in found] == [file.file_path for file in data_files(mixed)]


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_deletes_in_other_formats_apply_to_all_files(
    spark: SparkSession, mixed: Table, namespace: str, file_format: str
) -> None:
    name = f"{namespace}.mixed"
    set_format(mixed, file_format, "write.delete.format.default")
    paths = [file.file_path for file in data_files(mixed)]
    with mixed.new_row_delta() as delta:
        delta.delete_positions({path: [1, 2] for path in paths})
    mixed.refresh()
    with mixed.new_row_delta() as delta:
        delta.delete_equal(Rows({"n": pa.int64()})([(5,), (105,), (205,)]), ["n"])
    mixed.append(rows(5, 1))
    left = [5, *(n for start in (0, 100, 200) for n in range(start, start + 10) if n - start not in (1, 2, 5))]
    assert rows_of(spark, f"select n from {name}") == [(n,) for n in sorted(left)]
    assert rows_of(spark, f"select count(*) from {name}") == [(len(left),)]
    assert rows_of(spark, f"select text from {name} where n = 104") == [("text 104",)]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_keep_their_positions_where_a_file_is_split_and_parts_of_it_are_left_out(
    spark: SparkSession, catalog: Catalog, namespace: str, file_format: str
) -> None:
    name, count = f"{namespace}.large", 60_000
    numbers = pa.array(range(count), pa.int64())
    given = pa.table(
        {
            "id": numbers,
            "text": [f"{n * 7919 % count:05}{sha256(bytes([n % 251, n // 251])).hexdigest()}" for n in range(count)],
        }
    )
    properties = {
        "write.format.default": file_format,
        "write.orc.stripe-size-bytes": "200000",
        "write.parquet.row-group-size-bytes": "400000",
    }
    table = catalog.create_table(name, given.schema, properties=properties)
    table.append(given)
    (file,) = data_files(table)
    with table.new_row_delta() as delta:
        delta.delete_positions({file.file_path: [n for n in range(count) if n % 1000 == 17]})
    read = spark.read.option("split-size", str(file.file_size_in_bytes // 7)).table(name)
    assert read.rdd.getNumPartitions() > 4
    read.select("id", "text", "_pos").createOrReplaceTempView("split_rows")
    assert rows_of(spark, "select count(*), sum(id), count(distinct _pos) from split_rows where id = _pos") == [
        (count - 60, sum(n for n in range(count) if n % 1000 != 17), count - 60)
    ]
    for low, high in ((0, 20), (10_000, 10_019), (29_990, 30_020), (59_990, 70_000)):
        wanted = [(n, n) for n in range(low, min(high, count - 1) + 1) if n % 1000 != 17]
        assert rows_of(spark, f"select id, _pos from split_rows where id between {low} and {high}") == wanted
    for edge in edges(file.file_path, file_format):
        assert rows_of(spark, f"select count(*), max(id) from split_rows where id <= {edge}") == [
            (sum(n % 1000 != 17 for n in range(edge + 1)), edge)
        ]
        assert rows_of(spark, f"select id from split_rows where id >= {edge} and id < {edge + 1}") == [(edge,)]
    scattered = [n for n in range(count) if n * 7919 % count < 40 and n % 1000 != 17]
    assert rows_of(spark, "select id, _pos from split_rows where text < '00040'") == [(n, n) for n in scattered]
    spark.catalog.dropTempView("split_rows")


def edges(location: str, file_format: str) -> list[int]:
    """First and last rows of a file's parts, by whose statistics parts are left out."""
    if file_format != "orc":
        return [10_000]
    file = orc.ORCFile(location.removeprefix("file:"))
    ends = list(accumulate(file.read_stripe(number, columns=["id"]).num_rows for number in range(file.nstripes)))
    assert len(ends) > 2
    return [ends[0] - 1, ends[0], ends[1], 10_000]


def every_type() -> pa.Table:
    """Rows of every type that Spark knows and all formats hold, at the top and within others, with odd values."""
    moment = datetime(1969, 12, 31, 23, 59, 58, 1500, tzinfo=timezone.utc)
    first, last = (
        datetime(1, 1, 1, tzinfo=timezone.utc),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
    )
    leaves: dict[str, tuple[pa.DataType, list[Any]]] = {
        "flag": (pa.bool_(), [True, False, None, True, False]),
        "small": (pa.int32(), [-(2**31), 2**31 - 1, None, 0, -1]),
        "large": (pa.int64(), [-(2**63), 2**63 - 1, None, 0, -1]),
        "real": (pa.float32(), [math.nan, math.inf, None, -0.0, 1.5]),
        "double": (pa.float64(), [math.nan, -math.inf, None, -0.0, 5e-324]),
        "cents": (
            pa.decimal128(9, 2),
            [Decimal("-9999999.99"), Decimal("9999999.99"), None, Decimal(0), Decimal("0.01")],
        ),
        "digits": (
            pa.decimal128(38, 10),
            [Decimal("-" + "9" * 28 + ".9999999999"), Decimal("0.0000000001"), None, Decimal(0), Decimal("7")],
        ),
        "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1), date(1582, 10, 10)]),
        "local": (
            pa.timestamp("us"),
            [each and each.replace(tzinfo=None) for each in (first, last, None, moment, moment)],
        ),
        "instant": (pa.timestamp("us", "UTC"), [first, last, None, moment, moment]),
        "text": (pa.string(), ["", "\0\u20ac\U0001f600", None, "x" * 5000, " "]),
        "bytes": (pa.binary(), [b"", b"\0\xff", None, b"x" * 5000, b" "]),
        "fixed": (pa.binary(3), [b"abc", b"\0\0\0", None, b"\xff\xff\xff", b"   "]),
        "key": (pa.uuid(), [bytes(16), bytes(range(16)), None, b"\xff" * 16, bytes(16)]),
    }
    columns = {name: pa.array(values, kind) for name, (kind, values) in leaves.items()}
    near = pa.array([moment, None, moment, None, moment], pa.timestamp("us", "UTC"))  # all that ORC holds within others
    inner = {**columns, "local": near.cast(pa.timestamp("us")), "instant": near}
    nested = pa.StructArray.from_arrays(
        [each.storage.cast(pa.binary()) if name == "key" else each for name, each in inner.items()],
        [f"n_{name}" for name in columns], mask=pa.array([False, False, False, True, False]),
    )  # fmt: skip
    lists = pa.array([[["a", None], []], [], None, [None, ["\0"]], [["b"]]], pa.list_(pa.list_(pa.string())))
    maps = pa.array(
        [[(1, {"a": 1}), (-(2**31), None)], [], None, [(2, {"a": None})], [(3, {"a": 3})]],
        pa.map_(pa.int32(), pa.struct([("a", pa.int64())])),
    )
    named = pa.array([[("k", 1.5)], [], None, [("", None)], [("z", -0.0)]], pa.map_(pa.string(), pa.float64()))
    columns |= {"nested": nested, "lists": lists, "maps": maps, "named": named}
    columns["n"] = pa.array(range(5), pa.int32())
    return pa.table(columns)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_every_type_is_read_as_the_python_api_reads_it_before_and_after_the_schema_changed(
    spark: SparkSession, catalog: Catalog, namespace: str, file_format: str
) -> None:
    name = f"{namespace}.types"
    given = every_type()
    table = catalog.create_table(
        name, given.schema, properties={"format-version": "3", "write.format.default": file_format}
    )
    table.append(given)
    assert_read_alike(spark, table, name)
    with table.update_schema() as update:
        for column, kind in (("small", LongType()), ("real", DoubleType()), ("cents", DecimalType(20, 2))):
            update.update_column(column, kind)
            update.update_column(f"nested.n_{column}", kind)
        update.update_column("day", TimestampType())
        update.rename_column("text", "words")
        update.rename_column("nested.n_text", "n_words")
        update.delete_column("large")
        update.delete_column("nested.n_large")
        update.add_column("large", StringType())
        update.add_column("later", IntegerType(), default_value=7)
        update.add_column(("nested", "n_later"), StringType(), default_value="new")
        update.add_column(("maps", "value", "b"), DecimalType(30, 3), default_value=Decimal("1.250"))
        update.move_first("nested")
    table.refresh()
    table.append(given.select(["n", "flag"]))
    assert_read_alike(spark, table, name)
    found = rows_of(spark, f"select n, later, nested.n_later, maps[2].b from {name} where later = 7 and n in (3, 4)")
    old = [(3, 7, None, Decimal("1.250")), (4, 7, "new", None)]
    assert sorted(map(repr, found)) == sorted(map(repr, [*old, (3, 7, None, None), (4, 7, None, None)]))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_each_zero_keeps_its_sign_at_every_level(spark: SparkSession, namespace: str, file_format: str) -> None:
    zeros = [0.0, -0.0, 0.0, -0.0]
    name = f"{namespace}.zeros"
    spark.sql(
        f"create table {name} (id int, d double, f float, s struct<x: double>, a array<float>)"
        f" using iceberg tblproperties ('write.format.default' = '{file_format}')"
    )
    values = ", ".join(f"({id}, {x}D, {x}F, named_struct('x', {x}D), array({x}F, {-x}F))" for id, x in enumerate(zeros))
    spark.sql(f"insert into {name} select /*+ coalesce(1) */ * from values {values}")
    spark.sql(f"call spark_catalog.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")

    found = sorted(spark.table(name).collect())

    assert str([(d, f, s.x, a) for _, d, f, s, a in found]) == str([(x, x, x, [x, -x]) for x in zeros])


def assert_read_alike(spark: SparkSession, table: Table, name: str) -> None:
    """Every column alone, and all of them, are for Spark what they are for the Python API."""
    wanted = table.refresh().scan().to_arrow()
    found = arrow_of(spark.sql(f"select * from {name}")).select(wanted.column_names)
    assert sorted(map(repr, plain(found))) == sorted(map(repr, plain(wanted)))
    for column in wanted.column_names:
        alone = arrow_of(spark.sql(f"select `{column}` from {name}"))
        assert sorted(map(repr, plain(alone))) == sorted(map(repr, plain(wanted.select([column])))), column


def plain(rows: pa.Table) -> list[Any]:
    """Rows whose UUIDs are text, and whose maps are pairs, as Spark gives them."""

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {key.removeprefix("n_"): shown(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [shown(each) for each in value]
        if isinstance(value, datetime):
            return value.replace(tzinfo=None)
        return str(value) if isinstance(value, UUID) else value

    return [shown(row) for row in rows.to_pylist()]


@pytest.mark.parametrize("file_format", ["ORC", "AVRO"])
def test_a_file_that_is_missing_or_damaged_is_named(
    spark: SparkSession, mixed: Table, namespace: str, file_format: str
) -> None:
    (location,) = (file.file_path for file in data_files(mixed) if file.file_format == file_format)
    path = Path(location.removeprefix("file:"))
    whole = path.read_bytes()
    damages = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "other bytes": whole[: len(whole) // 3] + bytes(40) + whole[len(whole) // 3 + 40 :],
        "another kind": b"PAR1" + whole[4:-4] + b"PAR1",
    }
    for damaged in damages.values():
        path.write_bytes(damaged)
        with pytest.raises(
            Exception, match=rf"CorruptDataFileError: Cannot read the data file .*{path.name} as"
        ) as told:
            spark.sql(f"select * from {namespace}.mixed").collect()
        assert "restore it" in str(told.value)
    path.unlink()
    with pytest.raises(Exception, match=rf"refers to the data file .*{path.name}, which does not exist"):
        spark.sql(f"select * from {namespace}.mixed").collect()


def test_a_worker_without_the_package_says_what_to_install(mixed: Table) -> None:
    """Runs the function as a worker does, in a Python whose path does not have the package."""
    import subprocess
    import sys

    from hms_iceberg.spark.reading.worker_files import what_to_read, worker_command

    command = worker_command(what_to_read(mixed.metadata, mixed.schema(), ["n"], mixed.storage))
    program = (
        "import pickle, sys; sys.modules['hms_iceberg'] = None\n"
        "function, _ = pickle.load(sys.stdin.buffer)\nfunction(iter([]))"
    )
    ran = subprocess.run([sys.executable, "-c", program], input=command, capture_output=True, timeout=100, check=False)
    assert b"Install the same hms_iceberg[spark] on all executors" in ran.stderr
