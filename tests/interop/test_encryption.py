"""Encrypted tables: Apache Iceberg reads and changes those of Python, and Python those of Apache Iceberg."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pytest

from hms_iceberg import load_catalog
from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import CorruptMetadataError, KeyUnavailableError, TamperedFileError
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.spark import extend
from hms_iceberg.spec.data_types import DoubleType, FloatType
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.transforms.numbered import BucketTransform
from hms_iceberg.table import Table
from tests.support.java_peer import encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.since_spark("4.0", "encryption by Java 1.12")]

COLUMNS = {
    "id": pa.int64(),
    "text": pa.string(),
    "real": pa.float64(),
    "exact": pa.decimal128(10, 2),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "bytes": pa.binary(),
    "list": pa.list_(pa.int32()),
    "deep": pa.struct([("a", pa.string())]),
}
JAVA_COLUMNS = """id bigint, text string, real double, exact decimal(10,2), day date, at timestamp_ntz, bytes binary,
    list array<int>, deep struct<a: string>"""
JAVA_ROWS = """select id, if(id % 5 = 0, null, concat('text ', id)),
    if(id % 4 = 0, double('NaN'), id / 3), cast(id / 100 as decimal(10,2)), date_add(date'1970-01-01', int(id)),
    timestamp_ntz'1969-12-31 23:59:59.000001', cast(string(id) as binary), array(int(id), null),
    named_struct('a', string(id)) from range(50)"""
# Texts of these could be written in several ways. (Those of some fractions are other ones by Java 17 than by Java 21.)
DEFAULTS = [
    ("timestamp", datetime(1970, 1, 1)),
    ("timestamp", datetime(9999, 12, 31, 23, 59, 59, 500_000)),
    ("timestamptz", datetime(1960, 2, 3, 4, 5, 6, 10, timezone.utc)),
    ("date", date(1, 1, 1)),
    ("binary", b"\x00\xff"),
    ("fixed[2]", b"\xab\xcd"),
    ("uuid", UUID(int=2**127 + 10)),
    ("decimal(38,0)", Decimal("-99999999999999999999999999999999999999")),
    ("decimal(9,8)", Decimal("0.00000001")),
    ("double", 1e-300),
    ("string", 'ü😀"\x7f\u2028/\\'),
    ("boolean", False),
    ("long", -(2**63)),
]
COPY, MERGE = "copy-on-write", "merge-on-read"


@pytest.fixture(scope="session")
def keyed(metastore: Any, iceberg_java: Any) -> Catalog:
    """A catalog on the metastore of the run with a key service."""
    keys = {"encryption.kms-type": "keystore", "kms.keystore.path": str(iceberg_java.keys)}
    return load_catalog("keyed", type="hive", uri=metastore.uri, warehouse=metastore.warehouse, **keys)


def row(key: int) -> dict[str, Any]:
    return {
        "id": key,
        "text": None if key % 5 == 0 else "" if key % 7 == 0 else f"text {key}",
        "real": float("nan") if key % 4 == 0 else float("-inf") if key % 9 == 0 else key / 3,
        "exact": Decimal(key).scaleb(-2),
        "day": date(1970, 1, 1 + key % 28),
        "at": datetime(1969, 12, 31, 23, 59, 59, key),
        "bytes": bytes([key % 256]) * (key % 3),
        "list": [key, None],
        "deep": {"a": None if key % 2 else "x"},
    }


def rows(start: int, stop: int) -> pa.Table:
    fields = [pa.field(name, kind) for name, kind in COLUMNS.items()]
    return pa.Table.from_pylist([row(key) for key in range(start, stop)], schema=pa.schema(fields))


def ours(table: Table) -> list[Any]:
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    return [
        [encode(list(value.values()) if isinstance(value, dict) else value) for value in each.values()]
        for each in found
    ]


def javas(iceberg_java: Any, name: str) -> list[Any]:
    return iceberg_java.sql(f"select * from keyed.{name} order by id")


def properties(mode: str, file_format: str, key: str) -> dict[str, str]:
    return {
        "format-version": "3",
        "encryption.key-id": key,
        "encryption.data-key-length": key[1:],
        "write.format.default": file_format,
        **{f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
    }


def beginnings(table: Table) -> set[bytes]:
    """How the files of the table's folder begin, but for metadata files."""
    folder = Path(table.location().removeprefix("file:"))
    files = [each for each in folder.rglob("*") if each.suffix in (".parquet", ".avro", ".puffin")]
    return {each.read_bytes()[:4] for each in files}


@pytest.mark.parametrize(
    ("mode", "file_format", "key"), [(COPY, "parquet", "k16"), (MERGE, "parquet", "k32"), (MERGE, "avro", "k24")]
)
def test_java_reads_and_changes_what_python_writes(
    keyed: Catalog, iceberg_java: Any, namespace: str, mode: str, file_format: str, key: str
) -> None:
    name = f"{namespace}.ours_{file_format}_{key}_{mode[:4]}"
    by_bucket = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "id_bucket"))
    schema = rows(0, 0).schema
    table = keyed.create_table(name, schema, partition_spec=by_bucket, properties=properties(mode, file_format, key))
    table.append(rows(0, 40))
    table.append(rows(40, 60))
    table.delete("id in (3, 13, 23, 43)")
    table.update({"text": "changed"}, "id between 5 and 8 or id = 50")
    table.overwrite(rows(100, 103), "id >= 55")
    expected = ours(table)
    assert len(expected) == 60 - 4 - 5 + 3
    assert javas(iceberg_java, name) == expected
    iceberg_java.sql(f"delete from keyed.{name} where id < 2 or id = 101")
    iceberg_java.sql(f"insert into keyed.{name} select * from keyed.{name} where id = 50")
    table.refresh()
    assert len(ours(table)) == len(expected) - 3 + 1
    assert ours(table) == javas(iceberg_java, name)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.maintenance.rewrite_manifests()
    table.maintenance.rotate_keys()
    after = ours(table)
    table.maintenance.expire_snapshots().retain_last(1).older_than(datetime.now()).commit()
    assert not table.maintenance.check().findings
    assert ours(table) == after == javas(iceberg_java, name)
    iceberg_java.sql(f"insert into keyed.{name} select * from keyed.{name} where id = 8")
    assert table.refresh().scan().count() == len(after) + 1
    assert beginnings(table) <= {b"PARE", b"AGS1"}


@pytest.mark.parametrize(
    ("mode", "file_format", "key"), [(MERGE, "parquet", "k16"), (COPY, "parquet", "k24"), (COPY, "avro", "k32")]
)
def test_python_reads_and_changes_what_java_writes(
    keyed: Catalog, iceberg_java: Any, namespace: str, mode: str, file_format: str, key: str
) -> None:
    name = f"{namespace}.javas_{file_format}_{key}_{mode[:4]}"
    settings = ", ".join(f"'{each}'='{value}'" for each, value in properties(mode, file_format, key).items())
    created = f"create table keyed.{name} ({JAVA_COLUMNS}) using iceberg partitioned by (bucket(2, id))"
    iceberg_java.sql(f"{created} tblproperties ({settings})")
    iceberg_java.sql(f"insert into keyed.{name} {JAVA_ROWS}")
    iceberg_java.sql(f"update keyed.{name} set text = 'changed' where id in (7, 8, 30)")
    iceberg_java.sql(f"delete from keyed.{name} where id between 10 and 19")
    table = keyed.load_table(name)
    assert len(ours(table)) == 40
    assert ours(table) == javas(iceberg_java, name)
    assert not table.maintenance.check().findings
    table.delete("id = 7 or id > 45")
    table.append(rows(200, 205))
    table.upsert(rows(204, 207), join_cols=["id"])
    assert len(ours(table)) == 40 - 5 + 7
    assert ours(table) == javas(iceberg_java, name)


@pytest.mark.parametrize(("mode", "form"), [(COPY, "parquet"), (MERGE, "parquet"), (MERGE, "avro")])
def test_java_and_our_spark_read_what_each_other_s_tasks_write(
    spark: SparkSession, keyed: Catalog, iceberg_java: Any, namespace: str, mode: str, form: str
) -> None:
    name = f"{namespace}.tasks_{mode[:4]}_{form}"
    extend(spark, catalogs={"tasks": keyed.properties})
    asked = ", ".join(f"'{each}'='{value}'" for each, value in properties(mode, form, "k24").items())
    created = f"create table tasks.{name} ({JAVA_COLUMNS}) using iceberg partitioned by (bucket(2, id))"
    spark.sql(f"{created} tblproperties ({asked})")
    for own, sql in ((f"tasks.{name}", spark.sql), (f"keyed.{name}", iceberg_java.sql)):
        sql(f"insert into {own} {JAVA_ROWS}")
        sql(f"update {own} set text = 'changed' where id in (7, 8, 30)")
        sql(f"delete from {own} where id between 10 and 19")
        table = keyed.load_table(name)
        expected = ours(table)
        found = [encode(tuple(row)) for row in spark.sql(f"select * from tasks.{name} order by id").collect()]
        assert javas(iceberg_java, name) == expected
        assert sorted(map(str, found)) == sorted(map(str, expected))
    assert len(expected) == 80
    assert beginnings(table) == ({b"PARE", b"AGS1"} if form == "parquet" else {b"AGS1"})


def test_the_row_in_the_metastore_says_what_javas_says(keyed: Catalog, iceberg_java: Any, namespace: str) -> None:
    names = [f"{namespace}.row_ours", f"{namespace}.row_javas"]
    asked = {"format-version": "3", "encryption.key-id": "k16", "note": 'tab\t, \x01, ü and "quotes"'}
    ours_first = keyed.create_table(names[0], rows(0, 0).schema, properties=asked)
    ours_first.append(rows(0, 2))
    with ours_first.update_schema() as update:
        update.add_column("large", DoubleType(), doc='a "number"', default_value=1e10)
        update.add_column("small", FloatType(), default_value=0.1)
    with ours_first.update_schema() as update:
        for number, (kind, default) in enumerate(DEFAULTS):
            update.add_column(f"default_{number}", kind, default_value=default)
    ours_first.manage_snapshots().create_branch(None, "b", 10**9, 10**9, 30).commit()
    ours_first.manage_snapshots().create_tag(None, "t").commit()
    numbers = f"select large, small, default_0, default_4 from keyed.{names[0]}"
    assert iceberg_java.sql(numbers) == [[1e10, pytest.approx(0.1), "1970-01-01T00:00:00", "00ff"]] * 2
    added = ", ".join(["large", "small", *(f"default_{number}" for number in range(len(DEFAULTS)))])
    iceberg_java.sql(f"alter table keyed.{names[0]} drop columns ({added})")
    ours_first.refresh()
    keyed.create_table(names[1], rows(0, 0).schema, properties=asked)
    iceberg_java.sql(f"insert into keyed.{names[1]} select * from keyed.{names[0]}")
    found = [keyed.metastore.load(tuple(each.split("."))).properties for each in names]
    for each in found:
        assert each["encryption.key-id"] == "k16"
        assert len(each["metadata_hash"]) == 44
    assert ours(keyed.load_table(names[1])) == javas(iceberg_java, names[0])


def test_what_java_wrote_and_somebody_changed_is_told(keyed: Catalog, iceberg_java: Any, namespace: str) -> None:
    name = f"{namespace}.tampered"
    settings = "'format-version'='3', 'encryption.key-id'='k16'"
    iceberg_java.sql(f"create table keyed.{name} (id bigint) using iceberg tblproperties ({settings})")
    iceberg_java.sql(f"insert into keyed.{name} values (1), (2)")
    table = keyed.load_table(name)
    metadata = Path(table.metadata_location.removeprefix("file:"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for path in [
        metadata,
        Path(str(snapshot.manifest_list).removeprefix("file:")),
        *(Path(each.manifest_path.removeprefix("file:")) for each in snapshot.manifests(table.io)),
        *(Path(each.file.file_path.removeprefix("file:")) for each in table.scan().plan_files()),
    ]:
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1) if path.suffix != ".parquet" else (40, len(content) - 1):
            cache_of(None).clear()
            changed = bytearray(content)
            changed[place] ^= 1
            path.write_bytes(changed)
            with pytest.raises(CorruptMetadataError if path is metadata else TamperedFileError):
                keyed.load_table(name).scan().to_arrow()
        path.write_bytes(content)
    without = metadata.read_bytes().replace(b'"k16"', b'"k24"')
    content = metadata.read_bytes()
    metadata.write_bytes(without)
    with pytest.raises(TamperedFileError, match="not the one that was committed"):
        keyed.load_table(name)
    metadata.write_bytes(content)
    assert keyed.load_table(name).scan().count() == 2


def test_without_keys_nothing_is_read(catalog: Any, keyed: Catalog, namespace: str, tmp_path: Path) -> None:
    name = f"{namespace}.locked"
    asked = {"format-version": "3", "encryption.key-id": "k16"}
    keyed.create_table(name, rows(0, 0).schema, properties=asked).append(rows(0, 2))
    with pytest.raises(KeyUnavailableError, match="has no key service"):
        catalog.load_table(name).scan().to_arrow()
    with pytest.raises(KeyUnavailableError):
        catalog.load_table(name).append(rows(2, 3))
    others = tmp_path / "others.json"
    others.write_text(json.dumps({"other": "AAAAAAAAAAAAAAAAAAAAAA=="}))
    others.chmod(0o600)
    settings = {**keyed.properties, "kms.keystore.path": str(others)}
    with pytest.raises(KeyUnavailableError, match="no key 'k16'"):
        load_catalog("other", **settings).load_table(name).scan().to_arrow()
    others.write_text(json.dumps({"k16": "AAAAAAAAAAAAAAAAAAAAAA=="}))
    with pytest.raises(TamperedFileError):
        load_catalog("other", **settings).load_table(name).scan().to_arrow()
    assert keyed.load_table(name).scan().count() == 2
