"""A schema under change: fields by id in an editable tree.

Names in changes stand for the columns of the schema as it was before any of them; a name that it did not have (or
whose column was dropped) stands for a column that was added or renamed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hms_iceberg.errors import InvalidSchemaChangeError, InvalidSchemaError, UnknownColumnError
from hms_iceberg.spec.data_types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
)
from hms_iceberg.spec.promotion import can_promote, promotions_of
from hms_iceberg.spec.schema import Schema

Path = tuple[str, ...]


class SchemaEditor:
    """Applies changes one by one, and builds the new schema."""

    def __init__(
        self,
        schema: Schema,
        last_column_id: int,
        format_version: int,
        case_sensitive: bool,
        allow_incompatible: bool,
    ) -> None:
        self.original = schema
        self.last_column_id = last_column_id
        self.format_version = format_version
        self.case_sensitive = case_sensitive
        self.allow_incompatible = allow_incompatible
        self._fields: dict[int, NestedField] = {}
        self._children: dict[int | None, list[int]] = {}
        self._parents: dict[int, int | None] = {}
        self._deleted: set[int] = set()
        self._added: set[int] = set()
        self._changed: set[int] = set()
        self._identifiers: list[int] = list(schema.identifier_field_ids)
        self._register(None, schema.fields)

    def _register(self, parent: int | None, fields: Iterable[NestedField]) -> None:
        self._children.setdefault(parent, [])
        for field in fields:
            self._fields[field.field_id] = field
            self._parents[field.field_id] = parent
            self._children[parent].append(field.field_id)
            if isinstance(field.field_type, NestedType):
                self._register(field.field_id, field.field_type.children())

    # ------------------------------------------------------------------------------------------- look-up

    def find(self, path: Path) -> int:
        """The id that a path stands for."""
        name = ".".join(path)
        try:
            field_id = self.original.find_id(name, self.case_sensitive)
            if field_id not in self._deleted:
                return field_id
            unknown = UnknownColumnError(f"Column {name!r} is deleted by the same change of the schema.")
        except UnknownColumnError as error:
            unknown = error
        found = self._walk(path)
        if found is None:
            raise unknown
        return found

    def _walk(self, path: Path, here: int | None = None) -> int | None:
        """The id at a path of the present schema, with or without `element` and `value` in it; names may hold dots."""
        if not path:
            return here
        for size in range(1, len(path) + 1):
            child = self._child(here, ".".join(path[:size]))
            found = None if child is None else self._walk(path[size:], child)
            if found is not None:
                return found
        inner = None if here is None else self._collection_child(here)
        return None if inner is None else self._walk(path, inner)

    def _child(self, parent: int | None, name: str) -> int | None:
        wanted = name if self.case_sensitive else name.lower()
        for child in self._children.get(parent, ()):
            own = self._fields[child].name
            if (own if self.case_sensitive else own.lower()) == wanted:
                return child
        return None

    def _collection_child(self, field_id: int) -> int | None:
        kind = self._fields[field_id].field_type
        if isinstance(kind, ListType):
            return kind.element_id
        return kind.value_id if isinstance(kind, MapType) else None

    def name_of(self, field_id: int) -> str:
        """The dotted name of a field as it is now."""
        parts = [self._fields[field_id].name]
        while (parent := self._parents[field_id]) is not None:
            parts.append(self._fields[parent].name)
            field_id = parent
        return ".".join(reversed(parts))

    def _refused(self, what: str, why: str, hint: str) -> InvalidSchemaChangeError:
        return InvalidSchemaChangeError(f"Cannot {what}: {why}. {hint}")

    # ------------------------------------------------------------------------------------------- changes

    def add(self, path: Path, kind: IcebergType, doc: str | None, required: bool, default: Any) -> None:
        """Adds a column at the end of its struct; a list or map as parent stands for its elements or values."""
        name, parent = ".".join(path), None
        if len(path) > 1:
            parent = self._struct_of(self.find(path[:-1]), name)
        if self._child(parent, path[-1]) is not None:
            raise self._refused(f"add column {name!r}", "there is a column of that name", "Choose another name.")
        if required and default is None and not self.allow_incompatible:
            raise self._refused(
                f"add required column {name!r}",
                "rows written before have no value for it",
                "Add it as optional, with a default (format-version 3), or with allow_incompatible_changes=True.",
            )
        self._check_default(name, default)
        field_id = self._next_id()
        field = NestedField(field_id, path[-1], self._renumbered(kind), required, doc, default, default)
        self._register(parent, [field])
        self._added.add(field_id)

    def _renumbered(self, kind: IcebergType) -> IcebergType:
        """The type with ids of its own, first those of a struct's fields, then what is nested in them, as Java does.
        Ids that the caller gave do not matter, and need not even be unique."""
        if not isinstance(kind, NestedType):
            return kind
        children = kind.children()
        ids = [self._next_id() for _ in children]
        return kind.with_children(
            [
                replace(child, field_id=each, field_type=self._renumbered(child.field_type))
                for each, child in zip(ids, children, strict=True)
            ]
        )

    def _next_id(self) -> int:
        self.last_column_id += 1
        return self.last_column_id

    def _check_default(self, name: str, default: Any) -> None:
        if default is not None and self.format_version < 3:
            raise self._refused(
                f"give column {name!r} a default",
                f"the table has format version {self.format_version}, and defaults need 3",
                "Upgrade the table (property format-version), or leave the default out.",
            )

    def _struct_of(self, field_id: int, adding: str) -> int:
        inner = self._collection_child(field_id)
        target = field_id if inner is None else inner
        kind = self._fields[target].field_type
        if not isinstance(kind, StructType):
            raise self._refused(
                f"add column {adding!r}", f"{self.name_of(target)!r} is {kind}, not a struct", "Name a struct."
            )
        return target

    def delete(self, path: Path) -> None:
        """Drops a column with all that is nested in it."""
        field_id, name = self.find(path), ".".join(path)
        parent = self._parents[field_id]
        if parent is not None and not isinstance(self._fields[parent].field_type, StructType):
            raise self._refused(f"drop {name!r}", f"it is a part of {self.name_of(parent)!r}", "Drop the whole column.")
        if field_id in self._added or self._added & self._below(field_id):
            raise self._refused(f"drop column {name!r}", "the same change adds to it", "Leave one of the two out.")
        if field_id in self._changed:
            raise self._refused(f"drop column {name!r}", "the same change updates it", "Leave one of the two out.")
        self._children[parent].remove(field_id)
        self._deleted |= {field_id} | self._below(field_id)

    def _below(self, field_id: int) -> set[int]:
        below: set[int] = set()
        for child in self._children.get(field_id, ()):
            below |= {child} | self._below(child)
        return below

    def rename(self, path: Path, new_name: str) -> None:
        """Renames a column; whether the new name is free is told when the schema is built."""
        if not isinstance(new_name, str) or not new_name:
            raise self._refused(f"rename column {'.'.join(path)!r}", f"{new_name!r} is no name", "Pass a text.")
        field_id = self.find(path)
        parent = self._parents[field_id]
        if parent is not None and not isinstance(self._fields[parent].field_type, StructType):
            raise self._refused(
                f"rename {'.'.join(path)!r}", f"it is a part of {self.name_of(parent)!r}", "Rename that column."
            )
        self._change(field_id, name=new_name)

    def _change(self, field_id: int, **attributes: Any) -> None:
        changed = replace(self._fields[field_id], **attributes)
        if changed != self._fields[field_id]:
            self._fields[field_id] = changed
            self._changed.add(field_id)

    def retype(self, path: Path, kind: IcebergType) -> None:
        """Promotes a column to a wider type."""
        field_id = self.find(path)
        old = self._fields[field_id].field_type
        if old != kind and (kind.is_nested or not can_promote(old, kind, self.format_version)):
            raise self._refused(
                f"change column {'.'.join(path)!r} from {old} to {kind}",
                f"a column of type {old} may become {promotions_of(old, self.format_version)}",
                "Add a new column of that type instead.",
            )
        self._change(field_id, field_type=kind)

    def set_required(self, path: Path, required: bool) -> None:
        """Makes a column optional, or (an incompatible change) required."""
        field_id = self.find(path)
        field = self._fields[field_id]
        holds_no_nulls = field.required or (field_id in self._added and field.initial_default is not None)
        if required and not holds_no_nulls and not self.allow_incompatible:
            raise self._refused(
                f"make column {'.'.join(path)!r} required",
                "rows written before may hold nulls in it",
                "If you know that they do not, pass allow_incompatible_changes=True.",
            )
        self._change(field_id, required=required)

    def set_doc(self, path: Path, doc: str | None) -> None:
        """Sets the text that describes a column; None removes it."""
        field_id = self.find(path)
        self._change(field_id, doc=doc)

    def set_default(self, path: Path, default: Any) -> None:
        """Sets what rows written from now on hold if they have no value; None removes it."""
        field_id = self.find(path)
        field = self._fields[field_id]
        self._check_default(".".join(path), default)
        if default is None and field.required and field.initial_default is not None:
            raise self._refused(
                f"remove the default of column {'.'.join(path)!r}", "it is required", "Make it optional first."
            )
        self._change(field_id, write_default=default)

    def move(self, path: Path, reference: Path | None, after: bool) -> None:
        """Moves a column before or after another of the same struct; without one, to the front."""
        field_id = self._find_newest(path)
        siblings = self._children[self._parents[field_id]]
        parent = self._parents[field_id]
        if parent is not None and not isinstance(self._fields[parent].field_type, StructType):
            raise self._refused(f"move {'.'.join(path)!r}", "it is not a field of a struct", "Move the whole column.")
        if reference is None:
            siblings.remove(field_id)
            siblings.insert(0, field_id)
            return
        other = self._find_newest(reference)
        if other == field_id:
            raise self._refused(f"move column {'.'.join(path)!r}", "it would be next to itself", "Name another column.")
        if other not in siblings:
            raise self._refused(
                f"move column {'.'.join(path)!r}",
                f"{'.'.join(reference)!r} is in another struct",
                "Columns move within their struct only.",
            )
        siblings.remove(field_id)
        siblings.insert(siblings.index(other) + (1 if after else 0), field_id)

    def _find_newest(self, path: Path) -> int:
        """As `find`, but a column that the change added is preferred."""
        found = self._walk(path)
        return found if found is not None and found in self._added else self.find(path)

    def set_identifiers(self, names: Iterable[Path]) -> None:
        """Sets the fields that together identify a row."""
        self._identifiers = [self._find_newest(path) for path in names]

    # --------------------------------------------------------------------------------------------- result

    def build(self) -> Schema:
        for field_id in self._identifiers:
            if field_id in self._deleted:
                raise self._refused(
                    f"drop column {self.original.find_column_name(field_id)!r}",
                    "it is an identifier field, or encloses one",
                    "Set other identifier fields in the same change.",
                )
        try:
            fields = [self._built(child) for child in self._children[None]]
            return Schema(*fields, schema_id=self.original.schema_id, identifier_field_ids=tuple(self._identifiers))
        except InvalidSchemaError as error:
            raise InvalidSchemaChangeError(f"Cannot change the schema: {error}") from error

    def _built(self, field_id: int) -> NestedField:
        field = self._fields[field_id]
        kind = field.field_type
        if isinstance(kind, StructType):
            kind = StructType(*(self._built(child) for child in self._children.get(field_id, ())))
        elif isinstance(kind, NestedType):
            children = [self._built(child.field_id) for child in kind.children()]
            if isinstance(kind, MapType) and children[0] != kind.key_field:
                raise self._refused(
                    f"change the keys of {self.name_of(field_id)!r}", "keys identify entries", "Add a new column."
                )
            kind = kind.with_children(children)
        return replace(field, field_type=kind)
