"""JSON Web Tokens of an external server: signed by one of the keys that it publishes (JWKS)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.rest.access import Caller
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.logins import bearer_token, not_authorized

if TYPE_CHECKING:
    import jwt

logger = logging.getLogger(__name__)

# Whoever sends tokens of keys that nobody has must not have them asked for every time.
_ASK_SECONDS = 5.0
# Only those with a public key: with a shared secret, whoever can check a token could make one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


@dataclass(frozen=True)
class JwtSettings:
    """The tokens that are accepted."""

    keys: str  # address of the JWKS (https://…), or a file that holds it
    issuer: str  # the required issuer (`iss`)
    audience: str  # the required audience (`aud`)
    leeway_seconds: float = 30.0  # by how much clocks may differ
    name_claim: str = "sub"  # the claim that is the caller's name
    groups_claim: str = "groups"  # the claim that lists the caller's groups


class JwtLogin:
    """Accepts tokens that an external server has signed."""

    def __init__(self, settings: JwtSettings) -> None:
        import jwt

        self._settings = settings
        self._remote: jwt.PyJWKClient | None = None
        self._local: jwt.PyJWKSet | None = None
        self._asked_at = float("-inf")
        if settings.keys.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            self._remote = jwt.PyJWKClient(settings.keys, cache_keys=True, lifespan=600, timeout=10)
            return
        try:
            self._local = jwt.PyJWKSet.from_dict(json.loads(Path(settings.keys).read_text(encoding="utf-8")))
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise ConfigurationError(
                f"Cannot read the keys of tokens {settings.keys}: {error}. Give an address that begins with https://, "
                "or a file that holds a JWKS."
            ) from error

    def caller(self, header: str) -> Caller:
        import jwt

        token, settings = bearer_token(header), self._settings
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(token),
                algorithms=list(ALGORITHMS),
                issuer=settings.issuer,
                audience=settings.audience,
                leeway=settings.leeway_seconds,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise RefusedError(419, "AuthenticationTimeoutException", "The token has expired. Log in again.") from error
        except jwt.PyJWKClientConnectionError as error:
            logger.warning("Cannot get the keys of tokens from %s: %s", settings.keys, error)
            raise RefusedError(503, "ServiceUnavailableException", "The keys of tokens cannot be had now.") from error
        except jwt.PyJWTError as error:
            raise not_authorized(f"The token is refused: {error}.") from error
        name = claims.get(settings.name_claim)
        if not isinstance(name, str) or not name:
            raise not_authorized(f"The token is refused: it has no claim {settings.name_claim!r}.")
        groups = claims.get(settings.groups_claim) or []
        if isinstance(groups, str):
            groups = groups.split()
        return Caller(name, frozenset(map(str, groups)) if isinstance(groups, list) else frozenset())

    def _key(self, token: str) -> Any:
        import jwt

        wanted = jwt.get_unverified_header(token).get("kid")
        keys = [key for key in self._known() if wanted is None or key.key_id == wanted]
        if not keys and self._remote is not None and time.monotonic() - self._asked_at > _ASK_SECONDS:
            self._asked_at = time.monotonic()
            keys = [key for key in self._remote.get_signing_keys(refresh=True) if key.key_id == wanted]
        if len(keys) != 1:
            raise jwt.InvalidTokenError("it is signed by a key that this server does not know")
        return keys[0].key

    def _known(self) -> Sequence[jwt.PyJWK]:
        if self._remote is not None:
            return self._remote.get_signing_keys()  # those that it has kept, for some minutes
        assert self._local is not None
        return self._local.keys
