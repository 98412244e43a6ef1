"""The folders of the bridge's Java sources, as import-linter checks those of the Python package."""

from __future__ import annotations

import re
from pathlib import Path

import hms_iceberg.spark

BRIDGE = Path(hms_iceberg.spark.__file__).parent / "bridge"
# Each folder knows those of the lines before it. Folders of one line may know each other.
LAYERS = (
    ("wire",),
    ("metastore", "variants", "ddl"),
    ("functions",),
    ("partitions",),
    (
        "avro",
        "conditions",
        "deletes",
        "files",
        "orc",
        "parquet",
        "plan",
        "read",
        "rowlevel",
        "scan",
        "stream",
        "table",
        "write",
    ),
    ("procedures",),
    ("catalog",),
    ("source",),
    ("sql",),
    ("views",),
    ("session",),
)
OF_VERSIONS = re.compile(r"(since|until)_\d_\d")
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\n])*"|//[^\n]*', re.DOTALL)


def test_a_folder_of_the_bridge_knows_no_folder_above_it() -> None:
    layer = {folder: number for number, folders in enumerate(LAYERS) for folder in folders}
    files = {file.stem: file for file in sorted(BRIDGE.rglob("*.java")) if not OF_VERSIONS.fullmatch(file.parent.name)}
    assert {file.parent.name for file in files.values()} == set(layer)
    upward = []
    for name, file in files.items():
        code = NOT_CODE.sub("", file.read_text("utf-8"))
        foreign = set(re.findall(r"^import [\w.]+\.(\w+);", code, re.MULTILINE))
        for used in set(re.findall(r"(?<![\w.])[A-Z]\w+", code)) & files.keys() - foreign - {name}:
            if layer[files[used].parent.name] > layer[file.parent.name]:
                upward.append(f"{file.parent.name}/{name} knows {files[used].parent.name}/{used}")
    assert not upward
