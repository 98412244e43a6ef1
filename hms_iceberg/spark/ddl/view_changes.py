"""CREATE, ALTER, DROP and RENAME VIEW."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from hms_iceberg.catalog import Catalog
from hms_iceberg.errors import InvalidInputError, NoSuchNamespaceError, NoSuchViewError, ViewAlreadyExistsError
from hms_iceberg.metastore import Identifier
from hms_iceberg.spark.ddl.column_json import ColumnDefinition, schema_of
from hms_iceberg.spark.reading.descriptions import QUERY_COLUMN_NAMES, RESERVED
from hms_iceberg.spark.staged_tables import Targets
from hms_iceberg.spec.metadata.view_metadata import ViewVersion

_CREATED_BY, _WRITTEN_BY = "create_engine_version", "engine_version"


class ViewQuestion(msgspec.Struct, frozen=True):
    """A statement about a view; `name` is for errors, `table` is the view's own name."""

    name: str
    catalog: int
    namespace: str
    table: str

    @property
    def identifier(self) -> Identifier:
        return (self.namespace, self.table)

    def catalog_of(self, targets: Targets) -> Catalog:
        return targets.catalogs.numbered(self.catalog)


class CreateView(ViewQuestion, frozen=True, kw_only=True):
    """CREATE [OR REPLACE] VIEW [IF NOT EXISTS]."""

    sql: str
    default_catalog: str | None  # where the query's names are looked for; None for the view's own catalog
    default_namespace: list[str]
    columns: list[ColumnDefinition]
    query_columns: list[str]  # the names of the query's own columns
    comment: str | None
    properties: dict[str, str]
    engine_version: str  # of Spark
    replace: bool
    if_not_exists: bool

    def version(self) -> ViewVersion:
        """The query, as a version of the view."""
        version = ViewVersion.of_sql({"spark": self.sql}, tuple(self.default_namespace), self.default_catalog)
        return replace(version, summary={"engine-name": "spark", "engine-version": self.engine_version})

    def view_properties(self) -> dict[str, str]:
        """The properties that the view keeps."""
        written_by = f"Spark {self.engine_version}"
        given = {key: value for key, value in self.properties.items() if key not in RESERVED}
        comment = {} if self.comment is None else {"comment": self.comment}
        names = {QUERY_COLUMN_NAMES: ",".join(self.query_columns)}
        return {**given, **comment, _CREATED_BY: written_by, _WRITTEN_BY: written_by, **names}


def create_view(question: CreateView, targets: Targets) -> None:
    catalog = question.catalog_of(targets)
    if not catalog.namespace_exists(question.namespace):
        raise NoSuchNamespaceError(f"The namespace {question.namespace} does not exist. Create it first.")
    create = catalog.create_or_replace_view if question.replace else catalog.create_view
    schema = schema_of(question.columns, question.name)
    location = question.properties.get("location")
    try:
        create(question.identifier, schema, question.version(), location, question.view_properties())
    except ViewAlreadyExistsError:
        if not question.if_not_exists:
            raise


class AlterView(ViewQuestion, frozen=True, kw_only=True):
    """ALTER VIEW … SET and UNSET TBLPROPERTIES; with `if_exists`, what is unset may be missing."""

    updates: dict[str, str] = {}
    removals: list[str] = []
    if_exists: bool = False


def alter_view(question: AlterView, targets: Targets) -> None:
    view = question.catalog_of(targets).load_view(question.identifier)
    for key in (*question.updates, *question.removals):
        if key in RESERVED:
            verb = "set" if key in question.updates else "unset"
            raise InvalidInputError(
                f"Cannot {verb} reserved property: {key!r} of the view {question.name}. Nothing was changed. It says "
                "what the view is; replace the view to change that."
            )
    for key in question.removals:
        if key not in view.properties and not question.if_exists:
            raise InvalidInputError(
                f"Cannot remove property that is not set: {key!r} of the view {question.name}. Nothing was changed. "
                "Say UNSET TBLPROPERTIES IF EXISTS to pass over it."
            )
    if question.updates:
        view.set_properties(question.updates)
    if question.removals:
        view.remove_properties(*question.removals)


class DropView(ViewQuestion, frozen=True):
    """The question behind DROP VIEW."""


def drop_view(question: DropView, targets: Targets) -> None:
    try:
        question.catalog_of(targets).drop_view(question.identifier)
    except NoSuchNamespaceError as error:
        raise NoSuchViewError(f"The view {question.name} does not exist.") from error


class RenameView(ViewQuestion, frozen=True, kw_only=True):
    """ALTER VIEW … RENAME TO."""

    to_namespace: str
    to_view: str


def rename_view(question: RenameView, targets: Targets) -> None:
    question.catalog_of(targets).rename_view(question.identifier, (question.to_namespace, question.to_view))
