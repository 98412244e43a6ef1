"""Endpoints of tables and of access to their files; commits have a module of their own."""

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
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.files.signing import s3_folders
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, spec_from_fields_json
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.spec.sort_orders import UNSORTED, sort_order_from_json
from hms_iceberg.storage import Storage
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)


def list_tables(served: ServedCatalog, call: Call) -> Answer:
    """The Iceberg tables of a namespace that the caller may see."""
    return listed(served, call, served.list_tables(call.namespace))


def create_table(served: ServedCatalog, call: Call) -> Answer:
    """Creates a table; or stages one, for a client that commits it later together with its data."""
    asked = call.read(CreateTable)
    identifier = new_name(served, call, asked.name)
    order = UNSORTED if asked.write_order is None else sort_order_from_json(asked.write_order)
    properties = dict(asked.properties or {})
    if asked.stage_create:
        properties.setdefault("created-at", dt.datetime.now(dt.timezone.utc).isoformat())
    transaction = served.catalog.create_table_transaction(
        identifier,
        schema_from_json(asked.schema),
        asked.location,
        UNPARTITIONED if asked.partition_spec is None else _spec(asked.partition_spec),
        order,
        properties,
    )
    try:
        served.check_table(call, identifier, transaction.metadata, None)
    except RefusedError:
        transaction.abandon()
        raise
    metadata = transaction.metadata
    if asked.stage_create:
        transaction.abandon()
        _make_local_folders(served.catalog.storage, metadata.location)
        return staged(served, call, identifier, metadata)
    table = transaction.commit_transaction()
    served.check_made_table(call, identifier, metadata)
    return loaded(served, call, identifier, served.version_at(table.metadata_location))


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


def load_table(served: ServedCatalog, call: Call) -> Answer:
    identifier, version = served.current(call.table)
    # What is kept here must not hide that the file is gone: other readers of the table will not find it.
    served.check_is_there(version.location)
    return loaded(served, call, identifier, version)


def table_exists(served: ServedCatalog, call: Call) -> Answer:
    served.check_exists(call.table)
    return NOTHING


def drop_table(served: ServedCatalog, call: Call) -> Answer:
    """Drops a table, and its files if the client asks for a purge."""
    identifier, purges = call.table, call.flag("purgeRequested")
    catalog = served.confined(call, identifier) if purges else served.catalog
    catalog.drop_table(identifier, purge_requested=purges)
    return NOTHING


def unregister_table(served: ServedCatalog, call: Call) -> Answer:
    """Drops a table and answers with its last version, so that another catalog can register it."""
    identifier = call.table
    pointer = served.catalog.metastore.load(identifier)
    with served.catalog.metastore.lease(pointer.identifier, pointer.properties) as lease:
        # Under the lock, no commit comes in between the answer and the drop.
        lease.acquire()
        version = served.version_at(lease.load().metadata_location)
        served.catalog.drop_table(pointer.identifier)
    return Answer({"metadata-location": version.location, "metadata": metadata_to_dict(version.metadata)})


def register_table(served: ServedCatalog, call: Call) -> Answer:
    asked = call.read(Register)
    identifier, version = to_register(served, call, asked, lambda file: read_version(file, served.catalog.storage))
    served.check_table(call, identifier, version.metadata, None, asked.metadata_location)
    table = served.catalog.register_table(identifier, asked.metadata_location, overwrite=bool(asked.overwrite))
    served.check_made_table(call, identifier, version.metadata)
    return loaded(served, call, identifier, served.version_at(table.metadata_location))


def rename_table(served: ServedCatalog, call: Call) -> Answer:
    return renamed(served, call, served.catalog.metastore.load, served.catalog.rename_table)


def report_metrics(served: ServedCatalog, call: Call) -> Answer:
    """Logs a client's report of a scan or a commit."""
    report = call.read(dict[str, Any])
    served.check_exists(call.table)
    logger.info("Metrics of %s: %.100r", ".".join(call.table), report.get("report-type"))
    return NOTHING


# ------------------------------------------------------------------------------------------------- their files


class _Sign(msgspec.Struct):
    method: str
    uri: str
    region: str
    headers: dict[str, list[str]]
    provider: str | None = None


def load_credentials(served: ServedCatalog, call: Call) -> Answer:
    """New credentials for a table's files."""
    identifier, version = served.current(call.table)
    return Answer({"storage-credentials": served.credentials(call, identifier, version.metadata, version)})


def sign_request(served: ServedCatalog, call: Call) -> Answer:
    """Signs a request to the store."""
    asked = call.read(_Sign)
    if served.signer is None or (asked.provider or "s3").lower() != "s3":
        raise RefusedError(406, "UnsupportedOperationException", "This server signs no requests to this store.")
    identifier, version = served.current(call.table)
    served.check_own(call, identifier, version)
    writes = call.access.allows(Right.WRITE, *identifier)
    folders = [each for each in s3_folders(version.metadata) if served.locations.allow(each.location)]
    method = asked.method.upper()
    signed = served.signer.signed(method, asked.uri, asked.region, asked.headers, folders, writes)
    # An answer to a read may be used again for the same object.
    headers = {"Cache-Control": "private"} if method in ("GET", "HEAD") else {"Cache-Control": "no-cache"}
    return Answer(signed, headers=headers)
