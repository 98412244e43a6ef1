"""How long new names may be in a metastore: what its columns hold.

Source: Hive's schemas of 2.3 and 3.1: `DBS.NAME`, `HIVE_LOCKS.HL_DB` and `HIVE_LOCKS.HL_TABLE` hold 128 characters.
`TBLS.TBL_NAME` holds more, so that a table of a longer name can be created, and no commit gets a lock.
"""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier

MOST_OF_A_LOCK = 128
_MOST_OF_A_NAMESPACE = 128


def check_namespace(name: str) -> None:
    """Refuses the name of a new namespace that is too long.

    Raises:
        InvalidInputError: says how long it may be.
    """
    if len(name) > _MOST_OF_A_NAMESPACE:
        raise InvalidInputError(
            f"Cannot create namespace {name}: its name has {len(name)} characters, and a Hive Metastore holds "
            f"{_MOST_OF_A_NAMESPACE}. Choose a shorter one."
        )


def check_lockable(identifier: Identifier) -> None:
    """Refuses the name of a new table or view for which the metastore could give no lock.

    Raises:
        InvalidInputError: says how long it may be.
    """
    name = identifier[1]
    if len(name) > MOST_OF_A_LOCK:
        raise InvalidInputError(
            f"Cannot create {'.'.join(identifier)}: its name has {len(name)} characters, and the locks of a Hive "
            f"Metastore hold {MOST_OF_A_LOCK}, so that no commit could be made. Choose a shorter one, or commit "
            "without locks (catalog property iceberg.engine.hive.lock-enabled=false, if the metastore supports "
            "compare-and-swap)."
        )
