"""Plans on their way to the JVM, and questions that fail."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from hms_iceberg.spark.answers import AnswerWriter
from hms_iceberg.spark.bridge_service import BridgeService
from hms_iceberg.spark.reading.plan_answer import _numbered


class Reader:
    """Takes an answer apart as the bridge's class Answer does."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        (length,) = struct.unpack_from("<i", data)
        self.header = json.loads(data[4 : 4 + length])
        self.at = 4 + length

    def numbers(self, code: str, count: int) -> list[int]:
        self.at += -self.at % 8
        size = struct.calcsize(code) * count
        taken = list(struct.unpack_from(f"<{count}{code}", self.data, self.at))
        self.at += size
        return taken

    def texts(self, count: int) -> list[str]:
        offsets = self.numbers("q", count + 1)
        self.at += -self.at % 8
        taken = [self.data[self.at + begin : self.at + end].decode() for begin, end in itertools.pairwise(offsets)]
        self.at += offsets[-1]
        return taken


def test_arrays_come_out_as_they_went_in() -> None:
    answer = AnswerWriter({"a": "ä"})
    answer.texts(pl.Series(["x", "", "grün"])).longs(pl.Series([1, -2])).ints(pl.Series([3, 4, 5]))
    reader = Reader(answer.texts(pl.Series([], dtype=pl.String)).done())
    assert reader.header == {"a": "ä"}
    assert reader.texts(3) == ["x", "", "grün"]
    assert reader.numbers("q", 2) == [1, -2]
    assert reader.numbers("i", 3) == [3, 4, 5]
    assert reader.texts(0) == []


def test_minus_zero_is_a_partition_of_its_own() -> None:
    files = pl.DataFrame({"spec_id": [0, 0, 0, 0, 0], "p": [0.0, -0.0, 0.0, None, float("nan")]})
    distinct, numbers = _numbered(files, ["p"])
    assert numbers.to_list() == [0, 1, 0, 2, 3]
    assert [str(value) for value in distinct["p"].to_list()] == ["0.0", "-0.0", "None", "nan"]


def test_a_failure_is_an_answer() -> None:
    question = {"call": "load", "name": "t", "metadata_location": "/nowhere/v1.metadata.json"}
    error = Reader(BridgeService().answer(json.dumps(question).encode())).header["error"]
    assert error["type"] == "MissingFileError"
    assert "/nowhere/v1.metadata.json" in error["message"]


@pytest.fixture
def ask(tmp_path: Any) -> Callable[..., Reader]:
    """A planner on a table without snapshots."""
    from hms_iceberg.arrow.columns.arrow_schema import from_arrow
    from hms_iceberg.spec.metadata.metadata_definition import new_table_metadata
    from hms_iceberg.spec.metadata.metadata_json import metadata_to_json

    metadata = new_table_metadata(from_arrow(pa.schema([("a", pa.int64())])), location=str(tmp_path))
    location = tmp_path / "v1.metadata.json"
    location.write_bytes(metadata_to_json(metadata))
    planner = BridgeService(storage=ArrowStorage())

    def question(call: str, **more: Any) -> Reader:
        asked = {"call": call, "name": "t", "metadata_location": str(location), **more}
        return Reader(planner.answer(json.dumps(asked).encode()))

    return question


def test_a_table_without_snapshots_is_described_and_planned(ask: Callable[..., Reader]) -> None:
    described = ask("load", version=None, as_of_micros=None).header
    assert described["snapshot_id"] is None
    assert described["row_count"] == 0
    planned = ask("plan", snapshot_id=None, schema_id=described["schema_id"])
    assert planned.header["files"] == 0
    assert planned.texts(0) == []
