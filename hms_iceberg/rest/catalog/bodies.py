"""Bodies of requests; parts that belong to the table format stay parsed JSON, which `spec` reads."""

from __future__ import annotations

from typing import Any

import msgspec


class Body(msgspec.Struct, rename="kebab"):
    """An object whose members are in kebab-case; members that are not known are ignored."""


class CreateNamespace(Body):
    namespace: list[str]
    properties: dict[str, str] | None = None


class UpdateNamespace(Body):
    """The body of `POST /v1/namespaces/{namespace}/properties`."""

    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class CreateTable(Body):
    """The body of `POST /v1/namespaces/{namespace}/tables`."""

    name: str
    schema: dict[str, Any]
    location: str | None = None
    partition_spec: dict[str, Any] | None = None
    write_order: dict[str, Any] | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = None


class Register(Body):
    """The body of `POST /v1/namespaces/{namespace}/register` and `register-view`."""

    name: str
    metadata_location: str
    overwrite: bool | None = False


class Name(Body):
    namespace: list[str]
    name: str


class Rename(Body):
    """The body of `POST /v1/tables/rename` and `/v1/views/rename`."""

    source: Name
    destination: Name


class Commit(Body):
    requirements: list[dict[str, Any]] | None = None
    updates: list[dict[str, Any]] | None = None
    identifier: Name | None = None


class CommitTransaction(Body):
    table_changes: list[Commit]


class CreateView(Body):
    """The body of `POST /v1/namespaces/{namespace}/views`."""

    name: str
    schema: dict[str, Any]
    view_version: dict[str, Any]
    location: str | None = None
    properties: dict[str, str] | None = None
