"""Manifests as other writers lay them out are read, and files removed from them, as fastavro reads what is in them."""

from __future__ import annotations

import copy
import io
import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pytest

from hms_iceberg.scan.manifests.manifest_bytes import EntryBytes
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.data_types import DecimalType, LongType, NestedField, StringType, UUIDType
from hms_iceberg.spec.manifests.avro_container import compress, encode_long, join_blocks
from hms_iceberg.spec.manifests.manifest_avro import decode_manifest, manifest_metadata
from hms_iceberg.spec.manifests.manifest_schema import entry_schema
from hms_iceberg.spec.manifests.manifest_values import ManifestContent, ManifestFile
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import IdentityTransform

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "city", StringType()),
    NestedField(3, "price", DecimalType(9, 2)),
    NestedField(4, "code", UUIDType()),
)
SPEC = PartitionSpec(*(PartitionField(n, 998 + n, IdentityTransform(), SCHEMA.find_field(n).name) for n in range(2, 5)))
METADATA = TableMetadata(
    format_version=2,
    table_uuid="11111111-2222-3333-4444-555555555555",
    location="mem://t",
    last_updated_ms=1,
    last_column_id=4,
    schemas=(SCHEMA,),
    partition_specs=(SPEC,),
)
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
WANTED = [("value_counts", 1), ("value_counts", 0), ("null_value_counts", 2), ("lower_bounds", 1), ("upper_bounds", 0)]
Record = dict[str, Any]


def entries(count: int) -> list[Record]:
    """Entries with every optional field now and then, and metrics under the key 0 in the middle ones."""
    rng = random.Random(count)

    def pairs(value: Callable[[], Any], is_odd: bool) -> list[Record] | None:
        keys = [0, *range(1, 4)] if is_odd else list(range(1, rng.choice((1, 2, 4, 9))))
        return None if rng.random() < 0.1 else [{"key": key, "value": value()} for key in keys]

    made = []
    for number in range(count):
        is_odd = count // 3 <= number <= count // 3 + 2
        numbers = {name: pairs(lambda: rng.choice((0, 1, 63, 64, 2**40)), is_odd) for name in MAPS[:4]}
        bounds = {name: pairs(lambda: rng.randbytes(rng.choice((0, 1, 8, 70))), is_odd) for name in MAPS[4:]}
        partition = {
            "city": rng.choice((None, "", "Köln", "x" * 100)),
            "price": rng.choice((None, Decimal("-12.34"), Decimal("0.00"))),
            "code": rng.choice((None, uuid.UUID(int=number))),
        }
        data_file = {
            "content": 0,
            "file_path": f"s3://lake/t/data/{number}.parquet",
            "file_format": "PARQUET",
            "partition": partition,
            "record_count": number,
            "file_size_in_bytes": 1000 + number,
            **numbers,
            **bounds,
            "key_metadata": rng.choice((None, b"k")),
            "split_offsets": rng.choice((None, [], [4], [4, 10**6])),
            "equality_ids": None,
            "sort_order_id": rng.choice((None, 0, 7)),
        }
        status = rng.choice((0, 1, 1, 2))
        made.append(
            {
                "status": status,
                "snapshot_id": 5 if number % 7 else None,
                "sequence_number": 3,
                "file_sequence_number": 3,
            }
            | {"data_file": data_file}
        )
    return made


# ------------------------------------------------------------------------------------------------ other layouts


def _inner(schema: Record) -> list[Record]:
    return next(field["type"]["fields"] for field in schema["fields"] if field["name"] == "data_file")


def as_we_write(schema: Record, records: list[Record]) -> None:
    """As it is."""


def in_other_order(schema: Record, records: list[Record]) -> None:
    """The fields in the other order."""
    schema["fields"].reverse()
    _inner(schema).reverse()


def null_second(schema: Record, records: list[Record]) -> None:
    """Unions in which null comes second."""

    def turn(avro_type: Any) -> None:
        for field in avro_type["fields"]:
            if isinstance(field["type"], list):
                field["type"].reverse()
                field.pop("default", None)
            elif isinstance(field["type"], dict) and field["type"]["type"] == "record":
                turn(field["type"])

    turn(schema)


def other_names(schema: Record, records: list[Record]) -> None:
    """Other names, the specification's as aliases."""
    for field in _inner(schema):
        if field["name"] != "partition":
            field["aliases"] = [field["name"]]
            field["name"] = f"f_{field['field-id']}"
    for record in records:
        names = {field["aliases"][0]: field["name"] for field in _inner(schema) if "aliases" in field}
        record["data_file"] = {names.get(name, name): value for name, value in record["data_file"].items()}


EXTRA: list[tuple[Any, Any]] = [
    (["null", "string"], "note"),
    ("boolean", True),
    ({"type": "fixed", "name": "f3", "size": 3}, b"abc"),
    ({"type": "record", "name": "r9", "fields": [{"name": "a", "type": "double"}]}, {"a": 1.5}),
    ({"type": "array", "items": "string"}, ["a", "b"]),
    (["long", "null"], None),
]


def other_fields(schema: Record, records: list[Record]) -> None:
    """Fields that nobody knows, at the beginning, in the middle and at the end, of the entry and of the file."""
    for number, (avro_type, value) in enumerate(EXTRA):
        name, field = f"x{number}", {"name": f"x{number}", "type": copy.deepcopy(avro_type), "field-id": 9000 + number}
        _inner(schema).insert(number * 4, field)
        for record in records:
            record["data_file"][name] = value
    for place in (0, 2, len(schema["fields"])):
        schema["fields"].insert(place, {"name": f"y{place}", "type": ["null", "long"], "field-id": 9100 + place})
        for record in records:
            record[f"y{place}"] = 2**40 + place


def unusual_fields(schema: Record, records: list[Record]) -> None:
    """Fields of kinds that few readers know: maps, enums, unions of several."""
    kinds = [
        ({"type": "map", "values": "long"}, {"a": 1}),
        ({"type": "enum", "name": "e1", "symbols": ["A", "B"]}, "B"),
        (["int", "string", "null"], "text"),
        (["int", "string"], 5),
    ]
    for number, (avro_type, value) in enumerate(kinds):
        _inner(schema).insert(number * 5, {"name": f"z{number}", "type": avro_type, "field-id": 9000 + number})
        for record in records:
            record["data_file"][f"z{number}"] = value


def required_maps(schema: Record, records: list[Record]) -> None:
    """Maps that cannot be null, without `logicalType`."""
    for field in _inner(schema):
        if field["name"] in MAPS:
            field["type"] = next(each for each in field["type"] if each != "null")
            field["type"].pop("logicalType", None)
            field.pop("default", None)
    for record in records:
        for name in MAPS:
            record["data_file"][name] = record["data_file"][name] or []


def types_by_name(schema: Record, records: list[Record]) -> None:
    """A type that was defined before, by its name."""
    _inner(schema).append({"name": "again", "type": ["null", "uuid_fixed"], "field-id": 9000})
    for record in records:
        record["data_file"]["again"] = uuid.UUID(int=record["data_file"]["record_count"])


def decimals_as_bytes(schema: Record, records: list[Record]) -> None:
    """Decimals of any length."""
    for inner in _inner(schema):
        for field in inner["type"]["fields"] if inner["name"] == "partition" else ():
            if field["name"] == "price":
                field["type"] = ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]


LAYOUTS = [
    as_we_write,
    in_other_order,
    null_second,
    other_names,
    other_fields,
    unusual_fields,
    required_maps,
    types_by_name,
    decimals_as_bytes,
]


# --------------------------------------------------------------------------------------------------- the writer


def encode(avro_type: Any, value: Any, named: dict[str, Any], sized: bool, parts: int) -> bytes:
    """A value in Avro, its arrays in blocks of some items that may say how long they are.

    Source: Avro specification, "Binary Encoding".
    """
    if isinstance(avro_type, str) and avro_type in named:
        avro_type = named[avro_type]
    if isinstance(avro_type, list):
        fits = [(each == "null") is (value is None) and _fits(each, value) for each in avro_type]
        branch = fits.index(True)
        return encode_long(branch) + encode(avro_type[branch], value, named, sized, parts)
    if not isinstance(avro_type, dict):
        return _plain(avro_type, value)
    kind = avro_type["type"]
    if kind == "record":
        fields = avro_type["fields"]
        return b"".join(encode(field["type"], value.get(field["name"]), named, sized, parts) for field in fields)
    if kind in ("array", "map"):
        items = list(value.items()) if kind == "map" else list(value)
        written = [
            _plain("string", each[0]) + encode(avro_type["values"], each[1], named, sized, parts)
            if kind == "map"
            else encode(avro_type["items"], each, named, sized, parts)
            for each in items
        ]
        blocks = [written[start : start + parts] for start in range(0, len(written), parts)]
        return b"".join(_block(block, sized) for block in blocks) + b"\0"
    if kind == "enum":
        return encode_long(avro_type["symbols"].index(value))
    if isinstance(value, Decimal):
        number = int(value.scaleb(avro_type["scale"]))
        length = avro_type.get("size", (number.bit_length() + 8) // 8)
        data = number.to_bytes(length, "big", signed=True)
        return data if kind == "fixed" else _plain("bytes", data)
    if kind == "fixed":
        return value.bytes if isinstance(value, uuid.UUID) else bytes(value)
    return _plain(kind, value)


def _named(avro_type: Any) -> dict[str, Any]:
    """The types that a schema defines, by their names."""
    if isinstance(avro_type, list):
        return {name: each for branch in avro_type for name, each in _named(branch).items()}
    if not isinstance(avro_type, dict):
        return {}
    inner = [field["type"] for field in avro_type.get("fields", ())]
    own = {avro_type["name"]: avro_type} if "name" in avro_type else {}
    inner += [avro_type["type"], *(avro_type[key] for key in ("items", "values") if key in avro_type)]
    return own | _named(inner)


def _fits(avro_type: Any, value: Any) -> bool:
    return avro_type not in ("int", "string") or isinstance(value, int if avro_type == "int" else str)


def _block(items: Sequence[bytes], sized: bool) -> bytes:
    content = b"".join(items)
    head = encode_long(-len(items)) + encode_long(len(content)) if sized else encode_long(len(items))
    return head + content


def _plain(kind: str, value: Any) -> bytes:
    if kind in ("string", "bytes"):
        data = value.encode() if isinstance(value, str) else value
        return encode_long(len(data)) + data
    return encode_long(value) if kind in ("int", "long") else fastavro_bytes(kind, value)


def fastavro_bytes(kind: str, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, kind, value)
    return out.getvalue()


def written(layout: Callable[..., None], count: int, codec: str, sized: bool, parts: int) -> tuple[bytes, list[Record]]:
    """A manifest of some blocks, and its entries as fastavro reads them, under the specification's names."""
    schema = json.loads(entry_schema(SPEC.partition_type(SCHEMA), 2).text)
    records = entries(count)
    layout(schema, records)
    types = _named(schema)
    raw = [encode(schema, record, types, sized, parts) for record in records]
    step = max(1, count // 3)
    blocks = [raw[start : start + step] for start in range(0, count, step)]
    head, text = manifest_metadata(SCHEMA, SPEC, ManifestContent.DATA, 2), json.dumps(schema).encode()
    data, plain = (
        join_blocks([(len(block), compress(b"".join(block), each)) for block in blocks], text, each, head)
        for each in (codec, "null")
    )
    found = [dict(each) for each in fastavro.reader(io.BytesIO(plain))]
    back = {field["name"]: field["aliases"][0] for field in _inner(schema) if "aliases" in field}
    for each in found:
        each["data_file"] = {back.get(name, name): value for name, value in each["data_file"].items()}
    return data, found


def value_of(record: Record, name: str, key: int) -> Any:
    pairs = record["data_file"][name]
    found = [pair["value"] for pair in pairs or () if pair["key"] == key]
    return found[-1] if found else None


def listed(data: bytes, records: list[Record]) -> ManifestFile:
    counts: Mapping[int, list[int]] = {
        status: [each["data_file"]["record_count"] for each in records if each["status"] == status]
        for status in (0, 1, 2)
    }
    return ManifestFile(
        manifest_path="mem://t/m.avro",
        manifest_length=len(data),
        partition_spec_id=0,
        added_snapshot_id=5,
        sequence_number=3,
        min_sequence_number=3,
        existing_files_count=len(counts[0]),
        added_files_count=len(counts[1]),
        deleted_files_count=len(counts[2]),
        existing_rows_count=sum(counts[0]),
        added_rows_count=sum(counts[1]),
        deleted_rows_count=sum(counts[2]),
    )


# Codec, whether blocks of arrays say how long they are, and how many items they have.
WRITERS = [("null", False, 99), ("deflate", True, 99), ("snappy", False, 1), ("zstandard", True, 2)]


@pytest.mark.parametrize("count", [20, 1500])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_manifests_of_any_layout_are_what_fastavro_reads(layout: Callable[..., None], count: int) -> None:
    for codec, sized, parts in WRITERS if count < 100 else WRITERS[LAYOUTS.index(layout) % 2 :: 2]:
        data, records = written(layout, count, codec, sized, parts)
        manifest = listed(data, records)
        decoder = ManifestDecoder([(data, manifest)], partition_columns(METADATA))
        live = [each for each in records if each["status"] != 2]
        for metrics in ([], WANTED):
            files = decoder.files(metrics)
            for name in ("file_path", "record_count", "file_size_in_bytes", "key_metadata", "split_offsets"):
                assert files[name].to_list() == [each["data_file"][name] for each in live], (name, codec)
            assert files["sort_order_id"].to_list() == [each["data_file"]["sort_order_id"] for each in live]
            for name, key in metrics:
                assert files[f"{name}.{key}"].to_list() == [value_of(each, name, key) for each in live], (name, key)
        partitions = [tuple(map(_stored, each["data_file"]["partition"].values())) for each in live]
        columns = files.select(partition_columns(METADATA).columns(0)).rows()
        assert [tuple(map(_stored, each)) for each in columns] == partitions
        whole = decoder.entries()
        for name in MAPS:
            assert whole[name].to_list() == [each["data_file"][name] for each in records]
        decoded = decode_manifest(data, manifest)
        assert [tuple(map(_stored, each.data_file.partition)) for each in decoded if each.is_live] == partitions
        assert [dict(each.data_file.lower_bounds or {}) for each in decoded] == [
            {pair["key"]: pair["value"] for pair in each["data_file"]["lower_bounds"] or ()} for each in records
        ]


def _stored(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value


@pytest.mark.parametrize("layout", LAYOUTS)
def test_entries_that_are_copied_say_what_they_said(layout: Callable[..., None]) -> None:
    for codec, sized, parts in WRITERS:
        data, records = written(layout, 60, codec, sized, parts)
        decoder = ManifestDecoder([(data, listed(data, records))], partition_columns(METADATA))
        new = {"status": [0] * 60, "snapshot_id": [None] * 60, "sort_order_id": [number % 3 for number in range(60)]}
        copied = EntryBytes.of(decoder.inflated(), tuple(new))
        if layout in (in_other_order, unusual_fields, types_by_name):  # which others encode anew
            assert copied is None
            continue
        assert copied is not None
        blocks = copied.with_values(np.arange(60), new)
        reader = fastavro.reader(io.BytesIO(written(layout, 60, "null", sized, parts)[0]))
        found = [
            fastavro.schemaless_reader(raw, reader.writer_schema, None)
            for count, raw in ((count, io.BytesIO(raw)) for count, raw in blocks)
            for _ in range(count)
        ]
        expected = [dict(each) for each in reader]
        order = "f_140" if layout is other_names else "sort_order_id"
        for number, each in enumerate(expected):
            each |= {"status": 0, "snapshot_id": None}
            each["data_file"][order] = number % 3
        assert found == expected


@pytest.mark.parametrize("other", [0, 1], ids=["itself", "the next one"])
def test_an_entry_that_holds_what_another_begins_with_is_not_cut_there(other: int) -> None:
    def lookalike(schema: Record, records: list[Record]) -> None:
        path = records[7 + other]["data_file"]["file_path"].encode()
        head = encode(schema, records[7 + other], _named(schema), False, 99).partition(path)[0]
        records[7]["data_file"]["upper_bounds"] = [{"key": 1, "value": head + path}]

    for layout in (as_we_write, lookalike):
        data, records = written(layout, 60, "null", False, 99)
        inflated = ManifestDecoder([(data, listed(data, records))], partition_columns(METADATA)).inflated()
        assert (EntryBytes.of(inflated, ("status",)) is None) is (layout is lookalike)


@pytest.mark.parametrize("padded", ["content of the first", "content of another", "sort order of another"])
def test_entries_with_numbers_of_more_bytes_than_they_need_are_not_copied(padded: str) -> None:
    snapshot_id = 1 if padded == "content of the first" else 5  # with 1, a byte further on reads the same

    def added(schema: Record, records: list[Record]) -> None:
        for each in records:
            each["status"], each["snapshot_id"], each["data_file"]["sort_order_id"] = 1, snapshot_id, 7

    data, records = written(added, 60, "null", False, 99)
    inflated = ManifestDecoder([(data, listed(data, records))], partition_columns(METADATA)).inflated()
    raw = inflated.body
    path = records[0 if padded == "content of the first" else 30]["data_file"]["file_path"].encode()
    place = raw.index(path) - 2  # after the content comes the length of the path
    if padded.startswith("sort"):
        place = raw.index(b"\2\x0e\0\2\2", place) + 1
    longer = raw[:place] + bytes([raw[place] | 0x80, 0]) + raw[place + 1 :]
    for body, is_usual in ((raw, True), (longer, False)):
        entries = replace(inflated, blocks=[(60, body)])
        copied = EntryBytes.of(entries, ("status", "snapshot_id", "sort_order_id"))
        assert (copied is not None) is is_usual
