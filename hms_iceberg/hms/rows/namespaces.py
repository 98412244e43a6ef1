"""Namespaces as the metastore's databases: `location`, `comment` and the owner have places of their own there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.hms.connection.client_settings import current_user
from hms_iceberg.hms.connection.thrift_types import ttypes
from hms_iceberg.metastore import Identifier

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
    """Refuses the name of a table that no metastore takes; many take fewer.

    Raises:
        InvalidInputError: says which characters a name may have.
    """
    name = identifier[1]
    if not _TABLE_NAME.fullmatch(name):
        raise InvalidInputError(
            f"Cannot create {'.'.join(identifier)}: a Hive Metastore takes no such name. A name has at most "
            f"{_MOST_CHARACTERS} letters a to z, digits, '_' and, in some metastores, spaces and punctuation."
        )


def new_database(name: str, properties: Mapping[str, str], warehouse: str | None) -> ttypes.Database:
    """The metastore's database for a new namespace.

    Args:
        name: the namespace.
        properties: `location`, `comment`, the owner's name and type under Hive's property names, and any others.
        warehouse: where a namespace without a location goes (`<warehouse>/<name>.db`); the server's choice for None.

    Raises:
        InvalidInputError: an owner type without an owner, or an unknown one.
    """
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
    """A namespace's properties out of the metastore's database."""
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
    """Sets and removes properties of the metastore's database, in place.

    Args:
        database: the row, which is changed.
        updates: keys to set, with their values.
        removals: keys to remove.

    Raises:
        InvalidInputError: what has a place of its own is to be removed, or the owner's type is unknown.
    """
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
