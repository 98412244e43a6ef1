"""Whether a metastore compares a parameter before it alters a table (HIVE-26882): asked once, by trying it.

A server that does not know the comparison ignores it, and would let a concurrent commit be overwritten. Version numbers
do not tell: the change was ported back to some releases and not to others. So a scratch row is altered, a view without
a location, so that no folder is made; never a table of the user.
"""

from __future__ import annotations

import logging
import threading
import uuid

from hms_iceberg.errors import (
    IcebergError,
    MetastoreAnswerLostError,
    MetastoreError,
    MetastoreUnavailableError,
    NoSuchTableError,
)
from hms_iceberg.hms.client import HmsClient
from hms_iceberg.hms.thrift_types import ttypes

logger = logging.getLogger(__name__)

EXPECTED_KEY = "expected_parameter_key"
EXPECTED_VALUE = "expected_parameter_value"
MODIFIED = "The table has been modified"

_PARAMETER = "hms_iceberg.probe"
_FORMATS = ("org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.mapred.TextOutputFormat")

_mutex = threading.Lock()
_known: dict[str, bool] = {}


def known_support(client: HmsClient) -> bool | None:
    """What an earlier probe found; None where there was none."""
    return _known.get(str(client.pool))


def supports_compare_and_swap(client: HmsClient, database: str) -> bool:
    """Whether the metastore compares before it alters; probed at the first call for a server, then remembered.

    Args:
        client: the metastore.
        database: an existing namespace, in which the scratch row lives for the time of the probe.

    Raises:
        MetastoreError: the scratch row cannot be created there.
    """
    server = str(client.pool)
    with _mutex:
        if server not in _known:
            try:
                _known[server] = _probe(client, database)
            except MetastoreAnswerLostError as error:
                raise MetastoreUnavailableError(
                    f"The metastore was lost while it was asked whether it supports commits without locks, before "
                    f"anything was committed. {error}"
                ) from error
            logger.info("Metastore %s %s compare-and-swap", server, "supports" if _known[server] else "lacks")
        return _known[server]


def expectation(key: str, value: str) -> dict[str, str]:
    """The environment of an alter that is refused where the parameter has another value."""
    return {EXPECTED_KEY: key, EXPECTED_VALUE: value}


def _probe(client: HmsClient, database: str) -> bool:
    name = f"hms_iceberg_probe_{uuid.uuid4().hex[:12]}"
    try:
        client.create_table(_scratch_row(database, name, "1"))
    except MetastoreUnavailableError:
        raise
    except IcebergError as error:
        raise MetastoreError(
            f"It cannot be found out whether the metastore supports commits without locks: the scratch view "
            f"{database}.{name} could not be created ({error}). Allow it, or commit with locks "
            "(engine.hive.lock-enabled=true)."
        ) from error
    try:
        return _refuses_wrong_value(client, database, name) and _accepts_right_value(client, database, name)
    finally:
        _drop(client, database, name)


def _refuses_wrong_value(client: HmsClient, database: str, name: str) -> bool:
    try:
        client.alter_table(database, name, _scratch_row(database, name, "2"), expectation(_PARAMETER, "0"))
    except MetastoreUnavailableError:
        raise
    except MetastoreError as error:
        if MODIFIED in str(error):
            return True
        raise
    return False


def _accepts_right_value(client: HmsClient, database: str, name: str) -> bool:
    try:
        client.alter_table(database, name, _scratch_row(database, name, "2"), expectation(_PARAMETER, "1"))
    except MetastoreUnavailableError:
        raise
    except MetastoreError as error:
        if MODIFIED in str(error):  # a first version on MySQL refuses every change (HIVE-28121)
            return False
        raise
    return bool((client.get_table(database, name).parameters or {}).get(_PARAMETER) == "2")


def _scratch_row(database: str, name: str, value: str) -> ttypes.Table:
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
        parameters={_PARAMETER: value},
        viewOriginalText="select 1 as probe",
        viewExpandedText="select 1 as probe",
        tableType="VIRTUAL_VIEW",
    )


def _drop(client: HmsClient, database: str, name: str) -> None:
    try:
        client.drop_table(database, name)
    except NoSuchTableError:
        pass
    except IcebergError as error:
        logger.warning("The scratch view %s.%s could not be dropped; drop it by hand: %s", database, name, error)
