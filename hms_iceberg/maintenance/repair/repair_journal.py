"""The journal of a repair: what was, what is done and why, written before anything else; and that it was done."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hms_iceberg.errors import CorruptFileError, MissingFileError
from hms_iceberg.maintenance.repair.repair_plan import RepairPlan
from hms_iceberg.metastore import MetadataVersion
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, now_ms
from hms_iceberg.spec.table_properties import metadata_folder
from hms_iceberg.storage import Storage
from hms_iceberg.table.needed_files.named_files import files_of
from hms_iceberg.table.needed_files.needed_by_others import REPAIR_JOURNALS
from hms_iceberg.table.table import Table
from hms_iceberg.transaction.workspace import read_version

SERVICE_STATE = "maintenance.state."
"""Properties of this prefix are what the maintenance service notes for itself."""
_DONE = ".done.json"
_BEFORE = ".before"


@dataclass(frozen=True)
class DoneRepair:
    journal: str  # location of its journal
    before: str  # location of the metadata file that the metastore named before
    copy: str  # location of a copy of that file, as commits may delete old ones; empty if it could not be read
    state: str  # of the table after the repair, as `state_of` tells it; empty if others changed it meanwhile


def write_journal(
    plan: RepairPlan, base: MetadataVersion, metadata: TableMetadata, storage: Storage
) -> tuple[str, str]:
    """Writes the journal and a copy of the earlier metadata file; returns both locations, "" if that file is gone."""
    folder = metadata_folder(metadata.location, metadata.properties)
    location = f"{folder}/{REPAIR_JOURNALS}{now_ms()}-{uuid.uuid4()}.json"
    copy = location.removesuffix(".json") + _BEFORE
    try:
        storage.create(copy, storage.read(plan.pointer.metadata_location))
    except MissingFileError:
        copy = ""
    storage.create(location, json.dumps(_journal(plan, base), indent=1, default=str).encode())
    return location, copy


def write_done(done: DoneRepair, storage: Storage) -> None:
    """Writes beside a journal that its repair was carried out."""
    location = done.journal.removesuffix(".json") + _DONE
    storage.create(location, json.dumps(asdict(done), indent=1).encode())


def state_of(metadata: TableMetadata) -> str:
    """A digest of a table's metadata without times and metadata file names, to recognise the same state. What the
    maintenance service notes in the properties is left out, too: its visit changes nothing."""
    content = metadata_to_dict(metadata)
    for name in ("metadata-log", "last-updated-ms"):
        content.pop(name, None)
    properties = content["properties"].items()
    content["properties"] = {key: value for key, value in properties if not key.startswith(SERVICE_STATE)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def repair_that_stands(version: MetadataVersion, storage: Storage) -> DoneRepair | None:
    """The last repair of a table; None if another change came after it, or there was none."""
    folders = {version.location.rpartition("/")[0]}
    folders.add(metadata_folder(version.metadata.location, version.metadata.properties))
    found = [file.location for folder in folders for file in storage.list(folder) if file.location.endswith(_DONE)]
    state = state_of(version.metadata) if found else ""
    for location in sorted(found, key=_name, reverse=True):
        done = _read_done(location, storage)
        if done is not None and done.state == state:
            return done
    return None


def needed_for_undo(table: Table) -> Iterator[str]:
    """Every file that the table needs if its last repair is taken back; nothing if others changed it since."""
    done = repair_that_stands(MetadataVersion(table.metadata_location, table.metadata), table.storage)
    if done is None:
        return
    yield done.before
    try:
        metadata = metadata_before(done, table.storage).metadata
    except (MissingFileError, CorruptFileError):
        return  # nobody goes back to what cannot be read
    yield from files_of(metadata, done.before, table.storage, _pass_over)


def _pass_over(error: Exception) -> None:
    """Passes over an error of a missing or damaged file, which names no other; raises any other error."""
    if not isinstance(error, (MissingFileError, CorruptFileError)):
        raise error


def metadata_before(done: DoneRepair, storage: Storage) -> MetadataVersion:
    """The table before a repair, from its metadata file or the copy of it."""
    try:
        return read_version(done.before, storage)
    except MissingFileError:
        if not done.copy:
            raise
        return MetadataVersion(done.before, read_version(done.copy, storage).metadata)


def _name(location: str) -> str:
    return location.rpartition("/")[2]


def _read_done(location: str, storage: Storage) -> DoneRepair | None:
    try:
        done = json.loads(storage.read(location))
        return DoneRepair(done["journal"], done["before"], done["copy"], done["state"])
    except (MissingFileError, CorruptFileError, ValueError, KeyError, TypeError):
        return None


def _journal(plan: RepairPlan, base: MetadataVersion) -> dict[str, Any]:
    return {
        "table": ".".join(plan.pointer.identifier),
        "begun-ms": now_ms(),
        "metadata-location": plan.pointer.metadata_location,
        "row": dict(plan.pointer.properties),
        "follows": base.location,
        "steps": [asdict(step) for step in plan.steps],
        "writes": list(plan.files),
        "removes": {branch: [file.file_path for file in lost.files] for branch, lost in plan.gone.items()},
    }
