"""Keys in the transit engine of HashiCorp Vault, and of OpenBao, which has the same one."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from hms_iceberg.errors import ConfigurationError, KeyUnavailableError, TamperedFileError

_SECONDS = 30


class VaultKeys:
    """Encrypts and decrypts by the Vault key that `encryption.key-id` names. Properties: `kms.vault.address`,
    `kms.vault.token` and `kms.vault.namespace`, or `$VAULT_ADDR`, `$VAULT_TOKEN`, `$VAULT_NAMESPACE`, and
    `kms.vault.mount` (`transit`)."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def setting(name: str, variable: str) -> str:
            return properties.get(f"kms.vault.{name}") or os.environ.get(variable, "")

        self._address = setting("address", "VAULT_ADDR").rstrip("/")
        self._token = setting("token", "VAULT_TOKEN")
        self._namespace = setting("namespace", "VAULT_NAMESPACE")
        self._mount = properties.get("kms.vault.mount", "transit").strip("/")
        if not self._address.startswith(("https://", "http://")) or not self._token:
            raise ConfigurationError(
                "Keys in Vault need its address and a token: set the catalog's properties kms.vault.address and "
                "kms.vault.token, or VAULT_ADDR and VAULT_TOKEN."
            )

    def wrap_key(self, key: bytes, table_key_id: str) -> bytes:
        answer = self._ask("encrypt", table_key_id, {"plaintext": base64.b64encode(key).decode()})
        return str(answer["ciphertext"]).encode()

    def unwrap_key(self, wrapped: bytes, table_key_id: str) -> bytes:
        answer = self._ask("decrypt", table_key_id, {"ciphertext": wrapped.decode("utf-8", "replace")})
        return base64.b64decode(answer["plaintext"])

    def _ask(self, what: str, table_key_id: str, body: Mapping[str, str]) -> Any:
        headers = {"X-Vault-Token": self._token, "Content-Type": "application/json"}
        if self._namespace:
            headers["X-Vault-Namespace"] = self._namespace
        address = f"{self._address}/v1/{self._mount}/{what}/{quote(table_key_id, safe='')}"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            answer = error.read(2000).decode("utf-8", "replace")
            refused = what == "decrypt" and error.code == 400 and "(too old)" not in answer
            if refused and ("ciphertext" in answer or "authentication" in answer):
                raise TamperedFileError(
                    f"Vault refuses a key that table key {table_key_id!r} is said to encrypt: it was changed, or "
                    f"another key encrypted it."
                ) from error
            raise _unavailable(table_key_id, f"{error.code} {answer}") from error
        except (OSError, ValueError, KeyError) as error:
            raise _unavailable(table_key_id, str(error)) from error


def _unavailable(table_key_id: str, why: str) -> KeyUnavailableError:
    return KeyUnavailableError(
        f"Vault does not let the key {table_key_id!r} be used: {why.strip()}. Check its address, the token and its "
        f"policy, and that the key exists."
    )
