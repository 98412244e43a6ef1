"""Changes of a partition spec: the ids and names of its fields, and what others may change meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from hms_iceberg.errors import CommitConflictError, InvalidPartitionSpecError, UnknownColumnError
from hms_iceberg.spec.data_types import LongType
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform, TruncateTransform
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.partition_spec import (
    AddPartitionField,
    PartitionChange,
    PartitionSpecUpdate,
    RemovePartitionField,
    RenamePartitionField,
    default_name,
)
from hms_iceberg.updates.schema.schema_changes import AddColumn, DeleteColumn, RenameColumn, UpdateColumn
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
from tests.support.tables import BY_CITY, World, metadata

IDENTITY, FOUR, EIGHT = IdentityTransform(), BucketTransform(4), BucketTransform(8)


def by_city(version: int = 2) -> World:
    """A table partitioned by `city`, of field id 1000."""
    return World.with_table(metadata(spec=BY_CITY, format_version=version))


def changed(world: World, *changes: PartitionChange) -> list[tuple[str, int, str]]:
    """Names, ids and transforms of the spec's fields after changes."""
    spec = world.commit(PartitionSpecUpdate(changes)).spec()
    return [(field.name, field.field_id, str(field.transform)) for field in spec.fields]


CITY = ("city", 1000, "identity")


@pytest.mark.parametrize(
    ("steps", "version", "fields"),
    [
        ([[AddPartitionField("id", FOUR)]], 2, [CITY, ("id_bucket_4", 1001, "bucket[4]")]),
        ([[AddPartitionField("id", FOUR, "b")]], 2, [CITY, ("b", 1001, "bucket[4]")]),
        (
            [[AddPartitionField("id", FOUR), AddPartitionField("id", EIGHT)]],
            2,
            [CITY, ("id_bucket_4", 1001, "bucket[4]"), ("id_bucket_8", 1002, "bucket[8]")],
        ),
        ([[RenamePartitionField("city", "town")]], 2, [("town", 1000, "identity")]),
        ([[RenamePartitionField("city", "town"), RemovePartitionField("town")]], 2, []),
        ([[RemovePartitionField("city")]], 2, []),
        ([[RemovePartitionField(source="city", transform=IDENTITY)]], 2, []),
        ([[RemovePartitionField("city")]], 1, [("city", 1000, "void")]),
        ([[RemovePartitionField("city"), AddPartitionField("city", IDENTITY)]], 2, [CITY]),
        # A field that was there before gets its id again, and its name unless another one is asked for.
        ([[RemovePartitionField("city")], [AddPartitionField("city", IDENTITY)]], 2, [CITY]),
        (
            [[RemovePartitionField("city")], [AddPartitionField("city", IDENTITY, "town")]],
            2,
            [("town", 1000, "identity")],
        ),
        (
            [
                [RenamePartitionField("city", "town")],
                [RemovePartitionField("town")],
                [AddPartitionField("city", IDENTITY)],
            ],
            2,
            [("town", 1000, "identity")],
        ),
        (
            [
                [RenamePartitionField("city", "town")],
                [RemovePartitionField("town")],
                [AddPartitionField("city", IDENTITY, "city")],
            ],
            2,
            [CITY],
        ),
        (
            [[RemovePartitionField("city")], [AddPartitionField("city", FOUR)]],
            2,
            [("city_bucket_4", 1001, "bucket[4]")],
        ),
        # In version 1 fields stay, as void, and give their name away.
        (
            [[RemovePartitionField("city")], [AddPartitionField("city", IDENTITY)]],
            1,
            [("city_1000", 1000, "void"), ("city", 1001, "identity")],
        ),
        (
            [[AddPartitionField("id", FOUR), RemovePartitionField("id_bucket_4")]],
            1,
            [CITY],
        ),
        (
            [[RemovePartitionField("city")], [AddPartitionField("id", FOUR)]],
            1,
            [("city", 1000, "void"), ("id_bucket_4", 1001, "bucket[4]")],
        ),
    ],
)
def test_fields_have_the_names_and_ids_that_their_history_gives_them(
    steps: list[list[PartitionChange]], version: int, fields: list[tuple[str, int, str]]
) -> None:
    world = by_city(version)
    for changes in steps:
        found = changed(world, *changes)
    assert found == fields


def test_the_first_field_of_a_table_has_the_first_id_and_no_change_is_no_new_version() -> None:
    world = World.with_table()
    assert changed(world, AddPartitionField("city", TruncateTransform(3))) == [("city_trunc_3", 1000, "truncate[3]")]
    location = world.version().location
    assert changed(world, AddPartitionField("id", FOUR), RemovePartitionField("id_bucket_4"))
    assert world.version().location == location
    assert default_name("city", IDENTITY) == "city" and default_name("id", FOUR) == "id_bucket_4"


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (AddPartitionField("city", IDENTITY), InvalidPartitionSpecError, r"has the partition field .*city.* already"),
        (AddPartitionField("id", FOUR, "city"), InvalidPartitionSpecError, "city"),
        (AddPartitionField("nothing", FOUR), UnknownColumnError, "nothing"),
        (AddPartitionField("CITY", FOUR), UnknownColumnError, "CITY"),
        (RemovePartitionField("nothing"), InvalidPartitionSpecError, "remove partition field 'nothing'.*no such field"),
        (RemovePartitionField(source="city", transform=FOUR), InvalidPartitionSpecError, r"bucket\[4\]\(city\).*city"),
        (RemovePartitionField(source="id", transform=IDENTITY), InvalidPartitionSpecError, "no such field"),
        (RemovePartitionField(), UnknownColumnError, "Unknown column"),
        (RenamePartitionField("nothing", "x"), InvalidPartitionSpecError, "rename partition field 'nothing' to 'x'"),
    ],
)
def test_a_field_that_is_not_there_or_there_already_is_told(
    change: PartitionChange, kind: type[Exception], said: str
) -> None:
    world = by_city()
    with pytest.raises(kind, match=said):
        changed(world, change)
    with pytest.raises(InvalidPartitionSpecError, match="x"):
        changed(world, RenamePartitionField("city", "x"), AddPartitionField("id", FOUR, "x"))
    void = by_city(1)
    changed(void, RemovePartitionField("city"))
    for gone in (RemovePartitionField("city"), RenamePartitionField("city", "x")):
        with pytest.raises(InvalidPartitionSpecError, match="no such field"):
            changed(void, gone)


def test_columns_are_found_in_any_case_where_it_is_said(  # the field is named as the schema spells the column
) -> None:
    world = World.with_table()
    update = PartitionSpecUpdate((AddPartitionField("CITY", FOUR),), case_sensitive=False)
    assert [field.name for field in world.commit(update).spec().fields] == ["city_bucket_4"]
    update = PartitionSpecUpdate((RemovePartitionField(source="City", transform=FOUR),), case_sensitive=False)
    assert world.commit(update).spec().fields == ()


def specs(*changes: PartitionChange) -> Update:
    return PartitionSpecUpdate(changes)


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (specs(AddPartitionField("amount", FOUR)), SchemaUpdate((DeleteColumn(("amount",)),)), "dropped it"),
        (
            specs(AddPartitionField("amount", FOUR)),
            SchemaUpdate((UpdateColumn(("amount",), LongType()),)),
            "made it .*long",
        ),
        (
            specs(AddPartitionField("amount", FOUR)),
            specs(AddPartitionField("amount", FOUR, "x")),
            "added partition field",
        ),
        (
            specs(AddPartitionField("amount", FOUR)),
            specs(AddPartitionField("id", FOUR, "amount_bucket_4")),
            "added part",
        ),
        (
            specs(AddPartitionField("amount", FOUR, "x")),
            specs(AddPartitionField("id", FOUR, "x")),
            "added partition field",
        ),
        (specs(AddPartitionField("amount", FOUR)), specs(AddPartitionField("amount", EIGHT)), None),
        (specs(AddPartitionField("amount", FOUR)), specs(AddPartitionField("id", FOUR)), None),
        (specs(AddPartitionField("amount", FOUR)), SchemaUpdate((AddColumn(("new",), LongType()),)), None),
        (specs(AddPartitionField("amount", FOUR)), SchemaUpdate((DeleteColumn(("id",)),)), None),
        (specs(AddPartitionField("city", FOUR)), SchemaUpdate((RenameColumn(("amount",), "x"),)), None),
        (specs(RemovePartitionField("city")), specs(RemovePartitionField("city")), "removed it"),
        (specs(RemovePartitionField("city")), specs(RenamePartitionField("city", "town")), "made it .*town"),
        (specs(RenamePartitionField("city", "x")), specs(RenamePartitionField("city", "town")), "made it .*town"),
        (specs(RenamePartitionField("city", "x")), specs(AddPartitionField("id", FOUR)), None),
        (specs(RemovePartitionField("city")), specs(AddPartitionField("id", FOUR)), None),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_changes_of_one_field_or_of_its_column_are_a_conflict_and_others_are_both_made(
    mine: Update, theirs: Update, said: str | None, version: int
) -> None:
    world = by_city(version)
    transaction = world.begin(mine)
    world.commit(theirs)
    if said is None:
        transaction.commit()
    else:
        with pytest.raises(CommitConflictError, match=f"{said}.*Refresh the table and decide again"):
            transaction.commit()


def test_a_field_of_a_column_that_the_same_transaction_adds_is_replayed() -> None:
    world = by_city()
    column: Any = SchemaUpdate((AddColumn(("new",), LongType()),))
    transaction = world.begin(
        column, specs(AddPartitionField("new", FOUR)), specs(RenamePartitionField("new_bucket_4", "x"))
    )
    world.commit(specs(AddPartitionField("id", FOUR)))
    assert [field.name for field in transaction.commit().metadata.spec().fields] == ["city", "id_bucket_4", "x"]
