"""The endpoint of commits to tables, which take the same transactions and leases as every other commit."""

from __future__ import annotations

from contextlib import suppress

from hms_iceberg.errors import CommitConflictError, InvalidInputError, MissingFileError, NotFoundError
from hms_iceberg.metastore import Identifier, MetadataVersion
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import Commit
from hms_iceberg.rest.catalog.loading import committed, keep_json
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import Answer, Call
from hms_iceberg.spec.changes.requirements import read_table_requirements
from hms_iceberg.spec.changes.table_changes import added_snapshots, new_table, read_table_changes
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, now_ms
from hms_iceberg.transaction.retry import Approach
from hms_iceberg.transaction.transaction import Created, Existing, Origin, Transaction
from hms_iceberg.updates.conditional_changes import RequestedChanges

# Errors that a version of the table has to do with, of changes that were not made for certain.
_OF_THE_VERSION = (RefusedError, InvalidInputError, CommitConflictError, NotFoundError, MissingFileError)


def commit_table(served: ServedCatalog, call: Call) -> Answer:
    """Changes a table, or creates one whose definition was staged; a concurrent commit is no conflict while the
    requirements hold."""
    asked, identifier = call.read(Commit), call.table
    if asked.identifier is not None and (*asked.identifier.namespace, asked.identifier.name) != identifier:
        raise InvalidInputError(
            f"The body names table {'.'.join(asked.identifier.namespace)}.{asked.identifier.name}, and the path "
            f"{'.'.join(identifier)}."
        )
    return committed(served, identifier, change_table(served, call, identifier, asked))


def change_table(served: ServedCatalog, call: Call, identifier: Identifier, asked: Commit) -> MetadataVersion:
    """Commits the changes of a request, and returns the table's version after that."""
    creates, requirements = read_table_requirements(asked.requirements or [])
    changes = read_table_changes(asked.updates or [])
    if creates:
        served.check(call, Right.MANAGE, *identifier)
        served.catalog.metastore.check_new_name(identifier)
        served.catalog.load_namespace_properties(identifier[0])
        metadata = new_table(changes, now_ms())
        served.check_table(call, identifier, metadata, None)
        made = _made_new(served, identifier, metadata)
        served.check_made_table(call, identifier, metadata)
        return made
    update = RequestedChanges(requirements, changes, added_snapshots(asked.updates or []))
    seen = served.latest_versions.latest(identifier)
    if seen is not None:
        with suppress(*_OF_THE_VERSION):  # which may not be the newest any more
            version = _changed(served, call, identifier, served.version_at(seen), update)
            if version.location != seen:  # else there was nothing to do, and so nobody looked
                return version
    identifier, start = served.writable(identifier)
    return _changed(served, call, identifier, start, update)


def _changed(
    served: ServedCatalog, call: Call, identifier: Identifier, start: MetadataVersion, update: RequestedChanges
) -> MetadataVersion:
    """Commits an update; if the table is not at `start` any more, the requirements decide."""
    transaction = transaction_with(served, call, identifier, start, update)
    version = transaction.commit()
    keep_json(served, version, transaction.workspace.last_version)
    return version


def _made_new(served: ServedCatalog, identifier: Identifier, metadata: TableMetadata) -> MetadataVersion:
    if served.catalog.table_exists(identifier):
        _, version = served.current(identifier)
        if version.uuid != metadata.table_uuid:
            raise CommitConflictError(f"Requirement failed: table already exists: {'.'.join(identifier)}")
        return version  # it was made by this request, whose answer was lost
    return _transaction_on(served, identifier, Created(metadata)).commit()


def transaction_with(
    served: ServedCatalog, call: Call, identifier: Identifier, start: MetadataVersion, update: RequestedChanges
) -> Transaction:
    """A transaction with an update that the caller may make."""
    transaction = _transaction_on(served, identifier, Existing(start))
    try:
        transaction.add(update)
        served.check_table(call, identifier, transaction.metadata, start)
    except (RefusedError, InvalidInputError, CommitConflictError):
        transaction.abandon()
        raise
    return transaction


def _transaction_on(served: ServedCatalog, identifier: Identifier, origin: Origin) -> Transaction:
    """A transaction on a table, which trusts that its origin is the newest version."""
    metastore, storage = served.catalog.metastore, served.catalog.storage
    return Transaction(identifier, origin, metastore, storage, first=Approach.TRUST)
