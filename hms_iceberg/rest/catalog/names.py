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
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.locations import Location
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call, exact_identifier, one_level
from hms_iceberg.storage import Places
from hms_iceberg.table.needed_files.named_files import is_in_any

_MESSAGE_LENGTH = 300


def page(call: Call, names: Sequence[str], default_size: int) -> tuple[Sequence[str], str | None]:
    """The page of a sorted list that a request asks for (the whole list if for none), and the token of the next
    page."""
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


def listed(served: ServedCatalog, call: Call, identifiers: Iterable[Identifier]) -> Answer:
    """The requested page of a list, with only the names that the caller may see."""
    namespace = call.namespace
    names = [name for _, name in identifiers if call.access.allows(Right.READ, namespace, name)]
    shown, token = page(call, names, served.settings.limits.page_size)
    return Answer(
        {"identifiers": [{"namespace": [namespace], "name": name} for name in shown], "next-page-token": token}
    )


def new_name(served: ServedCatalog, call: Call, name: str) -> Identifier:
    """The identifier of a new table or view in the path's namespace, once the caller is found to have the right to
    it."""
    identifier = exact_identifier(call.namespace, name)
    served.check(call, Right.MANAGE, *identifier)
    return identifier


def renamed(
    served: ServedCatalog,
    call: Call,
    look: Callable[[Identifier], object],
    rename: Callable[[Identifier, Identifier], object],
) -> Answer:
    """Renames a table or view; `look` raises first if the source is missing, which is the error that clients expect."""
    asked = call.read(Rename)
    source, target = _identifier(asked.source), _identifier(asked.destination)
    served.check(call, Right.MANAGE, *source)
    served.check(call, Right.MANAGE, *target)
    look(source)
    rename(source, target)
    return NOTHING


def to_register(served: ServedCatalog, call: Call, asked: Register, read: Callable[[str], V]) -> tuple[Identifier, V]:
    """The identifier under which a metadata file is registered, and the version in the file."""
    identifier = new_name(served, call, asked.name)
    file = Location("metadata file", asked.metadata_location)
    served.check_locations(call, identifier, [file])
    namespaces, places = served.namespaces(), Places(served.catalog.storage)
    if served.locations.folders is None:
        namespaces.check_server(file, places)
    served.catalog.load_namespace_properties(identifier[0])
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
