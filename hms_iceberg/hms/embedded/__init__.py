"""A real Hive Metastore for tests, demos and laptops, out of PySpark's jars."""

from __future__ import annotations

from hms_iceberg.hms.embedded.server import EmbeddedMetastore

__all__ = ["EmbeddedMetastore"]
