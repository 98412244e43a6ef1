"""Scratch rows, on which the capabilities of a metastore are tried out, and the removal of those of killed processes.

Views without a location, so that no folder is made, in the default database, or in a namespace of the user if
none may be made there. Each lives for the time of one probe.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
import uuid

from hms_iceberg.errors import IcebergError, NoSuchTableError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.processes import Process, system_mark

logger = logging.getLogger(__name__)

PARAMETER = "hms_iceberg.probe"

_PREFIX = "hms_iceberg_probe_"
_NAME = re.compile(_PREFIX + r"(?P<system>[0-9a-f]*)_(?P<pid>\d+)_(?P<second>\d+)_[0-9a-f]+")
_FORMATS = ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.mapred.TextOutputFormat")
_MAX_AGE_SECONDS = 3600.0  # no probe takes that long, and no two clocks are that far apart


def new_name() -> str:
    """A unique name for a scratch row that holds its process and time, so that others can tell when it is left over."""
    return f"{_PREFIX}{system_mark()}_{os.getpid()}_{time.time():.0f}_{uuid.uuid4().hex[:12]}"


def scratch_row(database: str, name: str, value: str) -> ttypes.Table:
    """A scratch row whose `PARAMETER` has a value."""
    return ttypes.Table(
        tableName=name,
        dbName=database,
        owner="hms_iceberg",
        createTime=0,
        lastAccessTime=0,
        retention=0,
        sd=ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema(name="probe", type="int", comment=None)],
            inputFormat=_FORMATS[0],
            outputFormat=_FORMATS[1],
            numBuckets=0,
            serdeInfo=ttypes.SerDeInfo(parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
        partitionKeys=[],
        parameters={PARAMETER: value},
        viewOriginalText="select 1 as probe",
        viewExpandedText="select 1 as probe",
        tableType="VIRTUAL_VIEW",
    )


def drop(client: HmsClient, database: str, name: str) -> None:
    """Drops a scratch row; a failure is only logged."""
    try:
        client.drop_table(database, name)
    except NoSuchTableError:
        pass
    except IcebergError as error:
        logger.warning("The scratch view %s.%s could not be dropped, a later probe will: %s", database, name, error)


def drop_left_behind(client: HmsClient, database: str) -> None:
    """Drops scratch rows of killed processes: those of this machine at once, those of others after an hour."""
    try:
        for name in filter(_is_left_behind, client.list_tables(database, f"{_PREFIX}*")):
            if PARAMETER in (client.get_table(database, name).parameters or {}):
                logger.info("Dropping the scratch view %s.%s of a process that ended", database, name)
                drop(client, database, name)
    except IcebergError as error:
        logger.info("Scratch views in namespace %s cannot be looked for: %s", database, error)


def is_scratch(name: str) -> bool:
    return name.startswith(_PREFIX)


def drop_only_scratch_rows(client: HmsClient, database: str) -> bool:
    """Drops the scratch rows of a namespace that holds nothing else; else returns False, and drops none."""
    names = client.list_tables(database)
    if not all(map(is_scratch, names)):
        return False
    for row in client.get_tables(database, names):
        if PARAMETER not in (row.parameters or {}):
            return False
    for name in names:
        drop(client, database, name)
    return True


def _is_left_behind(name: str) -> bool:
    """Judges by the name alone: a server may take seconds to read a row that its owner drops at the same time."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    owner = Process(socket.gethostname(), int(match["pid"]), system=match["system"])
    return not owner.may_be_alive() or time.time() - int(match["second"]) > _MAX_AGE_SECONDS
