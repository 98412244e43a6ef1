"""Endpoints of tables, but for commits."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from hms_iceberg.errors import CorruptFileError, InvalidInputError
from hms_iceberg.metastore import table_identifier
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import CreateTable, Register, Rename
from hms_iceberg.rest.catalog.loading import loaded, staged
from hms_iceberg.rest.catalog.pages import page
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call, one_level
from hms_iceberg.spec.metadata.metadata_json import metadata_to_dict
from hms_iceberg.spec.partitions.partition_specs import UNPARTITIONED, spec_from_fields_json
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.spec.sort_orders import UNSORTED, sort_order_from_json
from hms_iceberg.transaction.workspace import read_version

logger = logging.getLogger(__name__)


def list_tables(door: Door, call: Call) -> Answer:
    """The Iceberg tables of a namespace that the caller may see."""
    namespace = call.namespace
    names = [name for _, name in door.list_tables(namespace) if call.access.allows(Right.READ, namespace, name)]
    shown, token = page(call, names, door.settings.limits.page_size)
    return Answer(
        {"identifiers": [{"namespace": [namespace], "name": name} for name in shown], "next-page-token": token}
    )


def create_table(door: Door, call: Call) -> Answer:
    """A new table; or only its metadata, for a client that commits it later together with its data."""
    asked = call.read(CreateTable)
    identifier = table_identifier((call.namespace, asked.name))
    door.check(call, Right.MANAGE, *identifier)
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
        door.locations.check_table(transaction.metadata, None)
    except RefusedError:
        transaction.abandon()
        raise
    if asked.stage_create:
        metadata = transaction.metadata
        transaction.abandon()
        return staged(door, call, identifier, metadata)
    table = transaction.commit_transaction()
    return loaded(door, call, identifier, door.version_at(table.metadata_location))


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
    door.catalog.drop_table(call.table, purge_requested=call.flag("purgeRequested"))
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
    identifier = table_identifier((call.namespace, asked.name))
    door.check(call, Right.MANAGE, *identifier)
    door.locations.check(asked.metadata_location, "metadata file")
    door.catalog.load_namespace_properties(identifier[0])
    try:
        version = read_version(asked.metadata_location, door.catalog.storage)
    except CorruptFileError as error:
        raise InvalidInputError(str(error)) from error
    door.locations.check_table(version.metadata, None)
    table = door.catalog.register_table(identifier, asked.metadata_location, overwrite=bool(asked.overwrite))
    return loaded(door, call, identifier, door.version_at(table.metadata_location))


def rename_table(door: Door, call: Call) -> Answer:
    """Gives a table another name; its files stay."""
    asked = call.read(Rename)
    source = table_identifier((one_level(asked.source.namespace), asked.source.name))
    target = table_identifier((one_level(asked.destination.namespace), asked.destination.name))
    door.check(call, Right.MANAGE, *source)
    door.check(call, Right.MANAGE, *target)
    door.catalog.metastore.load(source)  # of two things that are missing, clients expect this one to be told
    door.catalog.rename_table(source, target)
    return NOTHING


def report_metrics(door: Door, call: Call) -> Answer:
    """Takes note of what a client tells of a scan or a commit."""
    report = call.read(dict[str, Any])
    door.check_exists(call.table)
    logger.info("Metrics of %s: %s", ".".join(call.table), report.get("report-type"))
    return NOTHING
