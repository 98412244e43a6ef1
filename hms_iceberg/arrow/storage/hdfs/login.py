"""Who a client is to a cluster with Kerberos, and what helps if it is not let in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from hms_iceberg.arrow.storage.hdfs import tokens
from hms_iceberg.errors import ConfigurationError

_PRINCIPAL, _KEYTAB, _CACHE = "hdfs.kerberos-principal", "hdfs.kerberos-keytab", "hdfs.kerberos_ticket"


@dataclass(frozen=True, slots=True)
class Login:
    """A principal, and where its tickets come from; without both, they are found as Hadoop finds them.

    Args:
        principal: whose tickets.
        keytab: the file of its key.
        cache: the file of its tickets.
    """

    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None

    @staticmethod
    def of(properties: Mapping[str, str], has_kerberos: bool) -> Login:
        """The login that catalog properties ask for.

        Args:
            properties: of the catalog.
            has_kerberos: whether the cluster knows its users: then `hdfs.user` chooses among the tickets of a cache,
                unless this process has tokens.

        Raises:
            ConfigurationError: they do not fit together, or a file of them cannot be read.
        """
        keytab, cache = properties.get(_KEYTAB) or None, properties.get(_CACHE) or None
        principal = properties.get(_PRINCIPAL) or None
        if keytab or cache or (has_kerberos and not os.environ.get(tokens.VARIABLE)):
            principal = principal or properties.get("hdfs.user") or None
        if (keytab or cache) and principal is None:
            raise ConfigurationError(
                f"A ticket cache or keytab is given without its principal: set the property {_PRINCIPAL}."
            )
        if keytab:
            _check_readable(keytab)
        return Login(principal, keytab, cache)

    @property
    def arguments(self) -> dict[str, str]:
        """What hdfs-native is given."""
        own = {"kerberos_principal": self.principal, "kerberos_keytab": self.keytab, "kerberos_cache": self.cache}
        return {name: value for name, value in own.items() if value}

    def advice(self, reason: str) -> str:
        """What to do if no ticket can be had for a reason that the library of Kerberos tells."""
        if self.keytab:
            return (
                f"the keytab {self.keytab} gives no Kerberos ticket to {self.principal} ({reason}): check {_PRINCIPAL} "
                f"against klist -kt {self.keytab}, and that the realm's server can be reached (krb5.conf)"
            )
        found = tokens.hdfs_tokens()
        other = ""
        if os.environ.get(tokens.VARIABLE):
            named = " and ".join(map(str, found)) or "no HDFS"
            other = f"; the tokens of {tokens.VARIABLE} are for {named}"
            other += ": start the job with a new one" if any(token.has_ended for token in found) else ""
        return (
            f"there is no valid Kerberos ticket ({reason}): run {self._kinit}, or set {_PRINCIPAL} and {_KEYTAB}{other}"
        )

    def advice_if_refused(self, reason: str) -> str:
        """What to do if the NameNode does not take a ticket or token, for a reason that it tells."""
        found = os.environ.get(tokens.VARIABLE)
        other = f"get a new token for {tokens.VARIABLE}, or " if found else ""
        return f"the NameNode does not accept this login ({reason}): {other}run {self._kinit}"

    @property
    def _kinit(self) -> str:
        return " ".join(["kinit", *(["-c", self.cache] if self.cache else []), self.principal or ""]).strip()


def _check_readable(keytab: str) -> None:
    try:
        with open(keytab.removeprefix("FILE:"), "rb"):
            return
    except OSError as error:
        raise ConfigurationError(
            f"Cannot read the keytab {keytab}: {error.strerror}. Set the property {_KEYTAB} to a file that this "
            "process may read."
        ) from error
