"""Where the tables of these tests are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(hadoop: dict[str, str], new_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    """On HDFS, if the run's warehouses are there."""
    return new_folder("table") if hadoop else tmp_path
