"""Avro records that Polars decodes are those that fastavro gives."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hms_iceberg.arrow.columns.projection import file_leaves
from hms_iceberg.arrow.formats.avro.avro_frames import AvroFrames
from hms_iceberg.arrow.formats.avro.avro_reader import AvroReader
from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.errors import CorruptDataFileError
from hms_iceberg.spec.manifests.avro_container import SYNC_SIZE, encode_long, write_header
from hms_iceberg.spec.schema import Schema
from tests.support.arrow_tables import FileTable, arrow_rows
from tests.support.flat_rows import SCHEMA, exact, some_rows


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], pa.Table]], bool]:
    """Reads both ways, compares the rows, and tells whether Polars decoded some."""
    original, can_read = AvroFrames.read, AvroFrames.can_read
    decoded: list[bool] = []

    def spy(self: AvroFrames, *given: Any) -> pa.RecordBatch | None:
        found = original(self, *given)
        decoded.append(found is not None)
        return found

    monkeypatch.setattr(AvroFrames, "read", spy)

    def both(read: Callable[[], pa.Table]) -> bool:
        decoded.clear()
        by_polars = read()
        monkeypatch.setattr(AvroFrames, "can_read", lambda *_: False)
        by_fastavro = read()
        monkeypatch.setattr(AvroFrames, "can_read", can_read)
        by_polars.validate(full=True)
        assert by_polars.schema == by_fastavro.schema
        assert exact(by_polars) == exact(by_fastavro)
        return any(decoded)

    return both


@pytest.mark.parametrize("codec", ["zstd", "snappy", "uncompressed"])
def test_every_type_and_pattern_of_nulls_comes_out_the_same(
    tmp_path: Path, compared: Callable[..., bool], codec: str
) -> None:
    properties = {"write.format.default": "avro", "write.avro.compression-codec": codec}
    table = FileTable(tmp_path, SCHEMA, properties=properties)
    draw = random.Random(1)
    for nulls in (0.2, 0.0, 1.0):
        table.append(arrow_rows(some_rows(draw, nulls=nulls), SCHEMA))
    assert compared(table.read)
    assert compared(lambda: table.read("id > 50", SCHEMA.select("c 7", "id"), batch_rows=7))
    assert not compared(lambda: table.read(None, Schema()))


def read_file(path: Path, *names: str) -> pa.Table:
    reader = AvroReader(ArrowStorage(), str(path), None)
    try:
        leaves = [leaf.index for leaf in file_leaves(reader.schema) if not names or leaf.path[0] in names]
        return pa.Table.from_batches(
            [batch for each in reader.ranges() for _, batch in reader.read(each, leaves, 5, False)]
        )
    finally:
        reader.close()


FIXED = {"type": "fixed", "name": "money", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2}
OTHERS: dict[str, tuple[Any, list[Any], bool]] = {
    "null last": (["long", "null"], [1, None, -(2**63)], True),
    "one branch": (["long"], [1, 2], False),
    "days": ({"type": "int", "logicalType": "date"}, [0, -5], True),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["A", "B"], False),
    "wide fixed decimal": ({**FIXED, "name": "wide", "size": 20, "precision": 38}, [Decimal("1.25")], False),
    "decimal": (["null", FIXED], [Decimal("1.25"), None, Decimal("-9999999.99")], True),
    "decimal in bytes": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        [Decimal("1.25")],
        False,
    ),
    "milliseconds": ({"type": "long", "logicalType": "timestamp-millis"}, [0, -1], True),
    "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, [0, -1], True),
    "uuid in text": ({"type": "string", "logicalType": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], True),
    "list": ({"type": "array", "items": "long"}, [[1], []], False),
    "nothing": ("null", [None, None], False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_types_of_other_writers_come_out_the_same(tmp_path: Path, compared: Callable[..., bool], name: str) -> None:
    kind, values, is_quick = OTHERS[name]
    values = values * 3
    path = tmp_path / "other.avro"
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind, "field-id": 1}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"x": value} for value in values], sync_interval=1)
    assert compared(lambda: read_file(path)) is is_quick


def test_types_that_are_named_before_and_maps_beside_are_no_hindrance(
    tmp_path: Path, compared: Callable[..., bool]
) -> None:
    inner = {
        "type": "record",
        "name": "in",
        "fields": [{"name": "m", "type": ["null", FIXED]}, {"name": "n", "type": "int"}],
    }
    fields = [
        ("m", {"type": "map", "values": ["null", inner]}),
        ("s", "in"),
        ("x", "money"),
        ("y", ["null", "money"]),
        ("k", "long"),
    ]
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": kind, "field-id": number} for number, (name, kind) in enumerate(fields, 1)],
    }
    one = Decimal("1.25")
    rows = [
        {"m": {"a": None, "b": {"m": one, "n": 1}}, "s": {"m": None, "n": key}, "x": one, "y": None, "k": key}
        for key in range(20)
    ]
    path = tmp_path / "named.avro"
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows)
    assert compared(lambda: read_file(path, "x", "y", "k"))
    assert not compared(lambda: read_file(path))


@pytest.mark.parametrize("promised", [4, 6])
def test_a_block_with_more_or_fewer_records_than_it_says_is_refused(tmp_path: Path, promised: int) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "long", "field-id": 1}]}
    raw = io.BytesIO()
    for key in range(5):
        fastavro.schemaless_writer(raw, schema, {"x": key})
    sync = b"s" * SYNC_SIZE
    described = b'{"type": "record", "name": "r", "fields": [{"name": "x", "type": "long", "field-id": 1}]}'
    head = [write_header(described, "null", {}, sync), encode_long(promised), encode_long(len(raw.getvalue()))]
    path = tmp_path / "wrong.avro"
    path.write_bytes(b"".join([*head, raw.getvalue(), sync]))
    with pytest.raises(CorruptDataFileError):
        read_file(path)
