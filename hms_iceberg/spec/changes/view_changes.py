"""The changes of views that a request may ask for, one entry a kind, and what they make of a view's metadata.

Source: Iceberg's REST protocol, `ViewUpdate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hms_iceberg.errors import CorruptFileError, InvalidInputError
from hms_iceberg.spec.changes.pending import PendingView
from hms_iceberg.spec.changes.requirements import read_by_kind, text_map, texts
from hms_iceberg.spec.json_model import JsonObject
from hms_iceberg.spec.metadata.metadata_definition import stripped_location
from hms_iceberg.spec.metadata.view_metadata import (
    FORMAT_VERSION,
    ViewMetadata,
    add_view_schema,
    add_view_version,
    check_view_metadata,
    set_current_version,
    set_view_properties,
    view_version_from_json,
)
from hms_iceberg.spec.schema_json import schema_from_json

ViewStep = Callable[[PendingView], None]


def read_view_changes(data: Any) -> tuple[ViewStep, ...]:
    return tuple(step for _, step in read_by_kind(data, "update", "action", _CHANGES))


def changed_view(steps: Sequence[ViewStep], base: ViewMetadata, at_ms: int) -> ViewMetadata:
    pending = PendingView(base, at_ms)
    for step in steps:
        step(pending)
    try:
        check_view_metadata(pending.metadata)
    except CorruptFileError as error:
        raise InvalidInputError(f"The request makes no valid view: {error}.") from error
    return pending.metadata


def _assign_uuid(body: JsonObject) -> ViewStep:
    given = body.text("uuid").lower()

    def step(pending: PendingView) -> None:
        if pending.metadata.view_uuid.lower() != given:
            raise InvalidInputError(
                f"Cannot give the view another UUID: it is {pending.metadata.view_uuid}, and {given} was asked."
            )

    return step


def _upgrade(body: JsonObject) -> ViewStep:
    version = body.integer("format-version")

    def step(pending: PendingView) -> None:
        if version != FORMAT_VERSION:
            raise InvalidInputError(f"Views have format version {FORMAT_VERSION}, and {version} was asked.")

    return step


def _add_schema(body: JsonObject) -> ViewStep:
    schema = schema_from_json(body.data.get("schema"))

    def step(pending: PendingView) -> None:
        pending.metadata, pending.added.last["schema"] = add_view_schema(pending.metadata, schema)

    return step


def _add_version(body: JsonObject) -> ViewStep:
    version = view_version_from_json(body.data.get("view-version"))

    def step(pending: PendingView) -> None:
        schema_id = pending.added.resolve("schema", version.schema_id)
        given = replace(version, schema_id=schema_id)
        pending.metadata, number = add_view_version(pending.metadata, given)
        pending.added.last["version"] = number
        pending.version_times[number] = version.timestamp_ms

    return step


def _set_version(body: JsonObject) -> ViewStep:
    given = body.integer("view-version-id")

    def step(pending: PendingView) -> None:
        number = pending.added.resolve("version", given)
        at_ms = pending.version_times.get(number, pending.at_ms)
        pending.metadata = set_current_version(pending.metadata, number, at_ms)

    return step


def _set_location(body: JsonObject) -> ViewStep:
    location = stripped_location(body.text("location"))

    def step(pending: PendingView) -> None:
        pending.metadata = replace(pending.metadata, location=location)

    return step


def _set_properties(body: JsonObject) -> ViewStep:
    updates = text_map(body, "updates", "updated")

    def step(pending: PendingView) -> None:
        pending.metadata = set_view_properties(pending.metadata, updates)

    return step


def _remove_properties(body: JsonObject) -> ViewStep:
    names = texts(body, "removals", "removed")

    def step(pending: PendingView) -> None:
        pending.metadata = set_view_properties(pending.metadata, {}, names)

    return step


_CHANGES: dict[str, Callable[[JsonObject], ViewStep]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade,
    "add-schema": _add_schema,
    "add-view-version": _add_version,
    "set-current-view-version": _set_version,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
}
