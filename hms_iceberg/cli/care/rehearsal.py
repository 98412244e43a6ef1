"""Tries a higher format version on a shadow of a table, to find the readers that would break.

A shadow is a copy of the metadata file, in a folder of its own on this machine, that names the table's own files. The
table is not touched. Each engine reads three versions: the table of today, the upgraded one, and the upgraded one after
a row was deleted as that version deletes rows. Nothing here writes version 4, so there the last one is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.arrow.storage.arrow_storage import PREVIEW_PROPERTY
from hms_iceberg.spec.metadata.metadata_json import is_relative, metadata_to_json
from hms_iceberg.spec.metadata.table_metadata import PREVIEWED_FORMAT_VERSION, SUPPORTED_FORMAT_VERSIONS
from hms_iceberg.spec.table_properties import DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH

if TYPE_CHECKING:
    from hms_iceberg.spec.metadata.table_metadata import TableMetadata
    from hms_iceberg.table.table import Table

TODAY = "today"
UPGRADED = "upgraded"
AFTER_DELETE = "after a delete"

# What each engine needs to be here.
_MODULES = {"python": "pyarrow", "spark": "pyspark", "pyiceberg": "pyiceberg", "duckdb": "duckdb", "java": "pyspark"}
ENGINE_NAMES = {
    "python": "hms_iceberg in Python",
    "spark": "hms_iceberg in Spark",
    "pyiceberg": "PyIceberg",
    "duckdb": "DuckDB",
    "java": "Apache Iceberg in Spark",
}
# Settings that would make the shadow write elsewhere than into its own folder.
_PATHS = {each.name for each in (DATA_PATH, METADATA_PATH, FOLDER_STORAGE_PATH, OBJECT_STORAGE_PATH)}


@dataclass(frozen=True)
class Reading:
    """One engine's result for the versions.

    Attributes:
        engine: its key in `ENGINE_NAMES`.
        missing: why it was not tried; None if it was.
        today: why it does not read the table as it is, or how its rows differ from ours; None if all is well.
        breaks: errors after the upgrade, by version; empty if there are none.
        rows: how many rows it read of each version.
    """

    engine: str
    missing: str | None = None
    today: str | None = None
    breaks: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)


def rehearse(
    table: Table,
    properties: Mapping[str, str],
    to: int,
    jar: str | None,
    seconds: float,
    on_engine: Callable[[str], None],
) -> list[Reading]:
    """Reads a shadow of a table by every engine that is installed; each is given up after some seconds.

    `jar` is Apache Iceberg's runtime for the installed Spark; without it, that engine is not tried. `on_engine` is
    called with the name of each engine before it reads.
    """
    if to == PREVIEWED_FORMAT_VERSION:
        properties = {**properties, PREVIEW_PROPERTY: "true"}
    with tempfile.TemporaryDirectory(prefix="hms-iceberg-rehearsal-") as folder:
        question = {"properties": dict(properties), "jar": jar}
        question["versions"] = dict(_shadows(table, properties, to, Path(folder)))
        readings: list[Reading] = []
        ours: Mapping[str, Any] | None = None
        for engine in ENGINE_NAMES:
            answer: Mapping[str, Any] | Reading
            missing = _missing(engine, jar)
            if missing is None:
                on_engine(ENGINE_NAMES[engine])
                answer = _answer({**question, "engine": engine}, seconds)
            else:
                answer = Reading(engine, missing)
            if not isinstance(answer, Reading):
                ours = ours or answer
                answer = _judged(engine, answer, ours)
            readings.append(answer)
        return readings


def _missing(engine: str, jar: str | None) -> str | None:
    if engine == "java" and jar is None:
        return "give its runtime with --jar"
    return None if find_spec(_MODULES[engine]) else f"the package {_MODULES[engine]} is not installed"


def _shadows(table: Table, properties: Mapping[str, str], to: int, folder: Path) -> Iterator[tuple[str, str]]:
    """The metadata files of the versions, by name."""
    from hms_iceberg.table.file_system import FileSystemTables

    tables = FileSystemTables(properties)
    yield TODAY, _shadow(table.metadata, folder / "today")
    upgraded = folder / "upgraded"
    _shadow(table.metadata, upgraded)
    written = min(to, max(SUPPORTED_FORMAT_VERSIONS))
    shadow = tables.load(str(upgraded)).upgrade_table_version(written)
    if to != written:
        yield UPGRADED, _as_draft(shadow.metadata, folder / "draft", to)
        return
    yield UPGRADED, shadow.metadata_location
    first = next(iter(table.scan().plan_files()), None)
    if first is not None:
        deleted = folder / "deleted"
        _shadow(shadow.metadata, deleted)
        with tables.load(str(deleted)).new_row_delta() as delta:
            delta.delete_positions({first.file.file_path: [0]})
        yield AFTER_DELETE, tables.load(str(deleted)).metadata_location


def _shadow(metadata: TableMetadata, folder: Path) -> str:
    kept = {key: value for key, value in metadata.properties.items() if key not in _PATHS}
    return _write(metadata_to_json(replace(metadata, location=folder.as_uri(), properties=kept)), folder)


def _as_draft(metadata: TableMetadata, folder: Path, version: int) -> str:
    """A shadow of a version that is never written: manifests may stay as they are, locations need their scheme."""
    data = json.loads(metadata_to_json(replace(metadata, location=folder.as_uri()))) | {"format-version": version}
    for snapshot in data["snapshots"]:
        listed = snapshot.get("manifest-list")
        if listed is not None and is_relative(listed):
            snapshot["manifest-list"] = f"file:{listed}"
    return _write(json.dumps(data | {"metadata-log": []}).encode("utf-8"), folder)


def _write(data: bytes, folder: Path) -> str:
    location = folder / "metadata" / "v1.metadata.json"
    location.parent.mkdir(parents=True)
    location.write_bytes(data)
    (location.parent / "version-hint.text").write_text("1")
    return location.as_uri()


def _answer(question: Mapping[str, Any], seconds: float) -> Mapping[str, Any] | Reading:
    """An engine's summary of each version, from a process of its own."""
    engine = question["engine"]
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "hms_iceberg.cli.care.rehearsal_readers"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Reading(engine, f"it was given up after {seconds:.0f} seconds; see --timeout")
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        said = [line for line in ended.stderr.strip().splitlines() if line.strip()]
        return Reading(engine, f"it did not start: {said[-1] if said else f'exit code {ended.returncode}'}")
    found: Mapping[str, Any] = json.loads(lines[-1])
    return Reading(engine, f"it did not start: {found['missing']}") if "missing" in found else found


def _judged(engine: str, summaries: Mapping[str, Any], ours: Mapping[str, Any]) -> Reading:
    rows = {version: found["rows"] for version, found in summaries.items() if "rows" in found}
    today = summaries[TODAY].get("error") or _difference(summaries[TODAY], ours[TODAY])
    if "error" in summaries[TODAY]:
        return Reading(engine, today=today, rows=rows)
    breaks = {}
    for version in summaries.keys() - {TODAY}:
        # What an engine reads otherwise today, it may read otherwise then.
        wanted = ours[version] if today is None or version != UPGRADED else summaries[TODAY]
        wrong = summaries[version].get("error") or (
            None if today and version != UPGRADED else _difference(summaries[version], wanted)
        )
        if wrong:
            breaks[version] = wrong
    return Reading(engine, today=today, breaks=breaks, rows=rows)


def _difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """The difference of rows from the expected ones, in words."""
    if "error" in expected:
        return None
    if found["rows"] != expected["rows"]:
        return f"{found['rows']:,} rows instead of {expected['rows']:,}"
    unlike = _unlike(found["columns"], expected["columns"])
    if unlike:
        return f"other values in {', '.join(unlike)}"
    return None if found["checksum"] == expected["checksum"] else "values stand in other rows"


def _unlike(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Sequence[str]:
    return [name for name, column in expected.items() if found.get(name) != column]
