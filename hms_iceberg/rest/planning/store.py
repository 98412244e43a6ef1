"""Plans that clients fetch the rest of: small files, which all processes of a server see, until they are too old."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from contextlib import suppress

import msgspec

from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.planning.requests import StoredPlan

_SECONDS = 3600.0


class PlanStore:
    """Keeps plans by their ids.

    Args:
        folder: of the server's own; None for a new one.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="hms-iceberg-plans-") if folder is None else None
        self._folder = os.path.join(folder or (self._own.name if self._own else ""), "plans")
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._swept = time.monotonic()

    def close(self) -> None:
        """Removes the folder, if it is this store's own."""
        if self._own is not None:
            with suppress(OSError):
                self._own.cleanup()

    def keep(self, plan: StoredPlan) -> str:
        """Keeps a plan; returns its id."""
        self._sweep()
        plan_id = str(uuid.uuid4())
        path = self._path(plan_id)
        with open(f"{path}.part", "wb") as file:
            file.write(msgspec.json.encode(plan))
        os.replace(f"{path}.part", path)
        return plan_id

    def get(self, plan_id: str, table: tuple[str, ...]) -> StoredPlan:
        """The plan of an id.

        Args:
            plan_id: id of the plan.
            table: namespace and name.

        Raises:
            RefusedError: there is none of this table, or it is too old, or was cancelled.
        """
        try:
            with open(self._path(plan_id), "rb") as file:
                plan = msgspec.json.decode(file.read(), type=StoredPlan)
        except (OSError, ValueError) as error:
            raise _unknown(plan_id) from error
        if plan.table != table:
            raise _unknown(plan_id)
        return plan

    def drop(self, plan_id: str, table: tuple[str, ...]) -> None:
        """Removes a plan; does nothing if there is none of this id and table.

        Args:
            plan_id: id of the plan.
            table: namespace and name.
        """
        with suppress(OSError, ValueError, RefusedError):
            self.get(plan_id, table)
            os.remove(self._path(plan_id))

    def _path(self, plan_id: str) -> str:
        return os.path.join(self._folder, str(uuid.UUID(plan_id)))

    def _sweep(self) -> None:
        if time.monotonic() - self._swept < _SECONDS / 12:
            return
        self._swept = time.monotonic()
        oldest = time.time() - _SECONDS
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.stat().st_mtime < oldest:
                        os.remove(entry.path)


def _unknown(plan_id: str) -> RefusedError:
    return RefusedError(
        404, "NoSuchPlanIdException", f"There is no plan {plan_id[:50]!r} of this table (any more). Plan again."
    )
