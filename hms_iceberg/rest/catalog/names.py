"""Names in requests, lists of names in pages, and renaming."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence

from hms_iceberg.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingFileError,
    StorageDeniedError,
    UnsupportedError,
)
from hms_iceberg.metastore import Identifier, V
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import Name, Register, Rename
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.locations import Location
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call, exact_identifier, one_level
from hms_iceberg.storage import Places
from hms_iceberg.table.needed.named_files import is_in_any

_MESSAGE_LENGTH = 300


def page(call: Call, names: Sequence[str], default_size: int) -> tuple[Sequence[str], str | None]:
    """The page of a sorted list that a request asks for, and the token of the next one.

    All of the list is one page if the request asks for none.

    Args:
        call: the request.
        names: the sorted list.
        default_size: names of a page if the client does not say.

    Raises:
        InvalidInputError: the token is none of this server's, or the size is no number.
    """
    token, size = call.query.get("pageToken"), call.number("pageSize")
    if token is None and size is None:
        return names, None
    after = _name(token) if token else ""
    rest = [name for name in names if name > after] if after else names
    shown = rest[: size or default_size]
    return shown, _token(shown[-1]) if len(shown) < len(rest) else None


def _token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _name(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInputError(f"Parameter 'pageToken': {token[:100]!r} is no token of this server.") from error


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
    identifier = exact_identifier(call.namespace, name)
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
        RefusedError: it may not be there, or it is nowhere near this catalog's tables, and no such file.
    """
    identifier = new_name(door, call, asked.name)
    file = Location("metadata file", asked.metadata_location)
    door.check_locations(call, identifier, [file])
    namespaces, places = door.namespaces(), Places(door.catalog.storage)
    if door.locations.folders is None:
        namespaces.check_server(file, places)
    door.catalog.load_namespace_properties(identifier[0])
    try:
        return identifier, read(asked.metadata_location)
    except (CorruptFileError, MissingFileError, StorageDeniedError, UnsupportedError) as error:
        if not is_in_any(places.of(file.text), map(places.of, namespaces.folders.values())):
            # Elsewhere nobody is told which files this server has.
            message = f"No metadata file can be read at {file.text[:_MESSAGE_LENGTH]}."
            raise RefusedError(404, "NotFoundException", message) from None
        if isinstance(error, CorruptFileError):
            raise InvalidInputError(str(error)) from error
        raise


def _identifier(name: Name) -> Identifier:
    return exact_identifier(one_level(name.namespace), name.name)
