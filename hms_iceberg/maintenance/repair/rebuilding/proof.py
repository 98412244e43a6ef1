"""Whether manifests that were made anew hold what the lost ones held: every fact that is left of these has to agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hms_iceberg.maintenance.check.findings import WrongSummary
from hms_iceberg.maintenance.check.summary_check import EntryCounts, check_summary
from hms_iceberg.maintenance.repair.examination import Examination
from hms_iceberg.spec.manifests.manifest_values import ManifestEntry, ManifestFile

_SIZES = "total-files-size"


def doubts(
    examination: Examination, made: Mapping[str, Sequence[ManifestEntry]], counted: Mapping[str, ManifestFile]
) -> dict[str, str]:
    """By the location of a manifest, what speaks against what was found for it, or that nothing speaks for it.

    As many files and rows prove little: a failed attempt wrote as many as the one that was committed.

    Args:
        examination: the table.
        made: the entries that were found for lost manifests, by location.
        counted: rows of manifest lists as these entries give them.
    """
    found = {place: "of other partitions" for place in made if not _same_partitions(examination, counted[place])}
    proven: set[str] = set()
    for snapshot_id, listed in examination.lists.items():
        places = [row.manifest_path for row in listed]
        own = [place for place in places if place in made]
        counts = _counts(examination, made, places, snapshot_id) if own else None
        if counts is None:
            continue
        snapshot = examination.metadata.snapshots_by_id[snapshot_id]
        wrong = [each for each in check_summary(snapshot, counts) if isinstance(each, WrongSummary)]
        if wrong:
            said = ", ".join(f"{each.key}={each.recorded} and not {each.found}" for each in wrong)
            for place in own:
                found.setdefault(place, f"snapshot {snapshot_id} says {said}")
        elif _SIZES in snapshot.summary:
            proven.update(own)
    return {place: "nothing tells their sizes" for place in made if place not in proven} | found


def _counts(
    examination: Examination, made: Mapping[str, Sequence[ManifestEntry]], places: Iterable[str], snapshot_id: int
) -> EntryCounts | None:
    """What a snapshot counts to with the manifests that were made; None if others of it are damaged."""
    parts = []
    for place in places:
        if place in made:
            parts.append(EntryCounts.of(made[place]))
        elif place in examination.entries:
            parts.append(examination.entries.digest(place).counts)
        else:
            return None
    return EntryCounts.sum(parts, snapshot_id)


def _same_partitions(examination: Examination, counted: ManifestFile) -> bool:
    """Whether the bounds of partitions are those that manifest lists say, where they say any."""
    said = examination.rows[counted.manifest_path].partitions
    if not said or not counted.partitions:
        return True
    return [(each.lower_bound, each.upper_bound, each.contains_null) for each in said] == [
        (each.lower_bound, each.upper_bound, each.contains_null) for each in counted.partitions
    ]
