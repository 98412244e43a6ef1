"""`scan` and `append`: rows go out in every form and come back as they were."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import resource
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.catalog import Catalog
from hms_iceberg.cli.tables.row_writers import new_file
from hms_iceberg.errors import StorageError
from hms_iceberg.spec.data_types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table import Table

UTC = dt.timezone.utc
FORMS = ("json", "jsonl", "csv", "arrow", "parquet")

TYPES = {
    "id": LongType(),
    "yes": BooleanType(),
    "small": FloatType(),
    "number": DoubleType(),
    "price": DecimalType(38, 10),
    "day": DateType(),
    "clock": TimeType(),
    "at": TimestampType(),
    "instant": TimestamptzType(),
    "nanos": TimestampNanoType(),
    "name": StringType(),
    "data": BinaryType(),
    "key": FixedType(4),
    "uid": UUIDType(),
    "tags": ListType(101, StringType(), element_required=False),
    "by_name": MapType(102, StringType(), 103, DoubleType(), value_required=False),
    "by_day": MapType(104, DateType(), 105, LongType(), value_required=False),
    "place": StructType(
        NestedField(106, "city", StringType(), required=False),
        NestedField(107, "seen", TimestamptzType(), required=False),
        NestedField(108, "code", BinaryType(), required=False),
    ),
}

ROWS: list[dict[str, Any]] = [
    {
        "id": 2**63 - 1,
        "yes": True,
        "small": 0.1,
        "number": 0.1,
        "price": Decimal("1234567890123456789012345678.0123456789"),
        "day": dt.date(1, 1, 1),
        "clock": dt.time(23, 59, 59, 999999),
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        "instant": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        "nanos": 1_700_000_000_123_456_789,
        "name": 'a "quoted", two\nlines, tab\t and ☃',
        "data": b"\x00\xff",
        "key": b"abcd",
        "uid": uuid.UUID(int=2**128 - 1).bytes,
        "tags": ["a", None, ""],
        "by_name": [("x", float("nan")), ("", None)],
        "by_day": [(dt.date(2026, 1, 31), 7)],
        "place": {"city": None, "seen": dt.datetime(2026, 1, 31, tzinfo=UTC), "code": b"\x01"},
    },
    dict.fromkeys(TYPES) | {"id": -(2**63)},
    {
        **dict.fromkeys(TYPES),
        "id": 0,
        "yes": False,
        "small": float("-inf"),
        "number": float("nan"),
        "price": Decimal("-0.0000000001"),
        "name": "",
        "data": b"",
        "tags": [],
        "by_name": [],
        "by_day": [],
        "place": {"city": "", "seen": None, "code": None},
    },
    {**dict.fromkeys(TYPES), "id": 3, "number": float("inf"), "name": "null", "small": -0.0},
]


@pytest.fixture
def every_type(lake: Catalog) -> Table:
    """A table with a column of every type, and rows with extreme, empty and absent values."""
    fields = [NestedField(number, name, kind, required=False) for number, (name, kind) in enumerate(TYPES.items(), 1)]
    made = lake.create_table("db.every", Schema(*fields), properties={"format-version": "3"})
    columns = {
        field.name: pa.array([row[field.name] for row in ROWS], _storage(field.type))
        for field in made.schema().as_arrow()
    }
    made.append(pa.table(columns))
    return made


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def texts(table: pa.Table) -> list[str]:
    """Rows as text, by which NaN equals itself and -0.0 is not 0.0."""
    shown = table.set_column(table.schema.get_field_index("nanos"), "nanos", table["nanos"].cast(pa.int64())).sort_by(
        "id"
    )
    return [repr(row) for row in shown.to_pylist()]


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_type_come_back_from_a_file_as_they_were(
    form: str, run: Any, lake: Catalog, every_type: Table
) -> None:
    said = run("scan", "db.every", "--to", f"rows.{form}")
    assert (said.code, said.out, said.err) == (0, "", f"Wrote 4 rows to rows.{form}.\n")

    lake.create_table("db.back", every_type.schema(), properties={"format-version": "3"})
    said = run("append", "db.back", f"rows.{form}", "--output", "json")
    assert said.code == 0, said
    assert said.json["rows"] == 4
    assert texts(lake.load_table("db.back").scan().to_arrow()) == texts(every_type.scan().to_arrow())


def test_json_is_what_every_reader_of_json_takes(run: Any, every_type: Table) -> None:
    rows = run("scan", "db.every", "--output", "json").json
    assert [json.loads(line) for line in run("scan", "db.every", "--output", "jsonl").out.splitlines()] == rows
    first = next(row for row in rows if row["id"] == 2**63 - 1)
    assert first["price"] == "1234567890123456789012345678.0123456789"
    assert first["small"] == 0.1
    assert first["nanos"] == "2023-11-14 22:13:20.123456789"
    assert first["by_name"] == {"x": "NaN", "": None}
    assert first["uid"] == "ffffffff-ffff-ffff-ffff-ffffffffffff"
    assert "NaN" not in json.dumps(rows, allow_nan=False).replace('"NaN"', "")


def test_csv_is_what_another_reader_of_csv_takes(run: Any, every_type: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(run("scan", "db.every", "--output", "csv").out)))

    first = next(row for row in rows if row["id"] == str(2**63 - 1))
    assert first["name"] == ROWS[0]["name"]
    assert json.loads(first["tags"]) == ["a", None, ""]
    assert first["data"] == "00ff"


def test_rows_are_filtered_chosen_limited_and_counted(run: Any, table: Table) -> None:
    assert run("scan", "db.t", "--filter", "id > 1", "--columns", "page, id", "--output", "json").json == [
        {"page": "/buy", "id": 3},
        {"page": None, "id": 2},
    ]
    assert len(run("scan", "db.t", "--limit", "1").out.splitlines()) == 2
    assert run("scan", "db.t", "--limit", "0", "--output", "json").json == []
    assert run("scan", "db.t", "--limit", 2**64).code == 2
    assert run("scan", "db.t", "--filter", "page is null", "--count").out == "1\n"
    assert run("scan", "db.t", "--count", "--output", "json").json == {"count": 3}
    for columns in ("", " , "):
        assert "it names no column" in (said := run("scan", "db.t", "--columns", columns)).err and said.code == 2


def test_rows_of_an_earlier_time_of_a_branch_and_of_a_tag_are_read(run: Any, table: Table) -> None:
    first = table.snapshots()[0]
    table.manage_snapshots().create_branch(first.snapshot_id, "audit").create_tag(None, "now").commit()

    for words in (
        ["--snapshot", first.snapshot_id],
        ["--as-of", dt.datetime.fromtimestamp(first.timestamp_ms / 1000, UTC).isoformat()],
        ["--branch", "audit"],
    ):
        assert run("scan", "db.t", "--count", *words).out == "2\n"
    assert run("scan", "db.t", "--count", "--tag", "now").out == "3\n"
    assert "Give --tag now" in run("scan", "db.t", "--branch", "now").err
    assert run("scan", "db.t", "--branch", "none").code == 1
    assert run("scan", "db.t", "--branch", "audit", "--tag", "now").code == 2
    assert run("scan", "db.t", "--branch", "audit", "--snapshot", first.snapshot_id).code == 1


def test_a_pipe_gets_whole_lines_without_control_characters(run: Any, table: Table) -> None:
    table.append(pa.table({"id": [4], "page": ["a\tb\n\x1b[31m" + "x" * 300]}))

    lines = run("scan", "db.t", "--columns", "id,page").out.splitlines()
    assert lines[0] == "id\tpage"
    assert "4\ta\\tb\\n\\x1b[31m" + "x" * 300 in lines
    assert "2\tnull" in lines


def test_a_terminal_shows_the_first_hundred_rows_and_says_so(on_terminal: Any, run: Any, table: Table) -> None:
    table.append(pa.table({"id": list(range(10, 210))}, pa.schema([pa.field("id", pa.int64(), nullable=False)])))

    said = on_terminal(80, "scan", "db.t")
    assert len(said.out.splitlines()) == 101
    assert said.err == "These are the first 100 rows. For more: --limit N, or --to FILE.\n"
    assert len(on_terminal(80, "scan", "db.t", "--limit", "150").out.splitlines()) == 151
    assert len(run("scan", "db.t").out.splitlines()) == 204


def test_bytes_are_refused_on_a_terminal_and_go_into_a_pipe(on_terminal: Any, table: Table, tmp_path: Path) -> None:
    assert on_terminal(80, "scan", "db.t", "--output", "arrow").code == 2

    command = [sys.executable, "-m", "hms_iceberg", "-p", "type=hadoop", "-p", "warehouse=lake", "scan", "db.t"]
    said = subprocess.run([*command, "--output", "arrow"], capture_output=True, check=True)
    assert pa.ipc.open_stream(said.stdout).read_all().num_rows == 3


def test_a_reader_that_has_enough_is_no_error(table: Table) -> None:
    table.append(pa.table({"id": list(range(10, 50_000))}, pa.schema([pa.field("id", pa.int64(), nullable=False)])))
    command = f"{sys.executable} -m hms_iceberg -p type=hadoop -p warehouse=lake scan db.t --output"

    for form in ("text", "jsonl", "csv"):
        said = subprocess.run(f"{command} {form} | head -n 1", shell=True, capture_output=True, text=True, check=True)
        assert len(said.stdout.splitlines()) == 1
        assert said.stderr == ""


def test_a_scan_that_fails_leaves_the_file_that_was_there(run: Any, table: Table, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("precious")
    for file in (tmp_path / "lake/db/t/data").iterdir():
        file.unlink()

    assert run("scan", "db.t", "--to", "rows.csv").code == 1
    assert (tmp_path / "rows.csv").read_text() == "precious"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lake", "rows.csv"]


def test_files_of_several_formats_are_appended_in_one_snapshot(run: Any, table: Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('page,id\n"",10\nNA,11\n,12\n')
    (tmp_path / "b.jsonl").write_text('{"id": 13}\n\n{"id": 14, "price": 2}\n')
    (tmp_path / "c.json").write_text('[{"id": 15, "price": "NaN"}]')
    pq.write_table(pa.table({"id": pa.array([16], pa.int32())}), tmp_path / "d.parquet")

    said = run("append", "db.t", "a.csv", "b.jsonl", "c.json", "d.parquet", "--snapshot-property", "by=me")
    assert said.code == 0, said
    table.refresh()
    assert len(table.snapshots()) == 3
    assert table.current_snapshot().summary["by"] == "me"  # type: ignore[union-attr]
    assert said.out == f"Appended 7 rows to db.t (snapshot {table.metadata.current_snapshot_id}).\n"
    added = table.scan("id >= 10").to_arrow().sort_by("id").to_pylist()
    assert [row["page"] for row in added] == ["", "NA", None, None, None, None, None]
    assert [str(row["price"]) for row in added] == ["None", "None", "None", "None", "2.0", "nan", "None"]


def test_rows_are_appended_to_a_branch_from_standard_input(table: Table) -> None:
    table.manage_snapshots().create_branch(None, "audit").commit()
    command = [sys.executable, "-m", "hms_iceberg", "-p", "type=hadoop", "-p", "warehouse=lake", "append", "db.t", "-"]

    subprocess.run(
        [*command, "--format", "csv", "--branch", "audit", "--null", "NA"], input=b"id,page\n7,NA\n", check=True
    )
    table.refresh()
    assert table.scan("id = 7", ref="audit").to_arrow()["page"].to_pylist() == [None]
    assert table.scan("id = 7").count() == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "id,colour\n1,red\n", "colour"),
        ("a.csv", "page\n/\n", "id"),
        ("a.csv", "id\nmany\n", "many"),
        ("a.jsonl", '{"id": 1.5}\n', "a.jsonl as jsonl: Column id: Decimal"),
        ("a.jsonl", '{"id": true}\n', "True"),
        ("a.jsonl", '{"id": 1, "colour": "red"}\n', "colour"),
        ("a.jsonl", '{"id": null}\n', "id"),
        ("a.jsonl", "[1]\n", "object"),
        ("a.jsonl", "{", "a.jsonl"),
        ("a.parquet", "not Parquet", "a.parquet"),
        ("a.arrow", "not Arrow", "a.arrow"),
        ("a.txt", "1", "--format"),
    ],
)
def test_a_file_that_does_not_fit_appends_nothing(
    name: str, text: str, message: str, run: Any, table: Table, tmp_path: Path
) -> None:
    (tmp_path / "good.csv").write_text("id\n9\n")
    (tmp_path / name).write_text(text)

    said = run("append", "db.t", "good.csv", name)
    assert said.code == 1
    assert message in said.err
    assert len(table.refresh().snapshots()) == 2
    assert len(list((tmp_path / "lake/db/t/data").iterdir())) == 2


def test_files_without_rows_append_nothing(run: Any, table: Table, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n")
    (tmp_path / "b.jsonl").write_text("\n")

    assert run("append", "db.t", "a.csv", "b.jsonl").out == "Nothing to append to db.t: there are no rows.\n"
    assert run("append", "db.t", "none.csv").code == 2
    assert len(table.refresh().snapshots()) == 2


def test_a_file_that_a_full_disk_cuts_off_is_named_and_not_left(tmp_path: Path) -> None:
    target, (soft, hard) = tmp_path / "rows.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(StorageError, match=rf"Cannot write {target}: .*too large"), new_file(target) as stream:
            stream.write(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
