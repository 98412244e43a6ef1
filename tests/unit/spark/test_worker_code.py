"""What Spark's Python workers are given says what they lack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_iceberg.spark.reading.worker_code import for_workers

UNPACK = """
import pickle, sys
for name in {lacking}:
    sys.modules[name] = None
function, _ = pickle.load(open(sys.argv[1], "rb"))
print(list(function([1, 2])))
"""


def unpacked(tmp_path: Path, *lacking: str) -> subprocess.CompletedProcess[str]:
    def read(batches: Iterator[Any]) -> Iterator[Any]:
        return (each + 1 for each in batches)

    (tmp_path / "command").write_bytes(for_workers(read, "files"))
    command = [sys.executable, "-c", UNPACK.format(lacking=lacking), str(tmp_path / "command")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_worker_that_lacks_nothing_gets_the_function(tmp_path: Path) -> None:
    assert unpacked(tmp_path).stdout == "[2, 3]\n"


@pytest.mark.parametrize("lacking", ["pyarrow", "hms_iceberg"])
def test_a_worker_without_what_it_needs_is_told_apart_before_it_reads(tmp_path: Path, lacking: str) -> None:
    ran = unpacked(tmp_path, lacking)
    assert ran.returncode == 1
    assert "ImportError: MissingDependencyError: Python workers of Spark read files, and this one" in ran.stderr
    assert lacking in ran.stderr and "set spark.pyspark.python to a Python that has it" in ran.stderr
