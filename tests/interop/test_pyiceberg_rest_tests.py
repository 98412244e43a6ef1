"""PyIceberg's own integration tests of REST catalogs and of scan planning, against this package's server.

PYICEBERG_TESTS names a checkout of apache/iceberg-python, and PYICEBERG_PYTHON a Python that has PyIceberg 0.12 and
what its tests need (pytest 7, pytest-lazy-fixtures, moto, requests-mock, PySpark); without them nothing is run. Left
out are tests of tables that PyIceberg has its own Spark server make first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.catalog import load_catalog
from tests.support.rest_server import served

FILES = ("test_rest_catalog", "test_rest_scan_planning_integration", "test_rest_schema", "test_catalog")
NOT_OURS = "not hive and not sql and not glue and not test_rest_scan_with_deletes"
# Names that no Hive Metastore takes, and are meant as plain ones.
NAMES = {
    '"TEST NS"': '"TEST_NS"',
    "my_iceberg_database-": "my_iceberg_database_",
    "my_iceberg_table-": "my_iceberg_table_",
    "my_iceberg_view-": "my_iceberg_view_",
    "rename-": "rename_",
}
FAIL = {
    "test_namespace_with_dot": "a Hive Metastore has one level of namespaces",
    "test_table_name_with_dot": "a Hive Metastore takes no dot in a name",
    "test_rest_custom_namespace_separator": "wants the separator that the reference server sets",
    "test_update_namespace_properties": "Hive 4 does not take a comment away",
}


@pytest.mark.interop
@pytest.mark.slow
def test_pyiceberg_s_rest_tests_pass_but_for_those_that_are_listed(metastore: Any, tmp_path: Path) -> None:
    checkout, python = os.environ.get("PYICEBERG_TESTS"), os.environ.get("PYICEBERG_PYTHON")
    if not checkout or not python:
        pytest.skip("PYICEBERG_TESTS and PYICEBERG_PYTHON name no checkout of PyIceberg, or no Python for it")
    shutil.copytree(Path(checkout) / "tests", tmp_path / "tests")
    shutil.copy(Path(checkout) / "pyproject.toml", tmp_path)
    with load_catalog("behind", uri=metastore.uri) as hive, served(hive) as server:
        for file in (tmp_path / "tests").rglob("*.py"):
            text = file.read_text(encoding="utf-8").replace("http://localhost:8181", server.url)
            for name, plain in NAMES.items():
                text = text.replace(name, plain)
            file.write_text(text, encoding="utf-8")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-k", NOT_OURS]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        done = subprocess.run(
            [*command, "--junit-xml=out.xml", *(f"tests/integration/{each}.py" for each in FILES)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
    report = tmp_path / "out.xml"
    assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    cases = ElementTree.parse(report).getroot().iter("testcase")
    failed = {
        re.sub(r"\[.*", "", case.get("name", "")): each.get("message", "")
        for case in cases
        for each in case
        if each.tag in ("failure", "error")
    }
    assert failed.keys() == FAIL.keys(), {key: failed[key] for key in failed.keys() - FAIL.keys()}
