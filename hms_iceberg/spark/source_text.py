"""The bridge's sources as one version of Spark wants them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

from hms_iceberg.spark.spark_versions import release

# Spark 3.5 is made with Scala 2.12: what has another name there, or none, for which the room `until_3_5` has a class.
_BEFORE_4 = (
    ("org.apache.spark.sql.classic.DataStreamReader", "org.apache.spark.sql.streaming.DataStreamReader"),
    ("org.apache.spark.sql.classic.", "org.apache.spark.sql."),
    ("org.apache.spark.sql.connector.catalog.procedures.", "hms_iceberg.bridge."),
    ("org.apache.spark.sql.connector.catalog.ProcedureCatalog", "hms_iceberg.bridge.ProcedureCatalog"),
    ("org.apache.spark.sql.types.VariantType", "hms_iceberg.bridge.VariantType"),
    ("java.lang.ref.Cleaner", "hms_iceberg.bridge.Cleaner"),
    ("org.apache.parquet.conf.ParquetConfiguration", "hms_iceberg.bridge.ParquetConfiguration"),
    ("org.apache.parquet.io.LocalOutputFile", "hms_iceberg.bridge.LocalOutputFile"),
    ("import scala.jdk.javaapi.CollectionConverters;", ""),
    ("scala.collection.immutable.Seq;", "scala.collection.Seq;"),
    ("scala.collection.immutable.IndexedSeq", "scala.collection.IndexedSeq"),
    ("scala.collection.IterableOnce", "scala.collection.GenTraversableOnce"),
)


@cache
def bridge_sources(spark_version: str) -> Mapping[str, str]:
    """The text of each file of the bridge, read once: the classes of a JVM stay what they are if the package changes.

    The files of most rooms are for all versions. Those of a room such as ``since_4_1`` take the place of others from
    that version on, those of ``until_3_5`` up to that one.

    Args:
        spark_version: that of Spark.
    """
    version = release(spark_version)
    rooms = [room for room in resources.files("hms_iceberg.spark").joinpath("bridge").iterdir() if room.is_dir()]
    found: dict[str, str] = {}
    for room in sorted((room for room in rooms if _is_for(room.name, version)), key=lambda room: _place(room.name)):
        found |= {file.name: file.read_text("utf-8") for file in room.iterdir() if file.name.endswith(".java")}
    moved = _BEFORE_4 if version < (4, 0) else ()
    return MappingProxyType({name: _moved(text, moved) for name, text in sorted(found.items())})


def _is_for(room: str, version: tuple[int, int]) -> bool:
    kind, bound = _bound(room)
    return bound is None or (version >= bound if kind == "since" else version <= bound)


def _place(room: str) -> tuple[int, ...]:
    """The sort key of a source folder: folders for all versions first, then by version."""
    return _bound(room)[1] or ()


def _bound(room: str) -> tuple[str, tuple[int, int] | None]:
    kind, *numbers = room.split("_")
    return kind, ((int(numbers[0]), int(numbers[1])) if kind in ("since", "until") else None)


def _moved(text: str, moved: tuple[tuple[str, str], ...]) -> str:
    for old, new in moved:
        text = text.replace(old, new)
    return text
