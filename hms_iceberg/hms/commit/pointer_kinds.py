"""The two kinds of pointers that are swapped, of tables and of views: their rows, and the error of a wrong kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from hms_iceberg.errors import (
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ViewAlreadyExistsError,
)
from hms_iceberg.hms.commit.pointer_swap import Guard, PointerSwap
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import (
    is_iceberg_view,
    new_row,
    new_view_row,
    table_pointer,
    update_row,
    update_view_row,
    view_pointer,
)
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer, ViewMetadataVersion


@dataclass(frozen=True)
class TableSwap(PointerSwap[MetadataVersion]):
    noun: ClassVar[str] = "table"

    def pointer(self, row: ttypes.Table) -> TablePointer:
        return table_pointer(row)

    def renamable(self, row: ttypes.Table) -> TablePointer:
        """The pointer of an external table's row: the metastore would move the files of a managed table."""
        pointer = table_pointer(row)
        if (row.parameters or {}).get("EXTERNAL", "").upper() != "TRUE":
            name = ".".join(pointer.identifier)
            raise UnsupportedError(
                f"Cannot rename table {name}: it is a managed table, and the metastore would move its files away from "
                f"its metadata. Make it external first: alter table {name} set tblproperties ('EXTERNAL'='TRUE')"
            )
        return pointer

    def lock_properties(self, version: MetadataVersion) -> Mapping[str, str]:
        return version.metadata.properties

    def _new_row(self, identifier: Identifier, new: MetadataVersion) -> ttypes.Table:
        return new_row(identifier, new, self.settings)

    def _update_row(self, row: ttypes.Table, base: MetadataVersion, new: MetadataVersion) -> None:
        update_row(row, base, new, self.settings)


@dataclass(frozen=True)
class ViewSwap(PointerSwap[ViewMetadataVersion]):
    noun: ClassVar[str] = "view"

    def read(self, identifier: Identifier) -> ttypes.Table:
        try:
            return super().read(identifier)
        except NoSuchTableError as error:
            raise NoSuchViewError(f"There is no {self.named(identifier)} in {self.client.pool}.") from error

    def create(self, identifier: Identifier, new: ViewMetadataVersion) -> None:
        try:
            super().create(identifier, new)
        except TableAlreadyExistsError as error:
            name, row = self.named(identifier), self._find(identifier)
            if row is not None and is_iceberg_view(row):
                raise ViewAlreadyExistsError(
                    f"Cannot create {name}: it exists already. Replace it, or choose another name."
                ) from error
            raise TableAlreadyExistsError(
                f"Cannot create {name}: a table or a Hive view of that name exists. Choose another name."
            ) from error

    def commit(
        self,
        identifier: Identifier,
        base: ViewMetadataVersion,
        new: ViewMetadataVersion,
        guard: Guard,
        compare: bool,
        row: ttypes.Table | None = None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        try:
            super().commit(identifier, base, new, guard, compare, row, more)
        except NoSuchTableError as error:
            raise NoSuchViewError(f"The {self.named(identifier)} was dropped meanwhile.") from error

    def pointer(self, row: ttypes.Table) -> TablePointer:
        return view_pointer(row)

    def renamable(self, row: ttypes.Table) -> TablePointer:
        return view_pointer(row)

    def lock_properties(self, version: ViewMetadataVersion) -> Mapping[str, str]:
        """Empty: a view is locked as its catalog says."""
        return {}

    def _new_row(self, identifier: Identifier, new: ViewMetadataVersion) -> ttypes.Table:
        return new_view_row(identifier, new, self.settings)

    def _update_row(self, row: ttypes.Table, base: ViewMetadataVersion, new: ViewMetadataVersion) -> None:
        update_view_row(row, base, new, self.settings)
