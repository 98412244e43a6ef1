"""Damaged manifests and manifest lists: a typed error or the true rows, however a table is read.

Avro has no checksums. Bytes are changed in the files as they lie there, and in the inflated blocks, which are then
deflated again: as a damage that inflate does not notice.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hms_iceberg.errors import IcebergError
from hms_iceberg.scan.manifests.cache import cache_of
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from tests.support.damage import damaged, damaged_inside
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, begin
from tests.support.row_tables import create

# How many damages each of the tests below tries; set HMS_ICEBERG_FUZZ to try more.
MUTATIONS = int(os.environ.get("HMS_ICEBERG_FUZZ", "90"))


@pytest.fixture(params=[1, 2, 3])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    made = create(tmp_path, request.param, schema=SCHEMA, spec=BY_CITY, **(MERGE_ON_READ if request.param > 1 else {}))
    begin(made)
    made.delete("id in (2, 11)")
    made.delete("id = 3")
    return made


@pytest.mark.parametrize("damage", [damaged, damaged_inside])
def test_a_damaged_manifest_or_list_gives_a_typed_error_or_the_rows(
    table: Table, damage: Callable[[random.Random, bytes], bytes]
) -> None:
    """What nobody can notice: that a delete file now points at no data file, so that its rows are there again."""
    rng = random.Random(20_261_121)
    before = {row["id"]: row for row in table.scan(snapshot_id=table.snapshots()[1].snapshot_id).to_arrow().to_pylist()}
    truth = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert set(before) - set(truth) == {2, 3, 11}
    snapshot = table.current_snapshot()
    assert snapshot is not None
    paths = [snapshot.manifest_list, *(each.manifest_path for each in manifest_list_of(snapshot, table.storage))]
    outcomes: Counter[str] = Counter()
    for path in map(Path, filter(None, paths)):
        content = path.read_bytes()
        for _ in range(MUTATIONS // len(paths)):
            path.write_bytes(damage(rng, content))
            cache_of(None).clear()
            try:
                found = table.scan().to_arrow().to_pylist()
            except IcebergError:
                outcomes["refused"] += 1
                continue
            rows = {row["id"]: row for row in found}
            assert len(rows) == len(found)
            assert truth.items() <= rows.items() <= before.items()
            outcomes["same" if rows == truth else "undeleted"] += 1
        path.write_bytes(content)
    assert outcomes["refused"] > MUTATIONS // 3
    if table.format_version == 1:
        assert not outcomes["undeleted"]
    assert outcomes["undeleted"] < MUTATIONS // 5
