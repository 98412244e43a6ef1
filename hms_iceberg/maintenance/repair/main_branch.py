"""Which snapshot a table is at, where `current-snapshot-id`, the branch main, the snapshot log and the metastore's row
disagree.

A snapshot never loses to an ancestor. Of two that have each what the other lacks, one is only taken if that is
accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hms_iceberg.errors import CorruptFileError, MissingFileError
from hms_iceberg.spec.manifests.manifest_avro import iterate_manifest
from hms_iceberg.spec.manifests.manifest_list_avro import decode_manifest_list
from hms_iceberg.spec.manifests.manifest_values import DataFile
from hms_iceberg.spec.metadata.metadata_json import NO_SNAPSHOT
from hms_iceberg.spec.snapshots_and_refs import MAIN_BRANCH
from hms_iceberg.storage import Storage

CURRENT, LAST_SEQUENCE_NUMBER = "current-snapshot-id", "last-sequence-number"
_LOG = "snapshot-log"


@dataclass(frozen=True)
class MainBranch:
    """The snapshot that main, and the table, are to be at, and what is lost by that."""

    snapshot_id: int
    loses: tuple[str, ...] = ()

    def put_into(self, members: dict[str, Any]) -> str:
        """Lets everything in a metadata file name the snapshot; returns what was done."""
        refs = members.setdefault("refs", {})
        before = refs.get(MAIN_BRANCH, {})
        done = f"The branch main points at snapshot {self.snapshot_id}, as the table does."
        if before.get("snapshot-id") == self.snapshot_id:
            done = f"The current snapshot is {self.snapshot_id}, as that of the branch main."
        refs[MAIN_BRANCH] = {"type": "branch", **before, "snapshot-id": self.snapshot_id}
        members[CURRENT] = self.snapshot_id
        log = members.setdefault(_LOG, [])
        if not log or log[-1]["snapshot-id"] != self.snapshot_id:
            at_ms = max([members["last-updated-ms"], *(each["timestamp-ms"] for each in log[-1:])])
            log.append({"timestamp-ms": at_ms, "snapshot-id": self.snapshot_id})
        return done


def main_branch(members: Mapping[str, Any], row: str | None, storage: Storage) -> MainBranch | None:
    """Chooses between the snapshots that a metadata file and the metastore's row name; None without a choice."""
    main, current = members.get("refs", {}).get(MAIN_BRANCH, {}).get("snapshot-id"), members.get(CURRENT)
    named = [each for each in (current, main) if each is not None and each != NO_SNAPSHOT]
    snapshots = {each["snapshot-id"]: each for each in members["snapshots"]}
    if (len(named) == 2 and main == current) or not any(each in snapshots for each in named):
        return None
    logged = [each["snapshot-id"] for each in members.get(_LOG) or ()][-1:]
    told = dict([*(("snapshot log", each) for each in logged), *([("metastore's row", int(row))] if row else ())])
    every = dict.fromkeys([*reversed(told.values()), *named])
    known = [each for each in every if each in snapshots]
    ancestors = {each: set(_ancestors(snapshots, each)) for each in known}
    heads = [each for each in known if not any(each in ancestors[other] for other in known)]
    # Those that the row and the log tell of come first.
    chosen = heads[0] if heads[0] in told.values() else max(heads, key=lambda each: _number(snapshots[each]))
    loses = [_beside(snapshots[chosen], snapshots[other], storage) for other in heads if other != chosen]
    for witness, each in told.items():
        if each in ancestors[chosen]:
            loses.append(f"that the table went back to snapshot {each}, as the {witness} says")
    unknown = [each for each in every if each not in snapshots]
    if unknown and not _is_newest(members, snapshots[chosen], logged):
        loses.append(f"what snapshot {unknown[0]} changed, which is not there")
    return MainBranch(chosen, tuple(filter(None, loses)))


def _ancestors(snapshots: Mapping[int, Mapping[str, Any]], snapshot_id: int) -> Iterator[int]:
    seen = {snapshot_id}
    parent = snapshots[snapshot_id].get("parent-snapshot-id")
    while parent is not None and parent not in seen:
        yield parent
        seen.add(parent)
        parent = snapshots.get(parent, {}).get("parent-snapshot-id")


def _number(snapshot: Mapping[str, Any]) -> tuple[int, int]:
    return snapshot.get("sequence-number") or 0, snapshot["timestamp-ms"]


def _is_newest(members: Mapping[str, Any], snapshot: Mapping[str, Any], logged: list[int]) -> bool:
    """Whether no snapshot was made after one, as far as the table counts them."""
    if members.get("format-version", 1) > 1:
        return bool(snapshot.get("sequence-number") == members.get(LAST_SEQUENCE_NUMBER))
    return logged == [snapshot["snapshot-id"]]


def _beside(chosen: Mapping[str, Any], other: Mapping[str, Any], storage: Storage) -> str | None:
    """The changes of a snapshot that are not in another one, by their live files; None if they have the same ones."""
    said = f"what snapshot {other['snapshot-id']} changed"
    try:
        kept, left = _live(chosen, storage), _live(other, storage)
    except (MissingFileError, CorruptFileError, KeyError):
        return said
    if kept.keys() == left.keys():
        return None
    only = [file for key, file in left.items() if key not in kept and file.is_data]
    return f"{said}, {sum(file.record_count for file in only):,} rows of {len(only)} data files among it"


def _live(snapshot: Mapping[str, Any], storage: Storage) -> dict[tuple[str, int | None], DataFile]:
    location, number = snapshot["manifest-list"], snapshot["snapshot-id"]
    return {
        (entry.data_file.file_path, entry.data_file.content_offset): entry.data_file
        for manifest in decode_manifest_list(storage.read(location), location, number)
        for entry in iterate_manifest(storage.read(manifest.manifest_path), manifest, metrics=False)
        if entry.is_live
    }
