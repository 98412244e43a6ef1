"""Keys in AWS Key Management Service.

Source: Apache Iceberg, `AwsKeyManagementClient` and its properties `kms.endpoint` and `kms.encryption-algorithm-spec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hms_iceberg.errors import KeyUnavailableError, MissingDependencyError, TamperedFileError


class AwsKeys:
    """Encrypts and decrypts by AWS keys; `encryption.key-id` is an id, alias or ARN. Properties: `kms.endpoint`,
    `kms.encryption-algorithm-spec`, `client.region`, `client.access-key-id`, `client.secret-access-key`,
    `client.session-token`; boto3 finds the rest."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        try:
            import boto3
        except ImportError as error:
            raise MissingDependencyError("Keys in AWS need boto3: pip install 'hms_iceberg[encryption]'") from error
        self._algorithm = properties.get("kms.encryption-algorithm-spec", "SYMMETRIC_DEFAULT")
        self._client: Any = boto3.client(
            "kms",
            endpoint_url=properties.get("kms.endpoint"),
            region_name=properties.get("client.region"),
            aws_access_key_id=properties.get("client.access-key-id"),
            aws_secret_access_key=properties.get("client.secret-access-key"),
            aws_session_token=properties.get("client.session-token"),
        )

    def wrap_key(self, key: bytes, table_key_id: str) -> bytes:
        answer = self._ask("encrypt", table_key_id, Plaintext=key)
        return bytes(answer["CiphertextBlob"])

    def unwrap_key(self, wrapped: bytes, table_key_id: str) -> bytes:
        answer = self._ask("decrypt", table_key_id, CiphertextBlob=wrapped)
        return bytes(answer["Plaintext"])

    def _ask(self, what: str, table_key_id: str, **sent: bytes) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client, what)(KeyId=table_key_id, EncryptionAlgorithm=self._algorithm, **sent)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ("InvalidCiphertextException", "IncorrectKeyException"):
                raise TamperedFileError(
                    f"AWS refuses a key that table key {table_key_id!r} is said to encrypt ({code}): it was changed, "
                    f"or another key encrypted it."
                ) from error
            raise _unavailable(table_key_id, error) from error
        except BotoCoreError as error:
            raise _unavailable(table_key_id, error) from error


def _unavailable(table_key_id: str, error: Exception) -> KeyUnavailableError:
    return KeyUnavailableError(
        f"AWS does not let the key {table_key_id!r} be used: {error}. Check the region, that the key exists and is "
        f"enabled, and that you may encrypt and decrypt by it."
    )
