"""A process that migrates and dies when it is told to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hms_iceberg.hms.embedded import EmbeddedMetastore
from tests.support.crash_server import Crash, crashing


@pytest.fixture(scope="module")
def crash(metastore: EmbeddedMetastore) -> Iterator[Crash]:
    """Runs a command on a table in a process that dies after so many changes; returns its exit code."""
    with crashing(metastore.uri) as run:
        yield run
