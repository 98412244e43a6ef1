"""What is under one prefix, named under another one."""

from __future__ import annotations

from dataclasses import dataclass

from hms_iceberg.errors import InvalidInputError


@dataclass(frozen=True)
class PrefixChange:
    """Replaces the prefix of paths.

    Attributes:
        source: the prefix that goes; with or without a slash at its end.
        target: what takes its place.
        staging: the folder in which files that are written anew lie until they are copied.
    """

    source: str
    target: str
    staging: str

    def new_path(self, path: str) -> str:
        """The path under the target.

        Raises:
            InvalidInputError: it is not under the source.
        """
        return _joined(self.target, self._relative(path))

    def staged_path(self, path: str) -> str:
        """Where a file that is written anew is staged, in the same folders as under the source.

        Raises:
            InvalidInputError: it is not under the source.
        """
        return _joined(self.staging, self._relative(path))

    def _relative(self, path: str) -> str:
        """What follows the source; nothing for the source itself."""
        source = self.source.rstrip("/") + "/"
        if path.rstrip("/") + "/" == source:
            return ""
        if not path.startswith(source):
            raise InvalidInputError(
                f"Cannot replace the prefix of {path}: it is not under {self.source}. Every path of the table has to "
                "be; give a prefix that all of them have."
            )
        return path[len(source) :]


def _joined(folder: str, relative: str) -> str:
    return f"{folder.rstrip('/')}/{relative}" if relative else folder
