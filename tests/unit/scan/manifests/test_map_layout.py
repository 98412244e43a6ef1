"""The metrics of one field are the same, however the maps of the other entries are laid out."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from hms_iceberg.scan.manifests import manifest_frames
from hms_iceberg.scan.manifests.manifest_frames import METRIC_COLUMNS, ManifestDecoder
from hms_iceberg.scan.manifests.map_layout import map_layout
from hms_iceberg.scan.manifests.metric_columns import map_values
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.spec.manifests.manifest import DataFile
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.types import LongType, NestedField, StringType
from tests.support.snapshots import ManifestTable

SCHEMA = Schema(*(NestedField(n, f"c{n}", LongType()) for n in range(1, 9)), NestedField(9, "s", StringType()))
WANTED = [(name, field_id) for name in METRIC_COLUMNS for field_id in (1, 5, 9, 77)]


def data_file(number: int, columns: list[int]) -> DataFile:
    def bounds(shift: int) -> dict[int, bytes]:
        return {n: struct.pack("<q", number * n + shift) if n < 9 else b"x" * (number % 40) for n in columns}

    return DataFile(
        file_path=f"f{number}",
        file_format="PARQUET",
        record_count=number,
        file_size_in_bytes=10,
        value_counts={n: number * 1000 + n for n in columns},
        null_value_counts={n: number % (n + 1) for n in columns},
        nan_value_counts=None,
        lower_bounds=bounds(0),
        upper_bounds=bounds(9),
    )


def decoded(files: list[DataFile]) -> tuple[ManifestDecoder, dict[Any, Any]]:
    table = ManifestTable(SCHEMA)
    table.commit(*files)
    (manifest,) = table.manifests
    decoder = ManifestDecoder(
        [(table.storage.read(manifest.manifest_path), manifest)], partition_columns(table.metadata)
    )
    whole = decoder.entries()
    return decoder, {metric: map_values(whole[metric[0]], metric[1]).to_list() for metric in WANTED}


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
    assert frame["file_path"].to_list() == [f"f{number}" for number in range(1, 1201)]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("entries", "columns"), [(999, 9), (1200, 1), (30, 12_000)])
def test_few_entries_and_very_wide_ones_are_read_as_maps(
    entries: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts: list[Any] = []
    monkeypatch.setattr(manifest_frames, "map_layout", lambda *given: layouts.append(given) or map_layout(*given))
    decoder, expected = decoded([data_file(number, list(range(1, columns + 1))) for number in range(1, entries + 1)])
    assert decoder.metrics([("value_counts", 1)])["value_counts", 1].to_list() == expected["value_counts", 1]
    assert len(layouts) == (1 if entries >= 1000 else 0)


def test_only_the_metrics_asked_for_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, expected = decoded([data_file(number, same_columns(number)) for number in range(1, 1201)])
    read: list[str] = []
    read_avro = manifest_frames._read_avro

    def remembering(blocks: Any, rows: int, schema: bytes, columns: list[str]) -> Any:
        read.extend(columns)
        return read_avro(blocks, rows, schema, columns)

    monkeypatch.setattr(manifest_frames, "_read_avro", remembering)
    assert decoder.metrics([("lower_bounds", 5)])["lower_bounds", 5].to_list() == expected["lower_bounds", 5]
    assert [name for name in read if ".value" in name or ".key" in name] == ["lower_bounds.key4", "lower_bounds.value4"]
    assert not set(read) & set(METRIC_COLUMNS)
