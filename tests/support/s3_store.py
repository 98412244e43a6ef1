"""A store that speaks S3, on loopback, that fails where it is told to; and what Hadoop's `s3a` needs to reach it."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hms_iceberg.hms.embedded.jars import find_metastore_jars
from tests.support.failing_store import FailingStore
from tests.support.maven import Artifact, UnavailableError, fetched

BUCKET = "warehouse"
_EVERYTHING = (("*", "*"),)
_SDK = "2.35.4"
_CODES = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}
_ERRORS = {
    status: f"<Error><Code>{code}</Code><Message>told to fail</Message></Error>" for status, code in _CODES.items()
}


@dataclass
class S3Store(FailingStore):
    """A store with an empty bucket."""

    errors: dict[int, str] = field(default_factory=lambda: _ERRORS)
    kind: str = "application/xml"

    @property
    def properties(self) -> dict[str, str]:
        """The store as properties of a catalog."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
        }

    @property
    def hadoop(self) -> dict[str, str]:
        """The store as settings of Hadoop."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.access.key": "key",
            "fs.s3a.secret.key": "secret",
            "fs.s3a.path.style.access": "true",
        }


@contextmanager
def s3_store() -> Iterator[S3Store]:
    """A running store with the bucket `warehouse`."""
    from moto.backends import get_backend
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    get_backend("s3")["123456789012"]["aws"].create_bucket(BUCKET, "us-east-1")
    store = S3Store()
    server = make_server("127.0.0.1", 0, store.answers(DomainDispatcherApplication(create_backend_app)), threaded=True)
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        get_backend("s3")["123456789012"]["aws"].reset()


def s3a_jars() -> list[Path]:
    """The jars of Hadoop's `s3a`, of the release of Hadoop that PySpark brings.

    Raises:
        UnavailableError: Maven cannot fetch them.
    """
    names = [jar.name for jar in find_metastore_jars()]
    hadoop = next(re.fullmatch(r"hadoop-client-api-(.*)\.jar", name) for name in names if "hadoop-client-api" in name)
    if hadoop is None:
        raise UnavailableError("PySpark has no Hadoop")
    folder = fetched(
        f"s3a-{hadoop[1]}",
        (
            Artifact("org.apache.hadoop", "hadoop-aws", hadoop[1], _EVERYTHING),
            # What s3a calls of Amazon's library, which as a whole is of hundreds of megabytes.
            *(Artifact("software.amazon.awssdk", name, _SDK) for name in ("s3", "s3-transfer-manager", "sts")),
            Artifact("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1", _EVERYTHING),
        ),
    )
    return sorted(folder.glob("*.jar"))
