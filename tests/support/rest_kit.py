"""Apache Iceberg's REST Compatibility Kit: its tests of a catalog and of views, as a client of a running server."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.maven import Artifact, UnavailableError, fetched

VERSION = "1.11.0"
_ICEBERG = "org.apache.iceberg"
_ARTIFACTS = (
    Artifact(_ICEBERG, "iceberg-open-api", VERSION, classifier="tests"),
    Artifact(_ICEBERG, "iceberg-open-api", VERSION, classifier="test-fixtures"),
    Artifact(_ICEBERG, "iceberg-core", VERSION),
    Artifact(_ICEBERG, "iceberg-core", VERSION, classifier="tests"),
    Artifact(_ICEBERG, "iceberg-api", VERSION, classifier="tests"),
    Artifact(_ICEBERG, "iceberg-common", VERSION),
    Artifact(_ICEBERG, "iceberg-data", VERSION),
    Artifact("org.apache.hadoop", "hadoop-client-api", "3.4.1"),
    Artifact("org.apache.hadoop", "hadoop-client-runtime", "3.4.1"),
    Artifact("org.junit.platform", "junit-platform-console-standalone", "1.11.4"),
    Artifact("org.assertj", "assertj-core", "3.27.3"),
    Artifact("org.awaitility", "awaitility", "4.2.2"),
    Artifact("org.mockito", "mockito-core", "4.11.0"),
    Artifact("org.xerial", "sqlite-jdbc", "3.49.1.0"),
    Artifact("org.eclipse.jetty.ee10", "jetty-ee10-servlet", "12.1.10"),
    Artifact("org.eclipse.jetty.compression", "jetty-compression-server", "12.1.10"),
    Artifact("org.eclipse.jetty.compression", "jetty-compression-gzip", "12.1.10"),
    Artifact("org.slf4j", "slf4j-nop", "2.0.17"),
)
_CLASSES = ("RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests")


@dataclass(frozen=True)
class KitResult:
    """How many of the kit's tests ended how, and what the kit said."""

    found: int
    successful: int
    failed: int
    aborted: int
    skipped: int
    text: str


def kit_jars() -> Path:
    """The folder of the kit's jars; its reference server is among them.

    Raises:
        UnavailableError: they cannot be fetched.
    """
    return fetched(f"rest-kit-{VERSION}", _ARTIFACTS)


def run_kit(url: str, warehouse: str, folder: Path) -> KitResult:
    """Runs the kit against a server.

    Raises:
        UnavailableError: it cannot be fetched, or there is no Java.
    """
    java = shutil.which("java")
    if java is None:
        raise UnavailableError("the REST Compatibility Kit needs Java")
    jars = kit_jars()
    settings = {
        "rck.local": "false",
        "uri": url,
        "warehouse": warehouse,
        # A Hive Metastore makes no namespace by itself.
        "rck.requires-namespace-create": "true",
    }
    done = subprocess.run(
        [
            java,
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            *(f"-D{key}={value}" for key, value in settings.items()),
            "-cp",
            f"{jars}/*",
            "org.junit.platform.console.ConsoleLauncher",
            "execute",
            *(part for name in _CLASSES for part in ("--select-class", f"org.apache.iceberg.rest.{name}")),
            "--details=summary",
            "--disable-banner",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    numbers = {word: int(number) for number, word in re.findall(r"\[ +(\d+) tests (\w+) +\]", done.stdout)}
    return KitResult(
        **{word: numbers.get(word, 0) for word in ("found", "successful", "failed", "aborted", "skipped")},
        text=done.stdout[-6000:] + done.stderr[-1000:],
    )
