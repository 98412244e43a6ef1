"""Iceberg views in the Hive Metastore: rows of Hive views that point at view metadata, as Iceberg's Java has them."""

from __future__ import annotations

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
from hms_iceberg.hms.commit.exclusion import Exclusion
from hms_iceberg.hms.commit.pointer_swap import PointerSwap
from hms_iceberg.hms.commit.renaming import rename_row
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.lost_answers import ensure_made
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.hms.rows.listing import list_names
from hms_iceberg.hms.rows.view_rows import ICEBERG_VIEW, is_iceberg_view, new_view_row, update_view_row, view_pointer
from hms_iceberg.metastore import Identifier, TablePointer, Version, ViewMetadataVersion


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
