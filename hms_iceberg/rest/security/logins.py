"""Says who asks, by what a request carries as its login."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hms_iceberg.rest.access import Caller
from hms_iceberg.rest.errors import RefusedError


class Login(Protocol):
    """Identifies callers by the header `Authorization`."""

    def caller(self, header: str) -> Caller:
        """Identifies the caller of a request.

        Raises:
            RefusedError: 401 for no login or a wrong one, 419 for one that has expired.
        """
        ...


def bearer_token(header: str) -> str:
    """The token of a header.

    Raises:
        RefusedError: there is none.
    """
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise not_authorized("This server wants a token: Authorization: Bearer …")
    return token.strip()


def not_authorized(message: str) -> RefusedError:
    """The error for somebody who is not let in."""
    return RefusedError(401, "NotAuthorizedException", message, {"WWW-Authenticate": "Bearer"})


@dataclass(frozen=True)
class StaticTokens:
    """Tokens that do not change, each of one caller. Only their hashes are kept.

    Attributes:
        hashes: SHA-256 of each token, and whose it is.
    """

    hashes: Mapping[bytes, Caller]

    @classmethod
    def of(cls, tokens: Mapping[str, Caller]) -> StaticTokens:
        """Logins for some tokens, of which only hashes are kept."""
        return cls({token_hash(token): caller for token, caller in tokens.items()})

    def caller(self, header: str) -> Caller:
        """See `Login`."""
        given, found = token_hash(bearer_token(header)), None
        for known, caller in self.hashes.items():  # all of them, whichever fits: the time must tell nothing
            if hmac.compare_digest(known, given):
                found = caller
        if found is None:
            raise not_authorized("The token is not one that this server knows.")
        return found


@dataclass(frozen=True)
class AnyOf:
    """Several ways to log in; the first that takes the token counts."""

    logins: Sequence[Login]

    def caller(self, header: str) -> Caller:
        """See `Login`."""
        refused: RefusedError | None = None
        for login in self.logins:
            try:
                return login.caller(header)
            except RefusedError as error:
                # That a token has expired says more than that another login does not know it.
                refused = error if refused is None or error.told.status == 419 else refused
        assert refused is not None
        raise refused


def token_hash(token: str) -> bytes:
    """SHA-256 of a token, by which it is known."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
