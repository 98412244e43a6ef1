"""Metadata that contradicts itself in what the rest of it tells: references, and the last sequence number."""

from __future__ import annotations

import gzip
import json
from typing import Any

from hms_iceberg.errors import CorruptMetadataError, MissingFileError
from hms_iceberg.maintenance.check.findings import check_owner
from hms_iceberg.maintenance.repair.examination import RepairStep
from hms_iceberg.metastore import MetadataVersion, TablePointer
from hms_iceberg.spec.metadata.metadata_json import metadata_from_dict
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage

_GZIP = b"\x1f\x8b"
_CURRENT, _LAST = "current-snapshot-id", "last-sequence-number"


def without_contradictions(
    pointer: TablePointer, damage: str, storage: Storage
) -> tuple[MetadataVersion, RepairStep] | None:
    """The version that the metastore names with its references put right, and what was done; None if that is no help.

    Args:
        pointer: what the metastore's row says.
        damage: what is wrong with the version.
        storage: where it is.
    """
    location = pointer.metadata_location
    try:
        data = storage.read(location)
        members = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        done, lost = _put_right(members)
        version = MetadataVersion(location, metadata_from_dict(members))
    except (MissingFileError, CorruptMetadataError, ValueError, OSError, EOFError, KeyError, TypeError, AttributeError):
        return None
    if not done or check_owner(version, pointer) is not None:
        return None
    return version, RepairStep("metadata", damage, " ".join(done), ", ".join(lost) or None)


def _put_right(members: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Changes the members of a metadata file; what was done, and which names are lost."""
    done: list[str] = []
    lost: list[str] = []
    numbers = {each["snapshot-id"]: each.get("sequence-number", 0) for each in members["snapshots"]}
    refs = members.setdefault("refs", {})
    for name in [name for name, ref in refs.items() if ref["snapshot-id"] not in numbers and name != MAIN_BRANCH]:
        lost.append(f"the {refs[name]['type']} {name}")
        done.append(f"The {refs[name]['type']} {name} points at a snapshot that is not there, and goes.")
        del refs[name]
    main = refs.get(MAIN_BRANCH, {}).get("snapshot-id")
    current = members.get(_CURRENT)
    if main != current and current in numbers:
        refs[MAIN_BRANCH] = {"type": "branch", **refs.get(MAIN_BRANCH, {}), "snapshot-id": current}
        done.append(f"The branch main points at snapshot {current}, as the table does.")
    elif main != current and main in numbers:
        members[_CURRENT] = main
        done.append(f"The current snapshot is {main}, as that of the branch main.")
    highest = max(numbers.values(), default=0)
    if members.get("format-version", 1) > 1 and highest > members.get(_LAST, 0):
        members[_LAST] = highest
        done.append(f"The last sequence number is {highest}, that of the newest snapshot.")
    return done, lost
