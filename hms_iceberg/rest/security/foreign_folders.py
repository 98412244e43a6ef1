"""Nobody gets at another table's files by a table of their own at the same place.

Who may manage a table gets its files: by credentials for its folder, by signed requests, or from the server's plans. So
under a policy a table may not be put into, or around, the folder of one that its maker may not manage.
"""

from __future__ import annotations

from collections.abc import Iterable

from hms_iceberg.metastore import Identifier, TableRows
from hms_iceberg.rest.access import Access, Right
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.table.needed.named_files import folders_of_row, is_in, path_of


def check_folders(
    access: Access, identifier: Identifier, locations: Iterable[tuple[str, str]], rows: TableRows | None
) -> None:
    """Refuses locations in or around the folders of tables that the caller may not manage.

    Every table of the metastore is looked at. A Hive table's partitions count where they are in its folder.

    Args:
        access: the caller.
        identifier: the table that is to have the locations.
        locations: what each is, for the message, and the location.
        rows: the metastore's tables; None if it does not tell of them.

    Raises:
        RefusedError: there are such tables, or it cannot be told.
    """
    asked = [(what, location, path_of(location).rstrip("/")) for what, location in locations]
    if access.allows_everything or not asked:
        return
    if rows is None:
        raise _refused(*asked[0][:2], "this server's catalog does not tell whose folder it is")
    own = tuple(part.lower() for part in identifier)
    for row in rows.rows():
        name = tuple(part.lower() for part in row.identifier)
        if name == own or access.allows(Right.MANAGE, *name):
            continue
        for folder in folders_of_row(row):
            for what, location, place in asked:
                if is_in(place, folder) or is_in(folder, place):
                    raise _refused(what, location, "files of a table that you may not manage are there")


def _refused(what: str, location: str, why: str) -> RefusedError:
    return RefusedError(
        403, "ForbiddenException", f"The {what} {location!r} is refused: {why}. Choose another one, or none."
    )
