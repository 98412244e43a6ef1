"""Builder of a change of the schema, with PyIceberg's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import UnknownColumnError
from hms_iceberg.spec.data_types import IcebergType, StructType, parse_primitive
from hms_iceberg.spec.json_model import column_names
from hms_iceberg.spec.schema import Schema
from hms_iceberg.spec.values.single_values import from_python
from hms_iceberg.table.changes.pending import PendingChange, StartedChange
from hms_iceberg.updates.machinery.update import Update
from hms_iceberg.updates.schema.schema_changes import (
    AddColumn,
    DeleteColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetIdentifierFields,
    UnionByName,
    UpdateColumn,
)
from hms_iceberg.updates.schema.schema_update import SchemaUpdate

if TYPE_CHECKING:
    import pyarrow as pa

Name = str | tuple[str, ...]


class UpdateSchema(PendingChange):
    """Changes the schema; columns are named by dotted text, or by a tuple of names if one of them has a dot in it.

    Each method that adds a step returns this object, so that calls can be chained.

    >>> with table.update_schema() as update:
    ...     update.add_column("address.zip", StringType())
    ...     update.rename_column("amount", "price")
    """

    def __init__(
        self, started: StartedChange, allow_incompatible_changes: bool = False, case_sensitive: bool = True
    ) -> None:
        super().__init__(started)
        self._changes: tuple[SchemaChange, ...] = ()
        self._allow_incompatible = allow_incompatible_changes
        self._case_sensitive = case_sensitive

    def _update(self, changes: tuple[SchemaChange, ...]) -> SchemaUpdate:
        return SchemaUpdate(changes, self._case_sensitive, self._allow_incompatible)

    def _updates(self) -> list[Update]:
        return [self._update(self._changes)] if self._changes else []

    def _add(self, change: SchemaChange) -> UpdateSchema:
        # Names may clash for a while, and identifier fields be set after they were dropped: the schema as a whole is
        # checked by `apply` and `commit`.
        changes = (*self._changes, change)
        self._update(changes).edited(self._metadata)
        self._changes = changes
        return self

    def apply(self) -> Schema:
        """The schema that the changes would make; nothing is committed."""
        return self._preview(self._update(self._changes)).schema()

    def case_sensitive(self, case_sensitive: bool) -> UpdateSchema:
        """Sets whether column names must match in case, from here on."""
        self._case_sensitive = case_sensitive
        return self

    def add_column(
        self,
        path: Name,
        field_type: IcebergType | str,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> UpdateSchema:
        """Adds a column at the end of its struct, which holds the default, or null, in the present rows.

        Args:
            path: the name; a list or map as parent stands for its elements or values.
            field_type: a type, or its text (`"decimal(9,2)"`).
            doc: a description.
            required: whether nulls are refused; needs a default (format version 3), or `allow_incompatible_changes`.
            default_value: the default, as Python or stored value; needs format version 3.

        Raises:
            InvalidSchemaChangeError: the name is taken, or the column is required and has no default.
            UnknownColumnError: the parent does not exist.
            InvalidInputError: the type's text cannot be read, or the default is no value of the type.
        """
        kind = parse_primitive(field_type) if isinstance(field_type, str) else field_type
        default = _default(kind, default_value)
        return self._add(AddColumn(_path(path), kind, doc, required, default))

    def delete_column(self, path: Name) -> UpdateSchema:
        """Drops a column with all that is nested in it.

        Raises:
            InvalidSchemaChangeError: a partition field, the sort order or the identifier fields need it.
            UnknownColumnError: it does not exist.
        """
        return self._add(DeleteColumn(_path(path)))

    def rename_column(self, path_from: Name, new_name: str) -> UpdateSchema:
        """Renames a column; `new_name` is its own name, without that of a struct around it.

        Args:
            path_from: the column; a nested one with dots, or as a tuple.
            new_name: its own new name, without that of a struct around it.

        Raises:
            UnknownColumnError: there is no such column.
            InvalidSchemaChangeError: the new name is taken.
        """
        return self._add(RenameColumn(_path(path_from), new_name))

    def update_column(
        self,
        path: Name,
        field_type: IcebergType | str | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> UpdateSchema:
        """Changes the type, nullability or description of a column, as far as they are given.

        Args:
            path: the column; a nested one with dots, or as a tuple.
            field_type: the new type, a promotion of the present one; None leaves it.
            required: whether nulls are refused; None leaves it.
            doc: the new description; None leaves it.

        Raises:
            InvalidSchemaChangeError: the type is no promotion, or optional becomes required without
                `allow_incompatible_changes`.
            UnknownColumnError: there is no such column.
            InvalidSchemaError: the type's text cannot be read.
        """
        kind = parse_primitive(field_type) if isinstance(field_type, str) else field_type
        return self._add(UpdateColumn(_path(path), kind, required, doc))

    def make_column_optional(self, path: Name) -> UpdateSchema:
        """Lets a column hold nulls."""
        return self._add(UpdateColumn(_path(path), required=False))

    def set_default_value(self, path: Name, default_value: Any) -> UpdateSchema:
        """Sets the default for rows written from now on that lack a value (format version 3); None removes it.

        Args:
            path: the column; a nested one with dots, or as a tuple.
            default_value: a Python value of the column's type; None removes the default.

        Raises:
            UnknownColumnError: there is no such column.
            InvalidInputError: not a value of the column's type.
        """
        default = None
        if default_value is not None:
            schema = self.apply() if self._changes else self._metadata.schema()
            default = _default(schema.find_type(".".join(_path(path)), self._case_sensitive), default_value)
        return self._add(SetDefault(_path(path), default))

    def move_first(self, path: Name) -> UpdateSchema:
        """Moves a column to the front of its struct."""
        return self._add(MoveColumn(_path(path)))

    def move_before(self, path: Name, before_path: Name) -> UpdateSchema:
        """Moves a column before another one of its struct.

        Args:
            path: the column that moves; a nested one with dots, or as a tuple.
            before_path: a column of the same struct.

        Raises:
            UnknownColumnError: one of them does not exist.
            InvalidSchemaChangeError: they are not columns of one struct.
        """
        return self._add(MoveColumn(_path(path), self._neighbour(path, before_path)))

    def move_after(self, path: Name, after_name: Name) -> UpdateSchema:
        """Moves a column after another one of its struct.

        Args:
            path: the column that moves; a nested one with dots, or as a tuple.
            after_name: a column of the same struct.

        Raises:
            UnknownColumnError: one of them does not exist.
            InvalidSchemaChangeError: they are not columns of one struct.
        """
        return self._add(MoveColumn(_path(path), self._neighbour(path, after_name), after=True))

    def _neighbour(self, path: Name, other: Name) -> tuple[str, ...]:
        """The path of the column to move beside; a bare name stands for a sibling of a nested column."""
        own, reference = _path(path), _path(other)
        if len(reference) == 1 and len(own) > 1:
            sibling = (*own[:-1], *reference)
            try:
                self.apply().find_id(".".join(sibling), self._case_sensitive)
            except UnknownColumnError:
                return reference
            return sibling
        return reference

    def set_identifier_fields(self, *names: str) -> UpdateSchema:
        """Sets the fields that together identify a row; none removes them."""
        return self._add(SetIdentifierFields(tuple(_path(name) for name in names)))

    def union_by_name(self, new_schema: Schema | pa.Schema, format_version: int | None = None) -> UpdateSchema:
        """Adds missing columns of another schema, promotes types, and makes present columns optional where the other's
        are.

        Args:
            new_schema: the other schema.
            format_version: the version whose types an Arrow schema gets; the table's by default.
        """
        from hms_iceberg.arrow.columns.arrow_schema import from_arrow

        version = format_version or self._metadata.format_version
        schema = new_schema if isinstance(new_schema, Schema) else from_arrow(new_schema, format_version=version)
        return self._add(UnionByName(schema))


def _default(kind: IcebergType, value: Any) -> Any:
    """The stored value of a default; an empty struct stays one, whose fields have their own defaults."""
    if isinstance(kind, StructType) and isinstance(value, Mapping) and not value:
        return {}
    return from_python(kind, value)


def _path(name: Name | Iterable[str]) -> tuple[str, ...]:
    return tuple(name.split(".")) if isinstance(name, str) else column_names(name, "Path of a column")
