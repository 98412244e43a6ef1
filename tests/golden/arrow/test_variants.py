"""Variants written by Apache Iceberg (Java) 1.12 on Spark 4.1, shredded and not, as Spark's own functions tell them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hms_iceberg.arrow.metrics.footer_metrics import data_file_from_parquet
from hms_iceberg.spec.variant.bounds import field_bounds
from hms_iceberg.table.file_system import FileSystemTables
from hms_iceberg.table.table import Table
from hms_iceberg.variant import variants_to_json
from tests.support.manifest_files import data_files

GOLDEN = Path("/tmp/hms_iceberg_golden/variants")
ZERO, NEGATIVE_ZERO = (b"\x1c" + struct.pack("<d", each) for each in (0.0, -0.0))  # as values of variants


def table_of(case: str) -> tuple[Table, list[list[Any]]]:
    """The table, and its rows by Spark."""
    rows = json.loads((GOLDEN / case / "rows.json").read_text())
    return FileSystemTables().load(str(GOLDEN / case)), rows


def shredded_files(table: Table) -> int:
    """How many of its files have shredded variants."""
    files = [task.file.file_path.removeprefix("file:") for task in table.scan().plan_files()]
    return sum("typed_value" in str(pq.ParquetFile(file).schema) for file in files)


@pytest.mark.parametrize(("case", "shredded"), [("unshredded", 0), ("primitives", 20), ("objects", 2)])
def test_variants_are_the_json_that_spark_makes_of_them(case: str, shredded: int) -> None:
    table, wanted = table_of(case)
    rows = table.scan().to_arrow().sort_by("n")
    found = zip(rows["n"].to_pylist(), variants_to_json(rows["v"]).to_pylist(), strict=True)
    assert list(found) == [(n, text) for n, text, _ in wanted]
    assert shredded_files(table) == shredded


def test_variants_in_structs_lists_and_maps_are_the_json_that_spark_makes_of_them() -> None:
    table, wanted = table_of("nested")
    rows = table.scan().to_arrow().sort_by("n").combine_chunks()
    structs = variants_to_json(rows["s"].combine_chunks().field(0)).to_pylist()
    lists = rows["l"].to_pylist()
    texts = iter(variants_to_json(rows["l"].combine_chunks().flatten()).to_pylist())
    maps = variants_to_json(rows["m"].combine_chunks().items).to_pylist()
    found = [
        [n, struct and s, json.dumps({"l": [next(texts) for _ in each]} if each else {}, separators=(",", ":")), m]
        for n, struct, s, each, m in zip(
            rows["n"].to_pylist(), rows["s"].is_valid().to_pylist(), structs, lists, maps, strict=True
        )
    ]
    assert found == [[n, s or False, text, m] for n, s, text, m in wanted]


def field_of(value: Any, path: list[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def test_filters_by_fields_leave_out_files_by_the_bounds_that_java_wrote() -> None:
    table, wanted = table_of("objects")
    values = {n: json.loads(text or "null") for n, text, _ in wanted}
    for row_filter, path, matches in (
        ("variant_get(v, '$.i', 'int') > 1000000", ["i"], lambda found: isinstance(found, int) and found > 1_000_000),
        ("variant_get(v, '$.deep.a', 'bigint') <= 5", ["deep", "a"], range(6).__contains__),
        ("variant_get(v, '$.t', 'double') between 20.0 and 30.5", ["t"], range(20, 31).__contains__),
        ("not (variant_get(v, '$.txt', 'string') >= 'x3')", ["txt"], lambda found: found is not None and found < "x3"),
        ("variant_get(v, '$.day', 'date') < date'1970-01-01'", ["day"], lambda found: bool(found) and found < "1970"),
        ("variant_get(v, '$.flag', 'boolean')", ["flag"], [True].__contains__),
    ):
        scan = table.scan(row_filter)
        rows = [n for n, value in values.items() if matches(field_of(value, path))]
        assert sorted(scan.to_arrow()["n"].to_pylist()) == sorted(rows), row_filter
        assert rows
    assert len(list(table.scan("variant_get(v, '$.t', 'int') > 20").plan_files())) == 1
    assert not list(table.scan("variant_get(v, '$.t', 'int') > 100").plan_files())


@pytest.mark.parametrize("case", ["unshredded", "primitives", "objects", "nested"])
def test_counts_and_bounds_of_variants_are_javas(case: str) -> None:
    table, _ = table_of(case)
    compared = 0
    for java in data_files(table.metadata, table.storage):
        ours = data_file_from_parquet(table.storage, java.file_path, table.schema(), properties=table.properties)
        for name in ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
            found, wanted = (dict(getattr(file, name) or {}) for file in (ours, java))
            # Java takes the sign of a least zero from the values; a footer may not tell it.
            assert {each: data.replace(NEGATIVE_ZERO, ZERO) if name == "lower_bounds" else data
                    for each, data in found.items()} == wanted  # fmt: skip
            compared += len(field_bounds(wanted[2])) if name.endswith("bounds") and 2 in wanted else 0
    assert compared > 20 or case not in ("primitives", "objects")
