"""What importing the package costs, and what it offers."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

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

MEASURE = """
import json, sys
import hms_iceberg
print(json.dumps({"modules": sorted({name.split(".")[0] for name in sys.modules})}))
"""


def fresh_import() -> dict[str, Any]:
    """Import the package in a new process; the top-level modules that came with it."""
    result = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_importing_the_package_loads_no_heavy_library() -> None:
    heavy = {"pyspark", "py4j", "polars", "pyarrow", "pandas", "duckdb", "numpy", "rich", "yaml", "thrift", "hmsclient"}

    assert heavy.isdisjoint(fresh_import()["modules"])


def test_the_public_names_are_these() -> None:
    assert sorted(hms_iceberg.__all__) == sorted(PUBLIC_NAMES)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_name_can_be_had(name: str) -> None:
    assert getattr(hms_iceberg, name) is not None
    assert name in dir(hms_iceberg)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Warehouse'"):
        _ = hms_iceberg.Warehouse  # type: ignore[attr-defined]
