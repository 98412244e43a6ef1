"""Schema changes: what they make, what is refused, and how they are replayed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

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
    UnknownType,
    VariantType,
)
from hms_iceberg.spec.field_mapping import create_name_mapping
from hms_iceberg.spec.partitions.partition_specs import PartitionField, PartitionSpec
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.transforms.partition_transforms import BucketTransform, IdentityTransform, TruncateTransform
from hms_iceberg.table.changes.pending import StartedChange
from hms_iceberg.table.changes.update_schema import UpdateSchema
from hms_iceberg.updates.partition_spec import AddPartitionField, PartitionSpecUpdate, RemovePartitionField
from hms_iceberg.updates.schema.schema_changes import (
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetIdentifierFields,
    UpdateColumn,
)
from hms_iceberg.updates.schema.schema_update import SchemaUpdate
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


def test_what_was_added_is_found_by_later_changes_as_deep_as_it_is(world: World) -> None:
    inner = StructType(NestedField(1, "c", IntegerType()))
    schema = changed(
        world,
        lambda update: update.add_column("A", StructType(NestedField(1, "b", inner))),
        lambda update: update.add_column("a.B.d", StringType()),
        lambda update: update.update_column("A.b.C", doc="found"),
        lambda update: update.add_column("points.y", FloatType()),
        lambda update: update.update_column("POINTS.Y", doc="found"),
        case_sensitive=False,
    )
    assert schema.find_id("A.b.d") == 17
    assert {schema.find_field(name).doc for name in ("A.b.c", "points.element.y")} == {"found"}
    with pytest.raises(UnknownColumnError):
        changed(world, lambda update: update.add_column("E", LongType()), lambda update: update.move_first("e"))


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
        world,
        lambda update: update.rename_column("id", "price"),
        lambda update: update.rename_column("price", "id"),
        lambda update: update.move_first("price"),
    )
    assert schema.fields[0].field_id == 5, "names are those of before"
    assert (schema.find_id("id"), schema.find_id("price")) == (5, 1)


def test_a_dropped_column_may_be_added_again_under_its_name_as_a_new_column(world: World) -> None:
    schema = changed(
        world,
        lambda update: update.delete_column("price"),
        lambda update: update.add_column("price", DoubleType()),
    )
    assert schema.find_field("price") == NestedField(14, "price", DoubleType())
    schema = changed(
        world,
        lambda update: update.delete_column("price"),
        lambda update: update.add_column("price", LongType()),
        lambda update: update.update_column("price", doc="new"),
    )
    assert schema.find_field("price") == NestedField(15, "price", LongType(), doc="new")


def test_columns_in_structs_are_renamed_and_dropped_and_all_else_stays(world: World) -> None:
    schema = changed(
        world,
        lambda update: update.add_column("extra", StringType()),
        lambda update: update.rename_column("address.city", "town"),
        lambda update: update.delete_column("address.zip"),
        lambda update: update.update_column("day", required=False, doc=None),
        lambda update: update.delete_column("day"),
    )
    names = ["id", "address", "address.town", "points", "points.element", "points.element.x", "tags", "tags.key"]
    assert list(schema.column_names) == [*names, "tags.value", "tags.value.weight", "price", "extra"]


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
    for name in (column, "address"):
        kind = schema.find_type(name)
        assert changed(world, lambda update, name=name, kind=kind: update.update_column(name, kind)) == schema


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


def test_what_was_dropped_is_not_found_by_later_changes_with_all_that_was_in_it(world: World) -> None:
    for name in ("tags", "tags.value", "tags.value.weight", "tags.weight"):
        with pytest.raises(UnknownColumnError, match=f"'{name}' is deleted by the same change"):
            changed(
                world,
                lambda update: update.delete_column("tags"),
                lambda update, name=name: update.update_column(name, doc="x"),
            )


def test_keys_of_maps_stay_as_they_are() -> None:
    def keyed_by(*fields: NestedField) -> Schema:
        kind = MapType(2, StructType(*fields), 3, StructType(NestedField(9, "v", LongType())))
        return Schema(NestedField(1, "m", kind))

    world = World.with_table(metadata(keyed_by(NestedField(4, "a", IntegerType()))))
    before = world.version()
    for change in (
        lambda update: update.add_column("m.key.b", LongType()),
        lambda update: update.rename_column("m.key.a", "b"),
        lambda update: update.update_column("m.key.a", LongType()),
        lambda update: update.delete_column("m.key.a"),
        lambda update: update.union_by_name(keyed_by(NestedField(4, "a", LongType()))),
        lambda update: update.union_by_name(keyed_by(NestedField(4, "b", IntegerType()))),
    ):
        with pytest.raises(InvalidSchemaChangeError, match="Cannot change the keys of 'm'"):
            changed(world, change)
    changed(world, lambda update: update.union_by_name(keyed_by(NestedField(7, "a", IntegerType()))))
    assert world.version() == before, "the ids of another schema do not matter"


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
    for change in (
        lambda update: update.add_column("extra", IntegerType(), default_value=7),
        lambda update: update.set_default_value("price", Decimal("1.50")),
    ):
        with pytest.raises(InvalidSchemaChangeError, match="format version 2"):
            changed(world, change)


def test_the_write_default_changes_and_the_initial_default_stays(v3: World) -> None:
    changed(v3, lambda update: update.add_column("extra", DateType(), default_value="2024-01-01"))
    schema = changed(v3, lambda update: update.set_default_value("extra", "2024-01-02"))
    field = schema.find_field("extra")
    assert (field.initial_default, field.write_default) == (19723, 19724)


def test_a_required_column_keeps_the_default_of_its_old_rows(v3: World) -> None:
    changed(v3, lambda update: update.add_column("kept", IntegerType(), required=True, default_value=7))
    changed(v3, lambda update: update.add_column("free", IntegerType(), default_value=7))
    with pytest.raises(InvalidSchemaChangeError, match="remove the default of column 'kept': it is required"):
        changed(v3, lambda update: update.set_default_value("kept", None))
    schema = changed(
        v3,
        lambda update: update.set_default_value("kept", 8),
        lambda update: update.set_default_value("free", None),
        lambda update: update.set_default_value("id", None),
    )
    assert [schema.find_field(name).write_default for name in ("kept", "free", "id")] == [8, None, None]


def test_a_column_that_is_added_with_a_default_may_be_required_and_none_that_may_hold_nulls(v3: World) -> None:
    schema = changed(
        v3,
        lambda update: update.add_column("extra", IntegerType(), default_value=7),
        lambda update: update.update_column("extra", required=True),
    )
    assert schema.find_field("extra").required
    changed(v3, lambda update: update.make_column_optional("extra"))
    for changes in (
        (lambda update: update.update_column("extra", required=True),),
        (
            lambda update: update.add_column("more", LongType()),
            lambda update: update.update_column("more", required=True),
        ),
    ):
        with pytest.raises(InvalidSchemaChangeError, match="may hold nulls"):
            changed(v3, *changes)
    assert changed(v3, lambda update: update.update_column("id", required=True)).find_field("id").required


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
    with pytest.raises(InvalidSchemaChangeError, match="Cannot drop column 'key': it is an identifier field"):
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
        (
            lambda update: update.add_column("tags.weight.x", StringType()),
            r"'tags\.value\.weight' is int, not a struct",
        ),
        (
            lambda update: update.case_sensitive(False).add_column("PRICE", StringType()),
            "there is a column of that name",
        ),
        (lambda update: update.rename_column("id", "price"), "price"),
        (lambda update: update.rename_column("id", ""), "'' is no name"),
        (lambda update: update.rename_column("id", 7), "7 is no name"),
        (lambda update: update.rename_column("points.element", "e"), "a part of"),
        (lambda update: update.delete_column("tags.value"), "a part of"),
        (lambda update: update.move_first("points.element"), "not a field of a struct"),
        (lambda update: update.move_before("address.zip", "id"), "another struct"),
        (lambda update: update.move_after("id", "id"), "next to itself"),
        (lambda update: update.add_column("address.x", StringType()).delete_column("address"), "adds to it"),
        (lambda update: update.add_column("x", StringType()).delete_column("x"), "adds to it"),
        (lambda update: update.rename_column("price", "x").delete_column("price"), "updates it"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(world: World, change: Change, message: str) -> None:
    with pytest.raises(InvalidSchemaChangeError, match=message):
        changed(world, change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (UpdateColumn(("a", "b"), LongType(), doc="d"), "change column 'a.b' to type long, doc d"),
        (SetDefault(("a", "b"), 7), "set the default of column 'a.b' to 7"),
        (SetIdentifierFields((("a", "b"), ("c",))), "set the identifier fields to ['a.b', 'c']"),
    ],
)
def test_a_change_is_told_in_words(change: SchemaChange, words: str) -> None:
    assert str(change) == words


def test_a_change_names_columns_in_their_case_and_breaks_nothing_unless_it_is_said_otherwise(world: World) -> None:
    for change in (RenameColumn(("PRICE",), "cost"), UpdateColumn(("price",), required=True)):
        with pytest.raises((UnknownColumnError, InvalidSchemaChangeError)):
            world.commit(SchemaUpdate((change,)))


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


def test_a_column_whose_partition_field_was_removed_can_be_dropped_in_version_1() -> None:
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "address.city"))
    world = World.with_table(metadata(NESTED, spec, format_version=1))
    world.commit(PartitionSpecUpdate((RemovePartitionField("address.city"),)))
    assert "address" not in changed(world, lambda update: update.delete_column("address")).column_names


def test_a_column_that_sorts_cannot_become_what_cannot_be_sorted(v3: World) -> None:
    changed(v3, lambda update: update.add_column("any", UnknownType()))
    v3.commit(ReplaceSortOrder((SortKey("any"),)))
    for kind, said in ((VariantType(), "sort order"), (StructType(), "any type that is not nested")):
        with pytest.raises(InvalidSchemaChangeError, match=f"'any'.*{said}"):
            changed(v3, lambda update, kind=kind: update.update_column("any", kind))
    assert changed(v3, lambda update: update.update_column("any", LongType())).find_type("any") == LongType()


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
                "schema.name-mapping.default": mapping + " ",
                "write.metadata.metrics.column.price": "full",
                "write.parquet.bloom-filter-enabled.column.price": "true",
                "write.metadata.metrics.column.day": "none",
                "write.metadata.metrics.column.points.x": "none",
                "write.metadata.metrics.column.absent": "none",
                "write.metadata.metrics.column.tags.weight": "none",
            }
        )
    )
    version = world.version()
    changed(world, lambda update: update.update_column("price", doc=None))
    assert world.version() == version
    changed(
        world,
        lambda update: update.rename_column("price", "cost"),
        lambda update: update.rename_column("points.x", "left"),
        lambda update: update.delete_column("day"),
        lambda update: update.add_column("extra", StringType()),
    )
    after = world.version().metadata
    found = after.name_mapping()
    assert found is not None
    assert found.find("cost") is found.find("price")
    assert found.find("extra") is not None
    kept = {
        "write.metadata.metrics.column.points.element.left": "none",
        "write.metadata.metrics.column.absent": "none",
        "write.metadata.metrics.column.tags.weight": "none",
    }

    def of_columns() -> dict[str, str]:
        return {key: value for key, value in world.version().metadata.properties.items() if ".column." in key}

    assert of_columns() == {
        **kept,
        "write.metadata.metrics.column.cost": "full",
        "write.parquet.bloom-filter-enabled.column.cost": "true",
    }
    changed(world, lambda update: update.rename_column("cost", "id"), lambda update: update.rename_column("id", "cost"))
    assert of_columns() == {
        **kept,
        "write.metadata.metrics.column.id": "full",
        "write.parquet.bloom-filter-enabled.column.id": "true",
    }
    world.commit(SetProperties({"write.metadata.metrics.column.cost": "none"}))
    changed(world, lambda update: update.rename_column("cost", "id"), lambda update: update.rename_column("id", "cost"))
    assert of_columns() == {
        **kept,
        "write.metadata.metrics.column.id": "none",
        "write.metadata.metrics.column.cost": "full",
        "write.parquet.bloom-filter-enabled.column.cost": "true",
    }


def test_a_union_adds_promotes_and_relaxes_but_never_drops(world: World) -> None:
    other = Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(2, "price", DecimalType(12, 2)),
        NestedField(3, "address", StructType(NestedField(4, "street", StringType(), doc="with number"))),
        NestedField(5, "points", ListType(6, StructType(NestedField(7, "y", FloatType())))),
        NestedField(8, "new", StringType(), required=True),
        NestedField(9, "tags", MapType(10, StringType(), 11, StructType(NestedField(12, "label", StringType())))),
        NestedField(13, "value", StringType(), doc="a column of its own"),
    )
    changed(
        world,
        lambda update: update.add_column("value", StringType()),
        lambda update: update.update_column("id", doc="kept"),
        lambda update: update.union_by_name(Schema(NestedField(1, "id", LongType(), required=True))),
    )
    assert world.version().metadata.schema().find_field("id") == NestedField(1, "id", LongType(), True, "kept")
    schema = changed(world, lambda update: update.union_by_name(other))
    assert schema.find_field("id") == NestedField(1, "id", LongType(), False, "kept")
    assert schema.find_field("value").doc == "a column of its own"
    assert schema.find_type("price") == DecimalType(12, 2)
    nested = {"address.city", "address.street", "points.element.x", "points.element.y", "tags.value.label"}
    assert nested < set(schema.column_names)
    assert schema.find_field("new").optional
    version = world.version()
    changed(world, lambda update: update.union_by_name(other))
    assert world.version() == version, "a second union changes nothing"
    schema = changed(world, lambda update: update.union_by_name(other), lambda update: update.delete_column("value"))
    assert "value" not in schema.column_names


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("price", StringType(), r"'price' is decimal\(9, ?2\)"),
        ("price", StructType(NestedField(2, "x", StringType())), "'price'"),
        ("price", ListType(2, StringType()), "'price'"),
        ("price", MapType(2, StringType(), 3, StringType()), "'price'"),
        ("address", StringType(), "'address'"),
        ("points", StringType(), "'points'"),
        ("tags", StringType(), "'tags'"),
        ("tags", MapType(2, IntegerType(), 3, StructType(NestedField(4, "weight", IntegerType()))), r"'tags\.key'"),
    ],
)
def test_a_union_with_types_that_do_not_fit_is_refused(world: World, name: str, kind: IcebergType, said: str) -> None:
    with pytest.raises(InvalidSchemaChangeError, match=f"Cannot unite the schemas: column {said}"):
        changed(world, lambda update: update.union_by_name(Schema(NestedField(1, name, kind))))


def test_a_union_with_narrower_keys_keeps_those_of_the_table() -> None:
    wide, narrow = (MapType(2, kind, 3, StringType()) for kind in (LongType(), IntegerType()))
    world = World.with_table(metadata(Schema(NestedField(1, "m", wide))))
    assert (
        changed(world, lambda update: update.union_by_name(Schema(NestedField(1, "m", narrow)))).find_type("m") == wide
    )


def test_the_same_schema_again_keeps_its_id(world: World) -> None:
    changed(world, lambda update: update.rename_column("price", "cost"))
    schema = changed(world, lambda update: update.rename_column("cost", "price"))
    assert schema.schema_id == 0
    assert len(world.version().metadata.schemas) == 2


# ------------------------------------------------------------------------------------------------ replay


@pytest.mark.parametrize(
    "mine",
    [
        lambda update: update.move_first("day"),
        lambda update: update.delete_column("price").add_column("price", LongType()),
        lambda update: update.add_column("x", StringType()).update_column("x", doc="d"),
    ],
)
def test_a_change_of_columns_that_others_left_alone_is_made(world: World, mine: Change) -> None:
    transaction = pending(world, mine)
    changed(world, lambda update: update.add_column("theirs", StringType()))
    assert transaction.commit().metadata.schema().find_id("theirs") == 14


def test_changes_of_different_columns_are_both_made(world: World) -> None:
    transaction = pending(world, lambda update: update.add_column("mine", StringType()))
    changed(world, lambda update: update.add_column("theirs", StringType()))
    schema = transaction.commit().metadata.schema()
    assert (schema.find_id("theirs"), schema.find_id("mine")) == (14, 15), "ids are drawn anew in a replay"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (
            lambda update: update.rename_column("price", "x").rename_column("x", "y"),
            lambda update: update.add_column("x", StringType()),
        ),
        (
            lambda update: update.rename_column("address.city", "x").rename_column("address.x", "y"),
            lambda update: update.add_column("address.x", StringType()),
        ),
        (
            lambda update: update.move_after("day", "price"),
            lambda update: update.rename_column("price", "cost").add_column("price", LongType()),
        ),
        (
            lambda update: update.set_identifier_fields("id"),
            lambda update: update.rename_column("id", "key").add_column("id", LongType()),
        ),
        (
            lambda update: update.update_column("address.city", doc="x"),
            lambda update: update.rename_column("address", "place").add_column(
                "address", StructType(NestedField(1, "city", StringType()))
            ),
        ),
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
    with pytest.raises(
        CommitConflictError, match=r"Cannot .* in table db.events.* concurrent commit (brought|made it '|dropped)"
    ):
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
