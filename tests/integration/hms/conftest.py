"""Servers that several tests of this folder need beside that of the test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_iceberg.hms.embedded import EmbeddedMetastore

COLUMN_SETTING = "hive.metastore.disallow.incompatible.col.type.changes"


@pytest.fixture(scope="module")
def strict_metastore() -> Iterator[EmbeddedMetastore]:
    """One that refuses columns of other types in the old ones' places, as a metastore does unless it is told."""
    with EmbeddedMetastore(properties={COLUMN_SETTING: "true"}) as server:
        yield server
