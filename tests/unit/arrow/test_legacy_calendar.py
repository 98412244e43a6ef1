"""Dates and times that Java's old calendar classes counted; what they mean was recorded from Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.columns.legacy_calendar import PROLEPTIC, Rule, WriterCalendar, writer_calendar
from hms_iceberg.arrow.formats.content_files import ContentReader, open_reader
from hms_iceberg.arrow.metrics.footer_metrics import data_file_from_parquet
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import UnsupportedError
from hms_iceberg.spec.data_types import DateType, NestedField, TimestamptzType
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.schema import Schema

# As the file holds them, as they are meant.
DAYS = [
    (-719_164, -719_162), (-719_162, -719_160), (-682_945, -682_944), (-354_221, -354_226), (-354_220, -354_226),
    (-354_219, -354_225), (-141_429, -141_439), (-141_428, -141_438), (-141_427, -141_427), (0, 0),
]  # fmt: skip
INSTANTS = {
    "UTC": [(-26594175578466967, -26594780378466967), (-51981361624295205, -51981448024295205),
            (-4038855696066415, -4038855696066415), (-2208998800000000, -2208998800000000)],
    "America/Los_Angeles": [(-19678283033840705, -19678974655840705), (-64684884800415713, -64684712422415713),
                            (-2453425121136602, -2453425121136602), (-4230863126985837, -4230863548985837)],
    "Europe/Berlin": [(-9148522938080331, -9148522546080331), (-48418513253024895, -48418599261024895),
                      (-3273139583806804, -3273139191806804), (-2208998800000000, -2208998800000000)],
    "Asia/Kolkata": [(-15878802967657918, -15879581975657918), (-42368857236275095, -42369117844275095),
                     (-2757225830472581, -2757225300472581), (-2208988800000001, -2208988270000001)],
}  # fmt: skip
MIXED_DAYS = [dt.date(1500, 1, 10), dt.date(2020, 1, 1), None]
HIVE = {"writer.date.proleptic": "false", "writer.time.zone": "America/New_York"}


def test_days_are_what_spark_makes_of_them() -> None:
    held = pa.array([*(held for held, _ in DAYS), None], pa.int32()).view(pa.date32())
    meant = Rule(None).proleptic(held)
    assert meant.view(pa.int32()).to_pylist() == [*(meant for _, meant in DAYS), None]


@pytest.mark.parametrize("zone", list(INSTANTS))
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_instants_are_what_spark_makes_of_them(zone: str, unit: str) -> None:
    size = 1 if unit == "us" else 1_000
    held = pa.array([*(held // size for held, _ in INSTANTS[zone]), None, 0], pa.int64())
    meant = Rule(zone).proleptic(held.view(pa.timestamp(unit, "UTC")))
    assert meant.view(pa.int64()).to_pylist() == [*(meant // size for _, meant in INSTANTS[zone]), None, 0]


@pytest.mark.parametrize(
    ("zone", "other"), [("+05:30", "Asia/Kolkata"), ("PST", "America/Los_Angeles"), ("GMT+5:30", "Asia/Kolkata")]
)
def test_zones_by_other_names_of_java_keep_their_standard_offset(zone: str, other: str) -> None:
    noon = pa.array([dt.datetime(1582, 10, 4, 23, 0)], pa.timestamp("us", "UTC"))
    shift = [Rule(each).proleptic(noon).cast(pa.int64())[0].as_py() for each in (zone, other)]
    assert abs(shift[0] - shift[1]) < 3_600_000_000  # the local time of old, which only named zones have


def test_a_zone_that_nobody_knows_is_told() -> None:
    with pytest.raises(UnsupportedError, match=r"Mars/Olympus.*Install the package tzdata"):
        Rule("Mars/Olympus").proleptic(pa.array([dt.datetime(1500, 1, 1)], pa.timestamp("us", "UTC")))


SPARK, OLD = "org.apache.spark.version", "org.apache.spark.legacyDateTime"
ZONE = {"org.apache.spark.timeZone": "Asia/Tokyo"}


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({}, PROLEPTIC),
        ({SPARK: "4.0.0", **ZONE}, PROLEPTIC),
        ({SPARK: "3.0.3", **ZONE}, WriterCalendar(int96="Asia/Tokyo")),
        ({SPARK: "2.4.8", **ZONE}, WriterCalendar(True, "Asia/Tokyo", "Asia/Tokyo")),
        ({SPARK: "4.0.0", OLD: "", **ZONE}, WriterCalendar(True, "Asia/Tokyo")),
        ({SPARK: "4.0.0", "org.apache.spark.legacyINT96": "", **ZONE}, WriterCalendar(int96="Asia/Tokyo")),
        ({"writer.date.proleptic": "true"}, WriterCalendar(int96="UTC")),
        (HIVE, WriterCalendar(True, None, "UTC")),
        ({**HIVE, "writer.zone.conversion.legacy": "true"}, WriterCalendar(True, None, "America/New_York")),
        ({"writer.proleptic": "false", "writer.time.zone": "Asia/Tokyo"}, WriterCalendar(True, "UTC", "UTC")),
        ({"writer.proleptic": "true"}, WriterCalendar(int96="UTC")),
    ],
)
def test_the_marks_of_a_file_tell_its_calendar(marks: dict[str, str], expected: WriterCalendar) -> None:
    assert writer_calendar(marks) == expected


def test_columns_that_readers_disagree_about_have_no_bounds(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "d", DateType()), NestedField(2, "t", TimestamptzType()), NestedField(3, "e", DateType())
    )
    instants = pa.array([dt.datetime(1500, 1, 10), dt.datetime(1899, 12, 31, 23)], pa.timestamp("us", "UTC"))
    days = [dt.date(1500, 1, 10), dt.date(2020, 1, 1)]
    rows = pa.table({"d": days, "t": instants, "e": [dt.date(1582, 10, 15), dt.date(2020, 1, 1)]})
    location = str(tmp_path / "f.parquet")
    pq.write_table(rows.replace_schema_metadata({SPARK: "2.4.8", "org.apache.spark.timeZone": "UTC"}), location)

    file = data_file_from_parquet(ArrowStorage(), location, schema, name_mapping=create_name_mapping(schema))

    assert file.lower_bounds == {3: (-141_427).to_bytes(4, "little", signed=True)}
    assert file.null_value_counts == {1: 0, 2: 0, 3: 0}


def everything(reader: ContentReader, leaves: int) -> pa.Table:
    return pa.Table.from_batches(
        [batch for rows in reader.ranges() for _, batch in reader.read(rows, range(leaves), 100, False)]
    )


def test_parquet_files_of_hive_are_read_as_hive_meant_them(tmp_path: Path) -> None:
    location = str(tmp_path / "f.parquet")
    nested = pa.array([{"l": [MIXED_DAYS[0], None]}, None, {"l": None}], pa.struct([("l", pa.list_(pa.date32()))]))
    clock = pa.array([dt.datetime(1500, 1, 10), dt.datetime(1890, 1, 1), None], pa.timestamp("us"))
    rows = pa.table({"d": pa.array(MIXED_DAYS, pa.date32()), "s": nested, "int96": clock})
    pq.write_table(rows.replace_schema_metadata(HIVE), location, use_deprecated_int96_timestamps=True)

    reader = open_reader(ArrowStorage(), location, "PARQUET")

    [problem] = reader.problems()
    assert problem.endswith("(in d, s.l.element, int96)")
    read = everything(reader, 3).to_pylist()
    assert [row["d"] for row in read] == [dt.date(1500, 1, 1), dt.date(2020, 1, 1), None]
    assert [row["s"] for row in read] == [{"l": [dt.date(1500, 1, 1), None]}, None, {"l": None}]
    assert [row["int96"] for row in read] == [dt.datetime(1500, 1, 1), dt.datetime(1890, 1, 1), None]
    reader.close()


@pytest.mark.parametrize("marks", [{SPARK: "2.4.8", **ZONE}, {"writer.proleptic": "false"}])
def test_avro_files_are_read_as_their_writer_meant_them(tmp_path: Path, marks: dict[str, str]) -> None:
    path = tmp_path / "f.avro"
    date = {"type": "int", "logicalType": "date"}
    fields = [
        {"name": "d", "type": ["null", date]},
        {"name": "m", "type": {"type": "map", "values": date}},
        {"name": "x", "type": "double"},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    ]
    old = dt.datetime(1500, 1, 10)
    with path.open("wb") as file:
        fastavro.writer(
            file,
            {"type": "record", "name": "t", "fields": fields},
            [{"d": day, "m": {"k": MIXED_DAYS[0]}, "x": float("nan"), "local": old} for day in MIXED_DAYS],
            metadata=marks,
        )

    reader = open_reader(ArrowStorage(), str(path), "AVRO")

    local, problem = reader.problems()
    assert "Avro's type local-timestamp-micros of long" in local and problem.endswith("(in d, m)")
    read = everything(reader, 5).to_pylist()
    assert [row["d"] for row in read] == [dt.date(1500, 1, 1), dt.date(2020, 1, 1), None]
    assert {str(row["m"]) for row in read} == {str([("k", dt.date(1500, 1, 1))])}
    assert {row["local"] for row in read} == {old}
    reader.close()
