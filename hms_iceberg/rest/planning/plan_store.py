"""Stored scan plans, of which clients fetch further pages: small files that all processes of a server see, until
they expire."""

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
_SWEEP_SECONDS, _SWEEP_BYTES = 300.0, 32 << 20
# A plan holds its filter, which may be as large as a body.
_MOST_BYTES = 512 << 20


class PlanStore:
    """Stores plans by their ids, in the server's folder or, without one, in a new one."""

    def __init__(self, folder: str | None = None) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="hms-iceberg-plans-") if folder is None else None
        self._folder = os.path.join(folder or (self._own.name if self._own else ""), "plans")
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._swept, self._added = time.monotonic(), 0

    def close(self) -> None:
        """Removes the folder, if it is this store's own."""
        if self._own is not None:
            with suppress(OSError):
                self._own.cleanup()

    def keep(self, plan: StoredPlan) -> str:
        """Stores a plan; returns its id."""
        content = msgspec.json.encode(plan)
        self._sweep(len(content))
        plan_id = str(uuid.uuid4())
        path = self._path(plan_id)
        with open(f"{path}.part", "wb") as file:
            file.write(content)
        os.replace(f"{path}.part", path)
        return plan_id

    def get(self, plan_id: str, table: tuple[str, ...]) -> StoredPlan:
        """The plan of an id; raises RefusedError if the table has no such plan, or it expired or was cancelled."""
        try:
            with open(self._path(plan_id), "rb") as file:
                plan = msgspec.json.decode(file.read(), type=StoredPlan)
        except (OSError, ValueError) as error:
            raise _unknown(plan_id) from error
        if plan.table != table:
            raise _unknown(plan_id)
        return plan

    def drop(self, plan_id: str, table: tuple[str, ...]) -> None:
        """Removes a plan; does nothing if there is none of this id and table."""
        with suppress(OSError, ValueError, RefusedError):
            self.get(plan_id, table)
            os.remove(self._path(plan_id))

    def _path(self, plan_id: str) -> str:
        return os.path.join(self._folder, str(uuid.UUID(plan_id)))

    def _sweep(self, added: int) -> None:
        """Removes expired plans, and the oldest of more than there is room for."""
        self._added += added
        if time.monotonic() - self._swept < _SWEEP_SECONDS and self._added < _SWEEP_BYTES:
            return
        self._swept, self._added = time.monotonic(), added
        found, size, oldest = list[tuple[float, int, str]](), 0, time.time() - _SECONDS
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    found.append((status.st_mtime, status.st_size, entry.path))
        for moment, length, path in sorted(found, reverse=True):
            size += length
            if moment < oldest or size > _MOST_BYTES:
                with suppress(OSError):
                    os.remove(path)


def _unknown(plan_id: str) -> RefusedError:
    return RefusedError(
        404, "NoSuchPlanIdException", f"There is no plan {plan_id[:50]!r} of this table (any more). Plan again."
    )
