"""Plans of tables of very many unlike files, written by Apache Iceberg (Java), beside what fastavro reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hms_iceberg.scan.manifests.entry_frames import METRIC_COLUMNS
from hms_iceberg.scan.manifests.manifest_frames import ManifestDecoder
from hms_iceberg.scan.manifests.manifest_source import manifests_of
from hms_iceberg.scan.partition_columns import partition_columns
from hms_iceberg.table import StaticTable

pytestmark = pytest.mark.interop
FILES = 3_000
COLUMNS = (1, 8, 9, 14, 15, 17, 18, 20, 21)


@pytest.fixture(scope="module")
def tables(java_runtime: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> list[StaticTable]:
    """A table of each format version; files lack metrics of some columns, and the partition spec was changed."""
    jar, home = java_runtime
    script = Path(__file__).parents[1] / "benchmarks" / "java_tables.py"
    folder = tmp_path_factory.mktemp("planning")
    options = ["--files", str(FILES), "--commits", "4", "--evolve", "--format-versions", "1", "2", "3"]
    done = subprocess.run(
        [sys.executable, str(script), str(jar), str(folder), *options],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(home), "SPARK_HOME": str(home / "pyspark")},
    )
    return [StaticTable.from_metadata(location) for location in done.stdout.split()]


def read(path: str) -> list[dict[str, Any]]:
    with open(path.removeprefix("file:"), "rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]


def of_map(entry: dict[str, Any], metric: str, column: int) -> Any:
    return {pair["key"]: pair["value"] for pair in entry["data_file"][metric] or ()}.get(column)


def test_metrics_of_unlike_files_are_what_fastavro_reads(tables: list[StaticTable]) -> None:
    wanted = [(name, column) for name in METRIC_COLUMNS for column in COLUMNS]
    missing = 0
    for table in tables:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        manifests = manifests_of(snapshot, table.storage)
        assert len({each.partition_spec_id for each in manifests}) == 2
        for manifest in manifests:
            decoder = ManifestDecoder(
                [(table.storage.read(manifest.manifest_path), manifest)], partition_columns(table.metadata)
            )
            found, entries = decoder.files(wanted), read(manifest.manifest_path)
            for name in ("file_path", "record_count", "file_size_in_bytes", "split_offsets"):
                assert found[name].to_list() == [entry["data_file"][name] for entry in entries]
            for name, column in wanted:
                expected = [of_map(entry, name, column) for entry in entries]
                assert found[f"{name}.{column}"].to_list() == expected, (name, column)
                missing += None in expected
    assert missing > 100
