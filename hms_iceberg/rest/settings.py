"""Settings of the REST server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MEBIBYTE = 1024 * 1024
PLANNING_MODE = "scan-planning-mode"


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes:
        body_bytes: size of a request's body.
        requests: requests at once; more get 503 with Retry-After.
        threads: threads that work on requests, each with a connection to the metastore.
        head_seconds: time for the head of a request to arrive; an application that is mounted elsewhere has to see to
            it.
        body_seconds: time for a body to arrive.
        request_seconds: time for an answer, after which the outcome is unknown; as long for a client to take the
            answer.
        page_size: entries of a page of a list, if the client asks for pages and gives no size.
        plan_part_files: files that a part of a plan looks at, which bounds memory.
        plan_page_files: files of one answer.
        drain_seconds: time for running requests when the server is stopped.
        body_values: values of JSON in a body, which take more memory than their text.
    """

    body_bytes: int = 64 * MEBIBYTE
    requests: int = 1000
    threads: int = 32
    head_seconds: float = 30.0
    body_seconds: float = 30.0
    request_seconds: float = 600.0
    page_size: int = 1000
    plan_part_files: int = 20_000
    plan_page_files: int = 2_000
    drain_seconds: float = 30.0
    body_values: int = 2_000_000


@dataclass(frozen=True)
class StorageSettings:
    """Access to files in S3 that clients get.

    Attributes:
        role_arn: the role whose credentials are vended, restricted to a table's folders; None vends none.
        sts_endpoint: URL of STS; None for AWS's own.
        credential_seconds: lifetime of credentials.
        signs: whether requests are signed for clients, with the catalog's own key.
    """

    role_arn: str | None = None
    sts_endpoint: str | None = None
    credential_seconds: int = 3600
    signs: bool = False


@dataclass(frozen=True)
class RestSettings:
    """Settings of a REST server.

    Attributes:
        limits: limits of size, time and number.
        allowed_locations: folders below which tables may be; None for everywhere.
        client_defaults, client_overrides: properties that clients get with the configuration.
        table_config: properties that clients get with every table, such as `s3.endpoint`.
        hive_tables: namespace of the Iceberg tables that follow plain Hive tables; None serves no plain Hive tables.
        hive_tables_seconds: how long a follower counts as up to date.
        storage: access to files in S3 that clients get.
        server_planning: whether clients of tables of format versions 1 and 2 are asked to let the server plan scans.
        idempotency_seconds: how long an answer is kept for a request that is repeated with its key; 0 for not at all.
        state_folder: a folder of its own that the processes of one server share; None for one process.
    """

    limits: Limits = field(default_factory=Limits)
    allowed_locations: tuple[str, ...] | None = None
    client_defaults: Mapping[str, str] = field(default_factory=dict)
    client_overrides: Mapping[str, str] = field(default_factory=dict)
    table_config: Mapping[str, str] = field(default_factory=dict)
    hive_tables: str | None = None
    hive_tables_seconds: float = 10.0
    storage: StorageSettings = field(default_factory=StorageSettings)
    server_planning: bool = False
    idempotency_seconds: int = 1800
    state_folder: str | None = None
