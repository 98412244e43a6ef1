"""The journal of a repair: what was, what is done and why, written before anything else; and that it was done."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from typing import Any

from hms_iceberg.errors import CorruptFileError, MissingFileError
from hms_iceberg.maintenance.repair.repair_plan import RepairPlan
from hms_iceberg.spec.metadata.metadata_changes import now_ms
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Storage

_DONE = ".done.json"


@dataclass(frozen=True)
class DoneRepair:
    """A repair that was carried out.

    Attributes:
        journal: location of its journal.
        before: location of the metadata file that the metastore named before.
        follows: location of the one that its first version follows; an older one if that of before was damaged.
        versions: locations of the metadata files that it wrote, in order.
    """

    journal: str
    before: str
    follows: str
    versions: tuple[str, ...]


def write_journal(plan: RepairPlan, metadata: TableMetadata, storage: Storage) -> str:
    """Writes the journal beside the table's metadata, and returns its location."""
    folder = metadata_folder(metadata.location, metadata.properties)
    location = f"{folder}/repair-{now_ms()}-{uuid.uuid4()}.json"
    storage.create(location, json.dumps(_journal(plan), indent=1, default=str).encode())
    return location


def write_done(done: DoneRepair, storage: Storage) -> None:
    """Writes beside a journal that its repair was carried out."""
    location = done.journal.removesuffix(".json") + _DONE
    storage.create(location, json.dumps(asdict(done), indent=1).encode())


def repair_that_ended_in(location: str, storage: Storage) -> DoneRepair | None:
    """The repair whose last version is a metadata file; None if another change wrote it.

    Args:
        location: the metadata file.
        storage: where it is.
    """
    folder, _, _ = location.rpartition("/")
    for file in storage.list(folder):
        if file.location.endswith(_DONE):
            done = _read_done(file.location, storage)
            if done is not None and done.versions[-1:] == (location,):
                return done
    return None


def _read_done(location: str, storage: Storage) -> DoneRepair | None:
    try:
        done = json.loads(storage.read(location))
        return DoneRepair(done["journal"], done["before"], done["follows"], tuple(done["versions"]))
    except (MissingFileError, CorruptFileError, ValueError, KeyError, TypeError):
        return None


def _journal(plan: RepairPlan) -> dict[str, Any]:
    return {
        "table": ".".join(plan.pointer.identifier),
        "begun-ms": now_ms(),
        "metadata-location": plan.pointer.metadata_location,
        "row": dict(plan.pointer.properties),
        "follows": plan.base.location if plan.base else None,
        "steps": [asdict(step) for step in plan.steps],
        "writes": list(plan.files),
        "removes": {branch: [file.file_path for file in lost.files] for branch, lost in plan.gone.items()},
    }
