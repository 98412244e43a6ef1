"""Endpoints of tables and of the way to their files, but for commits."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from contextlib import suppress
from typing import Any

import msgspec

from hms_iceberg.errors import StorageError
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import CreateTable, Register
from hms_iceberg.rest.catalog.loading import loaded, staged
from hms_iceberg.rest.catalog.names import listed, new_name, renamed, to_register
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.files.signing import places
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, spec_from_fields_json
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.spec.sort_orders import UNSORTED, sort_order_from_json
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)


def list_tables(door: Door, call: Call) -> Answer:
    """The Iceberg tables of a namespace that the caller may see."""
    return listed(door, call, door.list_tables(call.namespace))


def create_table(door: Door, call: Call) -> Answer:
    """A new table; or only its metadata, for a client that commits it later together with its data."""
    asked = call.read(CreateTable)
    identifier = new_name(door, call, asked.name)
    order = UNSORTED if asked.write_order is None else sort_order_from_json(asked.write_order)
    properties = dict(asked.properties or {})
    if asked.stage_create:
        properties.setdefault("created-at", dt.datetime.now(dt.timezone.utc).isoformat())
    transaction = door.catalog.create_table_transaction(
        identifier,
        schema_from_json(asked.schema),
        asked.location,
        UNPARTITIONED if asked.partition_spec is None else _spec(asked.partition_spec),
        order,
        properties,
    )
    try:
        door.check_table(call, identifier, transaction.metadata, None)
    except RefusedError:
        transaction.abandon()
        raise
    metadata = transaction.metadata
    if asked.stage_create:
        transaction.abandon()
        _make_local_folders(door.catalog.storage, metadata.location)
        return staged(door, call, identifier, metadata)
    table = transaction.commit_transaction()
    door.check_made_table(call, identifier, metadata)
    return loaded(door, call, identifier, door.version_at(table.metadata_location))


def _make_local_folders(storage: Storage, location: str) -> None:
    """Folders of a table that is staged on a disk: some clients, such as DuckDB, write only where there are folders."""
    if location.partition(":")[0] not in ("file", location):
        return
    with suppress(StorageError):  # a disk that is the client's alone
        for folder in ("data", "metadata"):
            mark = f"{location}/{folder}/.{uuid.uuid4()}"  # a name that nobody else has, and so may be deleted
            storage.create(mark, b"")
            storage.delete(mark)


def _spec(data: dict[str, Any]) -> Any:
    return spec_from_fields_json(data.get("fields"))


def load_table(door: Door, call: Call) -> Answer:
    """A table's metadata, as it is now."""
    identifier, version = door.current(call.table)
    # What is kept here must not hide that the file is gone: other readers of the table will not find it.
    door.check_is_there(version.location)
    return loaded(door, call, identifier, version)


def table_exists(door: Door, call: Call) -> Answer:
    """Nothing, if the table is there."""
    door.check_exists(call.table)
    return NOTHING


def drop_table(door: Door, call: Call) -> Answer:
    """Drops a table, with its files if that is asked for."""
    identifier, purges = call.table, call.flag("purgeRequested")
    catalog = door.confined(call, identifier) if purges else door.catalog
    catalog.drop_table(identifier, purge_requested=purges)
    return NOTHING


def unregister_table(door: Door, call: Call) -> Answer:
    """Drops a table and tells its last version, so that another catalog can register it."""
    identifier = call.table
    pointer = door.catalog.metastore.load(identifier)
    with door.catalog.metastore.lease(pointer.identifier, pointer.properties) as lease:
        # Under the lock, no commit comes in between what is told and the drop.
        lease.acquire()
        version = door.version_at(lease.load().metadata_location)
        door.catalog.drop_table(pointer.identifier)
    return Answer({"metadata-location": version.location, "metadata": metadata_to_dict(version.metadata)})


def register_table(door: Door, call: Call) -> Answer:
    """Makes an existing metadata file the table of a name."""
    asked = call.read(Register)
    identifier, version = to_register(door, call, asked, lambda file: read_version(file, door.catalog.storage))
    door.check_table(call, identifier, version.metadata, None, asked.metadata_location)
    table = door.catalog.register_table(identifier, asked.metadata_location, overwrite=bool(asked.overwrite))
    door.check_made_table(call, identifier, version.metadata)
    return loaded(door, call, identifier, door.version_at(table.metadata_location))


def rename_table(door: Door, call: Call) -> Answer:
    """Gives a table another name; its files stay."""
    return renamed(door, call, door.catalog.metastore.load, door.catalog.rename_table)


def report_metrics(door: Door, call: Call) -> Answer:
    """Takes note of what a client tells of a scan or a commit."""
    report = call.read(dict[str, Any])
    door.check_exists(call.table)
    logger.info("Metrics of %s: %.100r", ".".join(call.table), report.get("report-type"))
    return NOTHING


# ------------------------------------------------------------------------------------------------- their files


class _Sign(msgspec.Struct):
    method: str
    uri: str
    region: str
    headers: dict[str, list[str]]
    provider: str | None = None


def load_credentials(door: Door, call: Call) -> Answer:
    """Credentials for a table's files, anew."""
    identifier, version = door.current(call.table)
    return Answer({"storage-credentials": door.credentials(call, identifier, version.metadata, version)})


def sign_request(door: Door, call: Call) -> Answer:
    """A request to the store, signed."""
    asked = call.read(_Sign)
    if door.signer is None or (asked.provider or "s3").lower() != "s3":
        raise RefusedError(406, "UnsupportedOperationException", "This server signs no requests to this store.")
    identifier, version = door.current(call.table)
    door.check_own(call, identifier, version)
    writes = call.access.allows(Right.WRITE, *identifier)
    folders = [place for place in places(version.metadata) if door.locations.allow(place.location)]
    method = asked.method.upper()
    signed = door.signer.signed(method, asked.uri, asked.region, asked.headers, folders, writes)
    # An answer to a read may be used again for the same object.
    headers = {"Cache-Control": "private"} if method in ("GET", "HEAD") else {"Cache-Control": "no-cache"}
    return Answer(signed, headers=headers)
