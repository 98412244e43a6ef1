"""Settings of encryption and authentication of a connection to the metastore.

The names are those of Hive if Hive has one that Python can follow, and PyIceberg's for the rest. Secrets are left
out of every text that these values make of themselves.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hms_iceberg.errors import ConfigurationError
from hms_iceberg.hadoop_tokens import Token, token_of_text, tokens_of_process
from hms_iceberg.hms.connection.property_reader import PropertyReader

USE_TLS = "hive.metastore.use.SSL"
CA_FILE = "ssl.cabundle"
TRUSTSTORE = "hive.metastore.truststore.path"
CLIENT_CERTIFICATE = "ssl.client.cert"
CLIENT_KEY = "ssl.client.key"
CHECK_HOST_NAME = "ssl.check-hostname"
KERBEROS = "hive.kerberos-authentication"
KERBEROS_SERVICE = "hive.kerberos-service-name"
SASL = "hive.metastore.sasl.enabled"
PRINCIPAL = "hive.metastore.kerberos.principal"
AUTH_MODE = "hive.metastore.client.auth.mode"
USER_NAME = "hive.metastore.client.plain.username"
PASSWORD = "hive.metastore.client.plain.password"
TOKEN = "hive.metastore.delegation-token"

SIGNATURE = "hive.metastore.token.signature"

_KIND = "HIVE_DELEGATION_TOKEN"
_MODES = ("NOSASL", "PLAIN", "KERBEROS", "JWT")


# ----------------------------------------------------------------------------------------------- encryption


@dataclass(frozen=True)
class Tls:
    """An encrypted connection."""

    # certificates of who may vouch for the server, as PEM (`ssl.cabundle`, or a PEM file as
    # `hive.metastore.truststore.path`); those of the system by default
    ca_file: str | None = None
    # certificate, key: PEM files by which the client vouches for itself (`ssl.client.cert`, `ssl.client.key`)
    certificate: str | None = None
    key: str | None = None
    check_host_name: bool = True  # whether the server's certificate has to be that of its host (`ssl.check-hostname`)

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        context.check_hostname = self.check_host_name
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


def tls_from_properties(properties: Mapping[str, str]) -> Tls | None:
    """Reads TLS from a catalog's properties; None if `hive.metastore.use.SSL` is not true."""
    reader = PropertyReader(properties)
    if not reader.boolean(USE_TLS, False):
        return None
    tls = Tls(
        ca_file=_pem(properties, CA_FILE) or _pem(properties, TRUSTSTORE),
        certificate=_pem(properties, CLIENT_CERTIFICATE),
        key=_pem(properties, CLIENT_KEY),
        check_host_name=reader.boolean(CHECK_HOST_NAME, True),
    )
    try:
        tls.context()
    except (ssl.SSLError, OSError) as error:
        files = ", ".join(filter(None, (tls.ca_file, tls.certificate, tls.key)))
        raise ConfigurationError(
            f"The connection to the metastore cannot be encrypted with {files}: {error}. Check the properties "
            f"{CA_FILE!r}, {CLIENT_CERTIFICATE!r} and {CLIENT_KEY!r}."
        ) from error
    return tls


def _pem(properties: Mapping[str, str], name: str) -> str | None:
    path = properties.get(name)
    if not path:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"Property {name!r}: {path} cannot be read: {error.strerror}.") from error
    if b"-----BEGIN" not in content:
        raise ConfigurationError(
            f"Property {name!r}: {path} is not a PEM file. Python reads no Java key store; turn it into one: "
            f"keytool -exportcert -rfc -keystore {path} -alias NAME > ca.pem, and set {CA_FILE}=ca.pem."
        )
    return path


# ---------------------------------------------------------------------------------------------------- login


@dataclass(frozen=True)
class Login:
    """Authentication of the client by SASL."""

    mechanism: str  # `GSSAPI` (Kerberos), `PLAIN` (name and password, as of LDAP) or `DIGEST-MD5` (a delegation token)
    service: str = "hive"  # the server's Kerberos service, the first part of its principal
    host: str | None = None  # the host in the server's principal; None if it is the host that is connected to
    user: str = ""  # name of the user, or of the token
    password: str = field(default="", repr=False)
    signature: str = ""  # with Kerberos, the service of the process's token that is taken instead of a ticket

    def of_process(self) -> Login:
        """The login that counts now: with Kerberos a token of the process comes before its ticket, as in Hive's
        client, since a container of YARN has no ticket."""
        found = tokens_of_process(_KIND) if self.mechanism == "GSSAPI" else ()
        return next((_with_token(token) for token in found if token.service == self.signature), self)


def login_from_properties(properties: Mapping[str, str]) -> Login | None:
    """The login of a catalog's properties, None without one: Kerberos or the process's token
    (`hive.kerberos-authentication`, `hive.metastore.sasl.enabled`), a name and password
    (`hive.metastore.client.auth.mode`=`PLAIN`), or `hive.metastore.delegation-token`."""
    reader = PropertyReader(properties)
    mode = properties.get(AUTH_MODE, "NOSASL").strip().upper()
    if mode not in _MODES:
        raise ConfigurationError(f"Property {AUTH_MODE!r}: expected one of {', '.join(_MODES)}, got {mode!r}.")
    if properties.get(TOKEN):
        return _token_login(properties[TOKEN])
    if mode == "PLAIN":
        missing = [name for name in (USER_NAME, PASSWORD) if not properties.get(name)]
        if missing:
            raise ConfigurationError(f"{AUTH_MODE}=PLAIN needs the property {missing[0]!r}.")
        return Login("PLAIN", user=properties[USER_NAME], password=properties[PASSWORD])
    if mode == "KERBEROS" or reader.boolean(KERBEROS, False) or reader.boolean(SASL, False):
        service, _, host = properties.get(PRINCIPAL, "").partition("@")[0].partition("/")
        return Login(
            "GSSAPI",
            service=properties.get(KERBEROS_SERVICE) or service or Login.service,
            host=host if host not in ("", "_HOST") else None,
            signature=properties.get(SIGNATURE, ""),
        )
    return None


def _token_login(text: str) -> Login:
    """The login with a token in Hadoop's text form."""
    try:
        return _with_token(token_of_text(text))
    except ValueError:
        raise ConfigurationError(
            f"Property {TOKEN!r} is not a delegation token. Expected the text that the metastore's "
            "get_delegation_token returned."
        ) from None


def _with_token(token: Token) -> Login:
    name, secret = (base64.b64encode(part).decode() for part in (token.identifier, token.password))
    return Login("DIGEST-MD5", service="null", host="default", user=name, password=secret)
