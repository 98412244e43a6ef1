"""A file of static tokens.

tokens:
  - name: etl
    sha256: 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    groups: [writers]
  - name: alice
    token: a-long-random-text
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.rest.access import Caller
from hms_iceberg.rest.security.logins import StaticTokens, token_hash

_LEAST_LENGTH = 16


def read_yaml(path: Path, what: str) -> Mapping[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigurationError: it cannot be read, or holds something else.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"Cannot read the {what} {path}: {error}. Correct the file.") from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"Cannot read the {what} {path}: expected a mapping, got {type(content).__name__}.")
    return content


def read_tokens(path: Path) -> StaticTokens:
    """The tokens of a file.

    Raises:
        ConfigurationError: an entry is not complete, or a token is too short to be safe; no token is told.
    """
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
