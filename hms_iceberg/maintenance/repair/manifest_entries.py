"""The entries of a table's manifests, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hms_iceberg.maintenance.check.digests import ManifestDigest, digest
from hms_iceberg.spec.manifests.manifest_avro import iterate_manifest
from hms_iceberg.spec.manifests.manifest_values import ManifestEntry, ManifestFile
from hms_iceberg.storage import Storage


class ManifestEntries:
    """The entries of each whole manifest, by its location.

    Of a manifest only a digest is kept; its entries are read again when they are asked for. Manifests that a repair
    makes count as whole ones.

    Args:
        storage: where manifests are.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._rows: dict[str, ManifestFile] = {}
        self._digests: dict[str, ManifestDigest] = {}
        self._data: dict[str, bytes] = {}
        self._made: dict[str, Sequence[ManifestEntry]] = {}

    def add(self, manifest: ManifestFile, found: ManifestDigest) -> None:
        """A manifest that was read.

        Args:
            manifest: the manifest, as its manifest list describes it.
            found: its digest.
        """
        self._digests[manifest.manifest_path] = found
        self.describe(manifest)

    def describe(self, manifest: ManifestFile) -> None:
        """Entries inherit from this row from now on."""
        self._rows[manifest.manifest_path] = manifest

    def make(self, location: str, entries: Sequence[ManifestEntry]) -> None:
        """Rebuilds the entries of a damaged manifest.

        Args:
            location: location of the manifest.
            entries: the entries of the manifest.
        """
        self._made[location] = entries
        self._digests[location] = digest(entries)

    def write(self, manifest: ManifestFile, data: bytes, entries: Sequence[ManifestEntry]) -> None:
        """A manifest that is to be written.

        Args:
            manifest: the manifest, as its manifest list describes it.
            data: the bytes of the file.
            entries: the entries of the manifest.
        """
        self._data[manifest.manifest_path] = data
        self.add(manifest, digest(entries))

    def __contains__(self, location: object) -> bool:
        return location in self._digests

    def __getitem__(self, location: str) -> list[ManifestEntry]:
        """All entries of a whole manifest, with the metrics of their files."""
        return list(self.each(location, metrics=True))

    def each(self, location: str, *, metrics: bool = False) -> Iterator[ManifestEntry]:
        """The entries of a whole manifest, one by one.

        Args:
            location: location of the manifest.
            metrics: whether entries have column metrics.

        Raises:
            CorruptManifestError: the manifest is damaged.
            MissingFileError: it is gone.
        """
        if location in self._made:
            yield from self._made[location]
            return
        data = self._data.get(location) or self._storage.read(location)
        yield from iterate_manifest(data, self._rows[location], metrics=metrics)

    def everywhere(self, *, metrics: bool = False) -> Iterator[ManifestEntry]:
        """The entries of all whole manifests, one by one."""
        for location in list(self._digests):
            yield from self.each(location, metrics=metrics)

    def digest(self, location: str) -> ManifestDigest:
        """The digest of a whole manifest."""
        return self._digests[location]

    def digests(self, manifests: Iterable[ManifestFile]) -> list[tuple[ManifestFile, ManifestDigest]] | None:
        """Manifests with their digests; None if one of them is damaged."""
        found = [(each, self._digests.get(each.manifest_path)) for each in manifests]
        whole = [(each, kept) for each, kept in found if kept is not None]
        return whole if len(whole) == len(found) else None
