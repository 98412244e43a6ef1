"""`hms-iceberg rest`: the catalog for every engine that speaks the Iceberg REST protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hms_iceberg.cli.catalog_options import catalog_options, key_values, open_catalog
from hms_iceberg.cli.output import log_options, say

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@catalog_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8181, show_default=True, type=click.IntRange(1, 65535))
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 128), help="Processes.")
@click.option("--tls-certificate", type=_FILE, help="PEM file; the server then talks HTTPS.")
@click.option("--tls-key", type=_FILE, help="PEM file of the certificate's key.")
@click.option("--tokens", type=_FILE, help="YAML file of static tokens, and whose they are.")
@click.option("--jwt-keys", metavar="URL|FILE", help="JWKS of the server that makes the tokens (JWT).")
@click.option("--jwt-issuer", help="Who must have made a token.")
@click.option("--jwt-audience", help="For whom a token must be.")
@click.option("--jwt-leeway", default=30.0, show_default=True, help="Seconds by which clocks may differ.")
@click.option("--policy", type=_FILE, help="YAML file that says who may do what.")
@click.option("--allow-anybody", is_flag=True, help="Listen beyond this machine without a login.")
@click.option(
    "--allowed-location",
    "allowed_locations",
    multiple=True,
    metavar="URI",
    help="Folder below which tables may be; may be repeated. Default: everywhere.",
)
@click.option("--client-default", "client_defaults", multiple=True, metavar="KEY=VALUE", help="Told to every client.")
@click.option("--table-config", multiple=True, metavar="KEY=VALUE", help="Told with every table, such as s3.endpoint=…")
@click.option(
    "--hive-tables",
    metavar="NAMESPACE",
    help="Show plain Hive tables as well, for reading; the Iceberg tables that follow them go to this namespace.",
)
@click.option("--vend-role", metavar="ARN", help="Vend credentials of this role, for a table's folders only.")
@click.option("--sts-endpoint", metavar="URL", help="Where STS is, if it is not AWS's own.")
@click.option("--sign-requests", is_flag=True, help="Sign requests to S3 for clients that ask for it.")
@click.option("--server-planning", is_flag=True, help="Tell clients to have scans planned here.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Where Prometheus finds /metrics.")
@log_options("INFO")
@click.option("--max-body-mb", default=64, show_default=True, type=click.IntRange(1, 2048))
@click.option("--max-requests", default=1000, show_default=True, type=click.IntRange(1), help="At once, a process.")
@click.option("--threads", default=32, show_default=True, type=click.IntRange(1, 1024), help="A process.")
@click.option("--request-seconds", default=600.0, show_default=True, help="Longest time for an answer.")
def rest(
    catalog_name: str | None,
    uri: str | None,
    properties: tuple[str, ...],
    allowed_locations: tuple[str, ...],
    client_defaults: tuple[str, ...],
    table_config: tuple[str, ...],
    hive_tables: str | None,
    vend_role: str | None,
    sts_endpoint: str | None,
    sign_requests: bool,
    server_planning: bool,
    max_body_mb: int,
    max_requests: int,
    threads: int,
    request_seconds: float,
    jwt_keys: str | None,
    jwt_issuer: str | None,
    jwt_audience: str | None,
    jwt_leeway: float,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tokens: Path | None,
    policy: Path | None,
    **server: Any,
) -> None:
    """Serve the Iceberg REST protocol in front of the metastore.

    DuckDB, PyIceberg, Spark, Trino and others then read and write its Iceberg tables. SIGTERM ends it, after the
    requests under way.

    Example: hms-iceberg rest --uri thrift://metastore:9083 --port 8181
    """
    from hms_iceberg.errors import ConfigurationError, MetastoreUnavailableError, MissingDependencyError
    from hms_iceberg.hms.hive_metastore import HiveMetastore

    try:
        from hms_iceberg.rest.security.jwt_login import JwtSettings
        from hms_iceberg.rest.server import ServerSettings, serve
        from hms_iceberg.rest.settings import MEBIBYTE, Limits, RestSettings, StorageSettings
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"The server needs {error.name}: pip install 'hms_iceberg[rest]'") from error

    if jwt_keys and not (jwt_issuer and jwt_audience):
        raise ConfigurationError("Tokens (JWT) need --jwt-keys, --jwt-issuer and --jwt-audience. Give all of them.")
    try:
        with open_catalog(catalog_name, uri, properties) as catalog:
            if isinstance(catalog.metastore, HiveMetastore):
                catalog.metastore.check_settings()
    except MetastoreUnavailableError as error:  # which may be restarted just now: requests get 503 until it answers
        say(f"Warning: {error}", err=True)
    with open_catalog(catalog_name, uri, properties, may_be_away=True) as catalog:
        name, found = catalog.name, dict(catalog.properties)
    settings = ServerSettings(
        catalog_name=name,
        catalog_properties=found,
        rest=RestSettings(
            limits=Limits(
                body_bytes=max_body_mb * MEBIBYTE,
                requests=max_requests,
                threads=threads,
                request_seconds=request_seconds,
            ),
            allowed_locations=allowed_locations or None,
            client_defaults=key_values(client_defaults),
            table_config=key_values(table_config),
            hive_tables=hive_tables,
            storage=StorageSettings(vend_role, sts_endpoint, signs=sign_requests),
            server_planning=server_planning,
        ),
        jwt=JwtSettings(jwt_keys, jwt_issuer or "", jwt_audience or "", jwt_leeway) if jwt_keys else None,
        tls_certificate=_text(tls_certificate),
        tls_key=_text(tls_key),
        tokens=_text(tokens),
        policy=_text(policy),
        **server,
    )
    settings.check()
    scheme = "https" if tls_certificate else "http"
    say(f"Listening: {scheme}://{settings.host}:{settings.port}")
    serve(settings)
    say("Stopped.")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
