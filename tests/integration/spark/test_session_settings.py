"""What a scan returns does not depend on the session's settings."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform
from tests.support.spark_tables import Rows, data_files, delete_keys, delete_positions, delete_vector, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hms_iceberg.catalog import Catalog
    from hms_iceberg.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.generated_code]

TYPES: dict[str, pa.DataType] = {
    "n": pa.int64(), "i": pa.int32(), "f": pa.float32(), "d": pa.float64(), "b": pa.bool_(), "s": pa.string(),
    "bin": pa.binary(), "fixed": pa.binary(4), "d9": pa.decimal128(9, 2), "d18": pa.decimal128(18, 3),
    "d38": pa.decimal128(38, 10), "day": pa.date32(), "ntz": pa.timestamp("us"), "tz": pa.timestamp("us", "UTC"),
    "l": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int32()),
    "st": pa.struct([("a", pa.int32()), ("Deep", pa.struct([("x", pa.binary()), ("y", pa.timestamp("us"))]))]),
    "part": pa.string(), "num": pa.int32(),
}  # fmt: skip
ROWS = Rows(TYPES)
OLD, LAST = dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30, 23, 59, 59, 999_999)
UTC = dt.timezone.utc
VALUES: list[tuple[Any, ...]] = [
    (1, 2**31 - 1, 1.5, -0.0, True, "ä ", b"\xff\x00", b"\0\1\2\3", Decimal("-9999999.99"), Decimal("1.001"),
     Decimal("1111111111111111111111111111.0000000001"), OLD.date(), OLD, OLD.replace(tzinfo=UTC), ["x", None],
     [("k", 1)], {"a": 1, "Deep": {"x": b"\xfe", "y": OLD}}, "p", 1),
    (2, -(2**31), float("inf"), float("-inf"), False, "", b"", b"abcd", Decimal("0.00"), Decimal("-1.001"),
     Decimal("-5.0000000001"), LAST.date(), LAST, LAST.replace(tzinfo=UTC), [], [], {"a": None, "Deep": None}, "", 2),
    (3, 0, 0.0, 1e-300, None, "1582-10-10", b"text", None, None, None, None, dt.date(1582, 10, 10),
     dt.datetime(1582, 10, 10, 1), dt.datetime(1582, 10, 10, 1, tzinfo=UTC), None, None, None, None, None),
    (4, *([None] * (len(TYPES) - 1))),
]  # fmt: skip
DELETED = [(number, *VALUES[0][1:]) for number in (10, 11)]

SETTINGS = [
    ("spark.sql.files.ignoreMissingFiles", "true"),
    ("spark.sql.files.ignoreCorruptFiles", "true"),
    ("spark.sql.parquet.binaryAsString", "true"),
    ("spark.sql.parquet.int96AsTimestamp", "false"),
    ("spark.sql.parquet.int96TimestampConversion", "true"),
    ("spark.sql.parquet.int96RebaseModeInRead", "LEGACY"),
    ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
    ("spark.sql.parquet.inferTimestampNTZ.enabled", "false"),
    ("spark.sql.parquet.fieldId.read.enabled", "true"),
    ("spark.sql.parquet.recordLevelFilter.enabled", "true"),
    ("spark.sql.parquet.enableVectorizedReader", "false"),
    ("spark.sql.parquet.enableNestedColumnVectorizedReader", "false"),
    ("spark.sql.parquet.columnarReaderBatchSize", "2"),
    ("spark.sql.parquet.aggregatePushdown", "true"),
    ("spark.sql.legacy.parquet.nanosAsLong", "true"),
    ("spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing", "true"),
    ("spark.sql.legacy.charVarcharAsString", "true"),
    ("spark.sql.caseSensitive", "true"),
    ("spark.sql.session.timeZone", "America/Los_Angeles"),
    ("spark.sql.ansi.enabled", "false"),
    ("spark.sql.codegen.factoryMode", "FALLBACK"),
    ("spark.sql.columnVector.offheap.enabled", "true"),
    ("spark.sql.optimizer.nestedSchemaPruning.enabled", "false"),
    ("spark.sql.optimizer.metadataOnly", "true"),
    ("spark.sql.cbo.enabled", "true"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
    ("parquet.filter.columnindex.enabled", "false"),
    ("parquet.private.read.filter.predicate", "x"),
]


# Times as numbers: Python's own reading of them depends on the session's time zone.
NUMBERS = ", ".join(f"unix_micros({name})" if name == "tz" else name for name in sorted(TYPES, key="tz".__eq__))


@pytest.fixture(scope="module")
def every_type(spark: SparkSession, catalog: Catalog) -> Iterator[str]:
    """Rows of every type, with deleted ones among them, partitioned by the last two columns; of two files each."""
    catalog.create_namespace("settings_of_sessions")
    spec = PartitionSpec(
        PartitionField(18, 1000, IdentityTransform(), "part"), PartitionField(19, 1001, IdentityTransform(), "num")
    )
    table = catalog.create_table("settings_of_sessions.t", ROWS.schema, partition_spec=spec)
    table.append(ROWS(VALUES))
    table.append(ROWS([*DELETED, *((number, *VALUES[2][1:-2], "gone", 9) for number in (12, 13, 14))]))
    with table.transaction() as transaction:
        transaction.set_properties({"write.delete.mode": "merge-on-read"})
    for gone in ("n in (11, 12, 14)", "n = 10", "n = 13"):
        table.delete(gone)
    yield "settings_of_sessions.t"
    catalog.drop_table("settings_of_sessions.t")
    catalog.drop_namespace("settings_of_sessions")


OF_PARTITIONS = {
    "spark.sql.parquet.aggregatePushdown", "spark.sql.parquet.enableVectorizedReader", "spark.sql.caseSensitive",
    "spark.sql.codegen.factoryMode", "spark.sql.optimizer.metadataOnly", "spark.sql.cbo.enabled",
}  # fmt: skip
"""The settings that could matter to queries of partitions and numbers of rows alone, too."""


def _answers(session: SparkSession, name: str, key: str | None = None) -> list[Any]:
    queries = [
        f"select {NUMBERS} from {name}",
        f"select n, st.Deep.x from {name} where bin = X'FF00' or s like '1582%' or d38 < 0 or element_at(l, 1) = 'x'"
        " or day < date'1600-01-01' or ntz > timestamp_ntz'9000-01-01 00:00:00'",
    ]
    if key is None or key in OF_PARTITIONS:
        queries += [f"select distinct part from {name}", f"select max(num), min(part), count(*) from {name}"]
    return [sorted(map(repr, session.sql(query).collect())) for query in queries]


def _with(session: SparkSession, key: str, value: str) -> SparkSession:
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set(key, value)
    return session


def test_rows_of_every_type_are_those_that_were_written_under_any_setting(spark: SparkSession, every_type: str) -> None:
    expected = _answers(spark, every_type)
    rows = {row[0]: row for row in spark.sql(f"select {NUMBERS} from {every_type}").collect()}
    assert sorted(rows) == [1, 2, 3, 4]
    epoch = dt.datetime(1970, 1, 1, tzinfo=UTC)
    for values in VALUES:
        wanted = dict(zip(TYPES, values, strict=True))
        at = wanted.pop("tz")
        found = rows[wanted["n"]].asDict(recursive=True)
        micros = found.pop("unix_micros(tz)")
        assert micros == (None if at is None else (at - epoch) // dt.timedelta(microseconds=1))
        wanted["m"] = None if wanted["m"] is None else dict(wanted["m"])
        assert {key: _text(value) for key, value in found.items()} == {key: _text(wanted[key]) for key in wanted}
    different = []
    for key, value in SETTINGS:
        found = _answers(_with(spark.newSession(), key, value), every_type, key)
        different += [(key, value, pair) for pair in zip(expected, found, strict=False) if pair[0] != pair[1]]
    assert different == []


def _text(value: Any) -> str:
    """Some versions of PySpark have binary values as byte arrays."""
    return re.sub(r"bytearray\((b'[^']*')\)", r"\1", repr(value))


def _position_deletes(table: Table) -> Any:
    return delete_positions(table, (data_files(table)[0], [0]))


def _key_deletes(table: Table) -> Any:
    return delete_keys(table, pa.table({"id": [1]}))


def _vector(table: Table) -> Any:
    return delete_vector(table, data_files(table)[0], [0])


def _remove(path: Path) -> None:
    path.unlink()


def _damage(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


@pytest.mark.parametrize("harm", [_remove, _damage])
@pytest.mark.parametrize(
    ("version", "file_format", "deletes"),
    [
        ("2", "parquet", None), ("2", "orc", None), ("2", "avro", None), ("2", "parquet", _position_deletes),
        ("2", "parquet", _key_deletes), ("3", "parquet", _vector), ("2", "orc", _position_deletes),
    ],
)  # fmt: skip
def test_a_missing_or_damaged_file_is_never_passed_over(
    spark: SparkSession, catalog: Catalog, namespace: str, commit: Any, harm: Callable[[Path], None], version: str,
    file_format: str, deletes: Callable[[Table], Any] | None,
) -> None:  # fmt: skip
    rows = Rows({"id": pa.int64()})
    properties = {"format-version": version, "write.format.default": file_format}
    table = catalog.create_table(f"{namespace}.t", rows.schema, properties=properties)
    table.append(rows([(1,), (2,)]))
    lost = data_files(table)[0].file_path
    if deletes is not None:
        file = deletes(table)
        commit(table, file)
        lost = file.file_path
    harm(Path(lost.removeprefix("file:")))
    session = spark.newSession()
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    with pytest.raises(Exception, match=Path(lost).name) as raised:
        rows_of(session, f"select id from {namespace}.t where id > 0")
    if deletes is not None and harm is _remove:
        assert "delete file" in str(raised.value) or "deletion vector" in str(raised.value)


def test_new_databases_are_in_the_metastores_warehouse_where_spark_was_told_of_none(
    spark: SparkSession, catalog: Catalog, namespace: str
) -> None:
    jvm: Any = spark._jvm
    setting = jvm.org.apache.spark.sql.internal.StaticSQLConf.WAREHOUSE_PATH()
    settings = spark._jsparkSession.sessionState().conf()
    told = settings.warehousePath()
    made = f"{namespace}_made"
    settings.setConfString(setting.key(), setting.defaultValueString())  # as in a session that says nothing of it
    try:
        spark.sql(f"create database {made} comment 'new' with dbproperties (owner_team = 'web')")
        spark.sql(f"create database {made}_elsewhere location '{told}/elsewhere/{made}'")
        settings.setConfString(setting.key(), f"{told}/of_spark")
        spark.sql(f"create database {made}_told")
    finally:
        settings.setConfString(setting.key(), told)
    found = [catalog.load_namespace_properties(f"{made}{each}") for each in ("", "_elsewhere", "_told")]
    default = catalog.load_namespace_properties("default")["location"]
    assert found[0]["location"] == f"{default}/{made}.db"
    assert (found[0]["comment"], found[0]["owner_team"]) == ("new", "web")
    assert found[1]["location"].endswith(f"/elsewhere/{made}")
    assert found[2]["location"].endswith(f"/of_spark/{made}_told.db")
