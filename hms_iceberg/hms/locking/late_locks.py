"""Locks out of requests whose answer was lost, and that were carried out when nobody waited for them any more.

Such a lock would keep the writers of other machines out until the metastore drops it, after `hive.txn.timeout` (five
minutes by default). It costs a thread, in the rare case that the answer to a `lock` was lost.
"""

from __future__ import annotations

import logging
import threading
import time

from hms_iceberg.errors import IcebergError
from hms_iceberg.hms.connection.client import HmsClient
from hms_iceberg.metastore import Identifier

logger = logging.getLogger(__name__)

_PAUSES = (1.0, 4.0, 25.0)  # seconds before each look
_ANSWER_SECONDS = 30.0


def give_back_late_locks(client: HmsClient, identifier: Identifier, agent: str) -> None:
    """Looks for them from the background, for half a minute.

    Args:
        client: the metastore.
        identifier: the table.
        agent: that of the request; no lock of it is in use any more.
    """
    arguments = (client, identifier, agent)
    threading.Thread(target=_watch, args=arguments, name="hms-iceberg-late-locks", daemon=True).start()


def _watch(client: HmsClient, identifier: Identifier, agent: str) -> None:
    name = ".".join(identifier)
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            for row in client.show_locks(identifier[0], identifier[1], _ANSWER_SECONDS):
                if row.agentInfo == agent:
                    client.unlock(row.lockid, name, _ANSWER_SECONDS)
                    logger.info("Lock %d on table %s, which came late, was given back", row.lockid, name)
        except IcebergError as error:
            logger.info("Late locks on %s cannot be looked for: %s", name, error)
