"""Schema changes: what they make, what is refused, and how they are replayed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hms_iceberg.errors import CommitConflictError, InvalidSchemaChangeError, UnknownColumnError
from hms_iceberg.spec.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.partition_transforms import BucketTransform, IdentityTransform, TruncateTransform
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.update_schema import UpdateSchema
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionSpecUpdate, RemovePartitionField
from hms_iceberg.updates.table_settings import ReplaceSortOrder, SetProperties, SortKey
from tests.support.tables import World, metadata

NESTED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "address", StructType(NestedField(3, "city", StringType()), NestedField(4, "zip", IntegerType()))),
    NestedField(5, "points", ListType(6, StructType(NestedField(7, "x", FloatType())), element_required=False)),
    NestedField(
        8,
        "tags",
        MapType(9, StringType(), 10, StructType(NestedField(11, "weight", IntegerType())), value_required=False),
    ),
    NestedField(12, "price", DecimalType(9, 2)),
    NestedField(13, "day", DateType()),
)
Change = Callable[[UpdateSchema], object]


def changed(world: World, *changes: Change, **options: bool) -> Schema:
    """The schema after changes are committed in one update."""
    transaction = world.begin()
    update = UpdateSchema(StartedChange(transaction), **options)
    for change in changes:
        change(update)
    update.commit()
    return transaction.commit().metadata.schema()


def pending(world: World, *changes: Change):  # type: ignore[no-untyped-def]
    """A transaction with changes that are not committed yet."""
    transaction = world.begin()
    update = UpdateSchema(StartedChange(transaction))
    for change in changes:
        change(update)
    update.commit()
    return transaction


@pytest.fixture
def world() -> World:
    return World.with_table(metadata(NESTED))


@pytest.fixture
def v3() -> World:
    return World.with_table(metadata(NESTED, format_version=3))


def test_an_added_column_gets_the_next_id_that_was_never_used(world: World) -> None:
    changed(world, lambda update: update.add_column("extra", StringType()))
    changed(world, lambda update: update.delete_column("extra"))
    schema = changed(world, lambda update: update.add_column("extra", StringType(), doc="again"))
    assert schema.find_field("extra") == NestedField(15, "extra", StringType(), False, "again")
    assert world.version().metadata.last_column_id == 15


def test_columns_are_added_in_structs_lists_and_maps(world: World) -> None:
    schema = changed(
        world,
        lambda update: update.add_column("address.country", StringType()),
        lambda update: update.add_column("points.y", FloatType()),
        lambda update: update.add_column(("tags", "label"), StringType()),
    )
    assert {name: schema.find_id(name) for name in ("address.country", "points.element.y", "tags.value.label")} == {
        "address.country": 14,
        "points.element.y": 15,
        "tags.value.label": 16,
    }


def test_an_added_nested_column_gets_ids_for_all_that_is_in_it(world: World) -> None:
    kind = MapType(1, StringType(), 2, ListType(3, StructType(NestedField(4, "a", IntegerType()))))
    schema = changed(world, lambda update: update.add_column("deep", kind))
    assert sorted(schema.index_by_id)[-5:] == [14, 15, 16, 17, 18]
    assert schema.find_id("deep") == 14


def test_a_name_with_a_dot_is_given_as_a_tuple(world: World) -> None:
    schema = changed(world, lambda update: update.add_column(("a.b",), StringType()))
    assert schema.fields[-1].name == "a.b"


@pytest.mark.parametrize("name", ["dot.field", ("dot.field",)], ids=["text", "tuple"])
def test_an_added_name_with_a_dot_is_found_by_later_changes(world: World, name: str | tuple[str, ...]) -> None:
    schema = changed(
        world,
        lambda update: update.add_column(("dot.field",), StringType(), required=True),
        lambda update: update.update_column(name, doc="dotted"),
        lambda update: update.move_first(name),
        lambda update: update.move_after("price", name),
        lambda update: update.set_identifier_fields(name),
        allow_incompatible_changes=True,
    )
    assert [field.name for field in schema.fields][:3] == ["dot.field", "price", "id"]
    assert schema.fields[0].doc == "dotted"
    assert schema.identifier_field_names() == {"dot.field"}


def test_names_may_be_swapped_in_one_change(world: World) -> None:
    schema = changed(
        world, lambda update: update.rename_column("id", "price"), lambda update: update.rename_column("price", "id")
    )
    assert (schema.find_id("id"), schema.find_id("price")) == (5, 1)


def test_a_dropped_column_may_be_added_again_under_its_name_as_a_new_column(world: World) -> None:
    schema = changed(
        world,
        lambda update: update.delete_column("price"),
        lambda update: update.add_column("price", DoubleType()),
    )
    assert schema.find_field("price") == NestedField(14, "price", DoubleType())


def test_columns_are_moved_within_their_struct(world: World) -> None:
    schema = changed(
        world,
        lambda update: update.move_first("day"),
        lambda update: update.move_after("id", "price"),
        lambda update: update.move_before("address.zip", "address.city"),
        lambda update: update.add_column("extra", StringType()),
        lambda update: update.move_before("extra", "address"),
    )
    assert [field.name for field in schema.fields] == ["day", "extra", "address", "points", "tags", "price", "id"]
    assert [name for name in schema.column_names if name.startswith("address.")] == ["address.zip", "address.city"]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("address.zip", LongType()),
        ("points.element.x", DoubleType()),
        ("points.x", DoubleType()),
        ("tags.value.weight", LongType()),
        ("price", DecimalType(12, 2)),
    ],
)
def test_columns_are_promoted(world: World, column: str, kind: IcebergType) -> None:
    before = world.version().metadata.schema().find_id(column)
    schema = changed(world, lambda update: update.update_column(column, kind))
    assert schema.find_field(before).field_type == kind


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("id", IntegerType()),
        ("price", DecimalType(9, 3)),
        ("price", DecimalType(8, 2)),
        ("address.city", IntegerType()),
        ("address", StringType()),
        ("day", TimestampType()),
    ],
)
def test_a_type_that_is_no_promotion_is_refused(world: World, column: str, kind: IcebergType) -> None:
    with pytest.raises(InvalidSchemaChangeError, match=column):
        changed(world, lambda update: update.update_column(column, kind))


def test_a_date_becomes_a_timestamp_from_v3_on(v3: World) -> None:
    schema = changed(v3, lambda update: update.update_column("day", TimestampType()))
    assert schema.find_type("day") == TimestampType()


def test_a_required_column_needs_a_default_or_permission(world: World, v3: World) -> None:
    with pytest.raises(InvalidSchemaChangeError, match="rows written before"):
        changed(world, lambda update: update.add_column("extra", IntegerType(), required=True))
    assert (
        changed(world, lambda update: update.add_column("extra", "int", required=True), allow_incompatible_changes=True)
        .find_field("extra")
        .required
    )
    schema = changed(v3, lambda update: update.add_column("extra", IntegerType(), required=True, default_value=7))
    field = schema.find_field("extra")
    assert (field.required, field.initial_default, field.write_default) == (True, 7, 7)


def test_a_default_needs_v3(world: World) -> None:
    with pytest.raises(InvalidSchemaChangeError, match="format version 2"):
        changed(world, lambda update: update.add_column("extra", IntegerType(), default_value=7))


def test_the_write_default_changes_and_the_initial_default_stays(v3: World) -> None:
    changed(v3, lambda update: update.add_column("extra", DateType(), default_value="2024-01-01"))
    schema = changed(v3, lambda update: update.set_default_value("extra", "2024-01-02"))
    field = schema.find_field("extra")
    assert (field.initial_default, field.write_default) == (19723, 19724)


def test_optional_becomes_required_only_with_permission(world: World) -> None:
    with pytest.raises(InvalidSchemaChangeError, match="may hold nulls"):
        changed(world, lambda update: update.update_column("price", required=True))
    schema = changed(
        world, lambda update: update.update_column("price", required=True), allow_incompatible_changes=True
    )
    assert schema.find_field("price").required
    assert not changed(world, lambda update: update.make_column_optional("price")).find_field("price").required


def test_identifier_fields_follow_a_rename_and_protect_their_column(world: World) -> None:
    changed(world, lambda update: update.set_identifier_fields("id"))
    schema = changed(world, lambda update: update.rename_column("id", "key"))
    assert schema.identifier_field_names() == {"key"}
    with pytest.raises(InvalidSchemaChangeError, match="identifier field"):
        changed(world, lambda update: update.delete_column("key"))
    schema = changed(world, lambda update: update.set_identifier_fields(), lambda update: update.delete_column("key"))
    assert not schema.has_field(1)


@pytest.mark.parametrize(
    "change",
    [
        lambda update: update.delete_column("absent"),
        lambda update: update.rename_column("absent", "x"),
        lambda update: update.update_column("absent", doc="x"),
        lambda update: update.move_first("absent"),
        lambda update: update.add_column("absent.x", StringType()),
        lambda update: update.set_identifier_fields("absent"),
    ],
)
def test_a_column_that_is_not_there_is_named_at_the_call(world: World, change: Change) -> None:
    update = UpdateSchema(StartedChange(world.begin()))
    with pytest.raises(UnknownColumnError, match="absent"):
        change(update)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda update: update.add_column("id", StringType()), "there is a column of that name"),
        (lambda update: update.add_column("id.x", StringType()), "not a struct"),
        (lambda update: update.rename_column("id", "price"), "price"),
        (lambda update: update.rename_column("points.element", "e"), "a part of"),
        (lambda update: update.delete_column("tags.value"), "a part of"),
        (lambda update: update.move_before("address.zip", "id"), "another struct"),
        (lambda update: update.move_after("id", "id"), "next to itself"),
        (lambda update: update.add_column("address.x", StringType()).delete_column("address"), "adds to it"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(world: World, change: Change, message: str) -> None:
    with pytest.raises(InvalidSchemaChangeError, match=message):
        changed(world, change)


def test_a_refused_change_is_not_kept(world: World) -> None:
    update = UpdateSchema(StartedChange(world.begin()))
    with pytest.raises(InvalidSchemaChangeError):
        update.add_column("id", StringType())
    assert update.add_column("extra", StringType()).apply().find_id("extra") == 14


def test_a_column_that_partitions_cannot_be_dropped_before_its_field_is_removed() -> None:
    world = World.with_table(
        metadata(NESTED, PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "address.city")))
    )
    for name in ("address.city", "address"):
        with pytest.raises(InvalidSchemaChangeError, match=r"address\.city"):
            changed(world, lambda update, name=name: update.delete_column(name))
    world.commit(PartitionSpecUpdate((RemovePartitionField("address.city"),)))
    assert not changed(world, lambda update: update.delete_column("address")).has_field(2)


def test_a_column_that_sorts_cannot_be_dropped(world: World) -> None:
    world.commit(ReplaceSortOrder((SortKey("price"),)))
    with pytest.raises(InvalidSchemaChangeError, match="price"):
        changed(world, lambda update: update.delete_column("price"))


def test_a_promotion_that_changes_partition_values_is_refused(v3: World) -> None:
    v3.commit(PartitionSpecUpdate((AddPartitionField("day", BucketTransform(4)),)))
    with pytest.raises(InvalidSchemaChangeError, match="day"):
        changed(v3, lambda update: update.update_column("day", TimestampType()))
    v3.commit(PartitionSpecUpdate((AddPartitionField("address.zip", TruncateTransform(10)),)))
    schema = changed(v3, lambda update: update.update_column("address.zip", LongType()))
    assert schema.find_type("address.zip") == LongType()


def test_the_name_mapping_and_column_properties_follow_a_rename(world: World) -> None:
    mapping = create_name_mapping(world.version().metadata.schema()).to_json()
    world.commit(
        SetProperties(
            {
                "schema.name-mapping.default": mapping,
                "write.metadata.metrics.column.price": "full",
                "write.metadata.metrics.column.day": "none",
            }
        )
    )
    changed(
        world,
        lambda update: update.rename_column("price", "cost"),
        lambda update: update.delete_column("day"),
        lambda update: update.add_column("extra", StringType()),
    )
    after = world.version().metadata
    found = after.name_mapping()
    assert found is not None
    assert found.find("cost") is found.find("price")
    assert found.find("extra") is not None
    columns = {key: value for key, value in after.properties.items() if ".metrics.column." in key}
    assert columns == {"write.metadata.metrics.column.cost": "full"}


def test_a_union_adds_promotes_and_relaxes_but_never_drops(world: World) -> None:
    other = Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(2, "price", DecimalType(12, 2)),
        NestedField(3, "address", StructType(NestedField(4, "street", StringType(), doc="with number"))),
        NestedField(5, "points", ListType(6, StructType(NestedField(7, "y", FloatType())))),
        NestedField(8, "new", StringType(), required=True),
    )
    schema = changed(world, lambda update: update.union_by_name(other))
    assert schema.find_field("id") == NestedField(1, "id", LongType(), required=False)
    assert schema.find_type("price") == DecimalType(12, 2)
    assert {"address.city", "address.street", "points.element.x", "points.element.y", "tags"} <= set(
        schema.column_names
    )
    assert schema.find_field("new").optional
    assert changed(world, lambda update: update.union_by_name(other)).same_as(schema), "a second union changes nothing"


def test_a_union_with_types_that_do_not_fit_is_refused(world: World) -> None:
    with pytest.raises(InvalidSchemaChangeError, match=r"'price' is decimal\(9, ?2\)"):
        changed(world, lambda update: update.union_by_name(Schema(NestedField(1, "price", StringType()))))


def test_the_same_schema_again_keeps_its_id(world: World) -> None:
    changed(world, lambda update: update.rename_column("price", "cost"))
    schema = changed(world, lambda update: update.rename_column("cost", "price"))
    assert schema.schema_id == 0
    assert len(world.version().metadata.schemas) == 2


# ------------------------------------------------------------------------------------------------ replay


def test_changes_of_different_columns_are_both_made(world: World) -> None:
    transaction = pending(world, lambda update: update.add_column("mine", StringType()))
    changed(world, lambda update: update.add_column("theirs", StringType()))
    schema = transaction.commit().metadata.schema()
    assert (schema.find_id("theirs"), schema.find_id("mine")) == (14, 15), "ids are drawn anew in a replay"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda update: update.add_column("x", StringType()), lambda update: update.add_column("x", IntegerType())),
        (lambda update: update.rename_column("price", "x"), lambda update: update.add_column("x", IntegerType())),
        (lambda update: update.rename_column("price", "x"), lambda update: update.rename_column("price", "y")),
        (lambda update: update.delete_column("price"), lambda update: update.update_column("price", doc="kept")),
        (lambda update: update.update_column("price", doc="x"), lambda update: update.delete_column("price")),
        (lambda update: update.delete_column("address"), lambda update: update.add_column("address.x", StringType())),
        (lambda update: update.move_after("day", "price"), lambda update: update.delete_column("price")),
    ],
)
def test_changes_of_the_same_column_are_a_conflict_that_names_both(world: World, mine: Change, theirs: Change) -> None:
    transaction = pending(world, mine)
    changed(world, theirs)
    with pytest.raises(CommitConflictError, match=r"Cannot .* concurrent commit"):
        transaction.commit()


def test_a_change_that_the_newer_table_forbids_is_a_conflict(world: World) -> None:
    transaction = pending(world, lambda update: update.delete_column("price"))
    world.commit(PartitionSpecUpdate((AddPartitionField("price", IdentityTransform()),)))
    with pytest.raises(CommitConflictError, match="price"):
        transaction.commit()


def test_a_union_replays_on_what_the_other_one_added(world: World) -> None:
    other = Schema(NestedField(1, "x", StringType()), NestedField(2, "y", StringType()))
    transaction = pending(world, lambda update: update.union_by_name(other))
    changed(world, lambda update: update.add_column("x", StringType()))
    schema = transaction.commit().metadata.schema()
    assert (schema.find_id("x"), schema.find_id("y")) == (14, 15)
