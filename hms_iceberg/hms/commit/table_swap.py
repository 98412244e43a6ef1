"""Swaps of tables: their rows, and which of them may be renamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hms_iceberg.errors import UnsupportedError
from hms_iceberg.hms.commit.pointer_swap import PointerSwap
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.table_rows import new_row, table_pointer, update_row
from hms_iceberg.metastore import Identifier, MetadataVersion, TablePointer


@dataclass(frozen=True)
class TableSwap(PointerSwap[MetadataVersion]):
    """Swaps of the tables of one metastore."""

    noun: ClassVar[str] = "table"

    def pointer(self, row: ttypes.Table) -> TablePointer:
        """The pointer of an Iceberg table's row."""
        return table_pointer(row)

    def renamable(self, row: ttypes.Table) -> TablePointer:
        """The pointer of an external table's row.

        Raises:
            UnsupportedError: the metastore would move the table's files.
        """
        pointer = table_pointer(row)
        if (row.parameters or {}).get("EXTERNAL", "").upper() != "TRUE":
            name = ".".join(pointer.identifier)
            raise UnsupportedError(
                f"Cannot rename table {name}: it is a managed table, and the metastore would move its files away from "
                f"its metadata. Make it external first: alter table {name} set tblproperties ('EXTERNAL'='TRUE')"
            )
        return pointer

    def lock_properties(self, version: MetadataVersion) -> Mapping[str, str]:
        """The table's properties."""
        return version.metadata.properties

    def _new_row(self, identifier: Identifier, new: MetadataVersion) -> ttypes.Table:
        return new_row(identifier, new, self.settings)

    def _update_row(self, row: ttypes.Table, base: MetadataVersion, new: MetadataVersion) -> None:
        update_row(row, base, new, self.settings)
