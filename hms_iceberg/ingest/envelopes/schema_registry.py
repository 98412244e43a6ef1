"""Avro schemas of a schema registry that speaks Confluent's protocol (Apicurio and Karapace do as well)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hms_iceberg.errors import ConfigurationError, IngestError, MissingDependencyError
from hms_iceberg.ingest.records import EventProblem

AvroSchemas = Callable[[int], tuple[str, Mapping[str, str]]]
"""The schema of a number, and those that it refers to by their names, each behind those that it needs itself."""

_NOT_FOUND = 404
# Of these the client takes numbers only.
_NUMBERS = (
    *("timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms"),
    *("cache.capacity", "cache.latest.ttl.sec"),
)


def avro_schemas(settings: Mapping[str, str]) -> AvroSchemas:
    """The schemas of a registry, by settings of confluent-kafka's client (`url`, `basic.auth.user.info`,
    `ssl.ca.location`)."""
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise MissingDependencyError(
            f"Avro of a schema registry needs confluent-kafka: pip install 'hms_iceberg[ingest]' ({error})"
        ) from error
    try:
        client = SchemaRegistryClient(
            {name: _number(value) if name in _NUMBERS else value for name, value in settings.items()}
        )
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"Cannot use the settings of the schema registry: {error}") from error

    def schema(number: int) -> tuple[str, Mapping[str, str]]:
        found = _asked(partial(client.get_schema, number), f"schema {number}")
        if (found.schema_type or "AVRO") != "AVRO":
            raise EventProblem(f"the registry's schema {number} is of type {found.schema_type}, and not Avro")
        references: dict[str, str] = {}
        _collect(client, found, references)
        return str(found.schema_str), references

    return schema


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _collect(client: Any, schema: Any, references: dict[str, str]) -> None:
    """Adds the schemas that one refers to, each behind those that it needs itself."""
    for each in schema.references or ():
        if each.name in references:
            continue
        what = f"version {each.version} of subject {each.subject}"
        found = _asked(partial(client.get_version, each.subject, each.version), what).schema
        _collect(client, found, references)
        references[each.name] = str(found.schema_str)


def _asked(ask: Callable[[], Any], what: str) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryError

    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            raise EventProblem(f"the schema registry has no {what}: {error}") from error
        raise IngestError(f"The schema registry did not give {what}: {error}") from error
    except Exception as error:  # its HTTP client raises whatever its parts do
        raise IngestError(
            f"The schema registry did not give {what}: {type(error).__name__}: {error}. Is its url right, and is it up?"
        ) from error
