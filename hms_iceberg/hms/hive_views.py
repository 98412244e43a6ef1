"""Iceberg views in the Hive Metastore: rows of Hive views that point at view metadata, as Iceberg's Java has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar

from hms_iceberg.errors import (
    CommitFailedError,
    MetastoreAnswerLostError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from hms_iceberg.hms.client import HmsClient
from hms_iceberg.hms.exclusion import Exclusion
from hms_iceberg.hms.listing import list_names
from hms_iceberg.hms.lost_answers import ensure_made
from hms_iceberg.hms.renaming import rename_row
from hms_iceberg.hms.settings import RowSettings, current_user
from hms_iceberg.hms.swap import PointerSwap
from hms_iceberg.hms.table_rows import (
    METADATA_LOCATION,
    OWNER,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE,
    VIRTUAL_VIEW,
    put_parameter,
    shown_schema,
    storage_descriptor,
)
from hms_iceberg.hms.thrift_types import ttypes
from hms_iceberg.metastore import Identifier, TablePointer, Version, ViewMetadataVersion
from hms_iceberg.spec.views.view_metadata import ViewVersion

ICEBERG_VIEW = "ICEBERG-VIEW"
_RESERVED = (TABLE_TYPE, METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, "uuid", "current-schema", OWNER)


# ---------------------------------------------------------------------------------------------------- rows


def is_iceberg_view(row: ttypes.Table) -> bool:
    """Whether a row is an Iceberg view's, and not a table's or a Hive view's."""
    parameters = row.parameters or {}
    return (
        (row.tableType or "").upper() == VIRTUAL_VIEW
        and parameters.get(TABLE_TYPE, "").upper() == ICEBERG_VIEW
        and bool(parameters.get(METADATA_LOCATION))
    )


def view_pointer(row: ttypes.Table) -> TablePointer:
    """The pointer that a view's row holds.

    Raises:
        NoSuchViewError: the row is of something else; says of what.
    """
    if not is_iceberg_view(row):
        kind = "a Hive view. Query it with Spark." if row.tableType == VIRTUAL_VIEW else "a table: load_table loads it."
        raise NoSuchViewError(f"There is no Iceberg view {row.dbName}.{row.tableName}: it is {kind}")
    parameters = dict(row.parameters)
    return TablePointer((row.dbName, row.tableName), parameters[METADATA_LOCATION], parameters)


def new_view_row(identifier: Identifier, new: ViewMetadataVersion, settings: RowSettings) -> ttypes.Table:
    """The row of a view that is created."""
    now = int(time.time())
    row = ttypes.Table(
        tableName=identifier[1],
        dbName=identifier[0],
        owner=new.metadata.properties.get(OWNER) or current_user(),
        createTime=now,
        lastAccessTime=now,
        retention=2**31 - 1,
        partitionKeys=[],
        parameters={},
        tableType=VIRTUAL_VIEW,
    )
    update_view_row(row, None, new, settings)
    return row


def update_view_row(
    row: ttypes.Table, base: ViewMetadataVersion | None, new: ViewMetadataVersion, settings: RowSettings
) -> None:
    """Makes a view's row show `new`, in place: columns, properties, and its query for those who read Hive's views."""
    name, metadata = f"{row.dbName}.{row.tableName}", new.metadata
    row.sd = storage_descriptor(metadata.schema(), metadata.location, False, settings, name)
    parameters = dict(row.parameters or {})
    for key in base.metadata.properties if base else ():
        if key not in metadata.properties and key not in _RESERVED:
            parameters.pop(key, None)
    for key, value in metadata.properties.items():
        if key not in _RESERVED:
            put_parameter(parameters, key, value, settings, name)
    parameters.update({TABLE_TYPE: ICEBERG_VIEW, METADATA_LOCATION: new.location, "uuid": metadata.view_uuid})
    if base is not None:
        parameters[PREVIOUS_METADATA_LOCATION] = base.location
    parameters.pop("current-schema", None)
    if settings.max_value_length:
        put_parameter(parameters, "current-schema", shown_schema(metadata.schema()), settings, name)
    row.parameters = parameters
    row.viewOriginalText = row.viewExpandedText = _shown_query(metadata.current_version())


def _shown_query(version: ViewVersion) -> str:
    """The query that a Hive view's row holds: Hive's, or else the first there is."""
    shown = version.sql_for("hive") or (version.sql_for(version.dialects[0]) if version.dialects else None)
    return shown.sql if shown else ""


# --------------------------------------------------------------------------------------------------- calls


@dataclass(frozen=True)
class ViewSwap(PointerSwap):
    """Swaps of the views of one metastore."""

    noun: ClassVar[str] = "view"

    def _new_row(self, identifier: Identifier, new: Version) -> ttypes.Table:
        assert isinstance(new, ViewMetadataVersion)
        return new_view_row(identifier, new, self.settings)

    def _update_row(self, row: ttypes.Table, base: Version, new: Version) -> None:
        assert isinstance(base, ViewMetadataVersion) and isinstance(new, ViewMetadataVersion)
        update_view_row(row, base, new, self.settings)

    def _pointer(self, row: ttypes.Table) -> TablePointer:
        return view_pointer(row)


class HiveViews:
    """Implements `ViewMetastore`.

    Args:
        client: the metastore.
        swap: what moves a row's pointer.
        exclusion: holds a name's lock, or what stands in for it, for the time of a context.
        compares: whether the server is to compare, given what is held.
    """

    def __init__(
        self,
        client: HmsClient,
        swap: ViewSwap,
        exclusion: Callable[[Identifier, Mapping[str, str]], AbstractContextManager[Exclusion]],
        compares: Callable[[Exclusion], bool],
    ) -> None:
        self._client = client
        self._swap = swap
        self._exclusion = exclusion
        self._compares = compares

    def load(self, identifier: Identifier) -> TablePointer:
        """The view's current pointer. See the port."""
        name = _lower(identifier)
        try:
            return view_pointer(self._client.get_table(*name))
        except NoSuchTableError as error:
            raise NoSuchViewError(f"There is no view {'.'.join(name)} in {self._client.pool}.") from error

    def swap(self, identifier: Identifier, base: ViewMetadataVersion | None, new: ViewMetadataVersion) -> None:
        """Makes `new` the view's metadata. See the port."""
        name = _lower(identifier)
        if base is None:
            self._create(name, new)
            return
        try:
            with self._exclusion(name, {}) as exclusion:
                self._swap.commit(name, base, new, exclusion, self._compares(exclusion))
        except NoSuchTableError as error:
            raise NoSuchViewError(f"The view {'.'.join(name)} was dropped meanwhile.") from error

    def _create(self, name: Identifier, new: ViewMetadataVersion) -> None:
        try:
            self._swap.create(name, new)
        except TableAlreadyExistsError as error:
            if self._is_view(name):
                raise ViewAlreadyExistsError(
                    f"Cannot create view {'.'.join(name)}: it exists already. Replace it, or choose another name."
                ) from error
            raise TableAlreadyExistsError(
                f"Cannot create view {'.'.join(name)}: a table or a Hive view of that name exists. Choose another name."
            ) from error

    def _is_view(self, name: Identifier) -> bool:
        try:
            self.load(name)
        except NoSuchViewError:
            return False
        return True

    @contextmanager
    def exclusive(self, identifier: Identifier) -> Iterator[None]:
        """Holds the view's lock. See the port."""
        with self._exclusion(_lower(identifier), {}):
            yield

    def list(self, namespace: str) -> list[Identifier]:
        """The namespace's Iceberg views. See the port."""
        names = list_names(self._client, namespace.lower(), ICEBERG_VIEW, is_iceberg_view)
        return [(namespace.lower(), name) for name in names]

    def drop(self, identifier: Identifier) -> None:
        """Removes the view's row. See the port."""
        name = _lower(identifier)
        self.load(name)
        try:
            self._client.drop_table(name[0], name[1])
        except MetastoreAnswerLostError as lost:
            ensure_made(lost, f"drop of view {'.'.join(name)}", lambda: not self._is_view(name))
        except NoSuchTableError as error:
            raise NoSuchViewError(f"There is no view {'.'.join(name)} any more.") from error

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a view's row. See the port."""
        source, target = _lower(source), _lower(target)
        self._client.get_database(target[0])
        self.load(source)
        with self._exclusion(source, {}) as exclusion:
            try:
                rename_row(self._client, source, target, view_pointer, exclusion, self._compares(exclusion))
            except TableAlreadyExistsError as error:
                raise ViewAlreadyExistsError(str(error)) from error
            except NoSuchTableError as error:
                raise CommitFailedError(f"Cannot rename view {'.'.join(source)}: it was dropped meanwhile.") from error


def _lower(identifier: Identifier) -> Identifier:
    namespace, name = identifier
    return (namespace.lower(), name.lower())
