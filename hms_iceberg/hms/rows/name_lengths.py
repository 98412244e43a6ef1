"""How long names may be in a metastore: what its columns hold.

Source: Hive's schemas of 2.3 and 3.1: `DBS.NAME`, `HIVE_LOCKS.HL_DB` and `HIVE_LOCKS.HL_TABLE` hold 128 characters,
`TBLS.TBL_NAME` 256.
"""

from __future__ import annotations

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import Identifier

MOST_OF_A_LOCK = 128
_MOST_OF_A_DATABASE = 128
_MOST_OF_A_TABLE = 256


def check_namespace(name: str) -> None:
    """Refuses the name of a new namespace that is too long.

    Raises:
        InvalidInputError: says how long it may be.
    """
    if len(name) > _MOST_OF_A_DATABASE:
        raise InvalidInputError(
            f"Cannot create namespace {name}: its name has {len(name)} characters, and a Hive Metastore holds "
            f"{_MOST_OF_A_DATABASE}. Choose a shorter one."
        )


def check_name(identifier: Identifier, is_locked: bool) -> None:
    """Refuses a name that a table or view is to get and that is too long.

    Args:
        identifier: the name, as (namespace, name).
        is_locked: whether commits take the metastore's lock, which holds fewer characters.

    Raises:
        InvalidInputError: says how long it may be.
    """
    name, most = identifier[1], MOST_OF_A_LOCK if is_locked else _MOST_OF_A_TABLE
    if len(name) > most:
        holder = "the locks of a Hive Metastore hold" if is_locked else "a Hive Metastore holds"
        raise InvalidInputError(
            f"Cannot give the name {'.'.join(identifier)}: it has {len(name)} characters, and {holder} {most}. Choose "
            f"a shorter one{', or commit without locks (engine.hive.lock-enabled=false)' if is_locked else ''}."
        )
