"""What maintenance commits while a writer is at work makes no writer fail that would have passed without it.

But for what the format leaves no way to: a position delete names a file and a row in it, so that whoever deletes single
rows of a file that was replaced meanwhile has to look for them again; and a data file has one deletion vector.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hms_iceberg.errors import CommitConflictError
from hms_iceberg.maintenance import check_table, expire_snapshots, remove_dangling_deletes, rewrite_data_files
from hms_iceberg.maintenance import convert_equality_deletes as convert
from hms_iceberg.maintenance import rewrite_position_delete_files as rewrite_deletes
from hms_iceberg.table import Table
from tests.support.interruptions import CHANGES, Disrepair, InterruptingStorage
from tests.support.operations import rows

SOME = {"min-input-files": 2}


def delete_partition(case: Disrepair, table: Table) -> None:
    table.delete("city = 'Ulm'")
    case.sql.append("delete from t where city = 'Ulm'")


def delete_rows_of_a_young_file(case: Disrepair, table: Table) -> None:
    """The file is alone in its partition, which no compaction looks at."""
    table.delete("id = 600")
    case.sql.append("delete from t where id = 600")


def set_a_property(case: Disrepair, table: Table) -> None:
    table.set_properties({"owner": "somebody"})


WRITERS = {
    **CHANGES,
    "delete a partition": delete_partition,
    "delete rows of a file that is left alone": delete_rows_of_a_young_file,
    "set a property": set_a_property,
}
MAINTENANCE: dict[str, Callable[[Table], object]] = {
    "compact": lambda table: rewrite_data_files(table, options=SOME),
    "convert": convert,
    "rewrite deletes": lambda table: rewrite_deletes(table, options=SOME),
    "dangling": remove_dangling_deletes,
    "manifests": lambda table: table.rewrite_manifests().commit(),
    "expire": lambda table: expire_snapshots(table, older_than=2**62),
}
CHANGE_ROWS = ("delete rows", "merge")
GIVES_WAY = {
    2: {("compact", writer) for writer in CHANGE_ROWS},
    3: {(maintenance, writer) for maintenance in ("compact", "convert") for writer in CHANGE_ROWS},
}


@pytest.fixture(scope="module", params=[2, 3])
def case(request: pytest.FixtureRequest, new_folder: Callable[[str], Path]) -> tuple[int, Disrepair]:
    return request.param, Disrepair(new_folder("t"), request.param)


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_a_writer_s_commit_passes_beside_maintenance(case: tuple[int, Disrepair], maintenance: str) -> None:
    version, table = case
    for writer, write in WRITERS.items():
        table.restore()
        table.opened().append(rows(600, 601, city="Bern"))
        table.sql += [f"insert into t (id, city, amount) values ({each}, 'Bern', {each * 2})" for each in (600, 601)]
        # The writer has read what it wanted, and begins to write.
        storage = InterruptingStorage(0, lambda table=table: MAINTENANCE[maintenance](table.opened()))
        try:
            write(table, table.opened(storage))
        except CommitConflictError:
            assert (maintenance, writer) in GIVES_WAY[version]
        else:
            assert table.found() == table.expected(), (writer, version)
        assert storage.steps > 0
        assert check_table(table.opened()).findings == ()
