from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from hms_iceberg.scan.manifests import cache

LOAD = """
import sys, threading
from hms_iceberg.table import FileSystemTables, StaticTable
assert "polars" not in sys.modules
try:
    {call}
except Exception as error:
    print(type(error).__name__, "polars" in sys.modules, threading.active_count())
"""


@pytest.mark.parametrize(
    "call", ["StaticTable.from_metadata('/no/v1.metadata.json')", "FileSystemTables().load('/no')"]
)
def test_what_planning_needs_is_imported_while_a_table_is_loaded(call: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOAD.format(call=call)], capture_output=True, text=True, check=True)
    error, *rest = done.stdout.split()
    assert error in ("MissingFileError", "NoSuchTableError")
    assert rest == ["True", "1"]


def test_an_import_that_fails_is_left_to_whoever_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_LIBRARY", "no_such_library")
    with cache.planning_ready():
        pass
    assert threading.active_count() >= 1
    assert "no_such_library" not in sys.modules
