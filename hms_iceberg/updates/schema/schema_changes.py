"""Single changes of a schema, each an intention by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import InvalidSchemaChangeError
from hms_iceberg.spec.data_types import IcebergType, ListType, MapType, NestedField, StructType
from hms_iceberg.spec.promotion import can_promote
from hms_iceberg.spec.schema import Schema
from hms_iceberg.updates.schema.schema_editor import Path, SchemaEditor


class SchemaChange(ABC):
    """One change: made on an editor, and the columns that it relies on or brings."""

    @abstractmethod
    def edit(self, editor: SchemaEditor) -> None:
        """Makes the change in a schema editor."""

    def touches(self) -> tuple[Path, ...]:
        """Columns that must be unchanged since the change was made; none by default."""
        return ()

    def adds(self) -> tuple[Path, ...]:
        """Columns that the change adds, and that nobody else may have added since; none by default."""
        return ()

    @abstractmethod
    def __str__(self) -> str:
        """The change in words that complete 'cannot …'."""


@dataclass(frozen=True)
class ColumnChange(SchemaChange):
    """A change of one column, which must be unchanged since."""

    path: Path

    def touches(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass(frozen=True)
class AddColumn(SchemaChange):
    """Adds a column; `default` is a stored value. Its parent is found by name when the change is made."""

    path: Path
    field_type: IcebergType
    doc: str | None = None
    required: bool = False
    default: Any = None

    def edit(self, editor: SchemaEditor) -> None:
        editor.add(self.path, self.field_type, self.doc, self.required, self.default)

    def adds(self) -> tuple[Path, ...]:
        return (self.path,)

    def __str__(self) -> str:
        return f"add column {'.'.join(self.path)!r} of type {self.field_type}"


@dataclass(frozen=True)
class DeleteColumn(ColumnChange):
    """Drops a column."""

    def edit(self, editor: SchemaEditor) -> None:
        editor.delete(self.path)

    def __str__(self) -> str:
        return f"drop column {'.'.join(self.path)!r}"


@dataclass(frozen=True)
class RenameColumn(ColumnChange):
    """Renames a column within its struct."""

    new_name: str

    def edit(self, editor: SchemaEditor) -> None:
        editor.rename(self.path, self.new_name)

    def adds(self) -> tuple[Path, ...]:
        return ((*self.path[:-1], self.new_name),)

    def __str__(self) -> str:
        return f"rename column {'.'.join(self.path)!r} to {self.new_name!r}"


@dataclass(frozen=True)
class UpdateColumn(ColumnChange):
    """Changes a column's type, whether it is required, or its doc; None leaves them."""

    field_type: IcebergType | None = None
    required: bool | None = None
    doc: str | None = None

    def edit(self, editor: SchemaEditor) -> None:
        if self.field_type is not None:
            editor.retype(self.path, self.field_type)
        if self.required is not None:
            editor.set_required(self.path, self.required)
        if self.doc is not None:
            editor.set_doc(self.path, self.doc)

    def __str__(self) -> str:
        wanted = {"type": self.field_type, "required": self.required, "doc": self.doc}
        text = ", ".join(f"{key} {value}" for key, value in wanted.items() if value is not None)
        return f"change column {'.'.join(self.path)!r} to {text}"


@dataclass(frozen=True)
class SetDefault(ColumnChange):
    """Sets a column's write default, a stored value; None removes it."""

    default: Any

    def edit(self, editor: SchemaEditor) -> None:
        editor.set_default(self.path, self.default)

    def __str__(self) -> str:
        return f"set the default of column {'.'.join(self.path)!r} to {self.default!r}"


@dataclass(frozen=True)
class MoveColumn(ColumnChange):
    """Moves a column next to `reference`, or to the front of its struct if that is None."""

    reference: Path | None = None
    after: bool = False

    def edit(self, editor: SchemaEditor) -> None:
        editor.move(self.path, self.reference, self.after)

    def touches(self) -> tuple[Path, ...]:
        return (self.path,) if self.reference is None else (self.path, self.reference)

    def __str__(self) -> str:
        return f"move column {'.'.join(self.path)!r}"


@dataclass(frozen=True)
class SetIdentifierFields(SchemaChange):
    """Sets the fields that together identify a row."""

    paths: tuple[Path, ...]

    def edit(self, editor: SchemaEditor) -> None:
        editor.set_identifiers(self.paths)

    def touches(self) -> tuple[Path, ...]:
        return self.paths

    def __str__(self) -> str:
        return f"set the identifier fields to {['.'.join(path) for path in self.paths]}"


@dataclass(frozen=True)
class UnionByName(SchemaChange):
    """Adds the columns of another schema that are missing, by name, promotes types, and makes columns optional if it
    has them so; nothing is dropped or narrowed, and nothing added twice."""

    schema: Schema

    def edit(self, editor: SchemaEditor) -> None:
        _union_struct(editor, (), editor.build().as_struct(), self.schema.as_struct())

    def __str__(self) -> str:
        return "add the columns of another schema"


def _union_struct(editor: SchemaEditor, prefix: Path, mine: StructType, theirs: StructType) -> None:
    for field in theirs.fields:
        own = mine.field_by_name(field.name, editor.case_sensitive)
        if own is None:
            editor.add((*prefix, field.name), field.field_type, field.doc, False, field.initial_default)
        else:
            _union_field(editor, (*prefix, own.name), own, field)


def _union_field(editor: SchemaEditor, path: Path, mine: NestedField, theirs: NestedField) -> None:
    old, new = mine.field_type, theirs.field_type
    if isinstance(old, StructType) and isinstance(new, StructType):
        _union_struct(editor, path, old, new)
    elif isinstance(old, ListType) and isinstance(new, ListType):
        _union_field(editor, (*path, "element"), old.element_field, new.element_field)
    elif isinstance(old, MapType) and isinstance(new, MapType):
        _union_field(editor, (*path, "key"), old.key_field, new.key_field)
        _union_field(editor, (*path, "value"), old.value_field, new.value_field)
    elif old != new:
        if can_promote(old, new, editor.format_version):
            editor.retype(path, new)
        elif not can_promote(new, old, editor.format_version):
            raise InvalidSchemaChangeError(
                f"Cannot unite the schemas: column {'.'.join(path)!r} is {old} in the table and {new} in the other, "
                "and neither may become the other. Give one of the columns another name."
            )
    if not theirs.required:
        editor.set_required(path, False)
    if theirs.doc is not None:
        editor.set_doc(path, theirs.doc)


def touched(changes: tuple[SchemaChange, ...]) -> Iterator[tuple[SchemaChange, Path]]:
    """Each change with each column that it relies on."""
    for change in changes:
        for path in change.touches():
            yield change, path
