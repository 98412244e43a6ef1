"""How a server is set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MEBIBYTE = 1024 * 1024
PLANNING_MODE = "scan-planning-mode"


@dataclass(frozen=True)
class Limits:
    """What a server takes at most.

    Attributes:
        body_bytes: of one request.
        requests: at once; more are told to come again.
        threads: that work on requests, each with a connection to the metastore.
        head_seconds: for the head of a request to arrive; an application that is mounted elsewhere has to see to it.
        body_seconds: for a body to arrive.
        request_seconds: for an answer; after that nobody knows what became of the request. As long for a client to take
            the answer.
        page_size: entries of a page of a list, if the client asks for pages and does not say how long.
        plan_part_files: that a part of a plan looks at; memory is bounded by that.
        plan_page_files: of one answer.
        drain_seconds: for requests under way when the server is stopped.
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
    """What clients get to reach files in S3.

    Attributes:
        role_arn: the role whose credentials are vended, cut down to a table's folders; None vends none.
        sts_endpoint: where STS is; None for AWS's own.
        credential_seconds: for how long credentials are good.
        signs: whether requests are signed for clients, with the catalog's own key.
    """

    role_arn: str | None = None
    sts_endpoint: str | None = None
    credential_seconds: int = 3600
    signs: bool = False


@dataclass(frozen=True)
class RestSettings:
    """How a server is set up.

    Attributes:
        limits: what it takes at most.
        allowed_locations: folders below which tables may be; None for everywhere.
        client_defaults, client_overrides: properties that clients get with the configuration.
        table_config: properties that clients get with every table, such as `s3.endpoint`.
        hive_tables: namespace of the Iceberg tables that follow plain Hive tables; None shows no plain Hive tables.
        hive_tables_seconds: for how long a follower is taken as up to date.
        storage: what clients get to reach files in S3.
        server_planning: whether clients are told to have scans planned by the server, of format versions 1 and 2.
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
