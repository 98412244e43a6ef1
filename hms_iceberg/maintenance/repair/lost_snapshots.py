"""Taking snapshots out of a table that nobody can read any more."""

from __future__ import annotations

from collections.abc import Collection

from hms_iceberg.spec.metadata.metadata_changes import remove_ref, remove_snapshots, set_branch_snapshot
from hms_iceberg.spec.metadata.table_metadata import TableMetadata


def without_snapshots(metadata: TableMetadata, lost: Collection[int]) -> tuple[TableMetadata, str, str]:
    """The metadata without some snapshots: branches go back to the newest ancestor that is left, tags go.

    Returns:
        The metadata; what was done, in a sentence; what is lost.
    """
    done, loses = [], [f"the snapshots {', '.join(map(str, sorted(lost)))} for time travel"]
    for name, ref in list(metadata.refs.items()):
        if ref.snapshot_id not in lost:
            continue
        whole = [each for each in metadata.ancestors_of(ref.snapshot_id) if each.snapshot_id not in lost]
        if ref.is_branch and whole:
            metadata = set_branch_snapshot(metadata, whole[0].snapshot_id, name)
            done.append(f"the branch {name} goes back to snapshot {whole[0].snapshot_id}")
            loses.append(f"what the snapshots after {whole[0].snapshot_id} changed on the branch {name}")
        else:
            metadata = remove_ref(metadata, name)
            done.append(f"the {'branch' if ref.is_branch else 'tag'} {name} goes")
            loses.append(f"all rows on the branch {name}" if ref.is_branch else f"the tag {name}")
    told = f"; {'; '.join(done)}" if done else ""
    remedy = f"Nothing is known of what they held, so that they are taken out of the table{told}."
    return remove_snapshots(metadata, lost), remedy, "; ".join(loses)
