"""What a table needs, told from its metadata alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hms_iceberg.maintenance.erasure.forget import DueErasure
from hms_iceberg.maintenance.expire_with_files import expire_snapshots
from hms_iceberg.maintenance.orphan_files import remove_orphan_files
from hms_iceberg.maintenance.repair.repair_journal import SERVICE_STATE
from hms_iceberg.maintenance.rewrite.convert_deletes import convert_equality_deletes
from hms_iceberg.maintenance.rewrite.data_files import rewrite_data_files
from hms_iceberg.maintenance.rewrite.rewrite_deletes import rewrite_position_delete_files
from hms_iceberg.maintenance.service.old_rows import old_rows, retained_column
from hms_iceberg.maintenance.service.period_tags import PeriodTags, period_tags
from hms_iceberg.maintenance.service.unused_branches import UnusedBranches, unused_branches
from hms_iceberg.maintenance_policy import Policy
from hms_iceberg.metastore import TableRows
from hms_iceberg.spec.manifests.manifest_values import ManifestContent
from hms_iceberg.spec.metadata.table_metadata import TableMetadata
from hms_iceberg.spec.table_properties import GC_ENABLED, IS_SNAPSHOT_TABLE, MANIFEST_TARGET_SIZE_BYTES
from hms_iceberg.table.table import Table
from hms_iceberg.updates.machinery.manifest_files import manifest_list_of

ORPHANS_LOOKED_FOR = f"{SERVICE_STATE}orphans-looked-for-ms"
Stop = Callable[[], bool]


@dataclass(frozen=True)
class ActionOutcome:
    """The outcome of one maintenance action; `failed` says why if it could not be done."""

    result: str
    failed: bool = False


@dataclass(frozen=True)
class Need:
    """Something that a table needs."""

    action: str  # the action's name
    why: str  # what was found
    input_bytes: int  # bytes of the files that are read and written anew
    run: Callable[[Stop], ActionOutcome]  # does it, and says what was done; its argument is asked whether to stop


@dataclass(frozen=True)
class _Looked:
    """A table under assessment, the policy for it, and the tables around it."""

    table: Table
    policy: Policy
    rows: TableRows | None
    now_ms: int


def needs_of(
    table: Table, policy: Policy, rows: TableRows | None = None, clock: Callable[[], float] = time.time
) -> Iterator[Need]:
    """The maintenance that a table needs, in the order in which to do it, with ages by the clock (seconds since 1970).
    A policy that does not fit the columns is a ConfigurationError; a table whose files may be others'
    (`gc.enabled=false`), or that follows a Hive table (`snapshot=true`), needs nothing."""
    is_own = GC_ENABLED.of(table.properties) and not IS_SNAPSHOT_TABLE.of(table.properties)
    if not policy.enabled or not is_own:
        return
    retained_column(table, policy)
    if table.current_snapshot() is None:
        return
    looked = _Looked(table, policy, rows, int(clock() * 1000))
    for look, wanted in (
        (_due_erasure, policy.finish_erasures),
        (_old_rows, policy.retain_age is not None),
        (_period_tags, not (policy.tags_daily is policy.tags_monthly is None)),
        (_unused_branches, policy.branches_unused_age is not None),
        (_expiry, policy.expire_snapshots),
        (_equality_deletes, policy.convert_equality_deletes),
        (_data_files, policy.compact),
        (_position_deletes, policy.rewrite_position_deletes),
        (_manifests, policy.rewrite_manifests),
        (_orphans, policy.remove_orphans),
    ):
        if wanted:
            yield from look(looked)


def _due_erasure(looked: _Looked) -> Iterator[Need]:
    table = looked.table
    found = DueErasure.of(table, looked.now_ms)
    if found is None:
        return

    def run(stop: Stop) -> ActionOutcome:
        done = found.finish()
        if done is None:
            return ActionOutcome("the old files wait from now on: nobody had noted that the table has moved")
        deleted, left = done
        told = f"deleted {deleted - len(left)} files, and every live file was read: none holds such rows"
        return ActionOutcome(told + _not_deleted(left), failed=bool(left))

    current = table.current_snapshot()
    size = int(current.summary.get("total-files-size", "0")) if current else 0
    yield Need("finish_erasure", "old files of an erasure are due", size, run)


def _old_rows(looked: _Looked) -> Iterator[Need]:
    found = old_rows(looked.table, looked.policy, looked.now_ms)
    if found is None:
        return

    def run(stop: Stop) -> ActionOutcome:
        return ActionOutcome(found.delete(looked.table))

    of_others = f", {found.other_files} may have some" if found.other_files else ""
    why = f"{found.whole_files} data files have only rows of {looked.policy.retain_column} before {found.before}"
    yield Need("delete_old_rows", why + of_others, found.other_bytes, run)


def _period_tags(looked: _Looked) -> Iterator[Need]:
    yield from _changes_of_refs("tag_periods", period_tags, looked)


def _unused_branches(looked: _Looked) -> Iterator[Need]:
    yield from _changes_of_refs("drop_unused_branches", unused_branches, looked)


def _changes_of_refs(
    action: str, look: Callable[[TableMetadata, Policy, int], PeriodTags | UnusedBranches], looked: _Looked
) -> Iterator[Need]:
    table, policy, now = looked.table, looked.policy, looked.now_ms
    found = look(table.metadata, policy, now)
    if not found:
        return

    def run(stop: Stop) -> ActionOutcome:
        still = look(table.refresh().metadata, policy, now)  # others may have changed refs since
        if still:
            still.commit(table)
        return ActionOutcome(still.in_words())

    yield Need(action, found.in_words(), 0, run)


def _expiry(looked: _Looked) -> Iterator[Need]:
    table, keep_backup, rows = looked.table, looked.policy.keep_backups, looked.rows
    found = expire_snapshots(table, dry_run=True, keep_backup=keep_backup, rows=rows)
    tagged = set(period_tags(table.metadata, looked.policy, looked.now_ms).made.values())  # they stay, once they are
    if not (expired := set(found.snapshot_ids) - tagged):
        return

    def run(stop: Stop) -> ActionOutcome:
        done = expire_snapshots(table, keep_backup=keep_backup, rows=rows)
        told = f"expired {len(done.snapshot_ids)} snapshots, deleted {done.deleted} files"
        return ActionOutcome(told + _not_deleted(done.left) + _kept(done.kept))

    yield Need("expire_snapshots", f"{len(expired)} snapshots are older than the table keeps them", 0, run)


def _not_deleted(left: Mapping[str, str]) -> str:
    return f", {len(left)} files could not be deleted" if left else ""


def _kept(kept: Mapping[str, str]) -> str:
    """Which files are kept because others need them, and how to give them up; as text for the outcome."""
    counts = Counter(kept.values())
    told = "; ".join(f"{count} stay for {who}" for who, count in counts.items())
    return f"; {told} (maintenance.keep-backups=false gives a way back up)" if told else ""


def _equality_deletes(looked: _Looked) -> Iterator[Need]:
    table = looked.table
    groups = convert_equality_deletes(table, dry_run=True).groups
    if not groups:
        return
    files = sum(len(group.items) for group in groups)

    def run(stop: Stop) -> ActionOutcome:
        done = convert_equality_deletes(table)
        converted = done.converted_equality_delete_files_count
        text = f"{converted} equality delete files became {done.added_delete_files_count} of positions"
        return _outcome(text, converted, done.failures)

    yield Need("convert_equality_deletes", f"{files} equality delete files slow every read down", 0, run)


def _data_files(looked: _Looked) -> Iterator[Need]:
    table, policy = looked.table, looked.policy
    options = policy.compaction_options()
    plan = rewrite_data_files(table, options=options, dry_run=True).plan
    if not plan.groups:
        return

    def run(stop: Stop) -> ActionOutcome:
        done = rewrite_data_files(table, options=options | {"remove-dangling-deletes": "true"}, stop=stop)
        rewritten, went = done.rewritten_data_files_count, done.removed_delete_files_count
        text = f"{rewritten} files became {done.added_data_files_count}, {went} delete files went"
        return _outcome(text, rewritten + went, done.failures)

    why = f"{plan.input_files} of {plan.files_total} data files are too small, too large or have many deleted rows"
    yield Need("rewrite_data_files", f"{why}; they would become about {plan.output_files}", plan.input_bytes, run)


def _position_deletes(looked: _Looked) -> Iterator[Need]:
    table = looked.table
    groups = rewrite_position_delete_files(table, dry_run=True).groups
    if not groups:
        return
    files = sum(len(group.items) for group in groups)

    def run(stop: Stop) -> ActionOutcome:
        done = rewrite_position_delete_files(table)
        rewritten = done.rewritten_delete_files_count
        text = f"{rewritten} position delete files became {done.added_delete_files_count}"
        return _outcome(text, rewritten, done.failures)

    size = sum(group.input_bytes for group in groups)
    yield Need("rewrite_position_delete_files", f"{files} small position delete files", size, run)


def _manifests(looked: _Looked) -> Iterator[Need]:
    table, policy = looked.table, looked.policy
    target = MANIFEST_TARGET_SIZE_BYTES.of(table.properties)
    manifests = manifest_list_of(table.current_snapshot(), table.storage)
    small = [
        each
        for each in manifests
        if each.content is ManifestContent.DATA and each.manifest_length < target // 4 and each.has_live_files()
    ]
    if len(small) < policy.rewrite_manifests_min_count:
        return

    def run(stop: Stop) -> ActionOutcome:
        table.refresh().rewrite_manifests().commit()
        left = len(manifest_list_of(table.current_snapshot(), table.storage))
        return ActionOutcome(f"{len(manifests)} manifests became {left}")

    yield Need("rewrite_manifests", f"{len(small)} small manifests", sum(each.manifest_length for each in small), run)


def _orphans(looked: _Looked) -> Iterator[Need]:
    table, policy = looked.table, looked.policy
    now = looked.now_ms
    text = table.properties.get(ORPHANS_LOOKED_FOR, "")
    last = int(text) if text.isdigit() else 0
    if now - last < policy.remove_orphans_every_ms:
        return

    def run(stop: Stop) -> ActionOutcome:
        done = remove_orphan_files(
            table,
            older_than=now - policy.remove_orphans_age_ms,
            nobody_writes=policy.nobody_writes,
            prefix_mismatch_mode="ignore",
            keep_backup=policy.keep_backups,
            rows=looked.rows,
        )
        table.set_properties({ORPHANS_LOOKED_FOR: str(now)})
        return ActionOutcome(f"deleted {done.deleted} orphan files ({done.bytes} bytes)")

    ago = f"the last search for orphan files was {(now - last) // 3_600_000} hours ago"
    yield Need("remove_orphan_files", ago if last else "orphan files were never searched for", 0, run)


def _outcome(text: str, files: int, failures: tuple[str, ...]) -> ActionOutcome:
    """The outcome of an action on groups of files, some of which may have failed."""
    if failures:
        text += f"; {len(failures)} groups were left for another run, the first because: {failures[0]}"
    return ActionOutcome(text, failed=bool(failures) and not files)
