from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from hms_iceberg.arrow.formats.orc.orc_early_times import read_timestamps
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.formats.orc.orc_runs import decode_bits, decode_integers
from hms_iceberg.errors import CorruptDataFileError, UnsupportedError
from hms_iceberg.spec.data_types import LongType, NestedField, StructType, TimestampType
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from tests.support.arrow_tables import FileTable

# The examples of the ORC specification.


@pytest.mark.parametrize(
    ("data", "count", "signed", "version", "values"),
    [
        ([0x61, 0x00, 0x07], 100, False, 1, [7] * 100),
        ([0x61, 0xFF, 0x64], 100, False, 1, list(range(100, 0, -1))),
        ([0xFB, 0x02, 0x03, 0x04, 0x07, 0x0B], 5, False, 1, [2, 3, 4, 7, 11]),
        ([0x0A, 0x27, 0x10], 5, False, 2, [10_000] * 5),
        ([0x5E, 0x03, 0x5C, 0xA1, 0xAB, 0x1E, 0xDE, 0xAD, 0xBE, 0xEF], 4, False, 2, [23713, 43806, 57005, 48879]),
        (
            list(bytes.fromhex("8e132b2107d01e001470 28323c46505a646e78828c96a0aab4befce8")),
            20,
            False,
            2,
            [2030, 2000, 2020, 1_000_000, *range(2040, 2200, 10)],
        ),
        ([0xC6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46], 10, False, 2, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
    ],
)
def test_integer_runs_are_decoded_as_the_specification_shows(
    data: list[int], count: int, signed: bool, version: int, values: list[int]
) -> None:
    assert decode_integers(bytes(data), count, signed, version).tolist() == values


def test_boolean_runs_are_decoded_bit_by_bit() -> None:
    assert decode_bits(bytes([0xFF, 0x80]), 8).tolist() == [True] + [False] * 7
    assert decode_bits(bytes([0x00, 0xFF]), 20).tolist() == [True] * 20


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd"])
def test_timestamps_are_decoded_as_pyarrow_decodes_them(tmp_path: Path, compression: str) -> None:
    draw = random.Random(5)
    low, high = -(10**15) * 5, 10**15 * 5
    values = [None if draw.random() < 0.1 else draw.randrange(low, high) for _ in range(5000)]
    values += [10**15 + step for step in range(600)] + [123_456_000_000] * 700
    values = [
        value if value is None or value >= 0 or value % 1_000_000 == 0 else value // 10**6 * 10**6 for value in values
    ]
    column = pa.array(values, pa.timestamp("us"))
    location = tmp_path / "t.orc"
    orc.write_table(pa.table({"x": range(len(values)), "ts": column}), str(location), compression=compression)
    with open(location, "rb") as file:
        layout = OrcLayout(file, location.stat().st_size, "t.orc")
        assert sum(stripe.rows for stripe in layout.stripes) == len(values)
        found = pa.concat_arrays(
            [read_timestamps(layout, index, "ts", False, "t.orc") for index in range(len(layout.stripes))]
        )
    assert found.equals(column)


def test_a_cut_off_tail_is_a_corrupt_file(tmp_path: Path) -> None:
    location = tmp_path / "t.orc"
    orc.write_table(pa.table({"ts": pa.array([dt.datetime(2000, 1, 1)])}), str(location))
    data = location.read_bytes()
    location.write_bytes(data[:-20] + np.random.default_rng(1).bytes(20))
    with open(location, "rb") as file, pytest.raises(CorruptDataFileError, match=r"t\.orc"):
        OrcLayout(file, len(data), "t.orc")


def test_a_scan_reads_timestamps_beyond_nanoseconds_and_refuses_nested_ones(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "ts", TimestampType()),
        NestedField(3, "s", StructType(NestedField(4, "ts", TimestampType()))),
    )
    mapping = create_name_mapping(schema).to_json()
    far = [253_402_300_799_000_000, None, -62_135_596_800_000_000]

    def read(columns: dict[str, pa.Array]) -> pa.Table:
        location = tmp_path / f"{len(columns)}.orc"
        orc.write_table(pa.table(columns), str(location), compression="zlib")
        made = FileTable(tmp_path / "t", schema, properties={"schema.name-mapping.default": mapping})
        made.files.append(DataFile(file_path=str(location), file_format="ORC", record_count=3, file_size_in_bytes=1))
        return made.read()

    flat = {"id": pa.array([1, 2, 3], pa.int64()), "ts": pa.array(far, pa.timestamp("us"))}
    assert read(flat)["ts"].cast(pa.int64()).to_pylist() == far
    nested = pa.StructArray.from_arrays([flat["ts"]], names=["ts"])
    with pytest.raises(UnsupportedError, match="nested column"):
        read({**flat, "s": nested})
