"""A new key above those of an encrypted table's manifest lists."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.encryption.encrypted_tables import is_encrypted, rotated_keys
from hms_iceberg.errors import InvalidInputError
from hms_iceberg.spec.metadata.table_metadata import TableMetadata, changed
from hms_iceberg.spec.snapshots_and_refs import with_keys
from hms_iceberg.updates.machinery.update import FileReader, Update, Workspace


@dataclass(frozen=True)
class RotateKeys(Update):
    """Encrypts the keys of all manifest lists by a new key, which the newest version of the table's key encrypts.

    No file but the metadata is written anew.
    """

    def validate(self, start: TableMetadata, base: TableMetadata, reader: FileReader) -> None:
        """Accepts every history: the keys that came meanwhile are encrypted anew with the others."""

    def apply(self, base: TableMetadata, workspace: Workspace) -> TableMetadata:
        """The metadata with the new key, and without those that it takes the place of.

        Raises:
            InvalidInputError: the table is not encrypted.
            TamperedFileError: a key of the metadata was changed.
            KeyUnavailableError: the table's key cannot be used.
        """
        if not is_encrypted(base.properties):
            raise InvalidInputError(f"Cannot rotate the keys of the table at {base.location}: it is not encrypted.")
        now = workspace.now_ms()
        known = base.encryption_keys
        keys = workspace.once(("keys", known), lambda: rotated_keys(known, base.properties, workspace, now))
        snapshots = tuple(with_keys(each, keys) for each in base.snapshots)
        return changed(base, now, encryption_keys=keys, snapshots=snapshots)
