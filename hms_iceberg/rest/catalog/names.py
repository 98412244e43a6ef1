"""Requests about names, which are alike for tables and views."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hms_iceberg.errors import CorruptFileError, InvalidInputError
from hms_iceberg.metastore import Identifier, V, table_identifier
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import Name, Register, Rename
from hms_iceberg.rest.catalog.pages import page
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call, one_level


def listed(door: Door, call: Call, identifiers: Iterable[Identifier]) -> Answer:
    """The requested page of a list, with only the names that the caller may see."""
    namespace = call.namespace
    names = [name for _, name in identifiers if call.access.allows(Right.READ, namespace, name)]
    shown, token = page(call, names, door.settings.limits.page_size)
    return Answer(
        {"identifiers": [{"namespace": [namespace], "name": name} for name in shown], "next-page-token": token}
    )


def new_name(door: Door, call: Call, name: str) -> Identifier:
    """The identifier of something that is made in the path's namespace, which the caller must be allowed to."""
    identifier = table_identifier((call.namespace, name))
    door.check(call, Right.MANAGE, *identifier)
    return identifier


def renamed(
    door: Door, call: Call, look: Callable[[Identifier], object], rename: Callable[[Identifier, Identifier], object]
) -> Answer:
    """Renames a table or view.

    Args:
        door, call: the catalog, and the request.
        look: raises if nothing has the name; of two things that are missing, clients expect this one to be told.
        rename: renames it.
    """
    asked = call.read(Rename)
    source, target = _identifier(asked.source), _identifier(asked.destination)
    door.check(call, Right.MANAGE, *source)
    door.check(call, Right.MANAGE, *target)
    look(source)
    rename(source, target)
    return NOTHING


def to_register(door: Door, call: Call, asked: Register, read: Callable[[str], V]) -> tuple[Identifier, V]:
    """The identifier under which a metadata file is registered, and the version in the file.

    Raises:
        InvalidInputError: the file is no such file.
    """
    identifier = new_name(door, call, asked.name)
    door.locations.check(asked.metadata_location, "metadata file")
    door.catalog.load_namespace_properties(identifier[0])
    try:
        return identifier, read(asked.metadata_location)
    except CorruptFileError as error:
        raise InvalidInputError(str(error)) from error


def _identifier(name: Name) -> Identifier:
    return table_identifier((one_level(name.namespace), name.name))
