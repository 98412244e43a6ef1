"""Endpoints of views."""

from __future__ import annotations

from collections import Counter

from hms_iceberg.errors import CorruptFileError, InvalidInputError
from hms_iceberg.rest.catalog.bodies import Commit, CreateView, Register
from hms_iceberg.rest.catalog.names import listed, new_name, renamed, to_register
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import NOTHING, Answer, Call
from hms_iceberg.spec.changes.requirements import read_view_requirements
from hms_iceberg.spec.changes.view_changes import changed_view, read_view_changes
from hms_iceberg.spec.metadata.table_metadata import now_ms
from hms_iceberg.spec.metadata.view_metadata import ViewMetadata, view_metadata_to_dict, view_version_from_json
from hms_iceberg.spec.schema_json import schema_from_json
from hms_iceberg.view.commit import read_view
from hms_iceberg.view.view import View


def list_views(served: ServedCatalog, call: Call) -> Answer:
    """The Iceberg views of a namespace that the caller may see."""
    return listed(served, call, served.catalog.list_views(call.namespace))


def create_view(served: ServedCatalog, call: Call) -> Answer:
    asked = call.read(CreateView)
    identifier = new_name(served, call, asked.name)
    try:
        version = view_version_from_json(asked.view_version)
    except CorruptFileError as error:
        raise InvalidInputError(f"Cannot read the view's version: {error}.") from error
    schema = schema_from_json(asked.schema)
    twice = [each for each, count in Counter(version.dialects).items() if count > 1]
    if twice:
        message = f"Invalid view version: Cannot add multiple queries for dialect {twice[0]}"
        raise RefusedError(400, "IllegalArgumentException", message)

    def check(metadata: ViewMetadata) -> None:
        served.check_view(call, identifier, metadata, None)

    properties = asked.properties or {}
    view = served.catalog.create_view(
        identifier, schema, version, asked.location, properties, keep_ids=True, check=check
    )
    return _made(served, call, view)


def load_view(served: ServedCatalog, call: Call) -> Answer:
    return _loaded(served.catalog.load_view(call.view))


def view_exists(served: ServedCatalog, call: Call) -> Answer:
    served.catalog.load_view(call.view)
    return NOTHING


def commit_view(served: ServedCatalog, call: Call) -> Answer:
    """Changes a view; if another writer was first, the changes are made again on the newer version."""
    asked = call.read(Commit)
    requirements = read_view_requirements(asked.requirements or [])
    steps = read_view_changes(asked.updates or [])

    def change(metadata: ViewMetadata) -> ViewMetadata:
        for requirement in requirements:
            requirement(metadata)
        new = changed_view(steps, metadata, now_ms())
        served.check_view(call, call.view, new, metadata)
        return new

    return _loaded(served.catalog.load_view(call.view).change(change))


def drop_view(served: ServedCatalog, call: Call) -> Answer:
    served.catalog.drop_view(call.view)
    return NOTHING


def rename_view(served: ServedCatalog, call: Call) -> Answer:
    return renamed(served, call, served.catalog.load_view, served.catalog.rename_view)


def register_view(served: ServedCatalog, call: Call) -> Answer:
    asked = call.read(Register)
    identifier, version = to_register(served, call, asked, lambda file: read_view(file, served.catalog.storage))
    served.check_view(call, identifier, version.metadata, None)
    views = getattr(served.catalog.metastore, "views", None)
    if not call.access.allows_everything and views is not None and views.names_file(asked.metadata_location):
        message = "The metadata file is that of a view that is there. Register a copy of the file."
        raise RefusedError(403, "ForbiddenException", message)
    return _made(served, call, served.catalog.register_view(identifier, asked.metadata_location))


def _made(served: ServedCatalog, call: Call, view: View) -> Answer:
    views = getattr(served.catalog.metastore, "views", None)
    if views is not None:
        served.check_made(call, views.load(view.identifier), view.metadata.location, views.drop)
    return _loaded(view)


def _loaded(view: View) -> Answer:
    return Answer(
        {
            "metadata-location": view.metadata_location,
            "metadata": view_metadata_to_dict(view.metadata),
            "config": {},
        }
    )
