"""The packages of the bridge's Java sources, as import-linter checks those of Python."""

from __future__ import annotations

import re
from pathlib import Path

import hms_iceberg.spark
from hms_iceberg.spark.compiler import bridge_sources

BRIDGE = Path(hms_iceberg.spark.__file__).parent / "bridge"
# Each package knows those of the lines before it only.
LAYERS = (
    ("until_3_5",),  # what Spark 3.5 has none of
    ("wire",),
    ("metastore", "variants", "ddl"),
    ("functions",),
    ("partitions",),
    ("columns",),
    ("conditions",),
    ("table",),
    ("files",),
    ("output",),
    ("parquet",),
    ("avro", "orc"),
    ("batches",),
    ("deletes",),
    ("read",),
    ("scan",),
    ("stream",),
    ("write",),
    ("rowlevel",),
    ("tables",),
    ("plan",),
    ("procedures",),
    ("catalog",),
    ("source",),
    ("sql",),
    ("views",),
    ("session",),
)
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}
PACKAGE = re.compile(r"^package hms_iceberg\.bridge\.(\w+);", re.MULTILINE)
IMPORTS = re.compile(r"^import hms_iceberg\.bridge\.(\w+)\.(\w+);", re.MULTILINE)
OF_VERSIONS = re.compile(r"(since|until)_\d_\d")
# The names by which Spark looks for a format: each has a package of its own.
OF_FORMATS = {"DefaultSource", "SourceCapitalized", "SourceInCapitals", "SourceOfJava"}


def test_a_package_of_the_bridge_knows_no_package_above_it() -> None:
    upward = []
    for file in sorted(BRIDGE.rglob("*.java")):
        if file.stem in OF_FORMATS:
            continue
        text = file.read_text("utf-8")
        (package,) = PACKAGE.findall(text)
        assert package == file.parent.name or OF_VERSIONS.fullmatch(file.parent.name)
        upward += [
            f"{package}.{file.stem} knows {other}.{name}"
            for other, name in IMPORTS.findall(text)
            if LAYER[other] >= LAYER[package]
        ]
    assert not upward


def test_what_spark_versions_have_otherwise_is_in_one_room() -> None:
    rooms = {room.name for room in BRIDGE.iterdir() if room.is_dir()}
    assert rooms ^ set(LAYER) == {"versions", "until_3_5"}
    assert all(OF_VERSIONS.fullmatch(room.name) for room in (BRIDGE / "versions").iterdir())
    rooms_of = {"3.5.9": ["until_3_5"], "4.0.1": [], "4.1.4": ["since_4_1"], "4.3.0": ["since_4_1", "since_4_2"]}
    for version, wanted in rooms_of.items():
        assert ("BoundProcedure.java" in bridge_sources(version)) == ("until_3_5" in wanted)
        for room in ("since_4_1", "since_4_2"):
            texts = {file.read_text("utf-8") for file in (BRIDGE / "versions" / room).iterdir()}
            assert texts.isdisjoint(bridge_sources(version).values()) == (room not in wanted)
