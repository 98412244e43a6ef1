"""A catalog whose process is killed at a call: neither metastore nor storage hears of it any more after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hms_iceberg.catalog import Catalog
from hms_iceberg.hms.hive_metastore import hive_client


class Killed(BaseException):
    """The process is gone."""


class KilledAt:
    """Counts a catalog's calls, without those that only read files, and kills it after one of them.

    Attributes:
        calls: the names of those made, in order.
    """

    def __init__(self, catalog: Catalog, number: int | None = None) -> None:
        self.calls: list[str] = []
        self._number = number
        self._is_dead = False
        pool = hive_client(catalog.metastore).pool
        pool.call = self._counting(pool.call, lambda arguments: str(arguments[0]))  # type: ignore[method-assign]
        storage: Any = catalog.storage
        for name in ("create", "delete"):
            setattr(storage, name, self._counting(getattr(storage, name), lambda _, name=name: name))

    def _counting(self, call: Callable[..., Any], name_of: Callable[[tuple[Any, ...]], str]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            if self._is_dead:
                raise Killed
            number = len(self.calls)
            self.calls.append(name_of(arguments))
            answer = call(*arguments, **more)
            if number == self._number:
                self._is_dead = True
                raise Killed
            return answer

        return counted
