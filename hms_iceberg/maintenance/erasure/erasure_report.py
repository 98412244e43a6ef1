"""The report of an erasure, signed with the user's key, and how it is verified.

A signature proves that whoever has the key said so, and that nobody changed a word since. It does not prove that the
rows were in no other place: other tables, backups of the storage, versions that a store keeps of deleted files.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import InvalidInputError, MissingDependencyError

FORMAT = "hms_iceberg erasure report 1"
_SIGNATURE = "signature"  # the member of a report that is not signed
_HMAC, _ED25519 = "HMAC-SHA256", "Ed25519"
_LEAST_BYTES = 16


def digest_of(where: str, salt: str | None = None) -> dict[str, str]:
    """A predicate as a report tells it: whoever knows the predicate can confirm it, and the report does not hold it."""
    salt = salt or secrets.token_hex(16)
    return {"salt": salt, "sha256": hashlib.sha256(f"{salt}:{where}".encode()).hexdigest()}


def is_about(report: Mapping[str, Any], where: str) -> bool:
    """Whether a report is about a predicate, written as it was when the rows were forgotten.

    Args:
        report: the report.
        where: the predicate.
    """
    return is_digest_of(report["where"], where)


def is_digest_of(digest: Mapping[str, str], where: str) -> bool:
    return hmac.compare_digest(digest["sha256"], digest_of(where, digest["salt"])["sha256"])


def signed(report: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """A report with a signature over all else in it. With a private Ed25519 key (PEM) whoever has the public one can
    verify it; with any other key of at least 16 bytes (HMAC-SHA256) whoever has the same key."""
    content = {name: value for name, value in report.items() if name != _SIGNATURE}
    private = _private_key(key)
    if private is None:
        made = hmac.new(_checked(key), _bytes(content), hashlib.sha256).hexdigest()
        return {**content, _SIGNATURE: {"algorithm": _HMAC, "value": made}}
    return {**content, _SIGNATURE: {"algorithm": _ED25519, "value": private.sign(_bytes(content)).hex()}}


def verify_report(report: Mapping[str, Any], key: bytes) -> bool:
    """Whether a report is as it was signed.

    Args:
        report: the report, as parsed from its JSON.
        key: the secret key that it was signed with, or the public Ed25519 key (PEM); the private one does as well.

    Returns:
        False if it was changed, was signed with another key, or was never signed.

    Raises:
        InvalidInputError: `key` is not such a key.
        MissingDependencyError: an Ed25519 key needs `hms_iceberg[encryption]`.
    """
    told = report.get(_SIGNATURE)
    if not isinstance(told, Mapping):
        return False
    content = _bytes({name: value for name, value in report.items() if name != _SIGNATURE})
    value = str(told.get("value", ""))
    public = _public_key(key)
    if public is None:
        made = hmac.new(_checked(key), content, hashlib.sha256).hexdigest()
        return told.get("algorithm") == _HMAC and hmac.compare_digest(made, value)
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(bytes.fromhex(value), content)
    except (InvalidSignature, ValueError):
        return False
    return told.get("algorithm") == _ED25519


def check_key(key: bytes) -> None:
    """Refuses what is no key, before anything is done that is to be signed with it."""
    if _private_key(key) is None:
        _checked(key)


def _checked(key: bytes) -> bytes:
    if len(key) < _LEAST_BYTES or key.lstrip().startswith(b"-----BEGIN"):
        raise InvalidInputError(
            f"Cannot sign with a key of {len(key)} bytes: give a secret of at least {_LEAST_BYTES} bytes, or a private "
            "Ed25519 key as PEM without a password."
        )
    return key


def _bytes(content: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: JSON with sorted names and without spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _private_key(key: bytes) -> Any | None:
    """An Ed25519 key to sign with; None if the bytes are a secret of their own."""
    if not key.lstrip().startswith(b"-----BEGIN") or b"PRIVATE" not in key:
        return None
    serialization, ed25519 = _cryptography()
    try:
        loaded = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"Cannot sign with the private key: {error}") from error
    return _checked_kind(loaded, ed25519.Ed25519PrivateKey)


def _public_key(key: bytes) -> Any | None:
    private = _private_key(key)
    if private is not None:
        return private.public_key()
    if not key.lstrip().startswith(b"-----BEGIN"):
        return None
    serialization, ed25519 = _cryptography()
    try:
        loaded = serialization.load_pem_public_key(key)
    except ValueError as error:
        raise InvalidInputError(f"Cannot verify with the public key: {error}") from error
    return _checked_kind(loaded, ed25519.Ed25519PublicKey)


def _checked_kind(key: Any, kind: type) -> Any:
    if not isinstance(key, kind):
        raise InvalidInputError(f"Reports are signed with Ed25519 keys, and this is a {type(key).__name__}.")
    return key


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingDependencyError(
            "Signatures by Ed25519 need cryptography: pip install 'hms_iceberg[encryption]'"
        ) from error
    return serialization, ed25519
