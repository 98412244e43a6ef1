"""Endpoints of namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import namespace_name
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import CreateNamespace, UpdateNamespace
from hms_iceberg.rest.catalog.names import page
from hms_iceberg.rest.door import Door
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.locations import Location
from hms_iceberg.rest.serving.calls import NOTHING, SEPARATOR, Answer, Call, check_exact, one_level

_LOCATION = "location"


def list_namespaces(door: Door, call: Call) -> Answer:
    """All namespaces that the caller may see; those below one, of which there are none."""
    parent = call.query.get("parent")
    names: list[str] = []
    if parent:
        namespace = one_level(parent.split(SEPARATOR))
        door.check(call, Right.READ, namespace)
        door.catalog.load_namespace_properties(namespace)
    else:
        names = [name for (name,) in door.catalog.list_namespaces() if call.access.allows(Right.READ, name)]
    shown, token = page(call, names, door.settings.limits.page_size)
    return Answer({"namespaces": [[name] for name in shown], "next-page-token": token})


def create_namespace(door: Door, call: Call) -> Answer:
    """Creates a namespace."""
    asked = call.read(CreateNamespace)
    check_exact(*asked.namespace)
    namespace = namespace_name(tuple(asked.namespace))
    door.check(call, Right.MANAGE, namespace)
    properties = asked.properties or {}
    _check_location(door, call, namespace, properties)
    door.catalog.create_namespace(namespace, properties)
    try:  # the metastore chooses the folder of one that was given none
        _check_location(door, call, namespace, door.catalog.load_namespace_properties(namespace))
    except RefusedError:
        door.catalog.drop_namespace(namespace)
        raise
    return _described(door, namespace)


def load_namespace(door: Door, call: Call) -> Answer:
    """A namespace's properties."""
    return _described(door, call.namespace)


def namespace_exists(door: Door, call: Call) -> Answer:
    """Nothing, if the namespace is there."""
    door.catalog.load_namespace_properties(call.namespace)
    return NOTHING


def drop_namespace(door: Door, call: Call) -> Answer:
    """Drops an empty namespace."""
    door.catalog.drop_namespace(call.namespace)
    return NOTHING


def update_namespace(door: Door, call: Call) -> Answer:
    """Sets and removes properties."""
    asked = call.read(UpdateNamespace)
    removals, updates = asked.removals or [], asked.updates or {}
    both = sorted(set(removals) & updates.keys())
    if both:
        raise RefusedError(
            422, "UnprocessableEntityException", f"The keys {both} are both removed and set. Do one of them."
        )
    _check_location(door, call, call.namespace, updates)
    summary = door.catalog.update_namespace_properties(call.namespace, removals, updates)
    return Answer({"removed": summary.removed, "updated": summary.updated, "missing": summary.missing})


def _check_location(door: Door, call: Call, namespace: str, properties: Mapping[str, str]) -> None:
    """A namespace's folder is where its tables go, and so as theirs."""
    if properties.get(_LOCATION):
        door.check_locations(call, (namespace,), [Location("location", properties[_LOCATION])])


def _described(door: Door, namespace: str) -> Answer:
    if not namespace:
        raise InvalidInputError("A namespace needs a name.")
    properties = door.catalog.load_namespace_properties(namespace)
    return Answer({"namespace": [namespace], "properties": properties})
