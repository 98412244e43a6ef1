"""Tables of format version 4 as its draft has them: relative paths, Parquet manifests and typed statistics.

Nobody writes typed statistics or relative paths yet. So a table of version 3 is rewritten by fastavro and pyarrow.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.formats.manifests_v4 import as_version_3
from hms_iceberg.catalog import load_catalog
from hms_iceberg.errors import CorruptManifestError, CorruptMetadataError, UnsupportedError
from hms_iceberg.table import Table
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.readable import StaticTable

PREVIEW = {"preview.format-v4": "true"}
EPOCH = dt.datetime(1970, 1, 1)


def number_of(code: str) -> Callable[[bytes], Any]:
    return lambda data: struct.unpack(code, data)[0]


def moment(data: bytes) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=number_of("<q")(data))


# Columns by field id: the name, Arrow's type, and how the bytes of a bound become a value of Python.
KINDS: dict[int, tuple[str, pa.DataType, Callable[[bytes], Any]]] = {
    1: ("id", pa.int64(), number_of("<q")),
    2: ("i", pa.int32(), number_of("<i")),
    3: ("f", pa.float32(), number_of("<f")),
    4: ("d", pa.float64(), number_of("<d")),
    5: ("b", pa.bool_(), lambda data: data != b"\0"),
    6: ("s", pa.string(), lambda data: data.decode()),
    7: ("bin", pa.binary(), lambda data: data),
    8: ("dec", pa.decimal128(20, 3), lambda data: Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-3)),
    9: ("day", pa.date32(), lambda data: dt.date(1970, 1, 1) + dt.timedelta(number_of("<i")(data))),
    10: ("ts", pa.timestamp("us"), moment),
    11: ("tz", pa.timestamp("us", "UTC"), lambda data: moment(data).replace(tzinfo=dt.timezone.utc)),
    12: ("t", pa.time64("us"), lambda data: moment(data).time()),
    13: ("fix", pa.binary(2), lambda data: data),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, kind, _ in KINDS.values()])
MANIFEST_TYPES = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "bytes": pa.binary()}
COUNTS = {"v": "value_counts", "n": "null_value_counts", "x": "nan_value_counts"}
BOUNDS = {"lo": "lower_bounds", "hi": "upper_bounds"}
FILTERS = (
    "id > 12",
    "id < 0",
    "i >= 0",
    "d < 0",
    "s = ''",
    "s >= 'row 3'",
    "s is null",
    "dec <= -0.001",
    "day > '2020-01-01'",
    "ts < '1970-01-01T00:00:00'",
    "t is not null",
    "b = true",
    "s is null or id = 14",
)


def rows(first: int) -> pa.Table:
    """Five rows, and one of nulls."""
    made = [
        {
            "id": n,
            "i": n - 10,
            "f": [float("nan"), -1.5, 2.5][n % 3],
            "d": [float("-inf"), 0.0, 1e300][n % 3],
            "b": n % 2 == 0,
            "s": "" if n % 4 == 0 else f"row {n}",
            "bin": bytes([n, 255]),
            "dec": Decimal(n - 12) / 1000,
            "day": dt.date(2019, 12, 25) + dt.timedelta(n),
            "ts": EPOCH + dt.timedelta(microseconds=n - 10),
            "tz": (EPOCH + dt.timedelta(microseconds=n)).replace(tzinfo=dt.timezone.utc),
            "t": dt.time(n % 24, 0, 0, n),
            "fix": bytes([n, n]),
        }
        for n in range(first, first + 5)
    ]
    return pa.Table.from_pylist([*made, {"id": first + 5}], SCHEMA)


@pytest.fixture(params=["", "s"], ids=["unpartitioned", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Three appends and a deletion vector."""
    catalog = load_catalog("drafts", type="hadoop", warehouse=f"file:{tmp_path}")
    catalog.create_namespace("db")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read", "write.metadata.metrics.default": "full"}
    table = catalog.create_table("db.t", SCHEMA, properties=properties)
    if request.param:
        table.update_spec().add_field(request.param, "truncate[5]").commit()
    for first in (0, 6, 12):
        table.append(rows(first))
    table.delete("id = 7")
    return table


def field(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def stats_type() -> pa.DataType:
    fields = []
    for field_id, (name, kind, _) in KINDS.items():
        first = 10_000 + 200 * field_id
        children = [field("lo", kind, first + 1), field("hi", kind, first + 2), field("v", pa.int64(), first + 4)]
        children += [field("n", pa.int64(), first + 5), field("x", pa.int64(), first + 6)]
        fields.append(field(name, pa.struct(children), first))
    return pa.struct(fields)


def typed(file: dict[str, Any]) -> dict[str, Any]:
    """The statistics of a file as structs."""

    def found(name: str, field_id: int) -> Any:
        return {pair["key"]: pair["value"] for pair in file[name] or ()}.get(field_id)

    made: dict[str, Any] = {}
    for field_id, (name, _, decode) in KINDS.items():
        made[name] = {label: found(kind, field_id) for label, kind in COUNTS.items()}
        for label, kind in BOUNDS.items():
            bound = found(kind, field_id)
            made[name][label] = None if bound is None else decode(bound)
    return made


def plain_fields(avro: dict[str, Any]) -> list[pa.Field]:
    """Those fields of a record that are not nested."""
    found = []
    for each in avro["fields"]:
        kind = next(part for part in each["type"] if part != "null") if isinstance(each["type"], list) else each["type"]
        if isinstance(kind, str) and kind in MANIFEST_TYPES:
            found.append(field(each["name"], MANIFEST_TYPES[kind], each["field-id"]))
    return found


def parquet_manifest(data: bytes, base: str) -> bytes:
    """A manifest of version 3 as one of version 4."""
    reader = fastavro.reader(BytesIO(data))
    schema = json.loads(reader.metadata["avro.schema"])
    file_schema = next(each for each in schema["fields"] if each["name"] == "data_file")["type"]
    partition = next(each for each in file_schema["fields"] if each["name"] == "partition")["type"]
    file_fields = plain_fields(file_schema)
    if partition["fields"]:
        file_fields.append(field("partition", pa.struct(plain_fields(partition)), 102))
    file_fields.append(field("content_stats", stats_type(), 146))
    records: list[Any] = list(reader)
    for record in records:
        file = record["data_file"]
        file["content_stats"] = typed(file) if file["content"] == 0 else None
        for name in ("file_path", "referenced_data_file"):
            file[name] = file[name] and file[name].removeprefix(f"{base}/")
    fields = [*plain_fields(schema), field("data_file", pa.struct(file_fields), 2)]
    kept = ("schema", "schema-id", "partition-spec", "partition-spec-id", "content")
    header = {key: reader.metadata[key] for key in kept} | {"format-version": "4"}
    output = BytesIO()
    pq.write_table(pa.Table.from_pylist(records, pa.schema(fields, header)), output)
    return output.getvalue()


def draft_list(data: bytes, base: str, oldest: int) -> bytes:
    """A manifest list of version 4, and its manifests beside those of version 3; the first snapshot's stay."""
    reader = fastavro.reader(BytesIO(data))
    schema, header, records = reader.writer_schema, dict(reader.metadata), list(reader)
    for record in records:
        assert isinstance(record, dict)
        path = Path(record["manifest_path"].removeprefix("file:"))
        if record["added_snapshot_id"] != oldest:
            draft = path.with_suffix(".parquet")
            draft.write_bytes(parquet_manifest(path.read_bytes(), base))
            record |= {"manifest_path": f"metadata/{draft.name}", "manifest_length": draft.stat().st_size}
    kept = {key: value for key, value in header.items() if not key.startswith("avro.")} | {"format-version": "4"}
    output = BytesIO()
    fastavro.writer(output, schema, records, metadata=kept)
    return output.getvalue()


def as_draft(table: Table, *, with_location: bool) -> Path:
    """Turns a table on local disk into one of version 4, and returns its folder."""
    folder = Path(table.location().removeprefix("file:"))
    metadata = json.loads(Path(table.metadata_location.removeprefix("file:")).read_text())
    oldest = metadata["snapshots"][0]["snapshot-id"]
    for snapshot in metadata["snapshots"]:
        listed = Path(snapshot["manifest-list"].removeprefix("file:"))
        if snapshot["snapshot-id"] != oldest:
            listed.write_bytes(draft_list(listed.read_bytes(), table.location(), oldest))
        snapshot["manifest-list"] = f"metadata/{listed.name}"
    metadata |= {"format-version": 4, "metadata-log": []}
    if not with_location:
        del metadata["location"]
    hint = folder / "metadata" / "version-hint.text"
    number = int(hint.read_text()) + 1
    (folder / "metadata" / f"v{number}.metadata.json").write_text(json.dumps(metadata))
    hint.write_text(str(number))
    return folder


def metrics(table: Table) -> list[str]:
    shown = ("file_path", "content", "record_count", "readable_metrics")
    files = table.inspect.files().select(shown).to_pylist()
    for file in files:
        for metric in file["readable_metrics"].values():
            metric["column_size"] = None  # no part of typed statistics
    return sorted(map(repr, files))


@pytest.mark.parametrize("with_location", [True, False])
def test_rows_metrics_and_pruning_are_those_before_the_table_became_a_draft(table: Table, with_location: bool) -> None:
    known, known_metrics = table.scan().to_arrow(), metrics(table)
    planned = {text: len(list(table.scan(row_filter=text).plan_files())) for text in FILTERS}
    draft = FileSystemTables(PREVIEW).load(f"file:{as_draft(table, with_location=with_location)}")
    assert draft.format_version == 4 and known.num_rows == 17
    assert repr(draft.scan().to_arrow().sort_by("id").to_pylist()) == repr(known.sort_by("id").to_pylist())
    assert metrics(draft) == known_metrics
    for text in FILTERS:
        wanted = duckdb.connect().execute(f"select id from known where {text}").fetchall()
        scan = draft.scan(row_filter=text)
        assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(row[0] for row in wanted), text
        assert len(list(scan.plan_files())) == planned[text], text


def test_what_is_not_settled_is_refused_by_its_ids(table: Table) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifest = snapshot.manifests(table.io)[0]
    data = parquet_manifest(table.io.read(manifest.manifest_path), table.location())
    read = pq.read_table(BytesIO(data))

    def changed(fields: list[pa.Field], columns: list[Any]) -> bytes:
        output = BytesIO()
        pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields, read.schema.metadata)), output)
        return output.getvalue()

    more = changed([*read.schema, field("x", pa.int64(), 147)], [*read.columns, pa.nulls(len(read), pa.int64())])
    with pytest.raises(UnsupportedError, match=r"m\.parquet.*not settled \(ids 147\)"):
        as_version_3(more, "m.parquet", "file:/t")
    less = changed(list(read.schema)[:-1], read.columns[:-1])
    with pytest.raises(UnsupportedError, match=r"m\.parquet.*metadata tree"):
        as_version_3(less, "m.parquet", "file:/t")
    with pytest.raises(CorruptManifestError, match=r"m\.parquet"):
        as_version_3(data[: len(data) // 2], "m.parquet", "file:/t")


def test_a_table_without_location_lies_around_its_metadata_folder_or_is_refused(table: Table, tmp_path: Path) -> None:
    folder = as_draft(table, with_location=False)
    newest = max((folder / "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    assert StaticTable.from_metadata(f"file:{newest}", PREVIEW).location() == f"file:{folder}"
    elsewhere = tmp_path / "elsewhere.metadata.json"
    elsewhere.write_text(newest.read_text())
    with pytest.raises(CorruptMetadataError, match=r"elsewhere.*do not say the table's location"):
        StaticTable.from_metadata(f"file:{elsewhere}", PREVIEW)
    elsewhere.write_text(json.dumps(json.loads(newest.read_text()) | {"location": "a/b"}))
    with pytest.raises(CorruptMetadataError, match="has no scheme"):
        StaticTable.from_metadata(f"file:{elsewhere}", PREVIEW)
