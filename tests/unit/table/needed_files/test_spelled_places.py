"""Random tables beside, below and above others, all spelled in every way: nothing of others ever goes.

Every commit takes other ones. `HMS_ICEBERG_PLACES=7:5000` takes the seed 7 and 5,000 of each action, for an hour.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hms_iceberg.arrow.storage.arrow_storage import ArrowStorage
from tests.support import spread
from tests.support.spelled_places import ACTIONS, tried

SEED, WORLDS = map(int, os.environ.get("HMS_ICEBERG_PLACES", f"{spread.SEED % 10**9}:3").split(":"))


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_of_others_goes_however_places_are_spelled(action: str, tmp_path: Path) -> None:
    did = 0
    for seed in range(SEED, SEED + WORLDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        did += tried(os.path.realpath(folder), ArrowStorage(), seed, action)
        shutil.rmtree(folder)
    assert did > 0
