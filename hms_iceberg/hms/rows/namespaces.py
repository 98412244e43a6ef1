"""Namespaces as the metastore's databases, which have fields of their own for `location`, `comment` and the owner."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.connection.client_settings import current_user
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.metastore import Identifier

# Columns of Hive's schemas (2.3, 3.1): `DBS.NAME`, `HIVE_LOCKS.HL_DB` and `HIVE_LOCKS.HL_TABLE` hold 128 characters.
# `TBLS.TBL_NAME` holds more, so that a table of a longer name could be created, and no commit would get a lock.
MOST_OF_A_LOCK = 128
_MOST_OF_A_NAMESPACE = 128

LOCATION = "location"
COMMENT = "comment"
OWNER = "hive.metastore.database.owner"
OWNER_TYPE = "hive.metastore.database.owner-type"

_MOST_CHARACTERS = 255
_TABLE_NAME = re.compile(rf"[\x20-\x7e]{{1,{_MOST_CHARACTERS}}}")
_OWNER_TYPES = ttypes.PrincipalType._NAMES_TO_VALUES
_PLACED = (LOCATION, COMMENT, OWNER, OWNER_TYPE)
NOT_CHANGED_BY_HIVE_2 = (LOCATION, COMMENT)
"""What a metastore of Hive 2 leaves as it is, without a word, when a database is altered."""


def check_new_name(identifier: Identifier) -> None:
    """Refuses the name of a table that no metastore takes; many take fewer."""
    name = identifier[1]
    if not _TABLE_NAME.fullmatch(name):
        raise InvalidInputError(
            f"Cannot create {'.'.join(identifier)}: a Hive Metastore takes no such name. A name has at most "
            f"{_MOST_CHARACTERS} letters a to z, digits, '_' and, in some metastores, spaces and punctuation."
        )


def new_database(name: str, properties: Mapping[str, str], warehouse: str | None) -> ttypes.Database:
    """The metastore's database for a new namespace; without a location it goes to `<warehouse>/<name>.db`, or where
    the server puts it."""
    if OWNER_TYPE in properties and OWNER not in properties:
        raise InvalidInputError(f"Namespace {name}: {OWNER_TYPE} is set without {OWNER}. Set both.")
    location = properties.get(LOCATION) or (f"{warehouse.rstrip('/')}/{name}.db" if warehouse else None)
    return ttypes.Database(
        name=name,
        description=properties.get(COMMENT),
        locationUri=location,
        parameters={key: value for key, value in properties.items() if key not in _PLACED},
        ownerName=properties.get(OWNER) or current_user(),
        ownerType=_owner_type(name, properties.get(OWNER_TYPE)),
    )


def database_properties(database: ttypes.Database) -> dict[str, str]:
    properties = dict(database.parameters or {})
    if database.locationUri:
        properties[LOCATION] = database.locationUri
    if database.description:
        properties[COMMENT] = database.description
    if database.ownerName:
        properties[OWNER] = database.ownerName
        if database.ownerType is not None:
            properties[OWNER_TYPE] = ttypes.PrincipalType._VALUES_TO_NAMES[database.ownerType]
    return properties


def change_database(database: ttypes.Database, updates: Mapping[str, str], removals: Collection[str]) -> None:
    """Sets and removes properties of the metastore's database, in place."""
    kept = {key: value for key, value in (database.parameters or {}).items() if key not in removals}
    for key in _PLACED:  # a metastore takes an absent or empty one for one that is not to be changed
        if key in removals:
            raise InvalidInputError(f"Namespace {database.name}: {key} cannot be removed, only set to another value.")
    database.parameters = {**kept, **{key: value for key, value in updates.items() if key not in _PLACED}}
    database.description = updates.get(COMMENT, database.description)
    database.locationUri = updates.get(LOCATION, database.locationUri)
    database.ownerName = updates.get(OWNER, database.ownerName)
    if OWNER_TYPE in updates:
        database.ownerType = _owner_type(database.name, updates[OWNER_TYPE])


def _owner_type(name: str, text: str | None) -> int:
    if text is None:
        return int(_OWNER_TYPES["USER"])
    if text.upper() not in _OWNER_TYPES:
        raise InvalidInputError(
            f"Namespace {name}: {OWNER_TYPE} is {text!r}, expected one of {', '.join(sorted(_OWNER_TYPES))}."
        )
    return int(_OWNER_TYPES[text.upper()])


def check_namespace(name: str) -> None:
    """Refuses the name of a new namespace that is too long."""
    if len(name) > _MOST_OF_A_NAMESPACE:
        raise InvalidInputError(
            f"Cannot create namespace {name}: its name has {len(name)} characters, and a Hive Metastore holds "
            f"{_MOST_OF_A_NAMESPACE}. Choose a shorter one."
        )


def check_lockable(identifier: Identifier) -> None:
    """Refuses the name of a new table or view for which the metastore could give no lock."""
    name = identifier[1]
    if len(name) > MOST_OF_A_LOCK:
        raise InvalidInputError(
            f"Cannot create {'.'.join(identifier)}: its name has {len(name)} characters, and the locks of a Hive "
            f"Metastore hold {MOST_OF_A_LOCK}, so that no commit could be made. Choose a shorter one, or commit "
            "without locks (catalog property iceberg.engine.hive.lock-enabled=false, if the metastore supports "
            "compare-and-swap)."
        )
