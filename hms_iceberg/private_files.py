"""Folders and files that no other user of the machine can have put there or changed."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sysconfig
import tempfile
from pathlib import Path

from hms_iceberg.errors import ConfigurationError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def own_folder(folder: Path) -> Path:
    """Makes a folder that only this user can enter, or makes sure that one is that; PermissionError if others own or
    can replace it."""
    for each in (*reversed(folder.parents), folder):
        each.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user, or is a link")
    folder = folder.resolve()  # links on the way may be changed later
    for above in folder.parents:
        if above.stat().st_uid not in (0, os.getuid()):
            raise PermissionError(f"{above} can be changed by other users")
        _require_no_other_writers(above)
    if stat.S_IMODE(found.st_mode) != 0o700:  # made by a program, or an umask, that was less careful
        folder.chmod(0o700)
    return folder


def temporary_folder(purpose: str = "") -> Path:
    """Makes a new folder that only this user can enter in the one for temporary files. Its caller deletes it. Owners of
    the folders above are trusted: a service such as YARN may have made them for this process."""
    name = f"hms_iceberg-{purpose}-" if purpose else "hms_iceberg-"
    folder = Path(tempfile.mkdtemp(prefix=name)).resolve()  # mode 0700
    try:
        for above in folder.parents:
            _require_no_other_writers(above)
    except PermissionError as error:
        folder.rmdir()
        raise ConfigurationError(
            f"Cannot keep temporary files in {tempfile.gettempdir()}: {error}. Set TMPDIR to a folder that only you "
            "can write to, or have an administrator set its sticky bit (chmod +t), as /tmp has it."
        ) from error
    return folder


def _require_no_other_writers(folder: Path) -> None:
    """Refuses a folder whose entries others than its owner can rename or replace. With the sticky bit they are each
    owner's own. A group of its owner's name, as many systems make one for each user, has nobody else in it."""
    found = folder.stat()
    others = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_group_of_one(found))
    if others and not found.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{folder} can be changed by other users")


def _is_group_of_one(found: os.stat_result) -> bool:
    try:
        owner, group = pwd.getpwuid(found.st_uid).pw_name, grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner and set(group.gr_mem) <= {owner}


def is_own(path: Path) -> bool:
    """Whether a file or folder is there, is no link, belongs to this user, and nobody else can write to it."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return is_plain and found.st_uid == os.getuid() and not found.st_mode & _OTHERS_WRITE


def is_of_installation(path: Path) -> bool:
    """Whether a file is there that nobody can have put there, or changed, but root, this user and the owner of this
    package, who can change its code as well."""
    trusted = {0, os.getuid(), Path(__file__).stat().st_uid}
    try:
        path = path.resolve(strict=True)
        for each in (path, *path.parents):
            if each.stat().st_uid not in trusted:
                return False
            _require_no_other_writers(each)
    except OSError:
        return False
    return path.is_file() and not path.stat().st_mode & _OTHERS_WRITE


def cache_folder() -> Path | None:
    """The folder for what is kept from one process to the next; None where this user has none, such as no home."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):  # a user without a home
        return None
    try:
        folder = own_folder(Path(base) / "hms_iceberg")
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def installation_folder() -> Path:
    """The folder of this Python environment for what is made once for all its users; it may not be there yet."""
    return Path(sysconfig.get_path("data")) / "share" / "hms_iceberg"


def shared_folder() -> Path:
    """A folder of this user's own, for lock files and what its processes tell each other; gone after a restart."""
    return own_folder(Path(tempfile.gettempdir()) / f"hms_iceberg-locks-{os.getuid()}")
