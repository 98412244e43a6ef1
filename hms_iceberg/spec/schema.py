"""Schemas: named, numbered columns, with look-ups by id and by dotted name, and projection.

Source: Iceberg specification, "Schemas and Data Types", "Identifier Field IDs".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from hms_iceberg.cached_properties import cached_property
from hms_iceberg.errors import InvalidSchemaError, UnknownColumnError
from hms_iceberg.hooks import Hook
from hms_iceberg.notebook_html import framed, rows_table
from hms_iceberg.spec.data_types import (
    MAX_FIELD_ID,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
    UnknownType,
    fold_type,
)
from hms_iceberg.spec.json_model import JsonModel

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_NAME_MAPPING: Hook[[Schema], Any] = Hook("hms_iceberg.spec.field_mapping")

ARROW_SCHEMA: Hook[[Schema], pa.Schema] = Hook("hms_iceberg.arrow.columns.arrow_schema")


@dataclass(frozen=True, init=False)
class Schema(JsonModel):
    """The columns of a table, in order. Schemas of the same columns and identifier fields are equal, whatever their
    ids.

    Args:
        fields: the top-level columns.
        schema_id: the number of this schema among the table's schemas.
        identifier_field_ids: ids of the fields that together identify a row.

    An id may stand for two fields, since whoever creates a table numbers the fields anew; looking one up by it is an
    error, and so is such a schema anywhere else.

    Raises:
        InvalidSchemaError: names in one struct collide, an `unknown` column is required, or an identifier field is not
            a required primitive outside of lists, maps and optional structs.
    """

    _json_home: ClassVar[str] = "hms_iceberg.spec.schema_json"
    fields: tuple[NestedField, ...]
    schema_id: int = dataclass_field(compare=False)
    identifier_field_ids: tuple[int, ...]
    _by_id: dict[int, NestedField] = dataclass_field(init=False, repr=False, compare=False)
    _by_name: dict[str, int] = dataclass_field(init=False, repr=False, compare=False)
    _ambiguous: dict[str, list[int]] = dataclass_field(init=False, repr=False, compare=False)
    _names: dict[int, str] = dataclass_field(init=False, repr=False, compare=False)
    _parents: dict[int, int] = dataclass_field(init=False, repr=False, compare=False)
    _repeated: dict[int, str] = dataclass_field(init=False, repr=False, compare=False)  # what is wrong with an id

    def __init__(self, *fields: NestedField, schema_id: int = 0, identifier_field_ids: Iterable[int] = ()) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "schema_id", schema_id)
        object.__setattr__(self, "identifier_field_ids", tuple(dict.fromkeys(identifier_field_ids)))
        self._index()
        for field_id in self.identifier_field_ids:
            self._check_identifier(field_id)

    # ------------------------------------------------------------------------------------------ look-up

    def _index(self) -> None:
        by_id: dict[int, NestedField] = {}
        by_name: dict[str, int] = {}
        names: dict[int, str] = {}
        parents: dict[int, int] = {}
        short_names: dict[str, int] = {}
        ambiguous: dict[str, list[int]] = {}
        repeated: dict[int, str] = {}
        for field, parent, name, short in _walk(self.fields, None, "", ""):
            if field.field_id in by_id:
                repeated[field.field_id] = (
                    f"Invalid schema: field id {field.field_id} is used by both {names[field.field_id]!r} and "
                    f"{name!r}; every field needs an id of its own"
                )
            if name in by_name and parents.get(by_name[name]) == parent:
                raise InvalidSchemaError(
                    f"Invalid schema: the name {name!r} stands for both field {by_name[name]} and field "
                    f"{field.field_id}; rename one of them"
                )
            if name in by_name:
                ambiguous.setdefault(name, [by_name[name]]).append(field.field_id)
            if isinstance(field.field_type, UnknownType) and field.required:
                raise InvalidSchemaError(
                    f"Invalid schema: column {name!r} has type unknown, which only holds nulls, and cannot be required"
                )
            by_id[field.field_id], by_name[name], names[field.field_id] = field, field.field_id, name
            short_names.setdefault(short, field.field_id)
            if parent is not None:
                parents[field.field_id] = parent
        object.__setattr__(self, "_by_id", by_id)
        # A column "a.b" beside a struct a with a field b: legal, but the dotted name stands for neither.
        unique = {name: each for name, each in {**short_names, **by_name}.items() if name not in ambiguous}
        object.__setattr__(self, "_by_name", unique)
        object.__setattr__(self, "_ambiguous", ambiguous)
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_parents", parents)
        object.__setattr__(self, "_repeated", repeated)

    def require_own_ids(self, *ids: int) -> None:
        """Refuses fields that share their id with another field; without ids given, any such field.

        Raises:
            InvalidSchemaError: names both.
        """
        if self._repeated:
            for field_id in ids or self._repeated:
                if field_id in self._repeated:
                    raise InvalidSchemaError(self._repeated[field_id])

    def _repr_html_(self) -> str:
        return framed(columns_html(self))

    @property
    def index_by_id(self) -> dict[int, NestedField]:
        """Every field, nested ones included, by its id.

        Raises:
            InvalidSchemaError: two fields share an id.
        """
        self.require_own_ids()
        return self._by_id

    @property
    def index_by_name(self) -> dict[str, int]:
        """The id of every field by its dotted name, such as "address.city" or "points.element.x".

        Fields of structs in lists and maps are also found without `element` and `value`: "points.x".
        """
        return self._by_name

    @property
    def parent_ids(self) -> dict[int, int]:
        """The id of the enclosing field, for every nested field."""
        self.require_own_ids()
        return self._parents

    @property
    def column_names(self) -> list[str]:
        """The dotted names of all fields, nested ones included, in order."""
        self.require_own_ids()
        return list(self._names.values())

    @cached_property
    def _lower_names(self) -> dict[str, set[int]]:
        index: dict[str, set[int]] = {}
        for name, field_id in self.index_by_name.items():
            index.setdefault(name.lower(), set()).add(field_id)
        return index

    @cached_property
    def _struct(self) -> StructType:
        return StructType(*self.fields)

    @property
    def columns(self) -> tuple[NestedField, ...]:
        """The top-level columns, as `fields`."""
        return self.fields

    @property
    def field_ids(self) -> set[int]:
        """The ids of all fields, nested ones included."""
        return set(self.index_by_id)

    def as_arrow(self) -> pa.Schema:
        """The Arrow schema of the same columns, with field ids in the fields' metadata.

        Raises:
            UnsupportedError: a column has a type that Arrow has no form for.
        """
        return ARROW_SCHEMA(self)

    def as_struct(self) -> StructType:
        """The columns as a struct type."""
        return self._struct

    @cached_property
    def highest_field_id(self) -> int:
        """The highest id of any field; 0 for a schema without columns."""
        return max(self.index_by_id, default=0)

    def find_field(self, name_or_id: str | int, case_sensitive: bool = True) -> NestedField:
        """The field with this dotted name or id.

        Args:
            name_or_id: the dotted name or the id.
            case_sensitive: whether column names must match in case.

        Raises:
            UnknownColumnError: there is none; the message has the names that come near.
        """
        if isinstance(name_or_id, int):
            field = self.index_by_id.get(name_or_id)
            if field is None:
                raise UnknownColumnError(
                    f"The schema has no field with id {name_or_id}; its columns are {self._listing()}"
                )
            return field
        return self.index_by_id[self.find_id(name_or_id, case_sensitive)]

    def find_id(self, name: str, case_sensitive: bool = True) -> int:
        """The id of the field with this dotted name.

        Args:
            name: the dotted name.
            case_sensitive: whether column names must match in case.

        Raises:
            UnknownColumnError: there is none, or the name stands for several.
        """
        field_id = self.index_by_name.get(name)
        if field_id is not None:
            return field_id
        if name in self._ambiguous:
            raise UnknownColumnError(
                f"Column {name!r} is ambiguous: it stands for the fields with ids {self._ambiguous[name]}, a nested "
                "one and one with a dot in its name; rename one of them"
            )
        if not case_sensitive:
            ids = self._lower_names.get(name.lower(), set())
            if len(ids) == 1:
                return next(iter(ids))
            if ids:
                found = ", ".join(repr(self.find_column_name(each)) for each in sorted(ids))
                raise UnknownColumnError(
                    f"Column {name!r} is ambiguous without regard to case: it may be {found}; "
                    "write the name exactly and look it up with case_sensitive=True"
                )
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownColumnError:
        lower = {each.lower(): each for each in self.column_names}
        near = [lower[each] for each in get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
        hint = f"did you mean {' or '.join(repr(each) for each in near)}?" if near else f"columns: {self._listing()}"
        return UnknownColumnError(f"Unknown column {name!r}; {hint}")

    def _listing(self) -> str:
        names = self.column_names
        shown = ", ".join(repr(each) for each in names[:20])
        return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "none"

    def find_type(self, name_or_id: str | int, case_sensitive: bool = True) -> IcebergType:
        """The type of the field with this dotted name or id; raises UnknownColumnError.

        Args:
            name_or_id: the dotted name or the id.
            case_sensitive: whether column names must match in case.
        """
        return self.find_field(name_or_id, case_sensitive).field_type

    def find_column_name(self, column_id: int) -> str | None:
        """The dotted name of a field, or None if the schema has no such id.

        Raises:
            InvalidSchemaError: two fields have this id.
        """
        self.require_own_ids(column_id)
        return self._names.get(column_id)

    @property
    def name_mapping(self) -> Any:
        """The names of the columns by id, a `NameMapping`, as for files that hold no field ids."""
        return SCHEMA_NAME_MAPPING(self)

    def has_field(self, field_id: int) -> bool:
        """True if the schema has a field with this id."""
        return field_id in self.index_by_id

    def identifier_field_names(self) -> set[str]:
        """The dotted names of the identifier fields."""
        return {self._names[field_id] for field_id in self.identifier_field_ids}

    def ancestor_ids(self, field_id: int) -> Iterator[int]:
        """The ids of the fields that enclose a field, from the inside out."""
        parents = self._parents
        while (parent := parents.get(field_id)) is not None:
            yield parent
            field_id = parent

    def _check_identifier(self, field_id: int) -> None:
        self.require_own_ids(field_id)
        field = self._by_id.get(field_id)
        if field is None:
            raise InvalidSchemaError(f"Invalid identifier field {field_id}: the schema has no field with this id")
        name = self.find_column_name(field_id)
        if not field.field_type.is_primitive:
            raise InvalidSchemaError(f"Invalid identifier field {name!r}: {field.field_type} is not a primitive type")
        if isinstance(field.field_type, (FloatType, DoubleType)):
            raise InvalidSchemaError(
                f"Invalid identifier field {name!r}: {field.field_type} values cannot identify rows; "
                "use a decimal, an integer or a string"
            )
        if field.optional:
            raise InvalidSchemaError(f"Invalid identifier field {name!r}: the column is optional; make it required")
        for ancestor_id in self.ancestor_ids(field_id):
            ancestor = self._by_id[ancestor_id]
            if not isinstance(ancestor.field_type, StructType):
                raise InvalidSchemaError(
                    f"Invalid identifier field {name!r}: it is nested in {self.find_column_name(ancestor_id)!r}, "
                    f"which is a {ancestor.field_type}; only structs may enclose an identifier field"
                )
            if ancestor.optional:
                raise InvalidSchemaError(
                    f"Invalid identifier field {name!r}: it is nested in the optional struct "
                    f"{self.find_column_name(ancestor_id)!r}"
                )

    # --------------------------------------------------------------------------------------- projection

    def select(self, *names: str, case_sensitive: bool = True) -> Schema:
        """The columns with these dotted names, in the order of this schema; "*" stands for all.

        A struct, list or map by its own name is kept whole; "a.b" keeps only b in a.

        Raises:
            UnknownColumnError: a name is not in the schema.
        """
        if "*" in names:
            return self
        return self.select_ids(self.find_id(name, case_sensitive) for name in names)

    def select_ids(self, ids: Iterable[int]) -> Schema:
        """The fields with these ids, and what encloses them; ids that the schema lacks are ignored.

        A nested field by its own id is kept whole. The keys of a map are always kept whole.
        """
        self.require_own_ids()
        chosen = frozenset(ids)
        fields = _pruned(self.as_struct(), chosen)
        kept = Schema(*fields, schema_id=self.schema_id)
        identifiers = tuple(each for each in self.identifier_field_ids if kept.has_field(each))
        return Schema(*fields, schema_id=self.schema_id, identifier_field_ids=identifiers) if identifiers else kept

    def with_schema_id(self, schema_id: int) -> Schema:
        """A copy of the schema with another schema id."""
        if schema_id == self.schema_id:
            return self
        return Schema(*self.fields, schema_id=schema_id, identifier_field_ids=self.identifier_field_ids)

    def same_as(self, other: Schema) -> bool:
        """Whether columns and identifier fields are equal, whatever the schema ids."""
        return self.fields == other.fields and set(self.identifier_field_ids) == set(other.identifier_field_ids)

    def __str__(self) -> str:
        return "table {\n" + "".join(f"  {field}\n" for field in self.fields) + "}"

    def __repr__(self) -> str:
        fields = ", ".join(repr(field) for field in self.fields)
        return f"Schema({fields}, schema_id={self.schema_id}, identifier_field_ids={self.identifier_field_ids})"


def _walk(
    fields: Iterable[NestedField], parent: int | None, prefix: str, short_prefix: str, in_struct: bool = True
) -> Iterator[tuple[NestedField, int | None, str, str]]:
    """Each field with its parent's id, its dotted name and its name without list elements and map values."""
    for field in fields:
        name, short = prefix + field.name, short_prefix + field.name
        yield field, parent, name, short
        kind = field.field_type
        if isinstance(kind, NestedType):
            is_struct = isinstance(kind, StructType)
            skipped = is_struct and not in_struct and field.name != "key"
            below = short_prefix if skipped else short + "."
            yield from _walk(kind.children(), field.field_id, name + ".", below, is_struct)


def _pruned(kind: StructType, chosen: frozenset[int]) -> tuple[NestedField, ...]:
    def of_struct(struct: StructType, types: Sequence[IcebergType | None]) -> IcebergType | None:
        fields = [
            field if kept is None or field.field_id in chosen else replace(field, field_type=kept)
            for field, kept in zip(struct.fields, types, strict=True)
            if kept is not None or field.field_id in chosen
        ]
        return StructType(*fields) if fields else None

    def of_list(each: ListType, element: IcebergType | None) -> IcebergType | None:
        if element is not None and each.element_id not in chosen:
            return replace(each, element_type=element)
        return each if each.element_id in chosen else None

    def of_map(each: MapType, key: IcebergType | None, value: IcebergType | None) -> IcebergType | None:
        if value is not None and each.value_id not in chosen:
            return replace(each, value_type=value)
        return each if key is not None or chosen & {each.key_id, each.value_id} else None

    kept = fold_type(kind, leaf=lambda _: None, struct=of_struct, list=of_list, map=of_map)
    return kept.fields if isinstance(kept, StructType) else ()


def assign_fresh_ids(schema: Schema, next_id: Callable[[], int] | None = None, base: Schema | None = None) -> Schema:
    """Numbers all fields anew: first the columns of a struct, then what is nested in them, as Java does.

    Args:
        schema: the columns; their present ids are only used to carry identifier fields over.
        next_id: gives unused ids; 1, 2, 3 ... by default.
        base: if given, a field whose dotted name is in it keeps the id that it has there.

    Returns:
        The renumbered schema, with the same schema id.
    """
    draw = next_id or count(1).__next__
    new_ids: dict[int, int] = {}

    def identify(field: NestedField, name: str) -> int:
        known = base.index_by_name.get(name) if base is not None else None
        new_ids[field.field_id] = known if known is not None else draw()
        return new_ids[field.field_id]

    def renumber(kind: IcebergType, prefix: str) -> IcebergType:
        if not isinstance(kind, NestedType):
            return kind
        children = kind.children()
        ids = [identify(child, prefix + child.name) for child in children]
        types = [renumber(child.field_type, f"{prefix}{child.name}.") for child in children]
        pairs = zip(children, ids, types, strict=True)
        return kind.with_children([replace(child, field_id=each, field_type=new) for child, each, new in pairs])

    struct = renumber(schema.as_struct(), "")
    assert isinstance(struct, StructType)
    identifiers = [new_ids[each] for each in schema.identifier_field_ids]
    return Schema(*struct.fields, schema_id=schema.schema_id, identifier_field_ids=identifiers)


def check_field_ids(schema: Schema) -> None:
    """Refuses ids that the specification reserves for metadata columns, and ids below 1."""
    for field_id in schema.index_by_id:
        if not 0 <= field_id <= MAX_FIELD_ID:
            raise InvalidSchemaError(
                f"Invalid schema: column {schema.find_column_name(field_id)!r} has id {field_id}, outside of "
                f"0 to {MAX_FIELD_ID} (higher ids are reserved for metadata columns)"
            )


def columns_html(schema: Schema) -> str:
    keys = set(schema.identifier_field_ids)
    rows = (
        (
            field.field_id,
            field.name,
            field.field_type,
            "required" if field.required else "",
            "identifier" if field.field_id in keys else "",
            field.doc or "",
        )
        for field in schema.fields
    )
    return rows_table(("id", "column", "type", "", "", "comment"), rows)
