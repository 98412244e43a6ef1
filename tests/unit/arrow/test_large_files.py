"""Large ORC and Avro files: read stripe by stripe and run by run, also in parts, and never as a whole."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from hms_iceberg.arrow.formats.avro import avro_blocks
from hms_iceberg.arrow.formats.orc.orc_layout import OrcLayout
from hms_iceberg.arrow.formats.orc.orc_reader import OrcReader
from hms_iceberg.arrow.reading import read
from hms_iceberg.arrow.reading.read import read_tasks
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.scan.splitting import split
from hms_iceberg.spec.data_types import LongType, NestedField, StringType, StructType, TimestampType
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata_columns import POSITION
from hms_iceberg.spec.schema import Schema
from tests.support.arrow_tables import FileTable

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
MAPPING = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name"]}]'
ROWS = 20_000


def name(number: int) -> str:
    """Text that is not easily compressed."""
    return hashlib.md5(str(number).encode()).hexdigest()


def written(folder: Path, file_format: str, compression: str = "zlib") -> FileTable:
    """A table of one file with several stripes or many blocks."""
    made = FileTable(folder / "t", SCHEMA, properties={"schema.name-mapping.default": MAPPING})
    location = folder / f"data.{file_format.lower()}"
    rows = pa.table({"id": range(ROWS), "name": [name(number) for number in range(ROWS)]})
    if file_format == "ORC":
        orc.write_table(rows, str(location), compression=compression, stripe_size=40_000, batch_size=1000)
    else:
        fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
        with open(location, "wb") as output:
            schema = {"type": "record", "name": "r", "fields": fields}
            fastavro.writer(output, schema, rows.to_pylist(), "deflate", sync_interval=2000)
    size = location.stat().st_size
    made.files.append(
        DataFile(file_path=str(location), file_format=file_format, record_count=ROWS, file_size_in_bytes=size)
    )
    return made


@pytest.fixture(params=["ORC", "AVRO"])
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileTable:
    monkeypatch.setattr(avro_blocks, "_RANGE_BYTES", 20_000)
    return written(tmp_path, request.param)


def positions(table: FileTable, size: int) -> list[list[int]]:
    """The positions that each part of the file gives, asked for by the values in the rows."""
    (file,) = table.files
    projected = Schema(*SCHEMA.fields, POSITION)
    found = []
    for part in split(table.task(file), size):
        batches = read_tasks([part], SCHEMA, projected, table.metadata, table.storage, workers=1)
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [row["_pos"] for row in rows] == [row["id"] for row in rows]
        assert all(row["name"] == name(row["id"]) for row in rows)
        found.append([row["_pos"] for row in rows])
    return found


def test_parts_of_a_file_hold_every_row_once_with_its_position(table: FileTable) -> None:
    for size in (200_000, 10**9):
        parts = positions(table, size)
        assert sorted(position for part in parts for position in part) == list(range(ROWS))
    assert sum(bool(part) for part in positions(table, 100_000)) > 2


def test_deletes_and_filters_apply_in_every_part(table: FileTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_ORC_PART_BYTES", 20_000)
    (file,) = table.files
    gone = range(0, ROWS, 3)
    table.delete(table.files, table.position_deletes([(file.file_path, position) for position in gone]))
    wanted = [number for number in range(ROWS) if number % 3 and number >= 500]
    assert table.read("id >= 500", workers=3)["id"].to_pylist() == wanted
    tasks = [table.task(file, "id >= 500")]
    assert read.read_all(tasks, SCHEMA, SCHEMA, table.metadata, table.storage)["id"].to_pylist() == wanted


def test_a_part_of_a_file_that_is_longer_than_its_metadata_says_is_refused(table: FileTable) -> None:
    (file,) = table.files
    task = table.task(replace(file, file_size_in_bytes=30_000)).part(0, 30_000)
    with pytest.raises(CorruptDataFileError, match="30,000 bytes"):
        list(read_tasks([task], SCHEMA, SCHEMA, table.metadata, table.storage))


def test_an_avro_file_of_a_remote_store_is_fetched_a_stretch_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path, "AVRO")
    (file,) = table.files
    content = Path(file.file_path).read_bytes()
    fetched: list[int] = []

    class Remote(pa.BufferReader):
        def read_at(self, nbytes: int, offset: int) -> bytes:
            fetched.append(nbytes)
            return bytes(super().read_at(nbytes, offset))

    monkeypatch.setattr(avro_blocks, "_REMOTE_BYTES", 50_000)
    monkeypatch.setattr(avro_blocks, "_HEADER_BYTES", 40)
    monkeypatch.setattr(avro_blocks, "open_for_arrow", lambda storage, location, key: Remote(content))
    assert table.read()["id"].to_pylist() == list(range(ROWS))
    assert max(fetched) <= 50_000
    assert sum(fetched) < 3 * len(content)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "zstd", "lz4"])
def test_stripes_are_found_in_files_of_every_compression(tmp_path: Path, compression: str) -> None:
    table = written(tmp_path, "ORC", compression)
    location = table.files[0].file_path
    with open(location, "rb") as file:
        layout = OrcLayout(file, Path(location).stat().st_size, location)
    assert [stripe.rows for stripe in layout.stripes] == [
        orc.ORCFile(location).read_stripe(index).num_rows for index in range(orc.ORCFile(location).nstripes)
    ]
    assert len(layout.stripes) > 2
    assert table.read()["id"].to_pylist() == list(range(ROWS))


def test_a_record_that_ends_before_its_block_does_is_damage(tmp_path: Path) -> None:
    table = written(tmp_path, "AVRO")
    path = Path(table.files[0].file_path)
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
    with open(path, "wb") as output:
        fastavro.writer(output, {"type": "record", "name": "r", "fields": fields}, [{"id": 1, "name": "x"}], "null")
    content = path.read_bytes()
    sync = content[-16:]
    body = content.rindex(sync, 0, -16) + 16
    path.write_bytes(
        content[:body] + bytes([2, 2 * (len(content) - body - 17)]) + content[body + 2 : -16] + b"\0" + sync
    )
    table.files[0] = replace(table.files[0], record_count=1)
    with pytest.raises(CorruptDataFileError, match="1 bytes are left over"):
        table.read()


def test_a_stripe_that_is_too_large_to_decode_at_once_is_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path, "ORC")

    def too_large(*_: object) -> pa.RecordBatch:
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    monkeypatch.setattr(OrcReader, "_stripe", too_large)
    for batch_rows in (100, 1 << 20):
        found = table.read("id >= 700", Schema(*SCHEMA.fields, POSITION), batch_rows=batch_rows)
        assert found["id"].to_pylist() == found["_pos"].to_pylist() == list(range(700, ROWS))
        assert found["name"].to_pylist() == [name(number) for number in range(700, ROWS)]


def test_a_stripe_of_more_rows_than_a_batch_is_decoded_as_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path, "ORC")
    (file,) = table.files
    table.delete(table.files, table.position_deletes([(file.file_path, position) for position in range(0, ROWS, 3)]))
    decoded: list[int] = []
    whole = OrcReader._stripe

    def counted(reader: OrcReader, stripe: int, names: list[str]) -> pa.RecordBatch:
        decoded.append(stripe)
        return whole(reader, stripe, names)

    monkeypatch.setattr(OrcReader, "_stripe", counted)
    wanted = [number for number in range(ROWS) if number % 3]
    assert table.read(batch_rows=100)["id"].to_pylist() == wanted
    assert table.read(projected=SCHEMA.select("name"), batch_rows=7)["name"].to_pylist() == [*map(name, wanted)]
    assert not decoded
    assert table.read(f"id >= {ROWS // 2}", batch_rows=100)["id"].to_pylist() == [
        number for number in wanted if number >= ROWS // 2
    ]


def test_timestamps_beyond_nanoseconds_end_the_stream_of_a_file_and_not_its_rows(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "at", TimestampType()))
    mapping = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["at"]}]'
    made = FileTable(tmp_path / "t", schema, properties={"schema.name-mapping.default": mapping})
    location = tmp_path / "data.orc"
    moments = [number * 86_400_000_000 for number in range(ROWS - 2)]
    moments[ROWS // 2 : ROWS // 2] = [253_402_300_799_000_000, -62_135_596_800_000_000]
    rows = pa.table({"id": range(ROWS), "at": pa.array(moments, pa.timestamp("us"))})
    orc.write_table(rows, str(location), stripe_size=40_000, batch_size=1000)
    assert orc.ORCFile(location).nstripes > 2
    size = location.stat().st_size
    made.files.append(DataFile(file_path=str(location), file_format="ORC", record_count=ROWS, file_size_in_bytes=size))
    for batch_rows in (300, 1 << 20):
        found = made.read(batch_rows=batch_rows)
        assert found["id"].to_pylist() == list(range(ROWS))
        assert found["at"].cast(pa.int64()).to_pylist() == moments


def test_a_column_of_a_dotted_name_is_no_field_of_a_struct(tmp_path: Path) -> None:
    inner = StructType(NestedField(3, "b", LongType()))
    schema = Schema(NestedField(1, "a.b", LongType()), NestedField(2, "a", inner))
    mapping = create_name_mapping(schema).to_json()
    made = FileTable(tmp_path / "t", schema, properties={"schema.name-mapping.default": mapping})
    location = tmp_path / "data.orc"
    orc.write_table(pa.table({"a.b": range(50), "a": [{"b": -number} for number in range(50)]}), str(location))
    size = location.stat().st_size
    made.files.append(DataFile(file_path=str(location), file_format="ORC", record_count=50, file_size_in_bytes=size))
    for batch_rows in (10, 1000):
        found = made.read(batch_rows=batch_rows)
        assert found["a.b"].to_pylist() == list(range(50))
        assert found["a"].to_pylist() == [{"b": -number} for number in range(50)]
