"""Jars that tests need beside PySpark's, fetched once a machine with Maven."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("HMS_ICEBERG_SERVER_CACHE", Path.home() / ".cache" / "hms_iceberg" / "servers"))

_MAVEN_SECONDS = 900


class UnavailableError(Exception):
    """Jars cannot be had here, or nothing that runs them."""


@dataclass(frozen=True)
class Artifact:
    """What Maven is asked for: the parts of its name, what it is not to bring; of kind `pom`, only what it brings.

    A classifier chooses one of several jars of the same name.
    """

    group: str
    name: str
    version: str
    without: tuple[tuple[str, str], ...] = ()
    kind: str = "jar"
    classifier: str = ""

    def xml(self) -> str:
        """As a dependency of a pom."""
        excluded = "".join(
            f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
            for group, name in self.without
        )
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.name}</artifactId>"
            f"<version>{self.version}</version><type>{self.kind}</type>"
            + (f"<classifier>{self.classifier}</classifier>" if self.classifier else "")
            + (f"<exclusions>{excluded}</exclusions>" if excluded else "")
            + "</dependency>"
        )


def fetched(name: str, artifacts: tuple[Artifact, ...], managed_by: Artifact | None = None) -> Path:
    """A folder of jars, filled at the first call on a machine.

    Args:
        name: the folder's name; other jars need another one.
        artifacts: what is in it, with all that it needs.
        managed_by: a pom that decides about versions, if the artifacts' own do not fit together.

    Raises:
        UnavailableError: no Maven, or Maven could not fetch them.
    """
    folder = CACHE / name
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError(f"{name} is fetched with Maven, and there is no `mvn` on PATH")
    work = CACHE / f"{name}.{os.getpid()}.part"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "pom.xml").write_text(_pom(artifacts, managed_by))
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = [maven, "-B", "-q", goal, "-DincludeScope=runtime", f"-DoutputDirectory={work / 'jars'}"]
    try:
        subprocess.run(command, cwd=work, check=True, capture_output=True, text=True, timeout=_MAVEN_SECONDS)
    except subprocess.CalledProcessError as error:
        raise UnavailableError(f"Maven cannot fetch {name}: {error.stdout[-400:]}") from error
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"Maven cannot fetch {name} in {_MAVEN_SECONDS} s") from error
    try:
        (work / "jars").rename(folder)
    except OSError:  # another process was first
        if not folder.exists():
            raise
    shutil.rmtree(work)
    return folder


def _pom(artifacts: tuple[Artifact, ...], managed_by: Artifact | None) -> str:
    managed = ""
    if managed_by is not None:
        imported = managed_by.xml().replace("</dependency>", "<scope>import</scope></dependency>")
        managed = f"<dependencyManagement><dependencies>{imported}</dependencies></dependencyManagement>"
    dependencies = "".join(artifact.xml() for artifact in artifacts)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>hms-iceberg-tests</groupId><artifactId>jars</artifactId><version>1</version>"
        f"{managed}<dependencies>{dependencies}</dependencies></project>"
    )
