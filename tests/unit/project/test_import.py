"""What importing the package costs, and what it offers."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import hms_iceberg

PUBLIC_NAMES = [
    "Catalog",
    "IcebergError",
    "PartitionField",
    "PartitionSpec",
    "Schema",
    "SortField",
    "SortOrder",
    "StaticTable",
    "Table",
    "__version__",
    "load_catalog",
]


def loaded_after(code: str) -> set[str]:
    """The modules that a new process has imported after some code."""
    told = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def modules_after(code: str) -> set[str]:
    """The top-level ones of these."""
    return {name.partition(".")[0] for name in loaded_after(code)}


def test_importing_the_package_loads_no_heavy_library() -> None:
    heavy = {"pyspark", "py4j", "polars", "pyarrow", "pandas", "duckdb", "numpy", "rich", "yaml", "thrift", "hmsclient"}

    assert heavy.isdisjoint(modules_after("import hms_iceberg"))


@pytest.mark.parametrize(
    "code",
    [
        "from hms_iceberg import load_catalog; load_catalog('c', uri='thrift://localhost:9083')",
        "from hms_iceberg import load_catalog; load_catalog('c', type='hadoop', warehouse='/nowhere')",
        "import hms_iceberg.catalog.rest",  # opening one asks its server
    ],
)
def test_opening_a_catalog_loads_nothing_that_only_tables_need(code: str) -> None:
    of_tables = {"polars", "pyarrow", "pandas", "numpy", "fastavro", "isal", "cramjam", "msgspec", "pyroaring"}

    assert of_tables.isdisjoint(modules_after(code))


def test_the_names_of_tables_load_on_first_use() -> None:
    table = importlib.import_module("hms_iceberg.table")

    assert "hms_iceberg.table.table" not in loaded_after("import hms_iceberg.table")
    assert all(getattr(table, name).__module__.startswith("hms_iceberg.") for name in table.__all__)
    assert set(table.__all__) <= set(dir(table))
    with pytest.raises(AttributeError, match="no attribute 'Tabel'"):
        _ = table.Tabel


def test_the_public_names_are_these() -> None:
    assert sorted(hms_iceberg.__all__) == sorted(PUBLIC_NAMES)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_name_can_be_had(name: str) -> None:
    assert getattr(hms_iceberg, name) is not None
    assert name in dir(hms_iceberg)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Warehouse'"):
        _ = hms_iceberg.Warehouse  # type: ignore[attr-defined]
