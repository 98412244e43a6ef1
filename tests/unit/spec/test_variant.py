from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.variant.building import parse_json, variant_of
from hms_iceberg.spec.variant.layout import Kind, metadata_bytes
from hms_iceberg.spec.variant.variant import Variant

UTC = dt.timezone.utc
# Values that PySpark reads and writes too, without Java; it rounds decimals of more than 28 digits.
KNOWN: list[Any] = [
    None, True, False, 0, -1, 127, 128, -129, 32767, -32769, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 1.5, -0.0, 1e300,
    float("inf"), "", "a" * 63, "ä" * 32, "b" * 70_000, b"", b"\x00\xff", Decimal("1.20"), Decimal("-0.001"),
    Decimal("12345678901.5"), Decimal("-" + "9" * 28), dt.date(1, 1, 1), dt.date(9999, 12, 31),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2024, 2, 29, 12, tzinfo=UTC),
    [], {}, [None, [[]], {}], {"b": 1, "a": {"ä": [2, {"z": None}], "": True}, "\U0001f600": 3, "\uffff": 4},
    list(range(300)), {f"k{number}": number for number in range(300)}, {"long": ["x" * 300, "y" * 70_000, 5]},
]  # fmt: skip
OTHER: list[Any] = [dt.time(23, 59, 59, 999_999), UUID(int=1)]


@pytest.mark.parametrize("value", [*KNOWN, *OTHER], ids=lambda value: repr(value)[:30])
def test_a_python_value_comes_back_as_it_was(value: Any) -> None:
    found = variant_of(value).to_python()
    assert found == value
    assert type(found) is type(value)


def test_pyspark_reads_what_is_made_here() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    if not hasattr(types, "VariantVal"):
        pytest.skip("this version of Spark has no variants")
    for value in KNOWN:
        made = variant_of(value)
        assert types.VariantVal(made.value, made.metadata).toPython() == value, repr(value)[:60]
    document = json.dumps(random_documents(3))
    made = parse_json(document)
    spark = types.VariantVal(made.value, made.metadata)
    assert json.loads(spark.toJson()) == json.loads(made.to_json()) == json.loads(document)


def test_what_pyspark_makes_of_json_is_read_here() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    if not hasattr(getattr(types, "VariantVal", None), "parseJson"):
        pytest.skip("this version of PySpark makes no variants")
    document = json.dumps(random_documents(5))
    made = types.VariantVal.parseJson(document)
    assert json.loads(Variant(made.metadata, made.value).to_json()) == json.loads(document)


def random_documents(seed: int) -> list[Any]:
    chance = random.Random(seed)

    def document(depth: int) -> Any:
        kind = chance.randrange(8 if depth < 5 else 6)
        if kind == 6:
            return [document(depth + 1) for _ in range(chance.randrange(5))]
        if kind == 7:
            return {chance.choice("abcdäß\U0001f600"): document(depth + 1) for _ in range(chance.randrange(5))}
        number = chance.randrange(-(1 << chance.randrange(1, 63)), 1 << 20)
        return [None, True, number, number / 8, "x" * chance.randrange(100), chance.random() * 1e200][kind]

    return [document(0) for _ in range(300)]


@pytest.mark.parametrize(
    ("kind", "number", "size", "value", "text"),
    [
        (Kind.TIMESTAMP_NS, 1, 8, np.datetime64(1, "ns"), "1970-01-01 00:00:00.000000001"),
        (Kind.TIMESTAMPTZ_NS, -1, 8, np.datetime64(-1, "ns"), "1969-12-31 23:59:59.999999999+00:00"),
        (Kind.TIMESTAMPTZ, 0, 8, dt.datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01 00:00:00+00:00"),
        (Kind.TIMESTAMP, -(2**62), 8, np.datetime64(-(2**62), "us"), "-144169-06-28 09:59:32.612096"),
        (Kind.DATE, 3_000_000, 4, np.datetime64(3_000_000, "D"), "+10183-09-21"),
        (Kind.TIME, 1, 8, dt.time(0, 0, 0, 1), "00:00:00.000001"),
    ],
)
def test_times_that_python_cannot_hold_come_as_those_of_numpy(
    kind: Kind, number: int, size: int, value: Any, text: str
) -> None:
    found = Variant(metadata_bytes([]), kind.header + number.to_bytes(size, "little", signed=True))
    assert found.to_python() == value
    assert found.to_json() == json.dumps(text)


def test_numbers_of_32_bits_have_their_shortest_text_and_nan_is_text() -> None:
    def of(number: float) -> str:
        return Variant(metadata_bytes([]), Kind.FLOAT.header + np.float32(number).tobytes()).to_json()

    assert [of(1.1), of(16_777_216), of(-0.0), of(float("nan"))] == ["1.1", "16777216.0", "-0.0", '"NaN"']
    assert [of(np.finfo(np.float32).max), of(1e-45)] == ["3.4028235e+38", "1e-45"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.50", Decimal("1.50")),
        ("1e2", 100.0),
        (str(2**63), Decimal(2**63)),
        ("1" * 39, float("1" * 39)),
        ("0." + "1" * 39, float("0." + "1" * 39)),
    ],
)
def test_numbers_of_json_become_decimals_if_they_are_written_so(text: str, value: Any) -> None:
    found = parse_json(text).to_python()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": 1, "a": 2}', '"\\ud800"', "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="Cannot make a variant"):
        parse_json(text)


@pytest.mark.parametrize("value", [{1: 2}, object(), Decimal("NaN"), Decimal("1" * 39), dt.time(1, tzinfo=UTC)])
def test_what_has_no_form_in_variants_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="Cannot make a variant"):
        variant_of({"a": [value]})


def test_damaged_variants_are_refused_and_nothing_else_happens() -> None:
    whole = variant_of({"a": [1, "x" * 80, b"yz", {"b": None, "c": dt.date(2020, 1, 1)}], "d": Decimal("1.5")})
    chance = random.Random(7)
    refused = 0
    for _ in range(3000):
        parts = [bytearray(whole.metadata), bytearray(whole.value)]
        part = chance.choice(parts)
        if chance.random() < 0.3:
            del part[chance.randrange(len(part)) :]
        else:
            part[chance.randrange(len(part))] = chance.randrange(256)
        try:
            Variant(bytes(parts[0]), bytes(parts[1])).to_json()
        except InvalidInputError:
            refused += 1
    assert refused > 500
    with pytest.raises(InvalidInputError, match="version 2"):
        Variant(b"\x02\x00\x00", b"\x00").to_python()
    with pytest.raises(InvalidInputError, match="type 60"):
        Variant(b"\x01\x00\x00", b"\xf0").to_python()
