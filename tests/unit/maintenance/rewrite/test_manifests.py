"""Manifests of a spec are put together where that is worth it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.maintenance import ManifestRewriteResult, check_table, rewrite_manifests
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of
from tests.support.operations import BY_CITY, MERGE_ON_READ, SCHEMA, rows
from tests.support.row_tables import create


def test_the_manifests_of_one_spec_are_put_together_and_no_others(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, spec=BY_CITY, **MERGE_ON_READ)
    for number, city in enumerate(("Ulm", "Bonn", None)):
        table.append(rows(number, 10 + number, city=city))
    for number in (0, 1):
        table.delete(f"id = {number}")
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[2]")
    table.append(rows(20))
    before = sorted(map(repr, table.scan().to_arrow().to_pylist()))
    assert rewrite_manifests(table) == ManifestRewriteResult()  # of the current spec there is one
    assert table.maintenance.rewrite_manifests(spec_id=0, sort_by=["city"]) == ManifestRewriteResult(5, 2)
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    assert sorted((each.partition_spec_id, each.content) for each in manifests) == [(0, 0), (0, 1), (1, 0)]
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == before
    assert check_table(table).findings == ()
    assert rewrite_manifests(table, spec_id=0) == ManifestRewriteResult()


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, 2, schema=SCHEMA, spec=BY_CITY)
    assert rewrite_manifests(table) == ManifestRewriteResult()
    for arguments, message in [
        ({"spec_id": 7}, r"Invalid spec id 7: table db\.events has 0"),
        ({"sort_by": ["id"]}, "Cannot sort manifests by id: the partition fields of spec 0 of table .* are city"),
        ({"sort_by": []}, "must not be empty"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            rewrite_manifests(table, **arguments)
