"""The table of all routes: method and path, the endpoint, and the right that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hms_iceberg.rest.access import Right
from hms_iceberg.rest.catalog import commits, configuration, namespaces, planning, tables, transactions, views
from hms_iceberg.rest.errors import RefusedError, no_such_route
from hms_iceberg.rest.served_catalog import ServedCatalog
from hms_iceberg.rest.serving.calls import Answer, Call

Endpoint = Callable[[ServedCatalog, Call], Answer]

_NAMESPACE = "/v1/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"


@dataclass(frozen=True)
class Route:
    """A route of the protocol. `right` is needed on the name in the path, None if the endpoint checks the names in the
    body; an open route needs no login, and the configuration names only advertised ones."""

    method: str
    path: str
    endpoint: Endpoint
    right: Right | None
    is_advertised: bool = True
    is_open: bool = False

    @property
    def name(self) -> str:
        """The name of the route in the configuration's `endpoints`."""
        return f"{self.method} {self.path.replace('/v1/', '/v1/{prefix}/', 1)}"

    @property
    def changes(self) -> bool:
        """Whether a request may change something, so that it must not be carried out twice for one idempotency key."""
        return self.method in ("POST", "DELETE") and not self.path.endswith(("/metrics", "/plan", "/tasks", "/sign"))


ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", configuration.health, Right.NONE, is_advertised=False, is_open=True),
    Route("GET", "/v1/config", configuration.configuration, Right.NONE, is_advertised=False),
    Route("GET", "/v1/namespaces", namespaces.list_namespaces, None),
    Route("POST", "/v1/namespaces", namespaces.create_namespace, None),
    Route("GET", _NAMESPACE, namespaces.load_namespace, Right.READ),
    Route("HEAD", _NAMESPACE, namespaces.namespace_exists, Right.READ),
    Route("DELETE", _NAMESPACE, namespaces.drop_namespace, Right.MANAGE),
    Route("POST", f"{_NAMESPACE}/properties", namespaces.update_namespace, Right.MANAGE),
    Route("GET", f"{_NAMESPACE}/tables", tables.list_tables, Right.READ),
    Route("POST", f"{_NAMESPACE}/tables", tables.create_table, None),
    Route("POST", f"{_NAMESPACE}/register", tables.register_table, None),
    Route("GET", _TABLE, tables.load_table, Right.READ),
    Route("HEAD", _TABLE, tables.table_exists, Right.READ),
    Route("POST", _TABLE, commits.commit_table, Right.WRITE),
    Route("DELETE", _TABLE, tables.drop_table, Right.MANAGE),
    Route("POST", f"{_TABLE}/unregister", tables.unregister_table, Right.MANAGE),
    Route("POST", f"{_TABLE}/metrics", tables.report_metrics, Right.READ),
    Route("POST", f"{_TABLE}/plan", planning.plan_scan, Right.READ),
    Route("GET", f"{_TABLE}/plan/{{plan-id}}", planning.fetch_plan, Right.READ),
    Route("DELETE", f"{_TABLE}/plan/{{plan-id}}", planning.cancel_plan, Right.READ),
    Route("POST", f"{_TABLE}/tasks", planning.fetch_tasks, Right.READ),
    Route("GET", f"{_TABLE}/credentials", tables.load_credentials, Right.READ),
    Route("POST", f"{_TABLE}/sign", tables.sign_request, Right.READ),
    Route("POST", "/v1/tables/rename", tables.rename_table, None),
    Route("POST", "/v1/transactions/commit", transactions.commit_transaction, None),
    Route("GET", f"{_NAMESPACE}/views", views.list_views, Right.READ),
    Route("POST", f"{_NAMESPACE}/views", views.create_view, None),
    Route("POST", f"{_NAMESPACE}/register-view", views.register_view, None),
    Route("GET", _VIEW, views.load_view, Right.READ),
    Route("HEAD", _VIEW, views.view_exists, Right.READ),
    Route("POST", _VIEW, views.commit_view, Right.WRITE),
    Route("DELETE", _VIEW, views.drop_view, Right.MANAGE),
    Route("POST", "/v1/views/rename", views.rename_view, None),
)

ENDPOINTS = tuple(route.name for route in ROUTES if route.is_advertised)
"""What the configuration tells clients that they may call."""


def find_route(method: str, segments: tuple[str, ...]) -> tuple[Route, dict[str, str]]:
    """The route of a request, and the variables of its path; 405 if the path has another method only."""
    others = False
    for route, pattern in _PATTERNS:
        variables = _variables(pattern, segments)
        if variables is None:
            continue
        if route.method == method:
            return route, variables
        others = True
    if others:
        raise RefusedError(405, "UnsupportedOperationException", f"{method} is not possible at this path.")
    raise no_such_route(method, "/" + "/".join(segments)[:300])


def check_right(served: ServedCatalog, route: Route, call: Call) -> None:
    """Refuses a caller who lacks the route's right on the names of the path."""
    if route.right is None or route.right is Right.NONE:
        return
    name = call.path.get("table", call.path.get("view"))
    if "table" in call.path:
        namespace = call.table[0]
    elif "view" in call.path:
        namespace = call.view[0]
    else:
        namespace = call.namespace
    served.check(call, route.right, namespace, name)


def _variables(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    variables = {}
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            variables[wanted[1:-1]] = given
        elif wanted != given:
            return None
    return variables


_PATTERNS = tuple((route, tuple(route.path.strip("/").split("/"))) for route in ROUTES)
