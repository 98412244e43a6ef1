"""Logins by tokens, which may come from a file in YAML:

tokens:
  - name: etl
    sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    groups: [writers]
  - name: alice
    token: a-long-random-text
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.rest.access import Caller
from hms_iceberg.rest.errors import RefusedError


class Login(Protocol):
    """Identifies callers by the header `Authorization`."""

    def caller(self, header: str) -> Caller:
        """Identifies the caller of a request; 401 for no login or a wrong one, 419 for one that has expired."""
        ...


def bearer_token(header: str) -> str:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise not_authorized("This server wants a token: Authorization: Bearer …")
    return token.strip()


def not_authorized(message: str) -> RefusedError:
    return RefusedError(401, "NotAuthorizedException", message, {"WWW-Authenticate": "Bearer"})


@dataclass(frozen=True)
class StaticTokens:
    """Tokens that do not change, each of one caller, by their SHA-256; tokens themselves are not kept."""

    hashes: Mapping[bytes, Caller]

    @classmethod
    def of(cls, tokens: Mapping[str, Caller]) -> StaticTokens:
        return cls({token_hash(token): caller for token, caller in tokens.items()})

    def caller(self, header: str) -> Caller:
        given, found = token_hash(bearer_token(header)), None
        for known, caller in self.hashes.items():  # all of them, whichever fits: the time must tell nothing
            if hmac.compare_digest(known, given):
                found = caller
        if found is None:
            raise not_authorized("The token is not one that this server knows.")
        return found


@dataclass(frozen=True)
class AnyOf:
    """Several logins; the first that accepts the token counts."""

    logins: Sequence[Login]

    def caller(self, header: str) -> Caller:
        refused: RefusedError | None = None
        for login in self.logins:
            try:
                return login.caller(header)
            except RefusedError as error:
                # That a token has expired says more than that another login does not know it.
                refused = error if refused is None or error.kind.code == 419 else refused
        assert refused is not None
        raise refused


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


_LEAST_LENGTH = 16


def read_yaml(path: Path, what: str) -> Mapping[str, Any]:
    """The mapping in a YAML file; `what` it holds is named in errors."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"Cannot read the {what} {path}: {error}. Correct the file.") from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"Cannot read the {what} {path}: expected a mapping, got {type(content).__name__}.")
    return content


def read_tokens(path: Path) -> StaticTokens:
    """The tokens of a file; refused if an entry is not complete, or a token too short to be safe. Errors hold no
    token."""
    entries = read_yaml(path, "file of tokens").get("tokens")
    if not isinstance(entries, list) or not entries:
        raise ConfigurationError(f"The file of tokens {path} has no list 'tokens'.")
    hashes: dict[bytes, Caller] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise ConfigurationError(f"Entry {number} of the file of tokens {path} has no 'name'.")
        unknown = sorted(map(str, entry.keys() - {"name", "token", "sha256", "groups"}))
        if unknown:
            raise ConfigurationError(f"Entry {number} of the file of tokens {path}: unknown keys {unknown}.")
        groups = entry.get("groups") or []
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise ConfigurationError(f"Entry {number} of the file of tokens {path}: 'groups' is no list of names.")
        hashes[_hash(entry, number, path)] = Caller(entry["name"], frozenset(groups))
    return StaticTokens(hashes)


def _hash(entry: Mapping[str, Any], number: int, path: Path) -> bytes:
    token, digest = entry.get("token"), entry.get("sha256")
    if isinstance(token, str) and digest is None:
        if len(token) < _LEAST_LENGTH:
            raise ConfigurationError(
                f"Entry {number} of the file of tokens {path}: the token has less than {_LEAST_LENGTH} characters."
            )
        return token_hash(token)
    try:
        found = bytes.fromhex(str(digest)) if token is None else b""
    except ValueError:
        found = b""
    if len(found) != 32:
        raise ConfigurationError(
            f"Entry {number} of the file of tokens {path}: expected either 'token', or 'sha256' with 64 hex digits."
        )
    return found
