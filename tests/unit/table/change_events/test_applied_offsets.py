from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hms_iceberg.errors import CommitStateUnknownError, CorruptMetadataError, InvalidInputError
from hms_iceberg.metastore import Identifier
from hms_iceberg.table.change_events.apply_changes import AppliedChanges
from hms_iceberg.table.table import Table
from tests.support.memory_metastore import InMemoryMetastore, Swap
from tests.support.row_tables import arrow, check, create, data_files_on_disk, ids, numbered, other_writer, row, rows_of

KEY = "hms_iceberg.offsets.cdc"


def apply(table: Table, key: int, offset: int, part: str = "t-0", **options: Any) -> AppliedChanges:
    """One upsert of a key, up to an offset."""
    options = {"name": "cdc", "offsets": {part: offset}, **options}
    return table.apply_changes(arrow([row(key, amount=offset)]), keys=["id"], **options)


def keep_only_the_newest(table: Table) -> None:
    """Expires all snapshots that no branch ends with."""
    with table.expire_snapshots() as expiry:
        for snapshot in table.snapshots():
            if snapshot.snapshot_id not in {ref.snapshot_id for ref in table.metadata.refs.values()}:
                expiry.by_id(snapshot.snapshot_id)


@pytest.fixture(params=[1, 2, 3])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return create(tmp_path, request.param)


def test_a_call_whose_offsets_are_applied_does_nothing(table: Table) -> None:
    assert table.applied_offsets("cdc") == {}
    assert apply(table, 1, 10).offsets == {"t-0": 10}
    for offset in (10, 7):
        assert apply(table, 2, offset) == AppliedChanges(1, is_repeated=True, offsets={"t-0": 10})
    assert apply(table, 3, 5, "t-1").offsets == {"t-0": 10, "t-1": 5}
    assert (ids(table), table.applied_offsets("cdc")) == ([1, 3], {"t-0": 10, "t-1": 5})
    assert table.applied_offsets("other") == {}


def test_readers_of_several_names_do_not_meet(table: Table) -> None:
    apply(table, 1, 10)
    apply(table, 2, 3, name="other")
    assert (table.applied_offsets("cdc"), table.applied_offsets("other")) == ({"t-0": 10}, {"t-0": 3})


def test_the_summary_has_the_offsets_of_all_parts(table: Table) -> None:
    apply(table, 1, 10)
    apply(table, 2, 4, "a-1")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary[KEY] == '{"a-1":4,"t-0":10}'


def test_a_batch_without_events_and_one_without_effect_move_the_offsets(table: Table) -> None:
    table.append(numbered(5, 7))
    nothing = numbered(0, 0)
    assert table.apply_changes(nothing, keys=["id"], name="cdc", offsets={"t-0": 3}).offsets == {"t-0": 3}
    gone = pa.table({"id": [99], "op": ["d"]})
    table.apply_changes(gone, keys=["id"], operation="op", name="cdc", offsets={"t-0": 4})
    assert (ids(table), table.applied_offsets("cdc")) == ([5, 6], {"t-0": 4})
    check(table)


def test_other_commits_between_do_not_hide_the_offsets(table: Table) -> None:
    apply(table, 1, 10)
    table.append(numbered(20, 22))
    table.delete("id = 20")
    assert other_writer(table).applied_offsets("cdc") == {"t-0": 10}


def test_after_a_rollback_older_offsets_are_found_and_events_are_applied_again(table: Table) -> None:
    apply(table, 1, 10)
    first = table.current_snapshot()
    apply(table, 2, 20)
    assert first is not None
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert table.applied_offsets("cdc") == {"t-0": 10}
    apply(table, 2, 20)
    assert (ids(table), table.applied_offsets("cdc")) == ([1, 2], {"t-0": 20})


def test_the_offsets_outlive_their_snapshot(table: Table) -> None:
    apply(table, 1, 10)
    table.append(numbered(20, 22))
    keep_only_the_newest(table)
    assert len(table.snapshots()) == 1
    assert other_writer(table).applied_offsets("cdc") == {"t-0": 10}
    assert apply(table, 2, 10).is_repeated
    apply(table, 3, 11)
    assert table.applied_offsets("cdc") == {"t-0": 11}


def test_offsets_of_a_snapshot_that_was_rolled_back_are_not_taken_for_applied(table: Table) -> None:
    apply(table, 1, 10)
    table.append(numbered(20, 22))
    middle = table.current_snapshot()
    apply(table, 2, 20)
    assert middle is not None
    table.manage_snapshots().rollback_to_snapshot(middle.snapshot_id).commit()
    keep_only_the_newest(table)
    with pytest.raises(InvalidInputError, match=r"Cannot tell which offsets of 'cdc'.*\{'t-0': 20\}"):
        table.applied_offsets("cdc")
    with pytest.raises(InvalidInputError, match="Cannot tell"):
        apply(table, 2, 20)
    assert apply(table, 2, 20, name="cdc 2").offsets == {"t-0": 20}


def test_a_snapshot_that_a_tag_keeps_is_no_ancestor_of_what_came_after_its_rollback(table: Table) -> None:
    apply(table, 1, 10)
    first = table.current_snapshot()
    apply(table, 2, 20)
    second = table.current_snapshot()
    assert first is not None
    assert second is not None
    table.manage_snapshots().create_tag(second.snapshot_id, "kept").commit()
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    table.append(numbered(20, 22))
    keep_only_the_newest(table)
    with pytest.raises(InvalidInputError, match="Cannot tell"):
        table.applied_offsets("cdc")


def test_a_table_of_which_all_is_rolled_back_has_no_offsets(table: Table) -> None:
    table.append(numbered(0, 1))
    first = table.current_snapshot()
    apply(table, 1, 10)
    assert first is not None
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert table.applied_offsets("cdc") == {}


def test_a_property_that_was_taken_over_from_another_table_says_nothing(table: Table, tmp_path: Path) -> None:
    other = create(tmp_path / "other")
    apply(other, 1, 10)
    table.append(numbered(0, 1))
    table.append(numbered(20, 22))
    table.set_properties({KEY: other.properties[KEY]})
    keep_only_the_newest(table)
    assert table.applied_offsets("cdc") == {}


def test_branches_have_offsets_of_their_own(table: Table) -> None:
    apply(table, 1, 10)
    apply(table, 2, 20, branch="audit")
    apply(table, 3, 15)
    assert table.applied_offsets("cdc") == {"t-0": 15}
    assert table.applied_offsets("cdc", "audit") == {"t-0": 20}
    assert table.applied_offsets("cdc", "new") == {"t-0": 15}
    table.append(numbered(30, 31))
    table.append(numbered(31, 32), branch="audit")
    keep_only_the_newest(table)
    assert table.applied_offsets("cdc") == {"t-0": 15}
    assert table.applied_offsets("cdc", "audit") == {"t-0": 20}


def test_a_branch_that_was_made_of_an_older_snapshot_does_not_take_the_offsets_of_main(table: Table) -> None:
    apply(table, 1, 10)
    table.append(numbered(20, 22))
    current = table.current_snapshot()
    assert current is not None
    table.manage_snapshots().create_branch(current.snapshot_id, "audit").commit()
    apply(table, 2, 20)
    keep_only_the_newest(table)
    with pytest.raises(InvalidInputError, match="branch 'audit'"):
        table.applied_offsets("cdc", "audit")


def test_offsets_that_go_back_in_one_part_and_on_in_another_are_refused(table: Table) -> None:
    apply(table, 1, 10)
    with pytest.raises(InvalidInputError, match="offset of 't-0' is 9, and events up to 10 are applied"):
        apply(table, 2, 0, offsets={"t-0": 9, "t-1": 1})
    assert ids(table) == [1]


def test_events_that_begin_elsewhere_than_the_applied_ones_end_are_refused(table: Table) -> None:
    apply(table, 1, 10, since={"t-0": 4})
    for start in (8, 12):
        with pytest.raises(InvalidInputError, match=f"'t-0' begin at {start}, and those up to 10 are applied"):
            apply(table, 2, 20, since={"t-0": start})
    assert apply(table, 2, 20, since={"t-0": 10}).offsets == {"t-0": 20}
    assert apply(table, 2, 20, since={"t-0": 10}).is_repeated


def test_a_reader_that_does_not_know_of_a_rollback_is_refused(table: Table) -> None:
    apply(table, 1, 10)
    first = table.current_snapshot()
    apply(table, 2, 20)
    reader = other_writer(table)
    assert first is not None
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    with pytest.raises(InvalidInputError, match=r"offsets were \{'t-0': 20\} a moment ago, and are \{'t-0': 10\}"):
        apply(reader, 3, 30)
    assert ids(other_writer(table)) == [1]


def test_two_readers_of_one_name_apply_an_event_once(table: Table) -> None:
    apply(table, 1, 10)
    one, two = other_writer(table), other_writer(table)
    apply(one, 2, 20)
    files = data_files_on_disk(table)
    apply(two, 2, 20)
    assert data_files_on_disk(table) == files, "those that were written in vain are gone"
    three = other_writer(table)
    apply(one, 3, 30)
    with pytest.raises(InvalidInputError, match="a moment ago"):
        apply(three, 4, 40)
    assert (ids(other_writer(table)), other_writer(table).applied_offsets("cdc")) == ([1, 2, 3], {"t-0": 30})


def test_a_retry_after_an_unknown_outcome_does_not_apply_twice(table: Table) -> None:
    """The lost commit is made while the retry is under way, which has not seen it."""
    apply(table, 1, 10)
    late, retry = other_writer(table), other_writer(table)
    transaction = retry.transaction()
    same = {"keys": ["id"], "name": "cdc", "offsets": {"t-0": 20}}
    transaction.apply_changes(arrow([row(2)]), **same)
    apply(late, 2, 20)
    before = other_writer(table).metadata_location
    transaction.commit_transaction()
    now = other_writer(table)
    assert now.metadata_location == before
    assert ids(now) == [1, 2]


def test_a_lost_answer_is_found_out(table: Table) -> None:
    apply(table, 1, 10)
    metastore = table.metastore
    assert isinstance(metastore, InMemoryMetastore)

    def made_and_gone(metastore: InMemoryMetastore, identifier: Identifier, swap: Swap) -> None:
        swap()
        metastore.down = True
        raise CommitStateUnknownError("Nobody answers.")

    metastore.script.append(made_and_gone)
    with pytest.raises(CommitStateUnknownError):
        apply(table, 2, 20)
    metastore.down = False
    again = other_writer(table)
    assert apply(again, 2, 20).is_repeated
    assert rows_of(again) == [row(1, amount=10), row(2, amount=20)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "cdc"}, "belong together"),
        ({"offsets": {"t-0": 1}}, "belong together"),
        ({"since": {"t-0": 1}}, "belong together"),
        ({"name": "", "offsets": {"t-0": 1}}, "expected a text"),
        ({"name": "cdc", "offsets": {"t-0": -1}}, "next offset|offset of each part"),
        ({"name": "cdc", "offsets": {"t-0": True}}, "offset of each part"),
        ({"name": "cdc", "offsets": {0: 1}}, "offset of each part"),
        ({"name": "cdc", "offsets": [1]}, "offset of each part"),
        ({"name": "cdc", "offsets": {"t-0": 1}, "since": {"t-0": "1"}}, "since: expected"),
        ({"name": "cdc", "offsets": {}}, "offset of each part"),
    ],
)
def test_wrong_offsets_are_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    table = create(tmp_path)
    with pytest.raises(InvalidInputError, match=said):
        table.apply_changes(arrow([row(1)]), keys=["id"], **options)
    assert not table.snapshots()


@pytest.mark.parametrize("text", ["{", "[]", '{"main":1}', '{"main":{"offsets":{"t-0":"1"}}}'])
def test_offsets_that_somebody_has_changed_are_told(tmp_path: Path, text: str) -> None:
    table = create(tmp_path)
    apply(table, 1, 10)
    table.append(numbered(20, 22))
    keep_only_the_newest(table)
    table.set_properties({KEY: text})
    with pytest.raises(CorruptMetadataError, match=KEY):
        table.applied_offsets("cdc")
