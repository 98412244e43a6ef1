"""Columns of entries, and the metrics of some fields, are what fastavro reads, however their maps are laid out."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest

from hms_iceberg.scan.manifests import entry_frames
from hms_iceberg.scan.manifests.entry_frames import MAPS, METRIC_COLUMNS
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.scan.manifests.metric_columns import map_values
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.data_types import ListType, LongType, NestedField, StringType
from hms_iceberg.spec.manifests.avro_container import encode_long
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.schema import Schema
from tests.support.snapshots import ManifestTable

SCHEMA = Schema(*(NestedField(n, f"c{n}", LongType()) for n in range(1, 9)), NestedField(9, "s", StringType()))
WANTED = [(name, field_id) for name in METRIC_COLUMNS for field_id in (1, 5, 9, 77)]


def data_file(number: int, columns: list[int]) -> DataFile:
    def bounds(shift: int) -> dict[int, bytes]:
        return {n: struct.pack("<q", number * n + shift) if n < 9 else b"x" * (number % 40) for n in columns}

    return DataFile(
        file_path=f"s3://lake/t/data/{number}.parquet",
        file_format="PARQUET",
        record_count=number,
        file_size_in_bytes=10,
        value_counts={n: number * 1000 + n for n in columns},
        null_value_counts={n: number % (n + 1) for n in columns},
        nan_value_counts=None,
        lower_bounds=bounds(0),
        upper_bounds=bounds(9),
        sort_order_id=5 if number == 777 else 0,
    )


def decoded(files: list[DataFile], schema: Schema = SCHEMA) -> tuple[ManifestDecoder, dict[Any, Any]]:
    table = ManifestTable(schema)
    table.commit(*files)
    (manifest,) = table.manifests
    decoder = ManifestDecoder(
        [(table.storage.read(manifest.manifest_path), manifest)], partition_columns(table.metadata)
    )
    whole = decoder.entries()
    return decoder, {metric: map_values(whole[metric[0]], [metric[1]])[0].to_list() for metric in WANTED}


def same_columns(number: int) -> list[int]:
    return list(range(1, 10))


def other_order(number: int) -> list[int]:
    return list(range(1, 10)) if number % 100 else list(range(9, 0, -1))


def other_fields(number: int) -> list[int]:
    return list(range(1, 9)) if number != 250 else list(range(2, 10))


def some_missing(number: int) -> list[int]:
    return [n for n in range(1, 10) if random.Random(f"{number} {n}").random() < 0.9]


def last_is_empty(number: int) -> list[int]:
    return [] if number == 1200 else list(range(1, 10))


def few(number: int) -> list[int]:
    return [] if number % 2 else [1]


@pytest.mark.parametrize("columns", [same_columns, other_order, other_fields, some_missing, last_is_empty, few])
def test_the_metrics_of_a_field_are_those_of_the_maps(columns: Any, capfd: pytest.CaptureFixture[str]) -> None:
    decoder, expected = decoded([data_file(number, columns(number)) for number in range(1, 1201)])
    frame = decoder.files(WANTED)
    found = decoder.metrics(WANTED)
    for metric in WANTED:
        assert frame[f"{metric[0]}.{metric[1]}"].to_list() == expected[metric]
        assert found[metric].to_list() == expected[metric]
    assert frame["file_path"].to_list() == [f"s3://lake/t/data/{number}.parquet" for number in range(1, 1201)]
    assert frame["sort_order_id"].to_list() == [5 if number == 777 else 0 for number in range(1, 1201)]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("first", [NestedField(0, "z", LongType()), NestedField(10, "z", ListType(0, LongType()))])
def test_what_follows_maps_that_have_the_key_0_is_read(first: NestedField) -> None:
    decoder, _ = decoded([replace(data_file(1, []), value_counts={0: 0})], Schema(first, *SCHEMA.fields))
    assert decoder.files().select("sort_order_id").rows() == [(0,)]


@pytest.mark.parametrize("entries", [1, 3, 50])
def test_what_follows_maps_with_a_key_0_of_no_field_is_read(entries: int) -> None:
    files = [
        replace(data_file(number, [1, 2]), value_counts={0: 0, 1: 5}, null_value_counts={0: 1}, sort_order_id=7)
        for number in range(1, entries + 1)
    ]
    decoder, _ = decoded(files)
    found = decoder.files().select("file_path", "sort_order_id").rows()
    assert found == [(each.file_path, 7) for each in files]


def test_maps_of_many_columns_are_read_whatever_part_of_the_entries_is_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [data_file(number, list(range(1, 2 if number % 50 == 3 else 9 + number))) for number in range(1, 321)]
    decoder, expected = decoded(files)
    for at_once in (10_000, 1 << 40):
        monkeypatch.setattr(entry_frames, "_BYTES_AT_ONCE", at_once)
        found = decoder.metrics(WANTED)
        for metric in WANTED:
            assert found[metric].to_list() == expected[metric]


@pytest.mark.parametrize("longest", [30, 63, 64, 70, 20_000])
def test_bounds_of_many_sizes_are_read(longest: int) -> None:
    chance = random.Random(1)
    files = [
        replace(
            data_file(n, [9]),
            lower_bounds={key: b"x" * chance.choice([0, n % 31, longest]) for key in chance.sample(range(1, 300), 9)},
        )
        for n in range(1, 401)
    ]
    decoder, _ = decoded(files)
    wanted = [("lower_bounds", key) for key in (1, 63, 64, 255, 299)]
    found = decoder.metrics(wanted)
    for metric in wanted:
        assert found[metric].to_list() == [(each.lower_bounds or {}).get(metric[1]) for each in files]


def test_columns_are_what_fastavro_reads_of_maps_in_several_blocks() -> None:
    """And with lengths in bytes, which Avro allows and few write."""
    files = [data_file(number, same_columns(number)) for number in range(1, 51)]
    decoder, _ = decoded(files)
    inflated = decoder.inflated()
    schema = {"type": "record", "name": "entry", "fields": [{"name": n, "type": t} for n, t in inflated.types.items()]}
    flat = json.dumps(schema).encode()
    names = [field["name"] for field in schema["fields"] if field["name"] not in MAPS]
    records = [{**record, "column_sizes": None} for record in _records(inflated.body, schema, 50)]
    for blocks in ([9], [4, 5], [1] * 9):
        for sized in (False, True):
            body = b"".join(_encoded(record, schema, blocks, sized) for record in records)
            assert len(list(_records(body, schema, 50))) == 50
            wanted = [("upper_bounds", 9), ("value_counts", 3)]
            whole = entry_frames._read_avro([body], 50, flat, [*names, "upper_bounds", "value_counts"])
            assert whole is not None
            found = entry_frames._of_maps(whole, names, wanted)
            assert found["upper_bounds.9"].to_list() == [(each.upper_bounds or {})[9] for each in files]
            assert found["value_counts.3"].to_list() == [(each.value_counts or {})[3] for each in files]
            for name in names:
                assert found[name].to_list() == [record[name] for record in records], name


_TYPES: dict[str, tuple[Any, Callable[[random.Random], Any]]] = {
    "int": ("int", lambda chance: chance.choice([0, -1, 1, 63, 64, -65, 8191, 2**31 - 1, -(2**31)])),
    "long": ("long", lambda chance: chance.choice([0, -1, 2**55, 2**56, -(2**56), 2**62, 2**63 - 1, -(2**63)])),
    "float": ("float", lambda chance: chance.choice([0.0, -0.0, 1.5, float("inf")])),
    "double": ("double", lambda chance: chance.choice([0.0, 1e300, -2.5, float("-inf")])),
    "boolean": ("boolean", lambda chance: chance.random() < 0.5),
    "string": ("string", lambda chance: "é" * chance.choice([0, 1, 2, 5, 6, 7, 100])),
    "bytes": ("bytes", lambda chance: bytes(range(chance.choice([0, 1, 3, 4, 5, 11, 12, 13, 64, 200])))),
    "fixed": ({"type": "fixed", "name": "f5", "size": 5}, lambda chance: chance.randbytes(5)),
    "longs": ({"type": "array", "items": "long"}, lambda chance: [chance.getrandbits(40)] * chance.choice([0, 1, 3])),
    "ints": ({"type": "array", "items": "int"}, lambda chance: [7, -9][: chance.choice([0, 1, 2])]),
    **{
        f"decimal{precision}": (
            {
                "type": "fixed",
                "name": f"d{precision}",
                "size": size,
                "logicalType": "decimal",
                "precision": precision,
                "scale": 2,
            },
            lambda chance, digits=precision: Decimal(
                chance.choice([0, 1, -1, 10**digits - 1, -(10**digits) + 1])
            ).scaleb(-2, Context(prec=40)),
        )
        for precision, size in ((4, 2), (18, 8), (38, 16))
    },
}


@pytest.mark.parametrize("nullable", ["null first", "null last"])
def test_values_of_every_type_are_what_fastavro_wrote(nullable: str) -> None:
    chance = random.Random(nullable)
    fields = [{"name": "status", "type": "int"}, {"name": "file_path", "type": "string"}]
    for name, (avro_type, _) in _TYPES.items():
        union = ["null", avro_type] if nullable == "null first" else [avro_type, "null"]
        fields += [{"name": name, "type": union}]
    fields += [{"name": "always_null", "type": ["null", "long"]}]
    schema = json.dumps({"type": "record", "name": "entry", "fields": fields})
    records = []
    for number in range(500):
        values = {name: None if chance.random() < 0.3 else make(chance) for name, (_, make) in _TYPES.items()}
        path = f"s3://lake/t/data/{number}.parquet"
        records.append({"status": 1, "file_path": path, **values, "always_null": None})
    parsed = fastavro.parse_schema(json.loads(schema))
    blocks = []
    for start in (0, 100, 101):
        stream = BytesIO()
        for record in records[start : {0: 100, 100: 101, 101: 500}[start]]:
            fastavro.schemaless_writer(stream, parsed, record)
        blocks.append(stream.getvalue())
    names = [field["name"] for field in fields]
    found = entry_frames._read_avro(blocks, 500, schema.encode(), names)
    assert found is not None
    for name in names:
        assert found[name].to_list() == [record[name] for record in records], name


def _records(body: bytes, schema: Any, rows: int) -> list[Any]:
    stream = BytesIO(body)
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    found: list[Any] = [fastavro.schemaless_reader(stream, parsed, None) for _ in range(rows)]
    assert stream.read() == b""
    return found


def _encoded(record: Any, schema: Any, blocks: list[int], sized: bool) -> bytes:
    """A record whose maps are written in several blocks."""
    out = b""
    for field in schema["fields"]:
        value, avro_type = record[field["name"]], field["type"]
        if field["name"] not in MAPS or value is None:
            out += _encode(value, avro_type)
            continue
        out += encode_long(1)
        start = 0
        for count in blocks:
            items = b"".join(_encode(pair, avro_type[1]["items"]) for pair in value[start : start + count])
            out += encode_long(-count) + encode_long(len(items)) + items if sized else encode_long(count) + items
            start += count
        out += encode_long(0)
    return out


def _encode(value: Any, avro_type: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(avro_type))), value)
    return stream.getvalue()


def test_only_the_metrics_asked_for_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, expected = decoded([data_file(number, same_columns(number)) for number in range(1, 1201)])
    asked: list[str] = []

    def remembering(blocks: Any, rows: int, schema: bytes, columns: list[str]) -> Any:
        asked.extend(columns)
        return read_avro(blocks, rows, schema, columns)

    read_avro = entry_frames._read_avro
    monkeypatch.setattr(entry_frames, "_read_avro", remembering)
    assert decoder.metrics([("lower_bounds", 5)])["lower_bounds", 5].to_list() == expected["lower_bounds", 5]
    assert asked == ["status", "lower_bounds"]
