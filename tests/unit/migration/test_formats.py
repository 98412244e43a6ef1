"""What the footers of ORC and Avro files say, and which of these files cannot be read as Hive and Spark read them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from hms_iceberg.arrow.metrics.footer_metrics import metrics_modes
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.hms.rows.hive_rows import HiveColumn, HiveStorage, HiveTable
from hms_iceberg.migration.hive.footers import FooterReader, SourceFooters
from hms_iceberg.migration.hive.hive_types import TypeOptions
from hms_iceberg.migration.hive.source import inspect_source, list_files
from hms_iceberg.migration.migration_progress import silent
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_bytes
from tests.support.python_values import to_python

SERDES = {"orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde", "avro": "org.apache.hadoop.hive.serde2.avro.AvroSerDe"}


def read(folder: Path, kind: str, columns: str, parameters: Mapping[str, str] | None = None) -> SourceFooters:
    """What the files of a table in a folder say; columns as `name type; name type`."""
    return read_with_schema(folder, kind, columns, parameters)[0]


def read_with_schema(
    folder: Path, kind: str, columns: str, parameters: Mapping[str, str] | None = None
) -> tuple[SourceFooters, Schema]:
    pairs = [part.strip().split(" ", 1) for part in columns.split(";")]
    stored = HiveStorage(str(folder), "", "", SERDES[kind])
    table = HiveTable("db", "t", "MANAGED_TABLE", tuple(HiveColumn(*each) for each in pairs), (), stored, {})
    source = inspect_source(replace(table, parameters=parameters or {}), [], TypeOptions())
    listing = list_files(ArrowStorage(), [str(folder)], 2, silent)
    reader = FooterReader(ArrowStorage(), source, metrics_modes(source.schema, {}))
    return reader.read_all(source, listing.files, 2, silent), source.schema


def write_avro(path: Path, fields: list[dict[str, Any]], *records: dict[str, Any]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "t", "fields": fields}, records)


# --------------------------------------------------------------------------------------------------- ORC


def test_metrics_of_an_orc_file_are_those_of_its_rows(tmp_path: Path) -> None:
    rows = {
        "i": pa.array([3, None, -7], pa.int32()),
        "l": pa.array([1 << 40, -(1 << 40), 0]),
        "f": pa.array([0.0, 1.5, None]),
        "s": pa.array(["b", "a", None]),
        "d": pa.array([Decimal("-1.25"), Decimal("99.00"), None], pa.decimal128(9, 2)),
        "day": pa.array([dt.date(1969, 12, 30), dt.date(2020, 1, 1), None]),
        "at": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 1, 1), None]),
        "none": pa.array([None, None, None], pa.int64()),
        "st": pa.array([{"x": 5}, None, {"x": 6}], pa.struct([("x", pa.int64())])),
        "list": pa.array([[1, 2, 3], [], None], pa.list_(pa.int32())),
    }
    orc.write_table(pa.table(rows), str(tmp_path / "f"), compression="zstd")

    found, schema = read_with_schema(
        tmp_path,
        "orc",
        "i int; l bigint; f double; s string; d decimal(9,2); day date; at timestamp; none bigint; st struct<x:bigint>;"
        " list array<int>",
    )

    [file] = found.data_files
    assert (found.problems, file.record_count, file.file_format) == ((), 3, "ORC")
    names = {schema.find_column_name(number): number for number in schema.index_by_id}
    assert {name: (file.null_value_counts or {}).get(names[name]) for name in (*rows, "st.x", "list.element")} == {
        **dict.fromkeys(("i", "f", "s", "d", "day", "at", "st.x"), 1),
        "l": 0,
        "none": 3,
        "st": None,
        "list": None,
        "list.element": None,
    }

    def bounds(name: str) -> tuple[Any, Any]:
        kind = schema.find_type(names[name])
        low, high = (file.lower_bounds or {})[names[name]], (file.upper_bounds or {})[names[name]]
        return to_python(kind, from_bytes(kind, low)), to_python(kind, from_bytes(kind, high))

    for name in ("i", "l", "s", "d", "day"):
        values = [value for value in rows[name].to_pylist() if value is not None]
        assert bounds(name) == (min(values), max(values))
    assert repr(bounds("f")) == "(-0.0, 1.5)" and bounds("st.x") == (5, 6)
    low, high = (moment.replace(tzinfo=None) for moment in bounds("at"))
    assert dt.timedelta(0) <= rows["at"][0].as_py() - low < dt.timedelta(milliseconds=3)
    assert dt.timedelta(0) <= high - rows["at"][1].as_py() < dt.timedelta(milliseconds=3)
    assert not {names["none"], names["list.element"]} & set(file.lower_bounds or {})


def test_bounds_of_an_orc_column_with_nan_are_those_of_its_numbers_or_none(tmp_path: Path) -> None:
    for name, values in (("first", [float("nan"), 1.0, 2.0]), ("last", [1.0, 2.0, float("nan")])):
        (tmp_path / name).mkdir()
        orc.write_table(pa.table({"f": values}), str(tmp_path / name / "f"))
        [file] = read(tmp_path / name, "orc", "f double").data_files
        low, high = (file.lower_bounds or {}).get(1), (file.upper_bounds or {}).get(1)
        assert low is None or (from_bytes_of_double(low) <= 1.0 and from_bytes_of_double(high or b"") >= 2.0)


def from_bytes_of_double(data: bytes) -> float:
    from hms_iceberg.spec.data_types import DoubleType

    return float(from_bytes(DoubleType(), data))


def test_columns_that_hive_named_by_their_place_are_the_tables_columns_at_that_place(tmp_path: Path) -> None:
    struct = pa.struct([("x", pa.int32())])
    orc.write_table(pa.table({"_col0": [1], "_col1": pa.array([{"x": 1}], struct)}), str(tmp_path / "old"))
    orc.write_table(
        pa.table({"S": pa.array([{"X": 1}], struct.field(0).type and struct), "id": [2]}), str(tmp_path / "n")
    )

    found = read(tmp_path, "orc", "id bigint; s struct<x:int>; later string")

    assert found.problems == ()
    assert [each.names for each in found.name_mapping.fields] == [("id", "_col0"), ("s", "S", "_col1"), ("later",)]


def test_names_that_only_look_like_places_are_names(tmp_path: Path) -> None:
    orc.write_table(pa.table({"_col1": [1], "_col0": [2]}), str(tmp_path / "f"))

    found = read(tmp_path, "orc", "a bigint; b bigint")

    assert [each.names for each in found.name_mapping.fields] == [("a",), ("b",)]


def test_orc_timestamps_are_local_and_cannot_be_made_instants(tmp_path: Path) -> None:
    orc.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), str(tmp_path / "f"))

    found = read(tmp_path, "orc", "at timestamp")

    assert (found.problems, found.timestamps, found.orc_timestamps) == ((), {1: {"local"}}, {1: {"local"}})


@pytest.mark.parametrize(
    ("hive", "array", "why"),
    [
        ("string", pa.array([b"x"]), "holds binary in the column 'a'"),
        ("int", pa.array([1], pa.int64()), "holds int64 in the column 'a'"),
        ("decimal(9,2)", pa.array([Decimal("1.125")], pa.decimal128(9, 3)), "holds decimal128(9, 3)"),
        ("date", pa.array([dt.date(1582, 10, 4)]), "before 1582-10-15"),
    ],
)
def test_an_orc_file_that_would_be_read_otherwise_is_refused(
    tmp_path: Path, hive: str, array: pa.Array, why: str
) -> None:
    orc.write_table(pa.table({"a": array}), str(tmp_path / "f"))

    [problem] = read(tmp_path, "orc", f"a {hive}").problems

    assert problem.startswith(f"file {tmp_path}/f ") and why in problem


def test_a_file_that_is_not_orc_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello")

    assert [f"{tmp_path}/notes" in problem for problem in read(tmp_path, "orc", "a int").problems] == [True]


# -------------------------------------------------------------------------------------------------- Avro


def test_avro_timestamps_are_instants_unless_they_say_that_they_are_local(tmp_path: Path) -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    local = {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}
    fields = [{"name": "at", "type": ["null", millis]}, {"name": "there", "type": local}]
    write_avro(tmp_path / "f", fields, {"at": None, "there": 0})

    found = read(tmp_path, "avro", "at timestamp; there timestamp")

    assert (found.problems, found.timestamps) == ((), {1: {"instant"}, 2: {"local"}})
    assert [(file.record_count, file.file_format) for file in found.data_files] == [(1, "AVRO")]


def test_avros_own_type_of_local_times_is_refused_as_java_does_not_read_it(tmp_path: Path) -> None:
    local = {"type": "long", "logicalType": "local-timestamp-micros"}
    write_avro(tmp_path / "f", [{"name": "there", "type": local}], {"there": 0})

    [problem] = read(tmp_path, "avro", "there timestamp").problems

    assert "local-timestamp-micros of long" in problem and "the column 'there'" in problem


@pytest.mark.parametrize(
    ("literal", "problem"),
    [
        (None, "has the column 'Id', which Hive does not take for 'id'"),
        ([{"name": "Id", "type": "int"}], None),
        ([{"name": "new", "type": "int", "aliases": ["Id"]}], "has the column 'Id'"),
        ([{"name": "id", "type": "int", "aliases": ["Id"]}], None),
        ([{"name": "Id", "type": "int"}, {"name": "b", "type": "int", "default": 7}], "lacks the column 'b'"),
        ([{"name": "Id", "type": "int"}, {"name": "b", "type": ["null", "int"], "default": None}], None),
    ],
)
def test_names_in_avro_files_are_those_of_hives_own_schema(
    tmp_path: Path, literal: list[dict[str, Any]] | None, problem: str | None
) -> None:
    write_avro(tmp_path / "f", [{"name": "Id", "type": "int"}], {"Id": 1})
    parameters = {"avro.schema.literal": json.dumps({"type": "record", "name": "t", "fields": literal})}

    found = read(tmp_path, "avro", "id int; b int", parameters if literal else None)

    assert [problem in each for each in found.problems if problem] == ([True] if problem else [])
    if not problem:
        assert found.problems == () and "Id" in found.name_mapping.fields[0].names


def test_an_avro_file_of_a_union_of_types_is_refused(tmp_path: Path) -> None:
    write_avro(tmp_path / "f", [{"name": "a", "type": ["int", "string"]}], {"a": 1})

    [problem] = read(tmp_path, "avro", "a int").problems

    assert f"file {tmp_path}/f cannot be read" in problem and "unions" in problem
