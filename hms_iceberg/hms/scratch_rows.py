"""The rows that it is tried out on what a metastore can do, and how those of killed processes go away again.

Views without a location, so that no folder is made, in a namespace of the user: the only place where a user is sure to
have the right to make them. Each lives for the time of one probe.
"""

from __future__ import annotations

import logging
import socket
import time
import uuid

from hms_iceberg.errors import IcebergError, NoSuchTableError
from hms_iceberg.hms.client import HmsClient
from hms_iceberg.hms.dead_holders import is_dead
from hms_iceberg.hms.lock_agents import AGENTS
from hms_iceberg.hms.thrift_types import ttypes

logger = logging.getLogger(__name__)

PARAMETER = "hms_iceberg.probe"

_PREFIX = "hms_iceberg_probe_"
_HOST, _AGENT = "hms_iceberg.probe.host", "hms_iceberg.probe.agent"
_FORMATS = ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.mapred.TextOutputFormat")
_MAX_AGE_SECONDS = 3600.0  # no probe takes that long, and no two clocks are that far apart


def new_name() -> str:
    """A name that nobody else draws."""
    return f"{_PREFIX}{uuid.uuid4().hex[:12]}"


def scratch_row(database: str, name: str, value: str) -> ttypes.Table:
    """A scratch row.

    Args:
        database, name: where it goes.
        value: of its parameter `PARAMETER`.
    """
    return ttypes.Table(
        tableName=name,
        dbName=database,
        owner="hms_iceberg",
        createTime=int(time.time()),
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
        parameters={PARAMETER: value, _HOST: socket.gethostname(), _AGENT: AGENTS.of_process()},
        viewOriginalText="select 1 as probe",
        viewExpandedText="select 1 as probe",
        tableType="VIRTUAL_VIEW",
    )


def drop(client: HmsClient, database: str, name: str) -> None:
    """Drops a scratch row; a failure is logged only."""
    try:
        client.drop_table(database, name)
    except NoSuchTableError:
        pass
    except IcebergError as error:
        logger.warning("The scratch view %s.%s could not be dropped, a later probe will: %s", database, name, error)


def drop_left_behind(client: HmsClient, database: str) -> None:
    """Drops what killed processes left in a namespace: those of this machine at once, others after an hour."""
    try:
        names = client.list_tables(database, f"{_PREFIX}*")
        for row in client.get_tables(database, names) if names else ():
            if _is_left_behind(row):
                logger.info("Dropping the scratch view %s.%s of a process that ended", database, row.tableName)
                drop(client, database, row.tableName)
    except IcebergError as error:
        logger.info("Scratch views in namespace %s cannot be looked for: %s", database, error)


def drop_only_scratch_rows(client: HmsClient, database: str) -> bool:
    """Drops the scratch rows of a namespace that holds nothing else; returns whether there was nothing else."""
    names = client.list_tables(database)
    if not all(name.startswith(_PREFIX) for name in names):
        return False
    for row in client.get_tables(database, names):
        if PARAMETER not in (row.parameters or {}):
            return False
    for name in names:
        drop(client, database, name)
    return True


def _is_left_behind(row: ttypes.Table) -> bool:
    parameters = row.parameters or {}
    if PARAMETER not in parameters:
        return False
    return is_dead(parameters.get(_HOST), parameters.get(_AGENT)) or time.time() - row.createTime > _MAX_AGE_SECONDS
