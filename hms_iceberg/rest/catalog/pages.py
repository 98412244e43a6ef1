"""Lists in pages. A token is the name after which the next page begins, so that changes in between lose nothing."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.rest.serving.calls import Call


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
