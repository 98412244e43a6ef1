"""Endpoints of namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from hms_iceberg.errors import InvalidInputError
from hms_iceberg.metastore import namespace_name
from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog.bodies import CreateNamespace, UpdateNamespace
from hms_iceberg.rest.catalog.names import page
from hms_iceberg.rest.errors import RefusedError
from hms_iceberg.rest.security.locations import Location
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import NOTHING, SEPARATOR, Answer, Call, check_exact, one_level

_LOCATION = "location"


def list_namespaces(served: ServedCatalog, call: Call) -> Answer:
    """All namespaces that the caller may see; a namespace has no children here."""
    parent = call.query.get("parent")
    names: list[str] = []
    if parent:
        namespace = one_level(parent.split(SEPARATOR))
        served.check(call, Right.READ, namespace)
        served.catalog.load_namespace_properties(namespace)
    else:
        names = [name for (name,) in served.catalog.list_namespaces() if call.access.allows(Right.READ, name)]
    shown, token = page(call, names, served.settings.limits.page_size)
    return Answer({"namespaces": [[name] for name in shown], "next-page-token": token})


def create_namespace(served: ServedCatalog, call: Call) -> Answer:
    asked = call.read(CreateNamespace)
    check_exact(*asked.namespace)
    namespace = namespace_name(tuple(asked.namespace))
    served.check(call, Right.MANAGE, namespace)
    properties = asked.properties or {}
    _check_location(served, call, namespace, properties)
    served.catalog.create_namespace(namespace, properties)
    try:  # the metastore chooses the folder of one that was given none
        _check_location(served, call, namespace, served.catalog.load_namespace_properties(namespace))
    except RefusedError:
        served.catalog.drop_namespace(namespace)
        raise
    return _described(served, namespace)


def load_namespace(served: ServedCatalog, call: Call) -> Answer:
    return _described(served, call.namespace)


def namespace_exists(served: ServedCatalog, call: Call) -> Answer:
    served.catalog.load_namespace_properties(call.namespace)
    return NOTHING


def drop_namespace(served: ServedCatalog, call: Call) -> Answer:
    served.catalog.drop_namespace(call.namespace)
    return NOTHING


def update_namespace(served: ServedCatalog, call: Call) -> Answer:
    asked = call.read(UpdateNamespace)
    removals, updates = asked.removals or [], asked.updates or {}
    both = sorted(set(removals) & updates.keys())
    if both:
        raise RefusedError(
            422, "UnprocessableEntityException", f"The keys {both} are both removed and set. Do one of them."
        )
    _check_location(served, call, call.namespace, updates)
    summary = served.catalog.update_namespace_properties(call.namespace, removals, updates)
    return Answer({"removed": summary.removed, "updated": summary.updated, "missing": summary.missing})


def _check_location(served: ServedCatalog, call: Call, namespace: str, properties: Mapping[str, str]) -> None:
    """Refuses a location that tables may not have: a namespace's folder is where its tables go."""
    if properties.get(_LOCATION):
        served.check_locations(call, (namespace,), [Location("location", properties[_LOCATION])])


def _described(served: ServedCatalog, namespace: str) -> Answer:
    if not namespace:
        raise InvalidInputError("A namespace needs a name.")
    properties = served.catalog.load_namespace_properties(namespace)
    return Answer({"namespace": [namespace], "properties": properties})
