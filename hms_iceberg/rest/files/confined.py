"""Storage in which files are deleted in some folders only.

A purge deletes what manifests name, with the server's rights; and who may write to a table may write its manifests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from hms_iceberg.errors import StorageDeniedError
from hms_iceberg.storage import Storage


class _Confined:
    def __init__(self, storage: Storage, may_go: Callable[[str], bool]) -> None:
        self._storage = storage
        self._may_go = may_go

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def delete(self, location: str) -> None:
        """Deletes a file, unless it is elsewhere."""
        if not self._may_go(location):
            raise StorageDeniedError(f"{location} stays: it is in none of the table's own folders.")
        self._storage.delete(location)


def confined(storage: Storage, may_go: Callable[[str], bool]) -> Storage:
    """The same storage, which refuses to delete some files.

    Args:
        storage: where the files are.
        may_go: whether the file at a location may be deleted.
    """
    return cast(Storage, _Confined(storage, may_go))
